/* pioman/ltask: what its owner may not do with an ltask, and is told. */
#include "../probe.h"

#include <signal.h>

#include "../child.h"

static struct probe probe = { .answer = PIOM_LTASK_AGAIN };

static void dies(void (*body)(void), const char *words)
{
	int status = in_child_with_pioman(body);

	if (!WIFSIGNALED(status) || strstr(said, words) == NULL)
		check_fail(__FILE__, __LINE__, "status %x, %s", status, said);
	CHECK_INT(WTERMSIG(status), SIGABRT);
}

static void no_function(void)
{
	piom_ltask_init(&probe.task, NULL, NULL, PIOM_LTASK_ONESHOT, NULL);
}

static void unknown_options(void)
{
	piom_ltask_init(&probe.task, probe_run, NULL, PIOM_LTASK_REPEAT | 0x140,
			NULL);
}

TEST(an_ltask_has_a_function_and_options_that_are_known)
{
	dies(no_function, "an ltask was given no function\n");
	dies(unknown_options, "options 0x141: 0x140 mean nothing\n");
}

static unsigned options;

static void submit_twice(void)
{
	submit(&probe, options, 0);
	piom_ltask_submit(&probe.task);
}

static void submit_during_the_run(void)
{
	submit(&probe, options, 0);
	piom_poll();
	piom_ltask_submit(&probe.task);
}

TEST(an_ltask_is_submitted_once_at_a_time)
{
	static const unsigned all[] = { PIOM_LTASK_ONESHOT, PIOM_LTASK_REPEAT,
					PIOM_LTASK_NOWAIT };
	char words[100];

	snprintf(words, sizeof(words), "submitted twice: the function at %p\n",
		 (void *)(uintptr_t)probe_run);
	for (size_t i = 0; i < BASE_ARRAY_LEN(all); i++) {
		options = all[i];
		dies(submit_twice, words);
	}
	options = PIOM_LTASK_REPEAT;
	dies(submit_during_the_run, words);
}

static void submit_garbage(void)
{
	memset(&probe, 0xa5, sizeof(probe));
	piom_ltask_submit(&probe.task);
}

static void submit_early(void)
{
	CHECK_INT(piom_exit(), 0);
	submit(&probe, PIOM_LTASK_ONESHOT, 0);
}

static void submit_to_nobody(void)
{
	submit(&probe, PIOM_LTASK_ONESHOT, 1ul << 20);
}

TEST(an_ltask_is_initialised_and_somebody_may_run_it)
{
	dies(submit_garbage, "an ltask was submitted that was never "
			     "initialised\n");
	dies(submit_early, "before piom_init() or after piom_exit()\n");
	dies(submit_to_nobody, "that no VP of this process may run\n");
}

static bool moved_in;
static void (*spoil)(void);

static void init_again(void)
{
	piom_ltask_init(&probe.task, probe_run, &probe, PIOM_LTASK_REPEAT,
			NULL);
}

/* Its owner's memory is another's now. */
static void overwrite(void)
{
	char *state = (char *)&probe.task + offsetof(struct piom_task, state);

	memset(state, 0xa5, sizeof(uint16_t));
}

static void spoil_in_queue(void)
{
	struct probe others[2] = { { .answer = PIOM_LTASK_AGAIN },
				   { .answer = PIOM_LTASK_AGAIN } };

	submit(&others[0], PIOM_LTASK_REPEAT, 0);
	submit(&probe, PIOM_LTASK_REPEAT, 0);
	submit(&others[1], PIOM_LTASK_REPEAT, 0);
	if (moved_in)
		piom_poll();
	spoil();
	piom_poll();
}

TEST(an_ltask_stays_as_it_is_while_it_is_submitted)
{
	static void (*const ways[])(void) = { init_again, overwrite };

	for (int i = 0; i < 4; i++) {
		spoil = ways[i / 2];
		moved_in = i % 2;
		dies(spoil_in_queue,
		     "an ltask was changed while it was submitted");
	}
}
