/* What all operations draw on. */
#include "stress.h"

#include <sched.h>
#include <sys/mman.h>

/* splitmix64 */
uint64_t draw(struct actor *a)
{
	uint64_t z = a->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

struct timespec soon(struct actor *a, clockid_t clock)
{
	static const uint32_t most_ns[] = { 1, 20000, 200000, 5000000 };
	struct timespec t;
	uint64_t ns;

	clock_gettime(clock, &t);
	ns = (uint64_t)t.tv_nsec + draw_below(a, most_ns[draw_below(a, 4)]);
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

void draw_rwlock(struct actor *a, marcel_rwlock_t *out)
{
	marcel_rwlockattr_t attr;

	MUST_INT(marcel_rwlockattr_init(&attr), 0);
	MUST_INT(marcel_rwlockattr_setkind(&attr, (int)draw_below(a, 3)), 0);
	MUST_INT(marcel_rwlock_init(out, &attr), 0);
	MUST_INT(marcel_rwlockattr_destroy(&attr), 0);
}

static void compute(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		__asm__ volatile("");
}

void stir(struct actor *a)
{
	switch (draw_below(a, 16)) {
	case 0:
	case 1:
	case 2:
		marcel_yield();
		break;
	case 3:
		marcel_usleep(draw_below(a, 50));
		break;
	case 4:
	case 5:
		compute(draw_below(a, 2000));
		break;
	case 6:
		sched_yield();
		break;
	default:
		break;
	}
}

void *page_new(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

void page_free(void *p)
{
	MUST_INT(munmap(p, 4096), 0);
}
