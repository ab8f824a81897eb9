/*
 * nmad/boot: who is asked, a job of one, and what PMI-1 makes of launchers,
 * good and bad.
 */
#include "../../check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>

#include "../../../nmad/boot/boot.h"
#include "../../../nmad/boot/pmi.h"
#include "launcher.h"

#define INIT  "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define MAXES "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
#define KVS   "cmd=my_kvsname kvsname=kvs_1\n"
#define APP   "cmd=appnum rc=0 appnum=3\n"
#define MAP   "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n"

/* --- who shares a node --- */

TEST(mapping_blocks_repeat_until_all_are_placed)
{
	int node[8];

	CHECK_INT(nm_boot_pmi_mapping("(vector,(0,1,1))", 3, node), 0);
	CHECK(node[0] == 0 && node[1] == 0 && node[2] == 0);
	CHECK_INT(nm_boot_pmi_mapping("(vector,(0,2,1))", 4, node), 0);
	CHECK(node[0] == 0 && node[1] == 1 && node[2] == 0 && node[3] == 1);
	CHECK_INT(nm_boot_pmi_mapping("(vector,(0,1,3),(1,1,1))", 4, node), 0);
	CHECK(node[2] == 0 && node[3] == 1);
	CHECK_INT(nm_boot_pmi_mapping("(vector,(2,2,2),(0,1,4))", 8, node), 0);
	CHECK(node[0] == 2 && node[1] == 2 && node[2] == 3 && node[7] == 0);
}

TEST(mapping_nonsense_is_refused)
{
	static const char *const bad[] = {
		"",
		"(vector)",
		"(vector,",
		"(vector,)",
		"(vector,(0,1))",
		"(vector,(0,1,0))",
		"(vector,(0,0,1))",
		"(vector,(0,-1,1))",
		"(vector,(0,1,1)",
		"(vector,(0,1,1)),",
		"(vector,(0,1,1),)",
		"(vector,(0,1,99999999999999999999))",
		"(vector,(0, 1,1))",
		"(table,(0,1,1))",
	};
	int node[4];

	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++)
		CHECK_INT(nm_boot_pmi_mapping(bad[i], 4, node), -EPROTO);
}

/* --- a job of one --- */

TEST(without_a_launcher_a_process_is_a_job_of_one)
{
	struct nm_boot *b;
	const struct nm_boot_info *info;
	char got[8];
	size_t n = 0;

	CHECK_INT(nm_boot_open(&b), 0);
	info = nm_boot_info(b);
	CHECK_STR(info->client, "singleton");
	CHECK(info->rank == 0 && info->size == 1);
	CHECK(info->local_rank == 0 && info->local_size == 1);
	CHECK_INT(nm_boot_put(b, "a", "xyz", 3), 0);
	CHECK_INT(nm_boot_get(b, 0, "a", got, sizeof(got), &n), -ENOENT);
	CHECK_INT(nm_boot_fence(b), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(nm_boot_get(b, 0, "a", got, sizeof(got), &n), 0);
	CHECK_INT(n, 3);
	CHECK(memcmp(got, "xyz", 3) == 0);
	listen_to_stderr();
	CHECK_INT(nm_boot_get(b, 0, "a", got, 2, &n), -EMSGSIZE);
	CHECK_INT(nm_boot_put(b, "a", "again", 5), -EPROTO);
	CHECK_INT(nm_boot_put(b, "a b", "x", 1), -EINVAL);
	CHECK_INT(nm_boot_put(b, "", "x", 1), -EINVAL);
	CHECK_INT(nm_boot_put(b, "empty", "", 0), -EINVAL);
	CHECK_INT(nm_boot_put(b, "long", "", NM_BOOT_VALUE_MAX + 1), -EINVAL);
	heard();
	CHECK_INT(nm_boot_close(b), 0);
}

TEST(a_job_key_is_random)
{
	unsigned char first[NM_BOOT_KEY_BYTES];
	struct nm_boot *b;

	CHECK_INT(nm_boot_open(&b), 0);
	memcpy(first, nm_boot_info(b)->key, sizeof(first));
	CHECK_INT(nm_boot_close(b), 0);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK(memcmp(first, nm_boot_info(b)->key, sizeof(first)) != 0);
	CHECK_INT(nm_boot_close(b), 0);
}

TEST(a_port_that_nobody_listens_at_is_not_taken_for_none)
{
	setenv("PMI_PORT", "h:1", 1);
	refuses(-EINVAL, "PMI_ID is not set");
	setenv("PMI_ID", "0", 1);
	setenv("PMI_PORT", "nowhere", 1);
	refuses(-EINVAL, "PMI_PORT=\"nowhere\": expected host:port");
	setenv("NMAD_BOOT", "singleton", 1);
	CHECK_INT(({
			  struct nm_boot *b;
			  int rc = nm_boot_open(&b);
			  rc == 0 ? nm_boot_close(b) : rc;
		  }),
		  0);
	setenv("NMAD_BOOT", "nobody", 1);
	refuses(-EINVAL, "NMAD_BOOT");
}

TEST(a_launcher_that_is_wanted_and_not_there_is_named)
{
	setenv("NMAD_BOOT", "pmi2", 1);
	refuses(-EINVAL, "NMAD_BOOT=pmi2: no such launcher");
	CHECK(has_said("have set PMI_FD; the environment has nothing of a"));
	setenv("PMI_RANK", "3", 1);
	setenv("PMIX_NAMESPACE", "job 7", 1);
	setenv("NMAD_BOOT", "pmi", 1);
	refuses(-EINVAL, "have set PMI_FD or PMI_PORT; the environment has "
			 "PMI_RANK=3 PMIX_NAMESPACE=job 7\n");
	setenv("NMAD_BOOT", "pmix", 1);
	refuses(-EINVAL, "have set PMIX_RANK; the environment has PMI_RANK=3");
}

TEST(what_was_tried_is_said)
{
	setenv("PMI_PORT", "nowhere", 1);
	setenv("PMI_ID", "0", 1);
	refuses(-EINVAL, "tried pmi (NMAD_BOOT=auto); the environment has "
			 "PMI_PORT=nowhere PMI_ID=0\n");
}

/* A job of one, and what is said of it. */
static void alone(void)
{
	struct nm_boot *b;

	listen_to_stderr();
	CHECK_INT(nm_boot_open(&b), 0);
	heard();
	CHECK_STR(nm_boot_info(b)->client, "singleton");
	CHECK_INT(nm_boot_close(b), 0);
}

TEST(jobs_of_one_that_srun_makes_of_a_job_are_no_secret)
{
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	setenv("SLURM_PROCID", "0", 1);
	alone();
	CHECK(has_said("srun started 4 processes"));
	CHECK(has_said("use srun --mpi=pmix or --mpi=pmi2"));
	alone(); /* as a program would be that this rank starts */
	CHECK_STR(said, "");
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	setenv("SLURM_PROCID", "1", 1);
	alone();
	CHECK_STR(said, "");
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	setenv("SLURM_PROCID", "0", 1);
	alone();
	CHECK_STR(said, "");
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	setenv("NMAD_BOOT", "singleton", 1);
	alone();
	CHECK_STR(said, "");
}

/* --- a launcher that speaks PMI-1 --- */

TEST(answers_are_read_by_name)
{
	static const char *const lines[] = {
		"rc=0 pmi_subversion=1 cmd=response_to_init pmi_version=1\n",
		"vallen_max=1024 keylen_max=64 cmd=maxes kvsname_max=256\n",
		KVS,
		"appnum=3 cmd=appnum rc=0\n",
		MAP,
		"cmd=barrier_out rc=0\n",
		"cmd=get_result value=00112233445566778899aabbccddeeff rc=0\n",
		"cmd=get_result rc=-1 msg=key_not_found value=unknown\n",
		"cmd=finalize_ack\n",
		NULL,
	};
	struct nm_boot *b;
	char got[8];
	size_t n;

	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK_INT(nm_boot_info(b)->rank, 1);
	CHECK_INT(nm_boot_info(b)->appnum, 3);
	CHECK_INT(nm_boot_info(b)->local_rank, 1);
	CHECK_INT(nm_boot_info(b)->local_size, 2);
	CHECK(getenv("PMI_FD") == NULL && getenv("PMI_RANK") == NULL);
	CHECK_INT(nm_boot_fence(b), 0);
	CHECK_INT(nm_boot_info(b)->key[15], 0xff);
	CHECK_INT(nm_boot_get(b, 0, "none", got, sizeof(got), &n), -ENOENT);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

/* The answers of two that were asked for, the second in vain, then a fence's.
 */
TEST(who_asks_is_answered_later_and_any_other_call_forgets_it)
{
	static const char *const lines[] = {
		INIT,
		MAXES,
		KVS,
		APP,
		MAP,
		"cmd=get_result rc=0 value=6869\n",
		"cmd=get_result rc=0 value=ff\n",
		"cmd=barrier_out rc=0\n",
		"cmd=get_result value=00112233445566778899aabbccddeeff rc=0\n",
		"cmd=get_result rc=-1 msg=key_not_found value=unknown\n",
		"cmd=finalize_ack\n",
		NULL,
	};
	struct nm_boot *b;
	char got[8];
	size_t n = 0;
	int rc;

	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK_INT(nm_boot_ask(b, 0, "first"), 0);
	while ((rc = nm_boot_answer(b, got, sizeof(got), &n)) == -EAGAIN)
		;
	CHECK_INT(rc, 0);
	CHECK(n == 2 && memcmp(got, "hi", 2) == 0);
	CHECK_INT(nm_boot_ask(b, 0, "second"), 0);
	CHECK_INT(nm_boot_fence(b), 0);
	CHECK_INT(nm_boot_info(b)->key[15], 0xff);
	CHECK_INT(nm_boot_ask(b, 0, "none"), 0);
	while ((rc = nm_boot_answer(b, got, sizeof(got), &n)) == -EAGAIN)
		;
	CHECK_INT(rc, -ENOENT);
	CHECK_INT(nm_boot_ask(b, 0, "no name!"), -EINVAL);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

TEST(nonsense_from_a_launcher_is_quoted)
{
	static char endless[9000];
	const char *const hello[] = { "220 smtp.example.org\n", NULL };
	const char *const error[] = { "cmd=response_to_init rc=-1\n", NULL };
	const char *const mute[] = { NULL };
	const char *const halfway[] = { INIT, MAXES, NULL };
	const char *const swapped[] = { INIT, KVS, NULL };
	const char *const nodes[] = {
		INIT,
		MAXES,
		KVS,
		APP,
		"cmd=get_result rc=0 value=(vector,(0,1,1)\n",
		NULL
	};
	const char *const app[] = { INIT, MAXES, KVS,
				    "cmd=appnum rc=0 appnum=-7\n", NULL };
	const char *const longline[] = { endless, NULL };

	memset(endless, 'x', sizeof(endless) - 1);
	launcher_refused(hello, -EPROTO, "answered \"220 smtp.example.org\"");
	launcher_refused(error, -EPROTO, "expected pmi_version=1 and rc=0");
	launcher_refused(mute, -ECONNRESET, "launcher closed the connection");
	launcher_refused(halfway, -ECONNRESET, "closed the connection");
	launcher_refused(swapped, -EPROTO, "expected cmd=maxes");
	launcher_refused(nodes, -EPROTO,
			 "PMI_process_mapping is \"(vector,(0,1,1)\"");
	launcher_refused(app, -EPROTO, "expected appnum=N");
	launcher_refused(longline, -EPROTO, "a line of more than");
}

TEST(a_launcher_that_goes_is_no_hang)
{
	static const char *const lines[] = { INIT, MAXES, KVS, APP, MAP, NULL };
	struct nm_boot *b;

	launch(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	listen_to_stderr();
	CHECK_INT(nm_boot_fence(b), -ECONNRESET);
	CHECK_INT(nm_boot_close(b), -ECONNRESET);
	heard();
	CHECK(has_said("launcher"));
	launcher_leaves();
}

/* --- an abort --- */

enum { LATE = 1000, CODE = 3 }; /* it is waited for in steps of 1 ms */

static int words[2];

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

/*
 * The launcher reads stderr after so many steps, of which none takes time. All
 * see it, since the linker takes it for what libraries call, too.
 */
BASE_PUBLIC int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	static int steps;
	char text[256];

	if (n > 0)
		return __real_poll(fds, n, ms);
	if (++steps == LATE)
		CHECK(read(words[0], text, sizeof(text)) > 0);
	return 0;
}

TEST(an_abort_is_told_when_its_last_words_are_read_however_late)
{
	static const char *const lines[] = { INIT, MAXES, KVS, APP,
					     MAP,  "\n",  NULL };
	int status = 0;
	struct nm_boot *b;
	char text[256];
	pid_t pid;

	CHECK_INT(pipe(words), 0);
	launch(lines);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		dup2(words[1], 2);
		if (nm_boot_open(&b) == 0)
			nm_boot_abort(b, CODE, "these");
		_exit(1);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CODE);
	close(words[1]);
	CHECK_INT(read(words[0], text, sizeof(text)), 0);
	close(words[0]);
	launcher_leaves();
}

/* --- at a port --- */

#define HELLO "cmd=initack\n"
#define WHO   HELLO "cmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n"

TEST(a_launcher_at_a_port_says_who_we_are)
{
	static const char *const lines[] = {
		WHO, INIT, MAXES, KVS, APP, MAP, "cmd=finalize_ack\n", NULL,
	};
	struct nm_boot *b;

	launch_at_port(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	CHECK_STR(nm_boot_info(b)->client, "pmi");
	CHECK(nm_boot_info(b)->rank == 1 && nm_boot_info(b)->size == 2);
	CHECK_INT(nm_boot_info(b)->local_rank, 1);
	CHECK(getenv("PMI_PORT") == NULL && getenv("PMI_ID") == NULL);
	CHECK_INT(nm_boot_close(b), 0);
	launcher_leaves();
}

/* A launcher at a port that says these lines is refused so. */
static void port_refused(const char *const *lines, int rc, const char *message)
{
	launch_at_port(lines);
	refuses(rc, message);
	CHECK(has_said("tried pmi (NMAD_BOOT=auto); the environment has "
		       "PMI_PORT=127.0.0.1:"));
	launcher_leaves();
}

TEST(nonsense_from_a_launcher_at_a_port_is_quoted)
{
	const char *const web[] = { "HTTP/1.1 400 Bad Request\n", NULL };
	const char *const mute[] = { NULL };
	const char *const halfway[] = { HELLO "cmd=set size=2\n", NULL };
	const char *const other[] = { HELLO "cmd=set size=2\ncmd=get\n", NULL };
	const char *const many[] = {
		HELLO "cmd=set size=2\ncmd=set rank=2\ncmd=set debug=0\n", NULL
	};
	const char *const none[] = {
		HELLO "cmd=set size=2\ncmd=set size=2\ncmd=set debug=0\n", NULL
	};
	const char *const huge[] = { HELLO
				     "cmd=set size=99999999\ncmd=set rank=0\n"
				     "cmd=set debug=0\n",
				     NULL };

	port_refused(web, -EPROTO, "answered \"HTTP/1.1 400 Bad Request\"");
	port_refused(mute, -ECONNRESET, "launcher closed the connection");
	port_refused(halfway, -ECONNRESET, "launcher closed the connection");
	port_refused(other, -EPROTO,
		     "answered \"cmd=get\" to cmd=initack: "
		     "expected cmd=set");
	port_refused(many, -EPROTO, "expected size=N and rank=R, R < N");
	port_refused(none, -EPROTO, "expected size=N and rank=R, R < N");
	port_refused(huge, -EPROTO, "expected size=N and rank=R, R < N");
}

TEST(a_launcher_that_leaves_its_port_is_no_hang)
{
	static const char *const lines[] = { WHO, INIT, MAXES, KVS,
					     APP, MAP,  NULL };
	struct nm_boot *b;

	launch_at_port(lines);
	CHECK_INT(nm_boot_open(&b), 0);
	listen_to_stderr();
	CHECK_INT(nm_boot_fence(b), -ECONNRESET);
	CHECK_INT(nm_boot_close(b), -ECONNRESET);
	heard();
	launcher_leaves();
}

TEST(nonsense_in_the_environment_is_named)
{
	int pair[2];
	char text[16];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	setenv("PMI_FD", "seven", 1);
	refuses(-EINVAL, "PMI_FD=\"seven\": expected a number");
	snprintf(text, sizeof(text), "%d", pair[1]);
	setenv("PMI_FD", text, 1);
	refuses(-EINVAL, "PMI_SIZE is not set");
	setenv("PMI_SIZE", "0", 1);
	refuses(-EINVAL, "PMI_SIZE=\"0\": expected a number from 1");
	setenv("PMI_SIZE", "2", 1);
	setenv("PMI_RANK", "2", 1);
	refuses(-EINVAL, "PMI_RANK=\"2\": expected a number from 0 to 1");
	setenv("PMI_RANK", "1", 1);
	setenv("NMAD_KEY_FD", "0", 1);
	refuses(-EINVAL, "NMAD_KEY_FD=0: expected 16 bytes");
	CHECK_INT(fcntl(pair[1], F_GETFD), -1); /* it is closed */
	close(pair[0]);
}

TEST(a_number_that_is_no_socket_is_no_launcher)
{
	struct nm_boot *b;
	int file = memfd_create("not a socket", 0);
	char text[16];

	snprintf(text, sizeof(text), "%d", file);
	setenv("PMI_FD", text, 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "2", 1);
	listen_to_stderr();
	CHECK_INT(nm_boot_open(&b), 0);
	heard();
	CHECK(has_said("is not an open socket"));
	CHECK_STR(nm_boot_info(b)->client, "singleton");
	CHECK_INT(nm_boot_close(b), 0);
	CHECK_INT(lseek(file, 0, SEEK_END), 0);
	close(file);
}
