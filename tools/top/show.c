/*
 * Processes as lines of text, and these on a screen.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top.h"

enum { BAR = 20 };

static const struct {
	const char *name;
	char mark; /* in the bar */
} doings[VP_DOES] = {
	[VP_THREAD] = { "threads", '#' },
	[VP_LTASKS] = { "ltasks", '+' },
	[VP_IDLE] = { "idle", '.' },
	[VP_SLEEPS] = { "sleeping", ' ' },
};

static void show_vp(FILE *out, int number, const struct vp *vp)
{
	uint64_t looks = 0, sum = 0;
	char bar[BAR + 1];

	for (int i = 0; i < VP_DOES; i++)
		looks += vp->seen[i];
	if (looks == 0)
		return;
	for (int i = 0, at = 0; i < VP_DOES; i++) {
		sum += vp->seen[i];
		while (at < (int)((sum * BAR + looks / 2) / looks))
			bar[at++] = doings[i].mark;
	}
	bar[BAR] = '\0';
	if (vp->cpu >= 0)
		fprintf(out, "  vp %-3d cpu %-3d [%s]", number, vp->cpu, bar);
	else
		fprintf(out, "  vp %-3d         [%s]", number, bar);
	for (int i = 0; i < VP_DOES; i++)
		fprintf(out, "  %s %.1f %%", doings[i].name,
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

static void show_process(FILE *out, const struct process *p)
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
		show_vp(out, i, &p->vps[i]);
}

static void show_all(FILE *out, const struct process *list, double seconds)
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
		fprintf(out, "no process here that uses marcel\n");
	else
		fprintf(out, "%d process%s\n", n, n == 1 ? "" : "es");
	for (const struct process *p = list; p != NULL; p = p->next)
		if (p->is_shown)
			show_process(out, p);
}

/* As much as there is room for: a line of the text is one of the screen. */
static void paint(const struct place *where, const char *text)
{
	int rows = where->rows;

	fputs("\033[H", where->out);
	while (*text != '\0' && rows > 0) {
		size_t length = strcspn(text, "\n");
		size_t shown = length;

		if (shown > (size_t)where->columns)
			shown = (size_t)where->columns;
		rows--;
		fwrite(text, 1, shown, where->out);
		/* The last line does not scroll what is above. */
		fputs(rows > 0 ? "\033[K\r\n" : "\033[K", where->out);
		text += length + (text[length] == '\n');
	}
	if (rows > 0)
		fputs("\033[J", where->out);
	fflush(where->out);
}

void show_processes(const struct place *where, const struct process *list,
		    double seconds)
{
	char *text = NULL;
	size_t length;
	FILE *out;

	if (where->rows == 0) {
		show_all(where->out, list, seconds);
		fflush(where->out);
		return;
	}
	out = open_memstream(&text, &length);
	if (out == NULL)
		return;
	show_all(out, list, seconds);
	if (fclose(out) == 0)
		paint(where, text);
	free(text);
}
