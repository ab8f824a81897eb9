/*
 * nmad in the child of a fork(): the process that was forked is in the job, the
 * child is not, and who forgets that is told. A job of one, in which nobody
 * polls but who tests.
 */
#include "../../check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/cond.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/rpc/rpc.h"
#include "../../marcel/child.h"

enum { SESSION = 5, SERVICE = 7, COUNTERS = 64 };

static struct nm_session *session;
static struct nm_rpc *rpc;
static struct nm_gate *self;
static struct nm_sr_request pending, other;
static struct nm_rpc_request call, other_call;
static struct nm_message *message;
static struct nm_packing packing;
static piom_sem_t entered, leave;
static char byte;

static struct nm_data one_byte(void)
{
	return nm_data_flat(&byte, 1);
}

static int linger(struct nm_rpc_call *c, void *arg)
{
	(void)c;
	(void)arg;
	piom_sem_post(&entered);
	piom_sem_wait(&leave);
	return 0;
}

static void setup(void)
{
	struct nm_sr_status status;
	struct nm_data d = one_byte();

	setenv("NMAD_DRIVER", "self", 1);
	setenv("PIOM_ENGINE", "none", 1);
	setenv("PIOM_MODE", "poll", 1);
	CHECK_INT(nm_init(), 0);
	self = nm_gate_of(0);
	CHECK_INT(nm_session_open(SESSION, &session), 0);
	CHECK_INT(nm_rpc_open(SESSION + 1, 0, &rpc), 0);
	CHECK_INT(nm_sr_irecv(session, self, 1, NM_TAG_EXACT, &d, &pending), 0);
	CHECK_INT(nm_sr_send(session, self, 2, &d, 0), 0);
	CHECK_INT(nm_sr_probe_wait(session, self, 2, NM_TAG_EXACT, &status), 0);
	CHECK_INT(
		nm_sr_mprobe(session, self, 2, NM_TAG_EXACT, &message, &status),
		0);
	CHECK_INT(nm_begin_packing(session, self, 3, 0, &packing), 0);
	piom_sem_init(&entered, 0);
	piom_sem_init(&leave, 0);
	CHECK_INT(nm_rpc_register(rpc, SERVICE, linger, NULL), 0);
	CHECK_INT(nm_rpc_send(rpc, self, SERVICE, NULL, 0, NULL, &call), 0);
	piom_sem_wait(&entered);
}

/* Whatever a child has done: this process is in the job as before. */
static void teardown(void)
{
	struct nm_data d = one_byte();

	CHECK_INT(nm_drop_packing(&packing), 0);
	CHECK_INT(nm_sr_mrecv(message, &d, &other), 0);
	nm_sr_wait(&other);
	CHECK_INT(nm_sr_send(session, self, 1, &d, 0), 0);
	nm_sr_wait(&pending);
	piom_sem_post(&leave);
	nm_rpc_wait(&call);
	CHECK_INT(nm_rpc_unregister(rpc, SERVICE), 0);
	CHECK_INT(nm_rpc_close(rpc), 0);
	CHECK_INT(nm_session_close(session), 0);
	CHECK_INT(nm_exit(), 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* --- what can be asked --- */

static void tell(struct nm_sr_request *req, void *arg)
{
	(void)req;
	(void)arg;
}

static void ask(void)
{
	struct nm_counter counters[COUNTERS];
	struct nm_session *s;
	struct nm_rpc *r;

	if (nm_rank() != -1 || nm_size() != 0 || nm_gate_of(0) != NULL)
		_exit(1);
	if (nm_local_rank() != -1 || nm_local_size() != 0)
		_exit(2);
	if (nm_exit() != -EINVAL)
		_exit(3);
	if (nm_init() != -EPERM)
		_exit(4);
	if (nm_session_open_name("another", &s) != -EINVAL ||
	    nm_rpc_open(SESSION + 2, 0, &r) != -EINVAL)
		_exit(5);
	if (nm_session_new_id() != 0)
		_exit(6);
	if (nm_sr_on_done(&pending, tell, NULL) != -EINVAL)
		_exit(7);
	for (size_t n = nm_stats_read(counters, COUNTERS); n-- > 0;)
		if (counters[n].value != 0)
			_exit(8);
}

TEST(the_child_is_in_no_job_and_cannot_join_it)
{
	CHECK_INT(in_child(ask), 0);
	CHECK(strstr(said, "fork()") != NULL);
}

static void give_up(void)
{
	nm_abort(3, "that was all");
}

TEST(it_ends_itself_alone)
{
	int status = in_child(give_up);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* --- what ends it --- */

static void send(void)
{
	struct nm_data d = one_byte();

	nm_sr_isend(session, self, 1, &d, 0, &other);
}

static void receive(void)
{
	struct nm_data d = one_byte();

	nm_sr_irecv(session, self, 1, NM_TAG_EXACT, &d, &other);
}

static void receive_message(void)
{
	struct nm_data d = one_byte();

	nm_sr_mrecv(message, &d, &other);
}

static void test(void)
{
	nm_sr_test(&pending);
}

static void wait_for_it(void)
{
	nm_sr_wait(&pending);
}

static void wait_for_any(void)
{
	struct nm_sr_request *const reqs[] = { NULL, &pending };

	nm_sr_wait_any(reqs, 2);
}

static void cancel(void)
{
	nm_sr_cancel(&pending);
}

static void probe(void)
{
	struct nm_sr_status status;

	nm_sr_probe(session, self, 1, NM_TAG_EXACT, &status);
}

static void pack(void)
{
	nm_end_packing(&packing);
}

static void close_it(void)
{
	nm_session_close(session);
}

static void be_told(struct nm_session *s, const struct nm_sr_status *what,
		    void *arg)
{
	(void)s;
	(void)what;
	(void)arg;
}

static void monitor(void)
{
	nm_session_monitor(session, be_told, NULL);
}

static void send_call(void)
{
	nm_rpc_send(rpc, self, SERVICE, NULL, 0, NULL, &other_call);
}

static void test_call(void)
{
	nm_rpc_test(&call);
}

static void wait_for_call(void)
{
	nm_rpc_wait(&call);
}

static void offer(void)
{
	nm_rpc_register(rpc, SERVICE + 1, linger, NULL);
}

static void withdraw(void)
{
	nm_rpc_unregister(rpc, SERVICE);
}

static void close_calls(void)
{
	nm_rpc_close(rpc);
}

static void (*const uses[])(void) = {
	send,         receive,       receive_message, test,     wait_for_it,
	wait_for_any, cancel,        probe,           pack,     close_it,
	monitor,      send_call,     offer,           withdraw, close_calls,
	test_call,    wait_for_call,
};

static void (*use)(void);

static bool take_the_parents(struct nm_rail *rail, int budget)
{
	(void)rail;
	(void)budget;
	_exit(0);
}

/* What comes over the rail is the parent's, and it is always worth a look. */
static void use_or_hang(void)
{
	struct nm_rail *rail = session->core->polled[0];
	struct nm_driver greedy = *rail->driver;

	greedy.caps &= ~(unsigned)NM_CAP_SELF;
	greedy.peek = NULL;
	greedy.poll = take_the_parents;
	rail->driver = &greedy;
	use();
}

static void all_are_refused(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(uses); i++) {
		int status;

		use = uses[i];
		status = in_child(use_or_hang);
		CHECK_INT(WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGABRT);
		CHECK(strstr(said, "fork()") != NULL);
	}
}

TEST(who_uses_what_his_parent_has_ends_himself_with_a_message)
{
	all_are_refused();
}

/* Those who hold them are not in the child. */
TEST(nobody_waits_for_locks_that_are_held_for_ever)
{
	struct nm_pass pass;

	nm_core_lock(nm_core_self);
	nm_core_settle(nm_core_self, &pass);
	base_spin_lock(&rpc->peers[0].lock);
	all_are_refused();
	base_spin_unlock(&rpc->peers[0].lock);
	nm_core_unlock(nm_core_self, &pass);
}
