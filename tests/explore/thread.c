/*
 * Threads of the program under test: fibers of one kernel thread. Each is made
 * once and run anew in each execution, from the frame at the bottom of its
 * stack, so that an execution may be left in the middle.
 *
 * The executable's data and thread-local variables are put back before each
 * execution; every fiber has its own copy of the latter.
 */
#include "internal.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 256 * 1024 };

/* What the linker calls the bounds of the executable's writable data. */
extern char __data_start[], _end[];

static struct {
	char *data;
	char *tls_now, *tls; /* where it is; as it was at the start */
	size_t tls_bytes;
} * saved;

static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_TLS)
			continue;
		saved->tls_now = info->dlpi_tls_data;
		saved->tls_bytes = info->dlpi_phdr[i].p_memsz;
	}
	return 1; /* the executable comes first: no further */
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (p == NULL)
		abort();
	return p;
}

void threads_init(void)
{
	size_t bytes = (size_t)(_end - __data_start);

	saved = allocate(sizeof(*saved));
	memset(saved, 0, sizeof(*saved));
	dl_iterate_phdr(find_tls, NULL);
	saved->tls = allocate(saved->tls_bytes);
	for (int i = 0; i < THREADS_MAX; i++)
		X->thread[i].tls = allocate(saved->tls_bytes);
	if (saved->tls_bytes > 0)
		memcpy(saved->tls, saved->tls_now, saved->tls_bytes);
	saved->data = allocate(bytes);
	memcpy(saved->data, __data_start, bytes);
}

void threads_reset(void)
{
	memcpy(__data_start, saved->data, (size_t)(_end - __data_start));
	for (int i = 0; i < THREADS_MAX; i++) {
		struct thread *t = &X->thread[i];

		memset(&t->view, 0, sizeof(t->view));
		memset(&t->before, 0, sizeof(t->before));
		t->view.clock[i] = 1;
		t->state = DONE;
		t->started = false;
		t->may_sleep = false;
		t->token = false;
		t->nspin = 0;
		t->spin_out = t->spin_forced = false;
		t->spins = 0;
		memset(&t->token_view, 0, sizeof(t->token_view));
		if (saved->tls_bytes > 0)
			memcpy(t->tls, saved->tls, saved->tls_bytes);
	}
	if (saved->tls_bytes > 0)
		memcpy(saved->tls_now, saved->tls, saved->tls_bytes);
}

bool thread_is_tls(const void *p)
{
	const char *c = p;

	return c >= saved->tls_now && c < saved->tls_now + saved->tls_bytes;
}

/* The bottom of a fiber; each execution jumps here. */
static void fiber_main(void)
{
	struct thread *t;

	_setjmp(self()->base);
	t = self();
	t->started = true;
	t->fn(t->arg);
	t = self();
	t->state = DONE;
	search_next();
	abort();
}

static void fiber_make(struct thread *t)
{
	t->stack = allocate(STACK);
	getcontext(&t->uc);
	t->uc.uc_stack.ss_sp = t->stack;
	t->uc.uc_stack.ss_size = STACK;
	t->uc.uc_link = NULL;
	makecontext(&t->uc, fiber_main, 0);
	t->made = true;
}

/* Returns when somebody resumes the caller; at once if t is the caller. */
void thread_resume(int t)
{
	struct thread *from = self(), *to = &X->thread[t];

	if (from == to)
		return;
	if (saved->tls_bytes > 0) {
		memcpy(from->tls, saved->tls_now, saved->tls_bytes);
		memcpy(saved->tls_now, to->tls, saved->tls_bytes);
	}
	if (_setjmp(from->here))
		return;
	X->current = t;
	if (t == 0 || to->started)
		_longjmp(to->here, 1);
	if (to->made)
		_longjmp(to->base, 1);
	fiber_make(to);
	setcontext(&to->uc);
}

int explore_self(void)
{
	return X->current;
}

int explore_spawn(const char *name, void (*fn)(void *arg), void *arg)
{
	struct thread *t = &X->thread[X->threads + 1];

	if (X->running || X->threads + 1 == THREADS_MAX)
		explore_fail("cannot spawn %s", name);
	X->threads++;
	t->name = name;
	t->fn = fn;
	t->arg = arg;
	t->state = READY;
	return X->threads;
}

void explore_may_sleep(int thread)
{
	X->thread[thread].may_sleep = true;
}
