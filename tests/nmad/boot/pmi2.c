/*
 * nmad/boot: what PMI-2 makes of launchers, good and bad.
 */
#include "../../check.h"

#include <errno.h>
#include <stdlib.h>

#include "../../../nmad/boot/boot.h"
#include "launcher.h"

#define INIT "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"
#define FULL "cmd=fullinit-response;rank=1;size=2;appnum=3;rc=0;"
#define MAP                                                                    \
	"cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,1,2));rc=0;"
#define NOTHING "cmd=kvs-get-response;found=FALSE;rc=0;"
#define FENCED  "cmd=kvs-fence-response;rc=0;", NOTHING
#define KEY                                                                    \
	"rc=0;value=00112233445566778899aabbccddeeff;found=TRUE;"              \
	"cmd=kvs-get-response;"

TEST(a_job_of_pmi2_exchanges_values)
{
	static const char *const lines[] = {
		INIT,
		FULL,
		MAP,
		"cmd=kvs-put-response;rc=0;",
		FENCED,
		KEY,
		"cmd=kvs-get-response;found=TRUE;value=6869;rc=0;",
		NOTHING,
		"cmd=finalize-response;rc=0;",
		NULL,
	};
	struct nm_boot *b;
	char got[8];
	size_t n = 0;

	setenv("NMAD_BOOT", "pmi2", 1);
	setenv("PMI_JOBID", "7.0", 1);
	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK_STR(nm_boot_info(b)->client, "pmi2");
	CHECK(nm_boot_info(b)->rank == 1 && nm_boot_info(b)->size == 2);
	CHECK_INT(nm_boot_info(b)->appnum, 3);
	CHECK_INT(nm_boot_info(b)->local_size, 2);
	CHECK(getenv("PMI_FD") == NULL && getenv("PMI_JOBID") == NULL);
	CHECK_INT(nm_boot_put(b, "mine", "xyz", 3), 0);
	CHECK_INT(nm_boot_fence(b), 0);
	CHECK_INT(nm_boot_info(b)->key[15], 0xff);
	CHECK_INT(nm_boot_get(b, 0, "theirs", got, sizeof(got), &n), 0);
	CHECK(n == 2 && memcmp(got, "hi", 2) == 0);
	CHECK_INT(nm_boot_get(b, 0, "none", got, sizeof(got), &n), -ENOENT);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

/* One that was asked for and forgotten, and two that were waited for. */
TEST(who_asks_by_pmi2_is_answered_later)
{
	static const char *const lines[] = {
		INIT,
		FULL,
		MAP,
		"cmd=kvs-get-response;found=TRUE;value=ff;rc=0;",
		FENCED,
		KEY,
		"cmd=kvs-get-response;found=TRUE;value=6869;rc=0;",
		NOTHING,
		"cmd=finalize-response;rc=0;",
		NULL,
	};
	struct nm_boot *b;
	char got[8];
	size_t n = 0;
	int rc;

	setenv("NMAD_BOOT", "pmi2", 1);
	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK_INT(nm_boot_ask(b, 0, "forgotten"), 0);
	CHECK_INT(nm_boot_fence(b), 0);
	CHECK_INT(nm_boot_info(b)->key[15], 0xff);
	CHECK_INT(nm_boot_ask(b, 0, "theirs"), 0);
	while ((rc = nm_boot_answer(b, got, sizeof(got), &n)) == -EAGAIN)
		;
	CHECK_INT(rc, 0);
	CHECK(n == 2 && memcmp(got, "hi", 2) == 0);
	CHECK_INT(nm_boot_ask(b, 0, "none"), 0);
	while ((rc = nm_boot_answer(b, got, sizeof(got), &n)) == -EAGAIN)
		;
	CHECK_INT(rc, -ENOENT);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

TEST(a_launcher_that_does_not_know_the_nodes_has_all_apart)
{
	static const char *const lines[] = {
		INIT,
		FULL,
		"cmd=info-getjobattr-response;found=FALSE;rc=0;",
		"cmd=finalize-response;rc=0;",
		NULL,
	};
	struct nm_boot *b;

	setenv("NMAD_BOOT", "pmi2", 1);
	launch(lines);
	listen_to_stderr();
	CHECK_INT(nm_boot_open(&b), 0);
	heard();
	CHECK(has_said("does not say which ranks share a host"));
	CHECK_INT(nm_boot_info(b)->local_size, 1);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

TEST(nonsense_from_a_launcher_of_pmi2_is_quoted)
{
	const char *const old[] = {
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
		NULL
	};
	const char *const mute[] = { INIT, NULL };
	const char *const length[] = { INIT, "#cmd=fullinit-response;", NULL };
	const char *const endless[] = { INIT, "#999999cmd=fullinit", NULL };
	const char *const negative[] = { INIT, "#-5    cmd=fullinit", NULL };
	const char *const shorter[] = { INIT, "#60    cmd=fullinit", NULL };
	const char *const swapped[] = { INIT, FENCED, NULL };
	const char *const error[] = { INIT,
				      "cmd=fullinit-response;errmsg=no;rc=14;",
				      NULL };
	const char *const other[] = {
		INIT, "cmd=fullinit-response;rank=0;size=2;rc=0;", NULL
	};
	const char *const few[] = { INIT,
				    "cmd=fullinit-response;rank=1;size=1;rc=0;",
				    NULL };
	const char *const nodes[] = {
		INIT, FULL,
		"cmd=info-getjobattr-response;found=TRUE;value=(a);rc=0;", NULL
	};
	const char *const lost[] = { INIT, FULL,
				     "cmd=info-getjobattr-response;rc=0;",
				     NULL };

	setenv("NMAD_BOOT", "pmi2", 1);
	launcher_refused(old, -EPROTO, "expected pmi_version=2 and rc=0");
	CHECK(has_said("tried pmi2 (NMAD_BOOT=pmi2); the environment has "
		       "PMI_FD="));
	launcher_refused(mute, -ECONNRESET, "launcher closed the connection");
	launcher_refused(length, -EPROTO,
			 "sent \"cmd=fu\": expected the "
			 "length");
	launcher_refused(endless, -EPROTO, "sent \"999999\": expected");
	launcher_refused(negative, -EPROTO, "sent \"-5    \": expected");
	launcher_refused(shorter, -ECONNRESET, "closed the connection");
	launcher_refused(swapped, -EPROTO, "expected cmd=fullinit-response");
	launcher_refused(error, -EPROTO,
			 "errmsg=no;rc=14;\" to cmd=fullinit: "
			 "expected rc=0");
	launcher_refused(other, -EPROTO, "expected size=N and rank=PMI_RANK");
	launcher_refused(few, -EPROTO, "expected size=N and rank=PMI_RANK");
	launcher_refused(nodes, -EPROTO, "PMI_process_mapping is \"(a)\"");
	launcher_refused(lost, -EPROTO, "expected found=TRUE or FALSE");
}

TEST(a_value_that_nobody_has_left_is_no_fence)
{
	static const char *const lines[] = {
		INIT,
		FULL,
		MAP,
		"cmd=kvs-fence-response;rc=0;",
		"cmd=kvs-get-response;found=TRUE;value=f;rc=0;",
		"cmd=finalize-response;rc=0;",
		NULL,
	};
	struct nm_boot *b;

	setenv("NMAD_BOOT", "pmi2", 1);
	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	listen_to_stderr();
	CHECK_INT(nm_boot_fence(b), -EPROTO);
	CHECK_INT(nm_boot_close(b), 0);
	heard();
	CHECK(has_said("to cmd=kvs-get: expected found=FALSE"));
	launcher_leaves();
}

TEST(a_launcher_of_pmi2_that_refuses_or_goes_is_no_hang)
{
	static const char *const lines[] = {
		INIT, FULL, MAP, "cmd=kvs-put-response;rc=9;", NULL,
	};
	struct nm_boot *b;

	setenv("NMAD_BOOT", "pmi2", 1);
	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	listen_to_stderr();
	CHECK_INT(nm_boot_put(b, "mine", "xyz", 3), -EPROTO);
	CHECK_INT(nm_boot_fence(b), -ECONNRESET);
	CHECK_INT(nm_boot_close(b), -ECONNRESET);
	heard();
	CHECK(has_said("\"cmd=kvs-put-response;rc=9;\" to cmd=kvs-put"));
	launcher_leaves();
}
