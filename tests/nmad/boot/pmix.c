/*
 * nmad/boot: what PMIx's client makes of its library, good and bad. The library
 * is $LIBRARY, a fake; who opens it first has it found by its name later.
 */
#include "../../check.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../nmad/boot/boot.h"
#include "../../parent.h"
#include "launcher.h"

static void join(const char *answers)
{
	CHECK(dlopen(getenv("LIBRARY"), RTLD_NOW) != NULL);
	setenv("PMIX_RANK", "1", 1);
	setenv("PMIX_NAMESPACE", "fake", 1);
	setenv("FAKE_PMIX", answers, 1);
}

static void cannot_join(const char *answers, int rc, const char *message)
{
	join(answers);
	refuses(rc, message);
	CHECK(has_said("tried pmix (NMAD_BOOT=auto); the environment has "
		       "PMIX_RANK=1 PMIX_NAMESPACE=fake\n"));
}

#ifdef SHORT

TEST(a_library_that_lacks_a_function_is_named)
{
	cannot_join("", -EINVAL, "libpmix.so.2 has no PMIx_Resolve_peers");
}

#else

static struct nm_boot *joined(const char *answers)
{
	struct nm_boot *b;

	join(answers);
	CHECK_INT(nm_boot_open(&b), 0);
	return b;
}

static int wait_for_answer(struct nm_boot *b)
{
	unsigned char got[16];
	size_t n;
	int rc;

	do
		rc = nm_boot_answer(b, got, sizeof(got), &n);
	while (rc == -EAGAIN);
	if (rc == 0)
		CHECK(n == 16 && got[15] == 0xff);
	return rc;
}

/* Nobody else would end it. */
TEST(who_loses_the_launcher_ends)
{
	int status;
	pid_t pid;

	listen_to_stderr();
	pid = parent_forks(fork);
	if (pid == 0) {
		joined("gone");
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	heard();
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), EXIT_FAILURE);
	CHECK(has_said("the launcher is gone: this process ends"));
}

TEST(who_hears_of_another_that_is_lost_goes_on)
{
	CHECK_INT(nm_boot_close(joined("peer gone")), 0);
}

TEST(a_job_of_pmix_exchanges_values)
{
	struct nm_boot *b = joined("");
	char got[16];
	size_t n;

	CHECK_STR(nm_boot_info(b)->client, "pmix");
	CHECK(nm_boot_info(b)->rank == 1 && nm_boot_info(b)->size == 2);
	CHECK_INT(nm_boot_info(b)->appnum, -1);
	CHECK_INT(nm_boot_info(b)->local_size, 2);
	CHECK(getenv("PMIX_RANK") == NULL && getenv("PMIX_NAMESPACE") == NULL);
	CHECK_INT(nm_boot_fence(b), 0);
	CHECK_INT(nm_boot_info(b)->key[15], 0xff);
	CHECK_INT(nm_boot_get(b, 0, "none", got, sizeof(got), &n), -ENOENT);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(nm_boot_ask(b, 0, "theirs"), 0);
		CHECK_INT(wait_for_answer(b), 0);
	}
	CHECK_INT(nm_boot_close(b), 0);
}

TEST(nonsense_about_the_job_is_refused)
{
	cannot_join("no init", -ECONNRESET,
		    "PMIx_Init: SOME-ERROR; PMIX_RANK is 1");
	cannot_join("no size", -EPROTO, "this is rank 1 of -1");
	cannot_join("size of text", -EPROTO, "this is rank 1 of -1");
	cannot_join("no value", -EPROTO, "this is rank 1 of -1");
	cannot_join("huge", -EPROTO, "this is rank 1 of -1");
	cannot_join("rank 7", -EPROTO, "this is rank 7 of 2");
}

TEST(without_a_whole_map_all_are_apart)
{
	static const char *const maps[] = { "no nodes", "null nodes",
					    "no peers", "twice", "strangers" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(maps); i++) {
		struct nm_boot *b;

		listen_to_stderr();
		b = joined(maps[i]);
		heard();
		CHECK(has_said("does not say by PMIx which ranks share"));
		CHECK_INT(nm_boot_info(b)->local_size, 1);
		CHECK_INT(nm_boot_close(b), 0);
	}
}

/* What a job makes of answers that become bad once it has joined. */
static void goes_wrong(const char *answers, int rc, const char *message)
{
	struct nm_boot *b = joined("");
	int got;

	setenv("FAKE_PMIX", answers, 1);
	listen_to_stderr();
	got = nm_boot_put(b, "mine", "xyz", 3);
	if (got == 0)
		got = nm_boot_fence(b);
	setenv("FAKE_PMIX", "", 1);
	nm_boot_close(b);
	heard();
	CHECK_INT(got, rc);
	CHECK(has_said(message));
}

TEST(a_job_whose_launcher_goes_wrong_says_so)
{
	goes_wrong("no put", -EPROTO, "PMIx_Put: SOME-ERROR");
	goes_wrong("no commit", -EPROTO, "PMIx_Commit: SOME-ERROR");
	goes_wrong("partial fence", -EPROTO, "a rank has left the job");
	goes_wrong("lost", -ECONNRESET,
		   "PMIx_Fence: LOST: the launcher is gone");
	goes_wrong("number", -EPROTO, "a value that we have not left there");
	goes_wrong("long", -EPROTO, "a value that we have not left there");
	goes_wrong("no hexadecimal", -EPROTO, "expected hexadecimal digits");
}

/* A bad answer, and the next is good again. */
static void brings(const char *answers, int rc)
{
	struct nm_boot *b = joined("");
	int got;

	setenv("FAKE_PMIX", answers, 1);
	listen_to_stderr();
	got = nm_boot_ask(b, 0, "theirs");
	if (got == 0)
		got = wait_for_answer(b);
	heard();
	CHECK_INT(got, rc);
	setenv("FAKE_PMIX", "", 1);
	CHECK_INT(nm_boot_ask(b, 0, "theirs"), 0);
	CHECK_INT(wait_for_answer(b), 0);
	CHECK_INT(nm_boot_close(b), 0);
}

TEST(what_is_brought_and_no_value_is_an_error_once)
{
	brings("not there", -ENOENT);
	brings("nothing", -EPROTO);
	brings("number", -EPROTO);
	brings("long", -EPROTO);
	brings("no hexadecimal", -EPROTO);
	brings("no asking", -EPROTO);
}

TEST(a_launcher_that_goes_before_the_end_is_said)
{
	struct nm_boot *b = joined("");

	setenv("FAKE_PMIX", "no finalize", 1);
	listen_to_stderr();
	CHECK_INT(nm_boot_close(b), -ECONNRESET);
	heard();
	CHECK(has_said("PMIx_Finalize: LOST: the launcher is gone"));
}

#endif
