/* pioman/stats: what is counted, and where it can be read. */
#include "with.h"

#include <string.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/diag.h>

#include "io/pipes.h"

enum { MANY = 64, POLLS = 1000 };

static void set(const char *name, const char *value)
{
	if (value != NULL)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/*
 * One VP, and nobody polls but who says so. Threads change only where they say
 * so, however late the kernel lets them run.
 */
static void with(const char *engine, const char *piom_mode, const char *stats,
		 void (*body)(void))
{
	struct mode m = { 1, engine, "passive", "0" };

	set("PIOM_MODE", piom_mode);
	set("PIOM_STATS", stats);
	set("MARCEL_TIMESLICE_US", "0");
	with_mode(&m, body);
	set("PIOM_MODE", NULL);
	set("PIOM_STATS", NULL);
	set("MARCEL_TIMESLICE_US", NULL);
}

static void explicitly(void (*body)(void))
{
	with("none", "poll", NULL, body);
}

static uint64_t count(const char *name)
{
	struct piom_counter c[MANY];
	size_t n = piom_stats_read(c, MANY);

	CHECK(n <= MANY);
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	check_fail(__FILE__, __LINE__, "no counter %s", name);
}

/* What all of them are together, but these two. */
static uint64_t all_but(const char *one, const char *other)
{
	struct piom_counter c[MANY];
	size_t n = piom_stats_read(c, MANY);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, one) != 0 &&
		    strcmp(c[i].name, other) != 0)
			sum += c[i].value;
	return sum;
}

/* An ltask that gives an answer, once or again and again. */
struct answer {
	struct piom_ltask task;
	enum piom_ltask_result answer;
};

static enum piom_ltask_result say(void *arg)
{
	return ((struct answer *)arg)->answer;
}

static void submit(struct answer *a, enum piom_ltask_result answer)
{
	a->answer = answer;
	piom_ltask_init(&a->task, say, a, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&a->task);
}

static void poll_often(int n)
{
	for (int i = 0; i < n; i++)
		piom_poll();
}

/* --- what is counted --- */

static void runs_in_vain(void)
{
	struct answer a;

	poll_often(POLLS);
	CHECK_INT(all_but("", ""), 0);
	submit(&a, PIOM_LTASK_AGAIN);
	poll_often(POLLS);
	CHECK_INT(count("polls"), POLLS);
	CHECK_INT(count("passes_poll"), POLLS);
	CHECK_INT(all_but("polls", "passes_poll"), 0);
	CHECK_INT(piom_ltask_cancel(&a.task), 0);
}

TEST(polls_are_runs_and_an_empty_queue_is_not_asked)
{
	explicitly(runs_in_vain);
}

static void runs_that_work(void)
{
	struct answer a, b;

	submit(&a, PIOM_LTASK_WORKED);
	submit(&b, PIOM_LTASK_QUIET);
	poll_often(POLLS);
	CHECK_INT(count("hits"), POLLS);
	a.answer = PIOM_LTASK_DONE;
	b.answer = PIOM_LTASK_DONE;
	poll_often(POLLS);
	CHECK_INT(count("polls"), 2 * POLLS + 2);
	CHECK_INT(count("hits"), POLLS + 2);
	CHECK_INT(count("passes_poll"), POLLS + 1);
}

TEST(hits_are_runs_that_did_work)
{
	explicitly(runs_that_work);
}

static enum piom_ltask_result submit_another(void *arg)
{
	piom_ltask_submit(arg);
	return PIOM_LTASK_DONE;
}

/* What comes during a pass has one of its own. */
static void one_submits_another(void)
{
	struct answer last = { .answer = PIOM_LTASK_DONE };
	struct piom_ltask first;

	piom_ltask_init(&last.task, say, &last, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_init(&first, submit_another, &last.task, PIOM_LTASK_ONESHOT,
			NULL);
	piom_ltask_submit(&first);
	CHECK_INT(piom_poll(), 2);
	CHECK_INT(count("polls"), 2);
	CHECK_INT(count("hits"), 2);
	CHECK_INT(count("passes_poll"), 2);
}

TEST(each_run_is_counted_once_however_many_passes_it_took)
{
	explicitly(one_submits_another);
}

/* An ltask that stays inside its run until it is let out. */
static ATOMIC(int) inside, out;

static enum piom_ltask_result stay(void *arg)
{
	(void)arg;
	store_release(&inside, 1);
	while (!load_acquire(&out))
		sched_yield();
	return PIOM_LTASK_DONE;
}

static void *poll_once(void *arg)
{
	piom_poll();
	return arg;
}

static void others_hold(void)
{
	struct piom_ltask t;
	pthread_t other;

	store_relaxed(&inside, 0);
	store_relaxed(&out, 0);
	piom_ltask_init(&t, stay, NULL, PIOM_LTASK_ONESHOT, NULL);
	piom_ltask_submit(&t);
	CHECK_INT(pthread_create(&other, NULL, poll_once, NULL), 0);
	while (!load_acquire(&inside))
		sched_yield();
	poll_often(7);
	CHECK_INT(count("skipped_busy"), 7);
	CHECK_INT(count("passes_poll"), 0);
	store_release(&out, 1);
	CHECK_INT(pthread_join(other, NULL), 0);
	CHECK_INT(count("skipped_busy"), 7);
	CHECK_INT(count("passes_poll"), 1);
}

TEST(a_queue_that_another_asks_is_skipped)
{
	explicitly(others_hold);
}

static void what_is_armed_fires(void)
{
	struct reader r;
	piom_cond_t got;

	reader_init(&r, NULL);
	r.got = &got;
	piom_ltask_submit(&r.task);
	piom_poll();
	CHECK_INT(count("armed"), 1);
	CHECK_INT(count("interrupts"), 0);
	for (int i = 1; i <= 5; i++) {
		piom_cond_init(&got);
		feed(&r);
		while (!piom_cond_test(&got)) /* the watcher alone runs it */
			sched_yield();
		while (count("armed") != 1 + (uint64_t)i)
			sched_yield();
		CHECK_INT(count("interrupts"), i);
	}
	CHECK(count("passes_watcher") >= 5);
	CHECK_INT(count("hits"), 5);
	CHECK_INT(count("passes_poll"), 1);
	reader_end(&r);
}

TEST(an_event_for_what_is_armed_is_an_interrupt)
{
	with("none", "interrupt", NULL, what_is_armed_fires);
}

static piom_cond_t go, back;

static void *answer_when_told(void *arg)
{
	piom_cond_wait(&go);
	piom_cond_signal(&back);
	return arg;
}

/* Each parks at once, and the other's signal ends that. */
static void user_threads_in_turns(void)
{
	marcel_t t;

	for (int i = 0; i < 10; i++) {
		piom_cond_init(&go);
		piom_cond_init(&back);
		CHECK_INT(marcel_create(&t, NULL, answer_when_told, NULL), 0);
		marcel_yield(); /* it parks */
		piom_cond_signal(&go);
		piom_cond_wait(&back);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(count("wakeups"), 2 * (i + 1));
	}
	CHECK_INT(count("naps"), 0);
	CHECK_INT(piom_cond_wait_until(&go, 0), 0);
	CHECK_INT(count("wakeups"), 20); /* it had been signalled */
}

/* The same if the sleep might have ended otherwise. */
static void signalled_in_time(void)
{
	marcel_t t;

	piom_cond_init(&go);
	piom_cond_init(&back);
	CHECK_INT(marcel_create(&t, NULL, answer_when_told, NULL), 0);
	marcel_yield();
	piom_cond_signal(&go);
	CHECK_INT(piom_cond_wait_until(&back, UINT64_MAX - 1), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(count("wakeups"), 2);
}

TEST(a_parked_thread_that_is_signalled_has_a_wakeup)
{
	with("marcel", NULL, NULL, user_threads_in_turns);
	CHECK_INT(all_but("", ""), 0); /* that was the last start's */
	with("marcel", NULL, NULL, signalled_in_time);
}

static void in_vain_until(void)
{
	piom_cond_init(&go);
	CHECK_INT(piom_cond_wait_until(&go, base_now_ns() + 1000), -ETIMEDOUT);
	CHECK_INT(count("wakeups"), 0);
}

TEST(a_wait_whose_time_has_come_has_none)
{
	with("marcel", NULL, NULL, in_vain_until);
}

/* Nobody polls for it: while nothing is to be polled it naps. */
static void foreign_thread_naps(void)
{
	pthread_t t;

	piom_cond_init(&go);
	piom_cond_init(&back);
	CHECK_INT(pthread_create(&t, NULL, answer_when_told, NULL), 0);
	while (count("naps") < 2)
		sched_yield();
	CHECK_INT(count("wakeups"), 0);
	piom_cond_signal(&go);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK(count("wakeups") <= 1);
}

TEST(sleeps_between_polls_are_naps)
{
	with("none", NULL, NULL, foreign_thread_naps);
}

/* --- time --- */

static uint64_t spent; /* inside the ltask, ns */

static enum piom_ltask_result spend(void *arg)
{
	uint64_t start = base_now_ns(), now;

	do
		now = base_now_ns();
	while (now - start < 20000);
	spent += now - start;
	return *(enum piom_ltask_result *)arg;
}

/* The least gap between two passes, by a clock that runs inside of it. */
static uint64_t poll_with_a_gap(void)
{
	uint64_t end, start;

	piom_poll();
	end = base_now_ns();
	do
		start = base_now_ns();
	while (start - end < 50000);
	piom_poll();
	return start - end;
}

static uint64_t gap;

static void spend_some(enum piom_ltask_result answer)
{
	struct piom_ltask t;

	spent = 0;
	piom_ltask_init(&t, spend, &answer, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&t);
	gap = poll_with_a_gap();
	CHECK_INT(piom_ltask_cancel(&t), 0);
}

static void time_is_seen(void)
{
	spend_some(PIOM_LTASK_QUIET);
	CHECK(count("time_in_ltasks") >= spent);
	CHECK_INT(count("longest_gap"), 0); /* nobody wanted to be asked */
	spend_some(PIOM_LTASK_AGAIN);
	CHECK(count("longest_gap") >= gap);
}

static void time_is_not_seen(void)
{
	spend_some(PIOM_LTASK_AGAIN);
	CHECK_INT(count("time_in_ltasks"), 0);
	CHECK_INT(count("longest_gap"), 0);
}

TEST(time_is_counted_if_that_is_wanted)
{
	with("none", "poll", "1", time_is_seen);
	with("none", "poll", "0", time_is_not_seen);
	explicitly(time_is_not_seen);
}

/* --- reading --- */

static void leave_counts(void)
{
	CHECK_INT(all_but("", ""), 0);
	runs_in_vain();
	CHECK(count("polls") != 0);
}

TEST(each_start_counts_from_0)
{
	explicitly(leave_counts);
	CHECK_INT(all_but("", ""), 0); /* nor is anything there between */
	explicitly(leave_counts);
}

TEST(counters_have_a_name_of_their_own_and_a_text)
{
	struct piom_counter c[MANY];
	size_t n = piom_stats_read(c, MANY);

	CHECK_INT(piom_stats_read(NULL, 0), n);
	CHECK(n > 0 && n <= MANY);
	for (size_t i = 0; i < n; i++) {
		CHECK(c[i].name[0] != 0 && c[i].help[0] != 0);
		CHECK(strcmp(c[i].unit, "") == 0 ||
		      strcmp(c[i].unit, "ns") == 0);
		CHECK_INT(strcspn(c[i].name, " \n"), strlen(c[i].name));
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(c[i].name, c[j].name) != 0);
	}
}

TEST(only_as_many_are_written_as_there_is_room_for)
{
	struct piom_counter c[3] = { [2] = { .name = "mine" } };

	CHECK_INT(piom_stats_read(c, 2), piom_stats_read(NULL, 0));
	CHECK_STR(c[0].name, "polls");
	CHECK_STR(c[1].name, "hits");
	CHECK_STR(c[2].name, "mine");
}

static void *poll_often_foreign(void *arg)
{
	poll_often(*(int *)arg);
	return NULL;
}

/* Nothing of it grows less. */
static void read_while_others_poll(void)
{
	struct piom_counter before[MANY], c[MANY];
	size_t n = piom_stats_read(before, MANY);
	int polls = 20 * POLLS;
	struct answer a;
	pthread_t t[2];

	submit(&a, PIOM_LTASK_WORKED);
	for (int i = 0; i < 2; i++)
		CHECK_INT(
			pthread_create(&t[i], NULL, poll_often_foreign, &polls),
			0);
	for (int r = 0; r < POLLS; r++) {
		piom_stats_read(c, MANY);
		for (size_t i = 0; i < n; i++)
			CHECK(c[i].value >= before[i].value);
		memcpy(before, c, sizeof(c));
	}
	for (int i = 0; i < 2; i++)
		CHECK_INT(pthread_join(t[i], NULL), 0);
	/* Each of them has asked it or has left that to the other. */
	CHECK_INT(count("passes_poll") + count("skipped_busy"), 2 * polls);
	CHECK_INT(count("polls"), count("passes_poll"));
	CHECK_INT(count("hits"), count("polls"));
	CHECK_INT(piom_ltask_cancel(&a.task), 0);
}

TEST(they_may_be_read_while_others_poll)
{
	explicitly(read_while_others_poll);
	with("none", "poll", "1", read_while_others_poll);
}

/* --- printing --- */

/* What is said on stderr meanwhile. */
static FILE *hear(int *stderr_fd)
{
	FILE *text = tmpfile();

	CHECK(text != NULL);
	fflush(stderr);
	*stderr_fd = dup(STDERR_FILENO);
	dup2(fileno(text), STDERR_FILENO);
	return text;
}

static void hear_no_more(FILE *text, int stderr_fd)
{
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	rewind(text);
}

static void poll_some(void)
{
	struct answer a;

	submit(&a, PIOM_LTASK_AGAIN);
	poll_often(POLLS);
	CHECK_INT(piom_ltask_cancel(&a.task), 0);
	CHECK_INT(piom_init(), 0);
	CHECK_INT(piom_exit(), 0); /* not the last: nothing is printed */
}

static void check_line(const char *line, const struct piom_counter *c)
{
	char name[64], unit[8] = "";
	unsigned long value;
	int pid;

	CHECK(sscanf(line, "pioman[%d]: %63s %lu%7s", &pid, name, &value,
		     unit) >= 3);
	CHECK_INT(pid, getpid());
	CHECK_STR(name, c->name);
	CHECK_STR(unit, c->unit);
	if (strcmp(name, "polls") == 0)
		CHECK_INT(value, POLLS);
}

TEST(piom_stats_prints_a_line_for_each)
{
	struct piom_counter c[MANY];
	size_t n = piom_stats_read(c, MANY), lines = 0;
	char line[256];
	int stderr_fd;
	FILE *text = hear(&stderr_fd);

	explicitly(poll_some); /* nothing */
	with("none", "poll", "1", poll_some);
	hear_no_more(text, stderr_fd);
	while (fgets(line, sizeof(line), text)) {
		CHECK(lines < n);
		check_line(line, &c[lines++]);
	}
	fclose(text);
	CHECK_INT(lines, n);
}

/* How many lines of the dump begin, or are, like that. */
static int dumped(const char *begin)
{
	char line[256];
	int stderr_fd, n = 0;
	FILE *text = hear(&stderr_fd);

	base_dump_all();
	hear_no_more(text, stderr_fd);
	while (fgets(line, sizeof(line), text))
		n += strncmp(line, begin, strlen(begin)) == 0;
	fclose(text);
	return n;
}

static void some_are_armed(void)
{
	struct reader r[2];

	for (int i = 0; i < 2; i++) {
		reader_init(&r[i], NULL);
		piom_ltask_submit(&r[i].task);
	}
	piom_poll();
	CHECK_INT(dumped("  queue of machine 0: 2 ltasks, 2 armed"), 1);
	CHECK_INT(dumped("  polls 2\n"), 1);
	CHECK_INT(dumped("  naps"), 0); /* what is 0 is left out */
	feed(&r[0]);
	while (count("armed") != 4) /* an event un-arms all */
		sched_yield();
	CHECK_INT(dumped("  queue of machine 0: 2 ltasks, 2 armed"), 1);
	reader_end(&r[0]);
	CHECK_INT(dumped("  queue of machine 0: 1 ltasks, 1 armed"), 1);
	reader_end(&r[1]);
}

TEST(the_dump_shows_counters_and_what_is_armed)
{
	with("none", "interrupt", NULL, some_are_armed);
}
