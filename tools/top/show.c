/*
 * Processes as lines of text, and these on a screen.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "top.h"

enum { BAR = 20, BAR_LEAST = 4, INDENT = 4 };

static const struct {
	const char *name;
	char mark; /* in the bar */
} doings[VP_DOES] = {
	[VP_THREAD] = { "threads", '#' },
	[VP_LTASKS] = { "ltasks", '+' },
	[VP_IDLE] = { "idle", '.' },
	[VP_SLEEPS] = { "sleeping", ' ' },
};

/*
 * A line of some 70 columns, and as much of a bar as there is room for beside
 * it in so many columns; 0: all of it.
 */
static void show_vp(FILE *out, int columns, int number, const struct vp *vp)
{
	uint64_t looks = 0, sum = 0;
	char bar[BAR + 1];
	int length = columns ? columns - 72 : BAR;

	for (int i = 0; i < VP_DOES; i++)
		looks += vp->seen[i];
	if (looks == 0)
		return;
	if (length > BAR)
		length = BAR;
	if (length < BAR_LEAST)
		length = 0;
	for (int i = 0, at = 0; i < VP_DOES; i++) {
		sum += vp->seen[i];
		while (at < (int)((sum * (uint64_t)length + looks / 2) / looks))
			bar[at++] = doings[i].mark;
	}
	bar[length] = '\0';
	fprintf(out, "  vp %-3d", number);
	if (vp->cpu >= 0)
		fprintf(out, " cpu %-3d", vp->cpu);
	else
		fprintf(out, "%8s", "");
	if (length > 0)
		fprintf(out, " [%s]", bar);
	for (int i = 0; i < VP_DOES; i++)
		fprintf(out, "  %s %.0f %%", doings[i].name,
			100.0 * (double)vp->seen[i] / (double)looks);
	fputc('\n', out);
}

/* What was counted, and in a second since the last time. */
static void show_counts(FILE *out, const struct process *p)
{
	/* Begins a line. */
	static const bool begins[COUNTS] = { [COUNT_SWITCHES] = true,
					     [COUNT_POLLS] = true,
					     [COUNT_SENDS] = true };

	for (int i = 0; i < COUNTS; i++) {
		uint64_t passed = p->counts[i] - p->last[i];

		if (!p->known[i])
			continue;
		if (i == COUNT_SWITCHES || i == COUNT_PREEMPTED)
			passed = (uint32_t)passed; /* of 32 bits in each VP */
		fprintf(out, "%s%s %lu", begins[i] ? "  " : ", ",
			count_names[i], p->counts[i]);
		if (p->before > 0)
			fprintf(out, " (+%.0f/s)",
				(double)passed / (p->at - p->before));
		if (i + 1 == COUNTS || begins[i + 1])
			fputc('\n', out);
	}
}

static void show_process(FILE *out, int columns, const struct process *p)
{
	const struct threads *t = &p->threads;

	if (p->rank >= 0)
		fprintf(out, "rank %d of %d, ", p->rank, p->size);
	fprintf(out, "pid %d (%s): ", (int)p->pid, p->name);
	if (p->trouble[0] != '\0') {
		fprintf(out, "%s\n", p->trouble);
		return;
	}
	fprintf(out,
		"threads: %ld running, %ld ready, %ld blocked, %ld ended, "
		"%ld foreign",
		t->running, t->ready, t->blocked, t->ended, t->foreign);
	if (p->known[COUNT_POLLS])
		fprintf(out, "; %ld ltasks", p->ltasks);
	if (p->known[COUNT_SENDS])
		fprintf(out, "; %ld requests", p->pending);
	fputc('\n', out);
	show_counts(out, p);
	for (int i = 0; i < p->nvp; i++)
		show_vp(out, columns, i, &p->vps[i]);
}

static void show_all(FILE *out, int columns, const struct process *list,
		     double seconds)
{
	time_t now = time(NULL);
	struct tm tm;
	int n = 0;

	for (const struct process *p = list; p != NULL; p = p->next)
		n += p->is_shown;
	localtime_r(&now, &tm);
	fprintf(out, MARCEL_TOP " %02d:%02d:%02d, %.1f s: ", tm.tm_hour,
		tm.tm_min, tm.tm_sec, seconds);
	if (n == 0)
		fprintf(out, "no process %sthat uses marcel\n",
			geteuid() == 0 ? "here " : "of yours ");
	else
		fprintf(out, "%d process%s\n", n, n == 1 ? "" : "es");
	for (const struct process *p = list; p != NULL; p = p->next)
		if (p->is_shown)
			show_process(out, columns, p);
}

/*
 * How much of a line goes on a row of the screen. One that is too long is
 * broken between two things that it says, if it says several there.
 */
static size_t row(const char *line, size_t length, size_t columns)
{
	if (length <= columns)
		return length;
	for (size_t i = columns; i > 1; i--)
		if (line[i] == ' ' && strchr(",;:]%", line[i - 1]) != NULL)
			return i;
	return columns;
}

/* The text in rows; those of a line are indented, from the second on. */
static void wrap(FILE *out, const char *text, int columns)
{
	size_t indent = columns > 4 * INDENT ? INDENT : 0;

	for (; *text != '\0'; text += *text == '\n') {
		size_t left = strcspn(text, "\n");
		size_t taken = row(text, left, (size_t)columns);

		fprintf(out, "%.*s\n", (int)taken, text);
		for (text += taken; (left -= taken) > 0; text += taken) {
			size_t blank = strspn(text, " ");

			text += blank;
			left -= blank;
			taken = row(text, left, (size_t)columns - indent);
			if (taken > 0)
				fprintf(out, "%*s%.*s\n", (int)indent, "",
					(int)taken, text);
		}
	}
}

static size_t count_rows(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

/* What there is no room for is counted on the last row. */
static void paint(const struct place *where, const char *rows)
{
	size_t left = count_rows(rows), room = (size_t)where->rows;
	size_t shown = left <= room ? left : room - 1;
	char more[80];

	fputs("\033[H", where->out);
	for (; shown > 0; shown--, left--, room--) {
		size_t length = strcspn(rows, "\n");

		fwrite(rows, 1, length, where->out);
		/* The last line does not scroll what is above. */
		fputs(room > 1 ? "\033[K\r\n" : "\033[K", where->out);
		rows += length + 1;
	}
	snprintf(more, sizeof(more), "%zu more lines: -p shows one process",
		 left);
	if (left > 0)
		fprintf(where->out, "%.*s\033[K", where->columns, more);
	else if (room > 0)
		fputs("\033[J", where->out);
	fflush(where->out);
}

static void show_on_screen(const struct place *where,
			   const struct process *list, double seconds)
{
	char *text = NULL, *rows = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (out == NULL)
		return;
	show_all(out, where->columns, list, seconds);
	if (fclose(out) != 0)
		goto free_text;
	out = open_memstream(&rows, &length);
	if (out == NULL)
		goto free_text;
	wrap(out, text, where->columns);
	if (fclose(out) == 0)
		paint(where, rows);
	free(rows);
free_text:
	free(text);
}

void show_processes(const struct place *where, const struct process *list,
		    double seconds)
{
	if (where->rows > 0) {
		show_on_screen(where, list, seconds);
		return;
	}
	show_all(where->out, 0, list, seconds);
	fflush(where->out);
}
