/*
 * marcel in a library that is dlopened: it runs, and because what the
 * application calls is libc then, no LWP is bound; and it may be closed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <marcel/marcel.h>
#include "../../check.h"

static void *lib;

static void *symbol(const char *name)
{
	void *p = dlsym(lib, name);

	if (p == NULL)
		check_fail(__FILE__, __LINE__, "%s: %s", name, dlerror());
	return p;
}

static cpu_set_t process;

static void *check_affinity(void *arg)
{
	cpu_set_t mine;

	CHECK_INT(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CHECK(CPU_EQUAL(&mine, &process));
	return arg;
}

static void *in_a_thread(void *arg)
{
	pthread_t p;

	check_affinity(NULL);
	CHECK_INT(pthread_create(&p, NULL, check_affinity, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	return arg;
}

static void open_lib(void)
{
	const char *path = getenv("LIBMARCEL");

	CHECK(path != NULL);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		check_fail(__FILE__, __LINE__, "%s", dlerror());
}

TEST(a_dlopened_runtime_leaves_affinity_alone)
{
	__typeof__(&marcel_init) init;
	__typeof__(&marcel_end) end;
	__typeof__(&marcel_create) create;
	__typeof__(&marcel_join) join;
	marcel_t t;

	CHECK_INT(sched_getaffinity(0, sizeof(process), &process), 0);
	open_lib();
	init = (__typeof__(init))symbol("marcel_init");
	end = (__typeof__(end))symbol("marcel_end");
	create = (__typeof__(create))symbol("marcel_create");
	join = (__typeof__(join))symbol("marcel_join");

	CHECK_INT(init(NULL), 0);
	in_a_thread(NULL);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(create(&t, NULL, in_a_thread, NULL), 0);
		CHECK_INT(join(t, NULL), 0);
	}
	CHECK_INT(end(), 0);
	CHECK_INT(sched_getaffinity(0, sizeof(process), &process), 0);
	CHECK_INT(dlclose(lib), 0);
}

static pthread_barrier_t meet;

static void *outlive(void *arg)
{
	__typeof__(&marcel_self) self = (__typeof__(self))symbol("marcel_self");

	CHECK(self() != NULL);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	return arg;
}

/* It gives its descriptor back as it ends, by code that must still be there. */
TEST(a_kernel_thread_may_end_after_the_library_was_closed)
{
	pthread_t p;

	CHECK_INT(pthread_barrier_init(&meet, NULL, 2), 0);
	open_lib();
	CHECK_INT(pthread_create(&p, NULL, outlive, NULL), 0);
	pthread_barrier_wait(&meet);
	CHECK_INT(dlclose(lib), 0);
	pthread_barrier_wait(&meet);
	CHECK_INT(pthread_join(p, NULL), 0);
}
