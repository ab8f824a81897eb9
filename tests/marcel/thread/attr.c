/* marcel/thread/attr.c: what a thread is created with, and where it runs. */
#include <errno.h>
#include <string.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../with.h"

static void *nothing(void *arg)
{
	return arg;
}

/* Before any marcel_init(). */
TEST(a_size_that_was_not_set_is_the_default)
{
	marcel_attr_t attr;
	size_t bytes;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getstacksize(&attr, &bytes), 0);
	CHECK_INT(bytes, 65536);
	CHECK_INT(marcel_attr_destroy(&attr), 0);
}

TEST_VPS(nonsense_is_refused)
{
	marcel_attr_t attr, none;
	marcel_vpset_t set;
	size_t bytes;
	int state;
	marcel_t t;

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setstacksize(&attr, MARCEL_STACK_MIN - 1),
		  EINVAL);
	CHECK_INT(marcel_attr_setstacksize(&attr, (size_t)1 << 41), EINVAL);
	CHECK_INT(marcel_attr_setdetachstate(&attr, 2), EINVAL);
	CHECK_INT(marcel_attr_setvp(&attr, -1), EINVAL);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp()), EINVAL);
	marcel_vpset_zero(&set);
	CHECK_INT(marcel_attr_setvpset(&attr, &set), EINVAL);
	marcel_vpset_add(&set, marcel_nvp());
	CHECK_INT(marcel_attr_setvpset(&attr, &set), EINVAL);
	CHECK_INT(
		marcel_attr_setname(&attr, "a name of exactly thirty-two by."),
		ERANGE);
	CHECK_INT(marcel_attr_setname(&attr, NULL), EINVAL);

	/* What marcel_attr_init() has not made, or destroy has taken. */
	CHECK_INT(marcel_attr_setstacksize(&none, 65536), EINVAL);
	CHECK_INT(marcel_attr_getstacksize(&none, &bytes), EINVAL);
	CHECK_INT(marcel_attr_getdetachstate(&none, &state), EINVAL);
	CHECK_INT(marcel_create(&t, &none, nothing, NULL), EINVAL);
	CHECK_INT(marcel_attr_destroy(&attr), 0);
	CHECK_INT(marcel_create(&t, &attr, nothing, NULL), EINVAL);
	CHECK_INT(marcel_attr_destroy(&attr), EINVAL);
}

TEST_VPS(attributes_are_read_back)
{
	marcel_attr_t attr;
	size_t bytes;
	int state;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getstacksize(&attr, &bytes), 0);
	CHECK_INT(bytes, 65536);
	CHECK_INT(marcel_attr_setstacksize(&attr, 100000), 0);
	CHECK_INT(marcel_attr_getstacksize(&attr, &bytes), 0);
	CHECK_INT(bytes, 100000);
	CHECK_INT(marcel_attr_getdetachstate(&attr, &state), 0);
	CHECK_INT(state, MARCEL_CREATE_JOINABLE);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	CHECK_INT(marcel_attr_getdetachstate(&attr, &state), 0);
	CHECK_INT(state, MARCEL_CREATE_DETACHED);
}

/* --- names --- */

static void *my_name(void *arg)
{
	CHECK_INT(marcel_getname(marcel_self(), arg, MARCEL_NAME_MAX), 0);
	CHECK_INT(marcel_setname(marcel_self(), "another"), 0);
	return NULL;
}

TEST_VPS(a_name_lives_as_long_as_its_thread)
{
	char name[MARCEL_NAME_MAX];
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, "a name of thirty-one bytes, no."),
		  0);
	CHECK_INT(marcel_create(&t, &attr, my_name, name), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_STR(name, "a name of thirty-one bytes, no.");

	/* The next thread, of the same descriptor perhaps, has none. */
	CHECK_INT(marcel_create(&t, NULL, my_name, name), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_STR(name, "");

	CHECK_INT(marcel_setname(marcel_self(), "main"), 0);
	CHECK_INT(marcel_getname(marcel_self(), name, sizeof(name)), 0);
	CHECK_STR(name, "main");
	CHECK_INT(marcel_getname(marcel_self(), name, sizeof(name) - 1),
		  ERANGE);
	CHECK_INT(marcel_setname(marcel_self(),
				 "a name of exactly thirty-two by."),
		  ERANGE);
	CHECK_INT(marcel_setname(marcel_self(), ""), 0);
}

/* --- stacks --- */

/* The compiler must believe that each frame is needed to the end. */
static BASE_NOINLINE int use_stack(char *below, long bytes)
{
	char frame[4096];
	int rest = 1;

	memset(frame, 1, sizeof(frame));
	if (below - frame < bytes)
		rest = use_stack(below, bytes);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return rest + frame[100] - 1;
}

static void *use_bytes(void *arg)
{
	char here;

	return (void *)(long)use_stack(&here, (long)arg);
}

TEST_VPS(a_stack_has_the_room_that_was_asked_for)
{
	static const size_t sizes[] = { 32768,  65536,   100000,  262144,
					300000, 1000000, 16000000 };
	marcel_attr_t attr;
	marcel_t t;
	void *value;

	CHECK_INT(marcel_attr_init(&attr), 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Less some calls of the library's below and a frame above. */
		long room = (long)sizes[i] - 3 * 4096;

		CHECK_INT(marcel_attr_setstacksize(&attr, sizes[i]), 0);
		for (int j = 0; j < 3; j++) {
			CHECK_INT(marcel_create(&t, &attr, use_bytes,
						(void *)room),
				  0);
			CHECK_INT(marcel_join(t, &value), 0);
			CHECK_INT((long)value, 1);
		}
	}
}

/* --- where threads run --- */

static marcel_vpset_t allowed;
static ATOMIC(int) wrong, ran[MARCEL_VP_MAX];

static void *stay_inside(void *arg)
{
	for (int i = 0; i < 50; i++) {
		int vp = marcel_current_vp();

		fetch_add_relaxed(&ran[vp], 1);
		if (!marcel_vpset_has(&allowed, vp))
			fetch_add_relaxed(&wrong, 1);
		marcel_yield();
	}
	return arg;
}

static void run_inside(marcel_attr_t *attr)
{
	marcel_t t[40];

	store_relaxed(&wrong, 0);
	for (int i = 0; i < 40; i++)
		CHECK_INT(marcel_create(&t[i], attr, stay_inside, NULL), 0);
	for (int i = 0; i < 40; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&wrong), 0);
}

TEST_VPS(threads_stay_on_their_vp)
{
	marcel_attr_t attr;

	for (int vp = 0; vp < marcel_nvp(); vp++) {
		marcel_vpset_zero(&allowed);
		marcel_vpset_add(&allowed, vp);
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
		run_inside(&attr);
	}
}

TEST_VPS(threads_stay_in_their_set)
{
	marcel_attr_t attr;

	for (unsigned bits = 1; bits < 1u << marcel_nvp(); bits++) {
		marcel_vpset_zero(&allowed);
		allowed.bits[0] = bits;
		CHECK_INT(marcel_attr_init(&attr), 0);
		CHECK_INT(marcel_attr_setvpset(&attr, &allowed), 0);
		run_inside(&attr);
	}
}

/* Park and be woken, by a thread that runs anywhere. */
static void wake_at_once(void *arg)
{
	marcel_wake(arg);
}

static void *park_inside(void *arg)
{
	for (int i = 0; i < 100; i++) {
		marcel_park(wake_at_once, marcel_self());
		if (!marcel_vpset_has(&allowed, marcel_current_vp()))
			fetch_add_relaxed(&wrong, 1);
	}
	return arg;
}

/* A level and all below it. */
static void run_in_levels(struct marcel_level *l)
{
	marcel_attr_t attr;

	allowed = l->vps;
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setlevel(&attr, l), 0);
	run_inside(&attr);
	for (unsigned i = 0; i < l->nchildren; i++)
		run_in_levels(l->children[i]);
}

TEST_VPS(threads_stay_in_their_level)
{
	run_in_levels(marcel_topo_machine());
}

TEST_VPS(a_level_has_a_name)
{
	struct marcel_level *machine = marcel_topo_machine();

	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_MACHINE, 0), machine);
	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_MACHINE, 1), NULL);
	for (int i = 0; marcel_nvp() > 1 && i < marcel_nvp(); i++)
		CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_VP, (unsigned)i),
			  marcel_topo_vp(i));
	CHECK_PTR(marcel_topo_level(MARCEL_LEVEL_VP, MARCEL_VP_MAX), NULL);
	CHECK_PTR(marcel_topo_level((enum marcel_level_kind)99, 0), NULL);
}

TEST_VPS(a_level_of_another_machine_is_refused)
{
	struct marcel_level copy = *marcel_topo_machine();
	const char *inside = (const char *)marcel_topo_machine() + 8;
	marcel_attr_t attr, none;

	memset(&none, 0, sizeof(none));
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setlevel(&attr, NULL), EINVAL);
	CHECK_INT(marcel_attr_setlevel(&attr, &copy), EINVAL);
	CHECK_INT(marcel_attr_setlevel(&attr, (const void *)inside), EINVAL);
	CHECK_INT(marcel_attr_setlevel(&none, marcel_topo_machine()), EINVAL);
}

TEST_VPS(woken_threads_stay_in_their_set)
{
	marcel_attr_t attr;
	marcel_t t[20];

	marcel_vpset_zero(&allowed);
	marcel_vpset_add(&allowed, marcel_nvp() - 1);
	marcel_vpset_add(&allowed, marcel_nvp() / 2);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvpset(&attr, &allowed), 0);
	store_relaxed(&wrong, 0);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_create(&t[i], &attr, park_inside, NULL), 0);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&wrong), 0);
}

TEST_VPS(main_stays_on_vp_0)
{
	marcel_t t[20];

	CHECK_INT(marcel_current_vp(), 0);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_create(&t[i], NULL, nothing, NULL), 0);
	for (int i = 0; i < 200; i++) {
		marcel_yield();
		CHECK_INT(marcel_current_vp(), 0);
	}
	for (int i = 0; i < 20; i++) {
		CHECK_INT(marcel_join(t[i], NULL), 0);
		CHECK_INT(marcel_current_vp(), 0);
	}
}
