/*
 * The search: all executions, depth first, each by replaying the choices that
 * lead to it.
 *
 * An option is "thread T makes its step like that". Two options of different
 * threads commute unless they write the same word: a load of a certain message
 * does not mind later ones, and whether seq_cst accesses are allowed depends on
 * all of them, not on the order in which we make them. Of executions that
 * differ only in the order of options that commute one is enough; sleep sets
 * see to that: an option that was tried at a node need not be tried below its
 * siblings until something happens that it does not commute with. And a node
 * begins with the options of one thread; those of another are added when a
 * later step shows that it makes a difference whose is first (dpor.c).
 */
#include "internal.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/diag.h>

struct explorer *X;

static struct explore_test *tests;

void explore_register(struct explore_test *t)
{
	struct explore_test **end = &tests;

	while (*end != NULL)
		end = &(*end)->next;
	*end = t;
}

/* --- the options of a node --- */

static bool commute(const struct option *a, const struct option *b)
{
	if (a->thread == b->thread)
		return false;
	return a->loc != b->loc || !a->writes || !b->writes;
}

static bool sleeps(const struct node *n, const struct option *o)
{
	for (int i = 0; i < n->nsleep; i++)
		if (n->sleep[i].thread == o->thread &&
		    n->sleep[i].how == o->how)
			return true;
	return false;
}

static void offer(struct node *n, int t, int how, bool writes)
{
	struct option o = {
		.thread = (uint8_t)t,
		.how = (uint8_t)how,
		.loc = (uint8_t)X->thread[t].op.loc,
		.writes = writes,
	};

	if (sleeps(n, &o))
		return;
	if (n->n == OPTIONS_MAX)
		explore_fail("too many options");
	n->option[n->n++] = o;
}

/* A load, or a compare-and-swap that fails: newest message first. */
static void offer_reads(struct node *n, int t, const struct op *op)
{
	const struct thread *th = &X->thread[t];
	const struct loc *l = &X->loc[op->loc];
	bool seq = (op->kind == OP_CAS ? op->fail : op->order) ==
		   memory_order_seq_cst;
	int from = th->view.seen[op->loc];

	if (from < l->first)
		from = l->first;
	for (int m = l->n - 1; m >= from; m--)
		if ((op->kind == OP_LOAD || l->msg[m].value != op->expected) &&
		    (!seq || seq_may_load(th, op->loc, m)))
			offer(n, t, m, false);
}

static void offer_thread(struct node *n, int t)
{
	const struct thread *th = &X->thread[t];
	const struct op *op = &th->op;
	const struct loc *l = &X->loc[op->loc];
	int waiting = 0;

	switch (op->kind) {
	case OP_LOAD:
		offer_reads(n, t, op);
		break;
	case OP_CAS:
		if (l->msg[l->n - 1].value == op->expected) {
			offer(n, t, WRITES, true);
			if (op->weak && th->spurious_cas > 0)
				offer(n, t, SPURIOUS, true);
		}
		offer_reads(n, t, op);
		break;
	case OP_STORE:
	case OP_RMW:
		offer(n, t, WRITES, true);
		break;
	case OP_WAIT:
		offer(n, t, WRITES, true);
		if (th->spurious_futex > 0)
			offer(n, t, SPURIOUS, true);
		break;
	case OP_WAKE:
		for (int i = 1; i <= X->threads; i++)
			waiting += X->thread[i].state == FUTEX &&
				   X->thread[i].op.loc == op->loc;
		for (int i = 0; i == 0 || (op->n < waiting && i < waiting); i++)
			offer(n, t, i, true);
		break;
	case OP_RELAX:
		offer(n, t, SPIN_ON, false);
		offer(n, t, SPIN_OUT, false);
		break;
	case OP_CHOOSE:
		for (int i = 0; i < op->n; i++)
			offer(n, t, i, false);
		break;
	}
}

/* Nobody else can notice the step: there is no point in waiting with it. */
static bool is_private(int t)
{
	enum kind kind = X->thread[t].op.kind;

	return kind == OP_RELAX || kind == OP_CHOOSE;
}

/* What sleeps at a new node: what slept or was tried before, and commutes. */
static void inherit_sleep(struct node *n, const struct node *parent)
{
	const struct option *taken = &parent->option[parent->cur];

	for (int i = 0; i < parent->nsleep; i++)
		if (commute(&parent->sleep[i], taken))
			n->sleep[n->nsleep++] = parent->sleep[i];
	for (int i = 0; i < parent->cur; i++) {
		if (!commute(&parent->option[i], taken))
			continue;
		if (n->nsleep == OPTIONS_MAX)
			explore_fail("too many options");
		n->sleep[n->nsleep++] = parent->option[i];
	}
}

/* False: nobody can make a step. */
static bool open_node(struct node *n)
{
	int first = 0, pending = 0;

	n->n = n->cur = n->nsleep = 0;
	n->threads = n->todo = 0;
	if (X->depth > 0)
		inherit_sleep(n, &X->node[X->depth - 1]);
	/* Whoever runs goes on first: the stories are shorter. */
	if (self()->state == PENDING)
		first = X->current;
	for (int t = 1; t <= X->threads; t++) {
		if (X->thread[t].state != PENDING)
			continue;
		pending++;
		if (is_private(t))
			first = t;
	}
	if (pending == 0)
		return false;
	if (first != 0)
		offer_thread(n, first);
	for (int t = 1; t <= X->threads && n->n == 0; t++) {
		first = t;
		if (X->thread[t].state == PENDING)
			offer_thread(n, t);
	}
	n->threads = 1u << first;
	return true;
}

/* A node whose options have all been tried, and threads were added. */
static void open_again(struct node *n)
{
	for (int t = 1; t <= X->threads; t++)
		if (n->todo >> t & 1)
			offer_thread(n, t);
	n->todo = 0;
}

/* --- one execution --- */

void search_end(enum outcome o)
{
	X->outcome = o;
	thread_resume(0);
	abort();
}

void explore_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(X->error, sizeof(X->error), fmt, ap);
	va_end(ap);
	X->outcome = FAILED;
	if (!X->running)
		_longjmp(X->outside, 1);
	thread_resume(0);
	abort();
}

/* Nobody can make a step. */
static void standstill(void)
{
	static const char *const states[] = {
		[FUTEX] = "sleeps on", [PARKED] = "is parked", [DONE] = ""
	};
	char where[64];
	size_t len = 0;
	bool done = true;

	for (int i = 1; i <= X->threads; i++) {
		struct thread *t = &X->thread[i];

		if (t->state == SPINNING) {
			t->spin_out = t->spin_forced = true;
			t->state = READY;
			for (int k = 1; k <= X->threads; k++)
				dpor_join(&t->before, &X->thread[k].before);
			search_next();
			return;
		}
		done &= t->state == DONE || t->may_sleep;
	}
	if (done)
		search_end(COMPLETE);
	for (int i = 1; i <= X->threads; i++) {
		struct thread *t = &X->thread[i];

		if (t->state == DONE || len >= sizeof(X->error_more))
			continue;
		where[0] = 0;
		if (t->state == FUTEX)
			trace_address(X->loc[t->op.loc].addr, where,
				      sizeof(where));
		len += (size_t)snprintf(
			X->error_more + len, sizeof(X->error_more) - len,
			"%s %s %s\n", t->name, states[t->state], where);
	}
	explore_fail("a lost wake-up: all threads that remain sleep");
}

void search_next(void)
{
	struct node *n = &X->node[X->depth];
	struct option *o;

	for (int t = 1; t <= X->threads; t++) {
		if (X->thread[t].state != READY)
			continue;
		X->thread[t].state = PENDING; /* until it says otherwise */
		thread_resume(t);
		return;
	}
	if (X->depth == STEPS_MAX)
		explore_fail("an execution does not end");
	if (X->depth == X->nodes) {
		if (!open_node(n)) {
			standstill();
			return;
		}
		if (n->n == 0)
			search_end(CUT);
		X->nodes++;
	}
	if (n->cur == n->n)
		open_again(n);
	if (n->cur == n->n)
		search_end(CUT);
	X->depth++;
	if (X->nodes_max < X->depth)
		X->nodes_max = X->depth;
	o = &n->option[n->cur];
	X->thread[o->thread].how = o->how;
	dpor_step(n);
	thread_resume(o->thread);
}

static void begin(void)
{
	threads_reset();
	race_reset();
	X->outcome = RUNNING;
	X->threads = X->current = X->depth = 0;
	X->fresh = X->nodes;
	X->locs = X->traces = X->seqs = 0;
	X->running = false;
	X->finish = NULL;
	X->spurious_cas = 1;
	X->spurious_futex = 0;
	X->error[0] = X->error_more[0] = 0;
}

static void run_once(void (*setup)(void))
{
	struct thread *main = &X->thread[0];

	begin();
	if (_setjmp(X->outside))
		return;
	setup();
	X->named = true;
	for (int i = 1; i <= X->threads; i++) {
		X->thread[i].spurious_cas = X->spurious_cas;
		X->thread[i].spurious_futex = X->spurious_futex;
		view_join(&X->thread[i].view, &main->view);
	}
	main->view.clock[0]++;
	X->running = true;
	search_next();
	X->running = false;
	if (X->outcome != COMPLETE)
		return;
	X->outcome = RUNNING;
	for (int i = 1; i <= X->threads; i++)
		view_join(&main->view, &X->thread[i].view);
	if (X->finish != NULL)
		X->finish();
	X->outcome = COMPLETE;
}

void explore_finish(void (*fn)(void))
{
	X->finish = fn;
}

void explore_spurious(int cas, int futex)
{
	X->spurious_cas = cas;
	X->spurious_futex = futex;
}

void explore_outcomes(uint64_t expected)
{
	X->expected = expected;
	X->has_expected = true;
}

void explore_outcome(unsigned number)
{
	X->outcomes |= UINT64_C(1) << number;
}

void explore_expect(const char *error)
{
	X->expected_error = error;
}

/* --- all executions --- */

static bool next_execution(void)
{
	while (X->nodes > 0) {
		struct node *n = &X->node[X->nodes - 1];

		if (++n->cur < n->n || n->todo != 0)
			return true;
		X->nodes--;
	}
	return false;
}

/* 0; 1: an error was found; 2: the bound was hit. */
static int explore(const struct explore_test *test)
{
	X->names = 0;
	X->named = false;
	X->nodes = X->nodes_max = 0;
	X->executions = X->cuts = 0;
	X->outcomes = 0;
	X->has_expected = false;
	X->expected_error = NULL;
	do {
		if (X->executions + X->cuts == X->bound)
			return 2;
		run_once(test->fn);
		if (X->outcome == FAILED)
			return X->expected_error == NULL ||
			       strstr(X->error, X->expected_error) == NULL;
		if (X->outcome == COMPLETE)
			X->executions++;
		else
			X->cuts++;
	} while (next_execution());
	if (X->expected_error == NULL &&
	    (!X->has_expected || X->outcomes == X->expected))
		return 0;
	X->traces = 0;
	if (X->expected_error != NULL)
		snprintf(X->error, sizeof(X->error), "does not say \"%s\"",
			 X->expected_error);
	else
		snprintf(X->error, sizeof(X->error),
			 "outcomes are %#llx, not %#llx",
			 (unsigned long long)X->outcomes,
			 (unsigned long long)X->expected);
	return 1;
}

static int report(const struct explore_test *test, int number, int result)
{
	printf("%s %d - %s # %llu executions, %llu cut short, up to %d steps\n",
	       result == 0 ? "ok" : "not ok", number, test->name,
	       (unsigned long long)X->executions, (unsigned long long)X->cuts,
	       X->nodes_max);
	if (result == 2)
		printf("# not explored: the bound of %llu executions is hit\n",
		       (unsigned long long)X->bound);
	if (result == 1) {
		char *line = strtok(X->error_more, "\n");

		printf("# %s\n", X->error);
		for (; line != NULL; line = strtok(NULL, "\n"))
			printf("#   %s\n", line);
		trace_print();
	}
	fflush(stdout);
	return result;
}

/* A bad pointer in the program under test: tell how it came to it. */
static void on_crash(int sig)
{
	snprintf(X->error, sizeof(X->error), "signal %d in %s", sig,
		 self()->name);
	printf("not ok - crash\n# %s\n", X->error);
	trace_print();
	fflush(stdout);
	_exit(1);
}

bool explore_mutant(int number)
{
	return number == X->mutant;
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

/*
 * Exit status: 0; 1: an error was found; 2: only a bound was hit. More than
 * EXPLORE_BOUND executions (a million) fail a test, which then has not been
 * explored; the access with the number EXPLORE_MUTANT is weaker (mutate.py).
 */
int main(int argc, char **argv)
{
	static char stack[64 * 1024];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = on_crash,
				.sa_flags = SA_ONSTACK };
	int number = 0, worst = 0, planned = 0;
	const char *mutant = getenv("EXPLORE_MUTANT");
	const char *bound = getenv("EXPLORE_BOUND");

	X = calloc(1, sizeof(*X));
	if (X == NULL)
		abort();
	X->thread[0].name = "setup";
	X->mutant = mutant == NULL ? 0 : atoi(mutant);
	X->bound = bound == NULL ? 1000000 : strtoull(bound, NULL, 10);
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGABRT, &sa, NULL);
	race_init();
	threads_init();
	for (struct explore_test *t = tests; t != NULL; t = t->next)
		planned += wanted(t->name, argc, argv);
	printf("1..%d\n", planned);
	for (struct explore_test *t = tests; t != NULL; t = t->next) {
		int result;

		if (!wanted(t->name, argc, argv))
			continue;
		result = report(t, ++number, explore(t));
		if (result != 0 && (worst == 0 || result == 1))
			worst = result;
	}
	return planned == 0 ? 2 : worst;
}
