/*
 * Whether the job is dead: MARCEL_DEADLOCK. Each rank has a socket for that, on
 * which its watchman (marcel/thread/hang.c has the lines) says when nothing but
 * messages of other ranks can move it, and how many packets it has sent and
 * received so far.
 *
 * That all ranks have said so is not enough, for they did at different times.
 * If as many packets were received as were sent, we ask all of them again. If
 * each is still as it said it was, none has moved between its two answers; so
 * between the last first answer and the first second one all were still at
 * once, and the sums are of that time: nothing was on its way (Mattern's four
 * counters). Nobody can then begin to move, so nobody ever will: all are asked
 * what they wait for, and that is printed in the order of ranks, and in what
 * circle they wait for each other.
 *
 * A rank that has ended, or is none of marcel's yet, says nothing; then nothing
 * is found, unless it has failed and the others go on without it.
 *
 * On SIGUSR2, and when all ranks have been quiet for long (each says so), all
 * are asked what they wait for, dead or not. That has lines of its own ('d',
 * and said and state), for a rank may be stopped, and never answer: then it
 * goes without. What a rank owes it still brings when it goes on; it is not
 * asked again before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job.h"

enum {
	EXIT_DEADLOCK = 123,
	TEXT_MAX = 1 << 20,
	ANSWER_MS = 2000, /* a rank that has not answered then does not */
};

/* What the job is at. */
enum { WATCHES, ASKS, GATHERS, SAID };

/* A line "edge RANK WORDS" of a rank's report. */
struct edge {
	int to;
	char *what;
};

/* Lines, each with its newline. */
struct text {
	char *lines; /* or NULL */
	size_t length;
};

/* What a rank that was asked says it is. */
enum state { UNKNOWN, BUSY, QUIET, DEAD };

struct hang_rank {
	bool quiet;    /* it has said so, and nothing else since */
	bool silent;   /* likewise: for long */
	bool answered; /* of this round */
	unsigned long long moved, sent, received;
	unsigned long long was_moved; /* when we asked again */
	char line[LINE];
	size_t len;
	struct text text; /* its report */
	struct edge *edges;
	int nedges;
	bool owes;        /* an answer to 'd' */
	struct text said; /* that; if it owes one, what came so far */
	enum state state; /* of that answer */
	bool ends;        /* the program is to be ended if the job is dead */
};

/* The value of the variable in what a program gets. */
static const char *value(const struct program *p, const char *name)
{
	size_t n = strlen(name);

	for (int i = p->nenv; i-- > 0;)
		if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=')
			return p->env[i] + n + 1;
	return getenv(name);
}

int hang_open(struct rank *r, const struct program *p)
{
	const char *mode = value(p, "MARCEL_DEADLOCK");
	int ends[2];

	r->hang_fd = -1;
	if (mode == NULL ||
	    (strcmp(mode, "report") != 0 && strcmp(mode, "abort") != 0))
		return -1; /* off, or nonsense that marcel refuses */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		say("cannot make a socket for MARCEL_DEADLOCK: %s",
		    strerror(errno));
		exit(1);
	}
	r->hang = must(calloc(1, sizeof(*r->hang)));
	r->hang->ends = strcmp(mode, "abort") == 0;
	r->hang_fd = ends[0];
	return ends[1];
}

static void drop_text(struct text *t)
{
	free(t->lines);
	t->lines = NULL;
	t->length = 0;
}

static void drop_report(struct hang_rank *h)
{
	for (int i = 0; i < h->nedges; i++)
		free(h->edges[i].what);
	free(h->edges);
	drop_text(&h->text);
	h->edges = NULL;
	h->nedges = 0;
}

static void drop_reports(struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].hang != NULL)
			drop_report(j->ranks[i].hang);
}

/* --- what was found --- */

static void print_text(int rank, const struct text *t)
{
	for (char *at = t->lines; at != NULL && *at != '\0';) {
		char *end = strchr(at, '\n');

		say("rank %d: %.*s", rank, (int)(end - at), at);
		at = end + 1;
	}
}

static void print(struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].hang != NULL)
			print_text(i, &j->ranks[i].hang->text);
}

/* The edge of rank i that the walk takes: its first to somebody who waits. */
static const struct edge *next_of(const struct job *j, int i)
{
	const struct hang_rank *h = j->ranks[i].hang;

	for (int e = 0; h != NULL && e < h->nedges; e++)
		if (h->edges[e].to < j->opt.ranks)
			return &h->edges[e];
	return NULL;
}

/* From each rank on, until one is met again: told by its lowest rank. */
static void print_cycle(const struct job *j, int first)
{
	const struct edge *e = next_of(j, first);
	int n = 1;

	for (; e != NULL && e->to != first; e = next_of(j, e->to))
		if (e->to < first || ++n > j->opt.ranks)
			return;
	if (e == NULL)
		return;
	say("a cycle of %d rank(s), none of which can go on:", n);
	for (int i = 0, at = first; i < n; i++, at = e->to) {
		e = next_of(j, at);
		say("  rank %d waits for rank %d: %s", at, e->to, e->what);
	}
}

static void conclude(struct job *j)
{
	bool ends = false;

	say("deadlock: no rank can ever go on");
	print(j);
	for (int i = 0; i < j->opt.ranks; i++)
		print_cycle(j, i);
	for (int i = 0; i < j->opt.ranks; i++)
		ends |= j->ranks[i].hang != NULL && j->ranks[i].hang->ends;
	j->hang_phase = SAID;
	if (ends)
		job_fail(j, EXIT_DEADLOCK, "deadlock (MARCEL_DEADLOCK=abort)");
}

/* --- rounds --- */

static bool is_asked(const struct rank *r)
{
	return !r->failed && r->pid > 0;
}

static void ask(struct job *j, char what, int phase)
{
	for (int i = 0; i < j->opt.ranks; i++) {
		struct rank *r = &j->ranks[i];

		if (!is_asked(r))
			continue;
		r->hang->answered = false;
		r->hang->was_moved = r->hang->moved;
		if (send(r->hang_fd, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    1)
			r->hang->quiet = false; /* it ends, or is stuck */
	}
	j->hang_phase = phase;
}

/* All have said that they are quiet, and nothing is on its way. */
static bool seems_dead(const struct job *j)
{
	unsigned long long sent = 0, received = 0;
	int n = 0;

	for (int i = 0; i < j->opt.ranks; i++) {
		const struct rank *r = &j->ranks[i];

		/* With --keep-going the others may yet find that it failed. */
		if (r->failed || r->hang == NULL || r->hang_fd < 0 ||
		    !r->hang->quiet || r->gone || r->pid == 0)
			return false;
		sent += r->hang->sent;
		received += r->hang->received;
		n++;
	}
	return n > 0 && sent == received;
}

static bool all_answered(const struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (is_asked(&j->ranks[i]) && !j->ranks[i].hang->answered)
			return false;
	return true;
}

static bool none_moved(const struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (is_asked(&j->ranks[i]) &&
		    j->ranks[i].hang->moved != j->ranks[i].hang->was_moved)
			return false;
	return seems_dead(j);
}

/* Something has changed, or was answered. */
static void judge(struct job *j)
{
	if (j->failed)
		return;
	if (j->hang_phase == ASKS && all_answered(j)) {
		if (none_moved(j)) {
			ask(j, 'r', GATHERS);
			return;
		}
		j->hang_phase = WATCHES;
	}
	if (j->hang_phase == GATHERS && all_answered(j)) {
		j->hang_phase = WATCHES;
		if (seems_dead(j))
			conclude(j);
		drop_reports(j);
		return;
	}
	if (j->hang_phase == WATCHES && seems_dead(j))
		ask(j, 'l', ASKS);
}

/* --- asked what they wait for, dead or not --- */

static bool can_answer(const struct rank *r)
{
	return r->hang != NULL && r->hang_fd >= 0 && r->pid > 0;
}

/* The ranks whose answer is that; of all that have not ended. */
static int count(const struct job *j, enum state state)
{
	int n = 0;

	for (int i = 0; i < j->opt.ranks; i++)
		n += j->ranks[i].pid > 0 &&
		     (j->ranks[i].hang != NULL ? j->ranks[i].hang->state
					       : UNKNOWN) == state;
	return n;
}

static void print_verdict(const struct job *j)
{
	int unknown = count(j, UNKNOWN), busy = count(j, BUSY);

	if (j->hang_phase == SAID)
		say("report: deadlock, as was said: no rank can ever go on");
	else if (busy > 0)
		say("report: not quiet: %d of %d rank(s) run, or did just now",
		    busy, j->running);
	else if (unknown > 0)
		say("report: %d of %d rank(s) do not answer, the others are "
		    "quiet",
		    unknown, j->running);
	else if (count(j, DEAD) == j->running)
		say("report: deadlock: no rank that is left can ever go on");
	else
		say("report: quiet, not provably dead: no rank runs");
}

static void print_rank(const struct rank *r)
{
	const struct hang_rank *h = r->hang;

	if (h == NULL && r->pid > 0)
		say("rank %d: is not watched: its program is without "
		    "MARCEL_DEADLOCK",
		    r->number);
	else if (r->pid == 0)
		say("rank %d: has ended", r->number);
	else if (h->state != UNKNOWN)
		print_text(r->number, &h->said);
	else
		say("rank %d: does not answer: it is stopped, or not in MPI",
		    r->number);
}

static void print_answers(struct job *j)
{
	j->hang_due = 0;
	print_verdict(j);
	for (int i = 0; i < j->opt.ranks; i++)
		print_rank(&j->ranks[i]);
	say("end of report");
}

static bool any_owes(const struct job *j)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (can_answer(&j->ranks[i]) && j->ranks[i].hang->owes)
			return true;
	return false;
}

static void ask_all(struct job *j)
{
	static const char what = 'd';

	for (int i = 0; i < j->opt.ranks; i++) {
		struct rank *r = &j->ranks[i];

		if (!can_answer(r))
			continue;
		r->hang->state = UNKNOWN;
		if (r->hang->owes)
			continue;
		drop_text(&r->hang->said);
		r->hang->owes = send(r->hang_fd, &what, 1,
				     MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
	}
	j->hang_due = now_ms() + ANSWER_MS;
}

bool hang_ask(struct job *j)
{
	bool watched = false;

	for (int i = 0; i < j->opt.ranks; i++)
		watched |= j->ranks[i].hang != NULL;
	if (watched && j->hang_due == 0)
		ask_all(j);
	return watched;
}

void hang_look(struct job *j, long now)
{
	if (j->hang_due != 0 && (now >= j->hang_due || !any_owes(j)))
		print_answers(j);
}

/* Nobody has moved for long: all that have not ended say so. */
static void judge_silence(struct job *j)
{
	if (j->hang_phase == SAID || j->failed)
		return;
	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].pid > 0 &&
		    (!can_answer(&j->ranks[i]) || !j->ranks[i].hang->silent))
			return;
	say("no rank has moved for MARCEL_DEADLOCK_QUIET_S");
	hang_ask(j);
}

/* --- lines --- */

static void add_text(struct text *t, const char *line)
{
	size_t n = strlen(line);

	if (t->length + n + 2 > TEXT_MAX)
		return;
	t->lines = must(realloc(t->lines, t->length + n + 2));
	memcpy(t->lines + t->length, line, n);
	t->length += n + 1;
	t->lines[t->length - 1] = '\n';
	t->lines[t->length] = '\0';
}

static void add_edge(struct hang_rank *h, const char *line)
{
	char *words;
	long to = strtol(line, &words, 10);

	if (words == line || to < 0 || to >= RANKS_MAX || *words != ' ')
		return;
	h->edges = must(
		realloc(h->edges, ((size_t)h->nedges + 1) * sizeof(*h->edges)));
	h->edges[h->nedges].to = (int)to;
	h->edges[h->nedges++].what = must(strdup(words + 1));
}

static void line(struct job *j, struct rank *r, const char *text)
{
	struct hang_rank *h = r->hang;

	if (strncmp(text, "text ", 5) == 0) {
		add_text(&h->text, text + 5);
	} else if (strncmp(text, "said ", 5) == 0) {
		add_text(&h->said, text + 5);
	} else if (strncmp(text, "state ", 6) == 0) {
		h->owes = false;
		h->state = strcmp(text + 6, "busy") == 0    ? BUSY
			   : strcmp(text + 6, "quiet") == 0 ? QUIET
							    : DEAD;
	} else if (strcmp(text, "silent") == 0) {
		h->silent = true;
		judge_silence(j);
	} else if (strncmp(text, "edge ", 5) == 0) {
		add_edge(h, text + 5);
	} else if (strcmp(text, "end") == 0) {
		h->answered |= j->hang_phase == GATHERS;
	} else {
		h->quiet = sscanf(text, "quiet %llu %llu %llu", &h->moved,
				  &h->sent, &h->received) == 3;
		if (!h->quiet)
			h->silent = false;
		if (!h->quiet && j->hang_phase == SAID)
			j->hang_phase = WATCHES; /* somebody moves after all */
		h->answered |= j->hang_phase == ASKS;
	}
	judge(j);
}

static void lost(struct job *j, struct rank *r)
{
	close(r->hang_fd);
	r->hang_fd = -1;
	r->hang->quiet = r->hang->silent = false;
	r->hang->answered = true;
	judge(j);
}

void hang_serve(struct job *j, struct rank *r)
{
	struct hang_rank *h = r->hang;
	ssize_t n = recv(r->hang_fd, h->line + h->len,
			 sizeof(h->line) - 1 - h->len, MSG_DONTWAIT);
	char *end, *at = h->line;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lost(j, r);
		return;
	}
	h->len += (size_t)n;
	h->line[h->len] = '\0';
	while ((end = strchr(at, '\n')) != NULL) {
		*end = '\0';
		line(j, r, at);
		at = end + 1;
	}
	h->len -= (size_t)(at - h->line);
	memmove(h->line, at, h->len);
	if (h->len == sizeof(h->line) - 1)
		h->len = 0; /* none of marcel's */
}

void hang_close(struct job *j, struct rank *r)
{
	if (r->hang_fd >= 0)
		close(r->hang_fd);
	r->hang_fd = -1;
	if (r->hang != NULL) {
		drop_report(r->hang);
		drop_text(&r->hang->said);
	}
	free(r->hang);
	r->hang = NULL;
	judge(j);
}
