/*
 * What it costs to be told of a message instead of waiting for it
 * (<nmad/event.h>): messages of 8 bytes from a process to itself, for
 * callgrind to count. All are received and looked at.
 *
 *   wait      a receive, and nm_sr_wait()
 *   test      a receive, and nm_sr_test() until it is complete
 *   done      a receive, and nm_sr_on_done()
 *   probe     no receive: nm_sr_mprobe() and nm_sr_mrecv()
 *   monitor   the same from the call of nm_session_monitor()
 *
 *   bench_event WHAT N
 */
#include <errno.h>
#include <string.h>

#include <nmad/nmad.h>

#include "measure.h"

static struct nm_session *session;
static struct nm_gate *self;
static struct nm_sr_request in, out;
static uint64_t from, to;
static int come;

static void post(void)
{
	struct nm_data d = nm_data_flat(&to, sizeof(to));

	nm_sr_irecv(session, self, 1, NM_TAG_EXACT, &d, &in);
}

static void send_next(void)
{
	struct nm_data d = nm_data_flat(&from, sizeof(from));

	from++;
	nm_sr_isend(session, self, 1, &d, 0, &out);
}

static void by_wait(void)
{
	post();
	send_next();
	nm_sr_wait(&in);
	nm_sr_wait(&out);
}

static void by_test(void)
{
	post();
	send_next();
	while (nm_sr_test(&in) < 0)
		;
	nm_sr_wait(&out);
}

static void is_done(struct nm_sr_request *req, void *arg)
{
	(void)req;
	(void)arg;
	come++;
}

static void by_done(void)
{
	int before = come;

	post();
	nm_sr_on_done(&in, is_done, NULL);
	send_next();
	while (come == before)
		nm_sr_test(&in);
	nm_sr_wait(&out);
}

static int take(void)
{
	struct nm_data d = nm_data_flat(&to, sizeof(to));
	struct nm_message *m;
	struct nm_sr_status s;
	int rc = nm_sr_mprobe(session, self, 1, NM_TAG_EXACT, &m, &s);

	return rc < 0 ? rc : nm_sr_mrecv(m, &d, &in);
}

static void by_probe(void)
{
	send_next();
	while (take() < 0)
		;
	nm_sr_wait(&in);
	nm_sr_wait(&out);
}

static void has_come(struct nm_session *s, const struct nm_sr_status *what,
		     void *arg)
{
	(void)s;
	(void)what;
	(void)arg;
	must(take() == 0, "nm_sr_mprobe");
	come++;
}

static void by_monitor(void)
{
	int before = come;

	send_next();
	while (come == before)
		nm_sr_test(&out);
	nm_sr_wait(&in);
	nm_sr_wait(&out);
}

static const struct bench {
	const char *name;
	void (*fn)(void);
} benches[] = {
	{ "wait", by_wait },   { "test", by_test },       { "done", by_done },
	{ "probe", by_probe }, { "monitor", by_monitor },
};

static const struct bench *find(const char *name)
{
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
		if (strcmp(benches[i].name, name) == 0)
			return &benches[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct bench *b = argc == 3 ? find(argv[1]) : NULL;
	long n = b != NULL ? atol(argv[2]) : 0;

	if (b == NULL || n < 1) {
		fprintf(stderr,
			"usage: event wait|test|done|probe|monitor N\n");
		return 2;
	}
	must(nm_init() == 0 && nm_size() == 1, "nm_init, 1 rank");
	self = nm_gate_of(0);
	must(nm_session_open(1, &session) == 0, "nm_session_open");
	if (b->fn == by_monitor)
		nm_session_monitor(session, has_come, NULL);
	while (n-- > 0) {
		b->fn();
		must(to == from, "not what was sent");
	}
	nm_session_close(session);
	return nm_exit() < 0;
}
