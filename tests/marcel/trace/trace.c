/* marcel/trace: what MARCEL_TRACE writes is what has happened. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../marcel/trace/record.h"
#include "../with.h"
#include "reader.h"

static char folder[] = "/tmp/marcel-trace-XXXXXX";
static char path[64];

static void set_up(void)
{
	strcpy(folder, "/tmp/marcel-trace-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/t", folder);
	setenv("MARCEL_TRACE", path, 1);
	unsetenv("MARCEL_TRACE_BUFFER");
}

static void tear_down(void)
{
	char command[96];

	unsetenv("MARCEL_TRACE");
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK_INT(system(command), 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(set_up, tear_down);
}

static void load(struct trace *t)
{
	trace_load(t, path);
}

/* --- a model of what threads do --- */

enum { THREADS_MAX = 512, LANES_MAX = 8 };

enum state { GONE, READY, RUNNING, BLOCKED };

struct thread {
	uint64_t id;
	enum state state;
	char name[64];
	int runs, blocks, wakes, ends;
};

struct model {
	struct thread threads[THREADS_MAX];
	int n;
	struct thread *on[LANES_MAX];
	uint64_t time[LANES_MAX];
	int idles, sleeps, wakes;
};

static struct model model;

static struct thread *thread_of(uint64_t id)
{
	for (int i = model.n - 1; i >= 0; i--)
		if (model.threads[i].id == id)
			return &model.threads[i];
	check_fail(__FILE__, __LINE__, "a thread that was not made");
}

static void leaves(unsigned lane)
{
	struct thread *t = model.on[lane];

	if (t != NULL && t->state == RUNNING)
		t->state = READY;
	model.on[lane] = NULL;
}

static void step_thread(const struct trace_event *e)
{
	unsigned lane = e->r->lane;
	struct thread *t;

	if (e->r->kind == MARCEL_TRACE_NEW) {
		CHECK(model.n < THREADS_MAX);
		model.threads[model.n++] =
			(struct thread){ .id = e->r->b, .state = READY };
		return;
	}
	t = thread_of(e->r->b);
	CHECK(t->ends == 0);
	switch (e->r->kind) {
	case MARCEL_TRACE_NAME:
		strcpy(t->name, e->text);
		break;
	case MARCEL_TRACE_RUN:
		leaves(lane);
		model.on[lane] = t;
		t->state = RUNNING;
		t->runs++;
		break;
	case MARCEL_TRACE_READY:
		t->wakes++;
		if (t->state == BLOCKED)
			t->state = READY;
		break;
	case MARCEL_TRACE_BLOCK:
		CHECK_PTR(model.on[lane], t);
		t->state = BLOCKED;
		t->blocks++;
		break;
	case MARCEL_TRACE_YIELD:
		CHECK_PTR(model.on[lane], t);
		break;
	case MARCEL_TRACE_ENDED:
		CHECK_PTR(model.on[lane], t);
		t->ends++;
		t->state = GONE;
		break;
	}
}

static void step(const struct trace_event *e)
{
	unsigned lane = e->r->lane;

	CHECK(lane < LANES_MAX);
	CHECK(e->r->time >= model.time[lane]);
	model.time[lane] = e->r->time;
	switch (e->r->kind) {
	case MARCEL_TRACE_IDLE:
		leaves(lane);
		model.idles++;
		break;
	case MARCEL_TRACE_SLEEP:
		CHECK_PTR(model.on[lane], NULL);
		model.sleeps++;
		break;
	case MARCEL_TRACE_WAKE:
		CHECK_PTR(model.on[lane], NULL);
		model.wakes++;
		break;
	default:
		step_thread(e);
	}
}

/* With one VP the file is in the order in which all happened. */
static void replay(const struct trace *t)
{
	memset(&model, 0, sizeof(model));
	for (size_t i = 0; i < t->n; i++)
		step(&t->events[i]);
}

/* --- what threads do --- */

static marcel_sem_t sem;

static void *wait_once(void *arg)
{
	marcel_sem_wait(&sem);
	return arg;
}

static void wake_a_named_one(void)
{
	marcel_attr_t attr;
	marcel_t t;

	marcel_sem_init(&sem, 0, 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, "a name of many letters, twice"),
		  0);
	CHECK_INT(marcel_create(&t, &attr, wait_once, NULL), 0);
	marcel_yield();
	marcel_sem_post(&sem);
	CHECK_INT(marcel_join(t, NULL), 0);
	marcel_sem_destroy(&sem);
}

static const struct trace_event *find(const struct trace *t, size_t *from,
				      unsigned kind, uint64_t thread)
{
	for (; *from < t->n; ++*from)
		if (t->events[*from].r->kind == kind &&
		    t->events[*from].r->b == thread)
			return &t->events[(*from)++];
	check_fail(__FILE__, __LINE__, "no event %u of %#lx", kind,
		   (unsigned long)thread);
}

TEST(the_life_of_a_thread_is_there_in_its_order)
{
	struct trace t;
	size_t at = 0;
	uint64_t id;

	without_ticks(wake_a_named_one);
	load(&t);
	replay(&t);
	CHECK_INT(model.n, 2);
	CHECK_STR(model.threads[0].name, "main");
	CHECK_STR(model.threads[1].name, "a name of many letters, twice");
	CHECK_INT(model.threads[0].ends, 0);
	CHECK_INT(model.threads[1].ends, 1);
	id = model.threads[1].id;
	find(&t, &at, MARCEL_TRACE_NEW, id);
	find(&t, &at, MARCEL_TRACE_NAME, id);
	find(&t, &at, MARCEL_TRACE_YIELD, model.threads[0].id);
	find(&t, &at, MARCEL_TRACE_RUN, id);
	CHECK_STR(find(&t, &at, MARCEL_TRACE_BLOCK, id)->text, "semaphore");
	find(&t, &at, MARCEL_TRACE_RUN, model.threads[0].id);
	find(&t, &at, MARCEL_TRACE_READY, id);
	CHECK_STR(find(&t, &at, MARCEL_TRACE_BLOCK, model.threads[0].id)->text,
		  "join");
	find(&t, &at, MARCEL_TRACE_RUN, id);
	find(&t, &at, MARCEL_TRACE_ENDED, id);
	find(&t, &at, MARCEL_TRACE_RUN, model.threads[0].id);
	CHECK_INT(t.lost, 0);
	CHECK_INT(t.nends, 1);
	CHECK_INT(t.nmodules, 2);
	CHECK_INT(t.header->rank, -1);
	CHECK_INT(t.header->pid, getpid());
	trace_free(&t);
}

enum { MANY = 100, TURNS = 5 };

static void *yield_and_wait(void *arg)
{
	for (int i = 0; i < TURNS; i++)
		marcel_yield();
	marcel_sem_wait(&sem);
	return arg;
}

static void run_many(void)
{
	marcel_t t[MANY];

	marcel_sem_init(&sem, 0, 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_create(&t[i], NULL, yield_and_wait, NULL), 0);
	for (int i = 0; i < MANY; i++)
		marcel_sem_post(&sem);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	marcel_sem_destroy(&sem);
}

enum { ROUNDS = 40, PER_ROUND = 100 }; /* a chunk holds more */

/* Never more than one chunk while the writer is about to bring the next. */
static void put_in_time(void)
{
	struct marcel_trace_ring *r = &marcel_trace_rings.all[0];
	uintptr_t mail;

	for (uint64_t i = 0; i < ROUNDS * PER_ROUND; i++) {
		marcel_trace(MARCEL_TRACE_MPI_ENTER, 7, i);
		if (i % PER_ROUND != 0)
			continue;
		while ((mail = load_acquire(&r->mail)) == 0 ||
		       mail & MARCEL_TRACE_FULL)
			sched_yield();
	}
}

TEST(chunks_that_are_full_are_followed_by_others)
{
	uint64_t next = 0;
	struct trace t;

	setenv("MARCEL_TRACE_BUFFER", "4k", 1);
	without_ticks(put_in_time);
	load(&t);
	CHECK_INT(t.lost, 0);
	for (size_t i = 0; i < t.n; i++)
		if (t.events[i].r->kind == MARCEL_TRACE_MPI_ENTER)
			CHECK_INT(t.events[i].r->b, next++);
	CHECK_INT(next, ROUNDS * PER_ROUND);
	trace_free(&t);
}

TEST(all_of_many_threads_is_there)
{
	struct trace t;

	without_ticks(run_many);
	load(&t);
	CHECK_INT(t.lost, 0);
	replay(&t);
	CHECK_INT(model.n, MANY + 1);
	for (int i = 1; i < model.n; i++)
		CHECK(model.threads[i].ends == 1 && model.threads[i].runs > 0);
	trace_free(&t);
}

static int count(const struct trace *t, unsigned kind)
{
	int n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->events[i].r->kind == kind;
	return n;
}

enum { VPS = 4 };

static void *nowhere_else(void *arg)
{
	marcel_yield();
	return arg;
}

static void run_on_each(void)
{
	marcel_attr_t attr;
	marcel_t t[VPS];

	for (int i = 0; i < VPS; i++) {
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, i), 0);
		CHECK_INT(marcel_create(&t[i], &attr, nowhere_else, NULL), 0);
	}
	run_many();
	for (int i = 0; i < VPS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(several_vps_have_a_lane_each)
{
	struct trace t;
	unsigned lanes = 0;

	with_vps(VPS, run_on_each);
	load(&t);
	CHECK_INT(t.lost, 0);
	CHECK_INT(t.header->nvp, VPS);
	CHECK_INT(count(&t, MARCEL_TRACE_NEW), MANY + VPS + 1);
	CHECK_INT(count(&t, MARCEL_TRACE_ENDED), MANY + VPS);
	for (size_t i = 0; i < t.n; i++)
		if (t.events[i].r->kind == MARCEL_TRACE_RUN)
			lanes |= 1u << t.events[i].r->lane;
	CHECK_INT(lanes & ((1u << VPS) - 1), (1u << VPS) - 1);
	trace_free(&t);
}

static void *go_to_the_other(void *arg)
{
	marcel_vpset_t other;

	marcel_vpset_zero(&other);
	marcel_vpset_add(&other, !marcel_current_vp());
	CHECK_INT(marcel_setaffinity(marcel_self(), &other), 0);
	return arg;
}

static void move_one(void)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, go_to_the_other, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* It does not leave its VP without a word. */
TEST(a_thread_that_moves_makes_way)
{
	struct trace t;
	size_t at = 0;
	uint64_t id = 0;

	without_ticks_on(2, move_one);
	load(&t);
	for (size_t i = 0; i < t.n; i++)
		if (t.events[i].r->kind == MARCEL_TRACE_NEW)
			id = t.events[i].r->b;
	CHECK_INT(find(&t, &at, MARCEL_TRACE_YIELD, id)->r->b, id);
	trace_free(&t);
}

static unsigned sleep_us;

static void sleep_a_while(void)
{
	CHECK_INT(marcel_usleep(sleep_us), 0);
}

/* Unless others have the CPU for so long that the time is over. */
TEST(a_vp_with_nothing_to_do_is_idle_and_sleeps)
{
	struct trace t;

	setenv("MARCEL_SPIN_US", "0", 1);
	sleep_us = 1000;
	do {
		tear_down();
		set_up();
		sleep_us *= 2;
		without_ticks(sleep_a_while);
		load(&t);
		replay(&t);
		trace_free(&t);
	} while (model.sleeps == 0);
	unsetenv("MARCEL_SPIN_US");
	CHECK(model.idles > 0);
	CHECK_INT(model.wakes, model.sleeps);
}

/* --- kernel threads --- */

static void *put_some(void *arg)
{
	pthread_setname_np(pthread_self(), "outside");
	marcel_trace(MARCEL_TRACE_MPI_ENTER, 1, (uintptr_t)arg);
	marcel_trace_more(MARCEL_TRACE_SEND, 2, (uintptr_t)arg, 3, 4, 5);
	return arg;
}

static void have_others_put(void)
{
	pthread_t p[3];

	for (intptr_t i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&p[i], NULL, put_some, (void *)i), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_join(p[i], NULL), 0);
}

TEST(kernel_threads_have_lanes_with_names)
{
	unsigned lanes = 0, values = 0;
	struct trace t;

	with_vps(1, have_others_put);
	load(&t);
	for (size_t i = 0; i < t.n; i++) {
		const struct trace_event *e = &t.events[i];

		if (e->r->kind == MARCEL_TRACE_LANE) {
			CHECK_STR(e->text, "outside");
			CHECK_INT(e->r->lane, MARCEL_TRACE_FOREIGN + lanes);
			lanes++;
		} else if (e->r->kind == MARCEL_TRACE_SEND) {
			CHECK_INT(e->r->a, 2);
			CHECK_INT(e->more->a, 3);
			CHECK_INT(e->more->b, 4);
			CHECK_INT(e->more->c, 5);
			values |= 1u << e->r->b;
		}
	}
	CHECK_INT(lanes, 3);
	CHECK_INT(values, 7);
	trace_free(&t);
}

/* --- what is lost --- */

enum { MARKS = 5000 };

/* From here on the file has no room for more. */
static void limit_file(struct rlimit *was)
{
	struct rlimit now;
	char name[96];
	struct stat st;

	snprintf(name, sizeof(name), "%s.p%d", path, getpid());
	CHECK_INT(stat(name, &st), 0);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(getrlimit(RLIMIT_FSIZE, was), 0);
	now = *was;
	now.rlim_cur = (rlim_t)st.st_size;
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void put_marks(void)
{
	struct rlimit was;

	limit_file(&was);
	for (uint64_t i = 0; i < MARKS; i++)
		marcel_trace(MARCEL_TRACE_MPI_ENTER, 7, i);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &was), 0);
}

TEST(what_is_lost_is_counted_where_it_is)
{
	uint64_t next = 0, lost = 0;
	struct trace t;

	setenv("MARCEL_TRACE_BUFFER", "4k", 1);
	without_ticks(put_marks);
	load(&t);
	for (size_t i = 0; i < t.n; i++) {
		const struct trace_event *e = &t.events[i];

		if (e->r->kind == MARCEL_TRACE_MPI_ENTER) {
			CHECK_INT(e->r->b, next + lost);
			next = e->r->b + 1;
			lost = 0;
		}
		if (e->r->lane == 0)
			lost += e->lost;
	}
	CHECK(next >= 2 * 160 && next < MARKS);
	CHECK(next + lost >= MARKS); /* the end of main may be lost, too */
	CHECK_INT(t.lost, lost);
	trace_free(&t);
}

/* --- the file --- */

static void be_of_a_job(void)
{
	marcel_trace_job(3, 4);
}

TEST(a_rank_of_several_has_a_file_of_its_own)
{
	char name[96];
	struct trace t;
	int status;
	pid_t p = fork();

	if (p == 0) {
		with_vps(1, be_of_a_job);
		_exit(0);
	}
	CHECK_INT(waitpid(p, &status, 0), p);
	CHECK_INT(status, 0);
	snprintf(name, sizeof(name), "%s.3", path);
	trace_load(&t, name);
	CHECK_INT(t.header->rank, 3);
	CHECK_INT(t.header->size, 4);
	CHECK_INT(t.nends, 1);
	trace_free(&t);
}

static void put_and_die(void)
{
	for (uint64_t i = 0; i < 1000; i++)
		marcel_trace(MARCEL_TRACE_MPI_ENTER, 7, i);
	raise(SIGKILL);
}

TEST(who_is_killed_leaves_all_that_he_did)
{
	char name[96];
	uint64_t next = 0;
	struct trace t;
	int status;
	pid_t p = fork();

	if (p == 0)
		without_ticks(put_and_die);
	CHECK_INT(waitpid(p, &status, 0), p);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	snprintf(name, sizeof(name), "%s.p%d", path, p);
	trace_load(&t, name);
	for (size_t i = 0; i < t.n; i++)
		if (t.events[i].r->kind == MARCEL_TRACE_MPI_ENTER)
			CHECK_INT(t.events[i].r->b, next++);
	CHECK_INT(next, 1000);
	CHECK_INT(t.nends, 0);
	trace_free(&t);
}

/* --- the child of a fork --- */

static void mark(uint64_t number)
{
	marcel_trace(MARCEL_TRACE_MPI_ENTER, 7, number);
}

/* Of a file there are these marks, 0 to n - 1, and main is its only thread. */
static void only_marks(uint64_t n)
{
	uint64_t next = 0;
	struct trace t;

	load(&t);
	for (size_t i = 0; i < t.n; i++)
		if (t.events[i].r->kind == MARCEL_TRACE_MPI_ENTER)
			CHECK_INT(t.events[i].r->b, next++);
	CHECK_INT(next, n);
	CHECK_INT(count(&t, MARCEL_TRACE_NEW), 1);
	CHECK_INT(t.header->pid, getpid());
	CHECK_INT(t.nends, 1);
	trace_free(&t);
}

/* In the runtime that it is given, and in one that it starts. */
static int use_runtimes(void)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_t t;

	if (marcel_trace_is_on())
		return 1;
	mark(99);
	if (marcel_create(&t, NULL, nowhere_else, NULL) != 0 ||
	    marcel_join(t, NULL) != 0 || marcel_trace_is_on())
		return 2;
	if (marcel_end() != 0 || marcel_init(&config) != 0 ||
	    marcel_trace_is_on() || marcel_end() != 0)
		return 3;
	return 0;
}

static void fork_one(void)
{
	int status;
	pid_t p;

	mark(0);
	p = fork();
	if (p == 0)
		_exit(use_runtimes());
	CHECK_INT(waitpid(p, &status, 0), p);
	CHECK_INT(status, 0);
	mark(1);
}

TEST(the_child_of_a_fork_records_nothing)
{
	char name[96];

	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	without_ticks(fork_one);
	only_marks(2);
	snprintf(name, sizeof(name), "%s-2", path);
	CHECK(access(name, F_OK) < 0);
}

/* Its maker does not know of it; nor does it itself. */
static pid_t child_of_clone(void)
{
	struct rlimit none = { 0, 0 };
	pid_t p = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (p == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
	}
	return p;
}

static void dies_by_sigsegv(pid_t p)
{
	int status;

	CHECK_INT(waitpid(p, &status, 0), p);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
}

static void clone_one(void)
{
	pid_t p;

	mark(0);
	p = child_of_clone();
	if (p == 0) {
		mark(99);
		_exit(0);
	}
	dies_by_sigsegv(p);
	mark(1);
}

/* An emulator may let children have what they shall not. */
static bool is_kept_from_children(void)
{
	int status;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t p;

	CHECK(page != MAP_FAILED);
	CHECK_INT(madvise(page, 4096, MADV_DONTFORK), 0);
	p = child_of_clone();
	if (p == 0) {
		store_relaxed((ATOMIC(char) *)page, 1);
		_exit(0);
	}
	CHECK_INT(waitpid(p, &status, 0), p);
	munmap(page, 4096);
	return WIFSIGNALED(status);
}

TEST(a_child_that_does_not_know_that_it_is_one_cannot_write_to_the_file)
{
	if (!is_kept_from_children())
		check_skip("MADV_DONTFORK has no effect here");
	without_ticks(clone_one);
	only_marks(2);
}

static void refused(const char *name)
{
	struct marcel_config config = { .nvp = 1 };

	setenv("MARCEL_TRACE", name, 1);
	CHECK(marcel_init(&config) < 0);
	CHECK_INT(marcel_trace_is_on(), 0);
}

static void nothing(void)
{
}

TEST(a_second_runtime_has_a_second_file)
{
	struct trace t;
	char name[96];

	with_vps(1, nothing);
	with_vps(1, nothing);
	load(&t);
	trace_free(&t);
	snprintf(name, sizeof(name), "%s-2", path);
	trace_load(&t, name);
	trace_free(&t);
}

/* On another machine or in another container a process may have this pid. */
TEST(a_file_of_another_process_with_this_pid_is_left_alone)
{
	struct trace t;
	char name[96], text[6];
	FILE *other;

	snprintf(name, sizeof(name), "%s.p%d", path, getpid());
	other = fopen(name, "wx");
	CHECK(other != NULL);
	CHECK(fputs("other", other) >= 0 && fclose(other) == 0);
	with_vps(1, nothing);
	load(&t);
	trace_free(&t);
	other = fopen(name, "r");
	CHECK(other != NULL);
	CHECK(fgets(text, sizeof(text), other) != NULL && fclose(other) == 0);
	CHECK_INT(strcmp(text, "other"), 0);
}

TEST(what_is_no_file_is_refused)
{
	char name[600];

	refused("/nonexistent/file");
	/* Not that of "/", which an emulator takes to be elsewhere. */
	snprintf(name, sizeof(name), "%.*s", (int)(strrchr(path, '/') - path),
		 path);
	refused(name);
	refused("/tmp/");
	refused("/dev/null");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	refused(name);
}

static void look(void)
{
	CHECK_INT(marcel_trace_is_on(), 0);
	marcel_trace(MARCEL_TRACE_MPI_ENTER, 7, 1);
}

TEST(nothing_is_recorded_unasked)
{
	unsetenv("MARCEL_TRACE");
	with_vps(1, look);
	CHECK(access(path, F_OK) < 0);
}
