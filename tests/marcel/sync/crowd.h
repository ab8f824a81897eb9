/*
 * Runs a test's function in many threads at once: user threads on some number
 * of VPs, and foreign kernel threads beside them.
 */
#ifndef TESTS_MARCEL_SYNC_CROWD_H
#define TESTS_MARCEL_SYNC_CROWD_H

#include "../with.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <base/atomic.h>

enum { ROUNDS = FEWER > 1 ? 300 : 1000 };

enum { CROWD_MAX = 64, VPS_MANY = 4 };

struct crowd {
	int nvp;    /* virtual processors */
	int users;  /* user threads; numbered from 0 */
	int aliens; /* foreign threads; numbered after them */
};

/* The mixes in which every rule must hold. */
static const struct crowd crowds[] = {
	{ 1, 8, 0 },
	{ VPS_MANY, 8, 0 },
	{ 1, 2, 2 },
	{ VPS_MANY, 6, 2 },
};

typedef void (*crowd_fn)(void *arg, int i);

struct crowd_member {
	crowd_fn fn;
	void *arg;
	int i;
};

static inline int crowd_size(const struct crowd *c)
{
	return c->users + c->aliens;
}

static void *crowd_main(void *value)
{
	struct crowd_member *m = value;

	m->fn(m->arg, m->i);
	return NULL;
}

static inline void vps_start(int nvp)
{
	struct marcel_config config = { .nvp = nvp };

	CHECK_INT(marcel_init(&config), 0);
}

/* One, without ticks: nothing but the program itself says who runs. */
static inline void sole_vp_start(void)
{
	setenv("MARCEL_TIMESLICE_US", "0", 1);
	vps_start(1);
	unsetenv("MARCEL_TIMESLICE_US");
}

static inline void vps_stop(void)
{
	CHECK_INT(marcel_end(), 0);
}

/* Between vps_start() and vps_stop(). */
static inline void crowd_go(const struct crowd *c, crowd_fn fn, void *arg)
{
	struct crowd_member m[CROWD_MAX];
	pthread_t aliens[CROWD_MAX];
	marcel_t users[CROWD_MAX];
	int n = crowd_size(c);

	for (int i = 0; i < n; i++) {
		m[i] = (struct crowd_member){ fn, arg, i };
		if (i < c->users)
			CHECK_INT(marcel_create(&users[i], NULL, crowd_main,
						&m[i]),
				  0);
		else
			CHECK_INT(pthread_create(&aliens[i], NULL, crowd_main,
						 &m[i]),
				  0);
	}
	for (int i = 0; i < n; i++)
		CHECK_INT(i < c->users ? marcel_join(users[i], NULL)
				       : pthread_join(aliens[i], NULL),
			  0);
}

static inline void crowd_run(const struct crowd *c, crowd_fn fn, void *arg)
{
	vps_start(c->nvp);
	crowd_go(c, fn, arg);
	vps_stop();
}

/* All zero, and a fault for whoever touches it after page_free(). */
static inline void *page_new(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static inline void page_free(void *p)
{
	CHECK_INT(munmap(p, 4096), 0);
}

#endif
