/* pioman/init.c: start, stop, options and the dump. */
#include "probe.h"

#include <base/diag.h>

#include "../../pioman/state.h"

TEST(pioman_does_not_stop_while_tasks_are_submitted)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };

	submit(&p, PIOM_LTASK_REPEAT, 0);
	CHECK_INT(piom_exit(), -EBUSY);
	piom_poll();
	CHECK_INT(piom_exit(), -EBUSY);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
	CHECK_INT(piom_init(), 0);
	CHECK_INT(piom_exit(), 0);
}

TEST(a_task_survives_a_restart_of_pioman)
{
	struct probe p = { .answer = PIOM_LTASK_DONE };

	submit(&p, PIOM_LTASK_ONESHOT, 4);
	poll_as(2);
	teardown();
	setup();
	piom_ltask_submit(&p.task);
	poll_as(2);
	CHECK_INT(runs(&p), 2);
}

TEST(the_dump_shows_every_queue)
{
	struct probe p = { .answer = PIOM_LTASK_AGAIN };
	FILE *text = tmpfile();
	char line[256];
	int stderr_fd = dup(STDERR_FILENO), queues = 0, full = 0, empty = 0;

	submit(&p, PIOM_LTASK_REPEAT, 12);
	poll_as(2);
	fflush(stderr);
	dup2(fileno(text), STDERR_FILENO);
	base_dump_all();
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	rewind(text);
	while (fgets(line, sizeof(line), text)) {
		queues += strstr(line, "queue of") != NULL;
		full += strstr(line, "1 ltasks, 0 armed, asked for, 1 runs") !=
			NULL;
		empty += line[0] == '\n';
	}
	fclose(text);
	CHECK_INT(queues, 7);
	CHECK_INT(full, 1);
	CHECK_INT(empty, 0);
	CHECK_INT(piom_ltask_cancel(&p.task), 0);
}

static uint64_t spin_with(const char *name, const char *value)
{
	uint64_t ns;

	CHECK_INT(piom_exit(), 0);
	setenv(name, value, 1);
	CHECK_INT(piom_init(), 0);
	ns = piom.spin_ns;
	unsetenv(name);
	return ns;
}

TEST(how_long_a_wait_polls_is_said_or_measured)
{
	static const char *const measured[][2] = {
		{ "PIOM_SPIN_US", "" },
		{ "PIOM_SPIN_US", "measured" },
		{ "PIOM_MODE", "poll" }, /* nobody could be asked */
		{ "PIOM_WAIT", "passive" },
	};

	CHECK_INT(spin_with("PIOM_SPIN_US", "7"), 7000);
	CHECK_INT(spin_with("PIOM_SPIN_US", "0"), 0);
	CHECK_INT(spin_with("PIOM_SPIN_US", "70"), 70000);
	CHECK_INT(spin_with("PIOM_SPIN_US", "measured"), 0); /* no room */
	CHECK_INT(spin_with("PIOM_SPIN_US", ""), 0);
	fake_room(true);
	CHECK_INT(spin_with("PIOM_SPIN_US", "7"), 7000);
	for (size_t i = 0; i < BASE_ARRAY_LEN(measured); i++) {
		uint64_t ns = spin_with(measured[i][0], measured[i][1]);

		CHECK(ns >= 2000 && ns <= 50000);
	}
	fake_room(false);
}

TEST(nonsense_in_an_option_stops_the_start)
{
	static const char *const bad[][2] = {
		{ "PIOM_ENGINE", "pthreads" }, { "PIOM_MODE", "both" },
		{ "PIOM_IDLE_US", "1s" },      { "PIOM_TIMER_US", "0" },
		{ "PIOM_WAIT", "none" },       { "PIOM_SPIN_US", "-1" },
		{ "PIOM_QUEUES", "Tree" },     { "PIOM_VERBOSE", "yes" },
		{ "PIOM_STATS", "all" },       { "PIOM_SPIN_US", "measure" },
	};

	CHECK_INT(piom_exit(), 0);
	CHECK_INT(piom_exit(), -EINVAL);
	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK_INT(piom_init(), -EINVAL);
		unsetenv(bad[i][0]);
	}
	setenv("PIOM_ENGINE", "none", 1);
	CHECK_INT(piom_init(), 0);
}
