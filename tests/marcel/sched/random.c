/*
 * marcel/sched/random.c: with a seed, a program does the same each time, and
 * another seed makes it do something else.
 */
#include "../with.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>

#include <base/atomic.h>
#include "../../../marcel/sched/vp.h"
#include "../../run.h"

#define TARGET run_path("TARGET")

enum { RUNS = FEWER > 1 ? 20 : 100, SEEDS = 200 };

/* What a run of `mix` prints. */
struct mix {
	unsigned long long order, hash;
	void *address;
};

static const char *read_mix(const char *text, struct mix *m)
{
	int n = 0;

	CHECK_INT(sscanf(text, "%llx %llx %p\n%n", &m->order, &m->hash,
			 &m->address, &n),
		  3);
	return text + n;
}

static struct mix mix(const char *sched)
{
	struct run r =
		run(NULL, "MARCEL_SCHED=%s exec '%s' mix", sched, TARGET);
	struct mix m;

	CHECK_INT(r.code, 0);
	read_mix(r.out, &m);
	return m;
}

static bool addresses_are_random(void)
{
	return (personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
}

/* So many processes one after the other. */
static const char *mix_again(int times)
{
	struct run r = run(NULL,
			   "export MARCEL_SCHED=random:7;"
			   "for i in $(seq %d); do '%s' mix || exit; done",
			   times, TARGET);

	CHECK_INT(r.code, 0);
	return r.out;
}

TEST(a_seed_gives_the_same_schedule_in_every_process)
{
	struct mix first = mix("random:7"), m;
	const char *text = "";
	bool moved = false;

	CHECK(first.hash != 0);
	for (int i = 0; i < RUNS; i++) {
		if (*text == 0)
			text = mix_again(RUNS / 10);
		text = read_mix(text, &m);
		CHECK(m.hash == first.hash);
		CHECK(m.order == first.order);
		moved |= m.address != first.address;
	}
	CHECK(moved || !addresses_are_random());
}

TEST(seeds_differ)
{
	struct mix before = mix("random:0"), m;

	for (int seed = 1; seed <= 5; seed++) {
		char sched[32];

		snprintf(sched, sizeof(sched), "random:%d", seed);
		m = mix(sched);
		CHECK(m.hash != before.hash);
		CHECK(m.order != before.order);
		before = m;
	}
}

TEST(without_a_seed_there_is_no_hash)
{
	CHECK(mix("steal").hash == 0);
	CHECK(mix("").hash == 0);
}

static int bug(const char *what, int seed)
{
	return run(NULL, "ulimit -c 0; MARCEL_SCHED=random:%d exec '%s' %s",
		   seed, TARGET, what)
		.code;
}

TEST(a_planted_bug_is_found_by_a_seed_and_by_it_again)
{
	int seed = 0, well = 0, code;

	for (int i = 0; i < 2; i++)
		CHECK_INT(
			run(NULL, "MARCEL_NVP=1 exec '%s' order", TARGET).code,
			0);
	while (seed < SEEDS && bug("order", seed) == 0)
		well++, seed++;
	CHECK(seed < SEEDS);
	code = bug("order", seed);
	CHECK(code != 0);
	for (int i = 0; i < 5; i++)
		CHECK_INT(bug("order", seed), code);
	for (int i = seed + 1; well == 0 && i < SEEDS; i++)
		well += bug("order", i) == 0;
	CHECK(well > 0);
}

TEST(the_hash_is_printed_when_it_is_asked_for)
{
	struct run r =
		run(NULL, "MARCEL_SCHED=random:5,hash exec '%s' mix", TARGET);
	unsigned long long order, hash;
	char line[80];

	CHECK_INT(r.code, 0);
	CHECK_INT(sscanf(r.out, "%llx %llx", &order, &hash), 2);
	CHECK(strstr(r.err, "MARCEL_SCHED=random:5: ") != NULL);
	CHECK(strstr(r.err, " picks, hash ") != NULL);
	snprintf(line, sizeof(line),
		 "MARCEL_SCHED=random:5: 0 picks, hash %016x", 0);
	r = run(NULL, "MARCEL_SCHED=random:5,hash exec '%s' well", TARGET);
	CHECK(strstr(r.err, line) != NULL);
	r = run(NULL, "MARCEL_SCHED=random:5 exec '%s' well", TARGET);
	CHECK_STR(r.err, "");
}

/* --- in this process --- */

static int start(const char *sched, int nvp)
{
	struct marcel_config config = { .nvp = nvp };
	int rc;

	setenv("MARCEL_SCHED", sched, 1);
	rc = marcel_init(&config);
	unsetenv("MARCEL_SCHED");
	return rc;
}

TEST(nonsense_is_refused)
{
	static const char *const bad[] = {
		"fair",         "random",       "random:",
		"random:x",     "random:-1",    "random:1k",
		"random: 1",    "random:1,",    "random:1,hash,",
		"random:,hash", "random:1hash", "random:9223372036854775808",
		"RANDOM:1",     "steal:1",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(start(bad[i], 1), -EINVAL);
	CHECK(!marcel_is_running());
}

TEST(it_takes_one_vp)
{
	CHECK_INT(start("random:1", 2), -EINVAL);
	setenv("MARCEL_NVP", "2", 1);
	CHECK_INT(start("random:1", 0), -EINVAL);
	CHECK_INT(start("random:1", 1), 0);
	CHECK_INT(marcel_nvp(), 1);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_NVP");
	CHECK_INT(start("random:9223372036854775807", 0), 0);
	CHECK_INT(marcel_nvp(), 1);
	CHECK_INT(marcel_end(), 0);
}

static void *count_me(void *arg)
{
	++*(int *)arg;
	return NULL;
}

static uint64_t hash_of_a_few(void)
{
	marcel_t t[10];
	int ran = 0;

	CHECK_INT(start("random:3", 1), 0);
	for (int i = 0; i < 10; i++)
		CHECK_INT(marcel_create(&t[i], NULL, count_me, &ran), 0);
	for (int i = 0; i < 10; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(ran, 10);
	CHECK_INT(marcel_end(), 0);
	return marcel_schedule_hash();
}

TEST(a_runtime_that_starts_again_starts_from_the_seed)
{
	uint64_t hash = hash_of_a_few();

	CHECK(hash != 0);
	CHECK(hash_of_a_few() == hash);
	CHECK_INT(start("steal", 1), 0);
	CHECK(marcel_schedule_hash() == 0);
	CHECK_INT(marcel_end(), 0);
}

/* Each of the others is first for some seed, about as often as the others. */
static int first;

static void *be_first(void *arg)
{
	if (first < 0)
		first = (int)(long)arg;
	return NULL;
}

TEST(every_thread_that_is_ready_may_be_next)
{
	enum { THREADS = 5, EACH = FEWER > 1 ? 20 : 60 };
	int was_first[THREADS] = { 0 };
	marcel_t t[THREADS];
	char sched[32];

	for (int seed = 0; seed < THREADS * EACH; seed++) {
		snprintf(sched, sizeof(sched), "random:%d", seed);
		CHECK_INT(start(sched, 1), 0);
		first = -1;
		for (int i = 0; i < THREADS; i++)
			marcel_create(&t[i], NULL, be_first, (void *)(long)i);
		for (int i = 0; i < THREADS; i++)
			marcel_join(t[i], NULL);
		CHECK_INT(marcel_end(), 0);
		was_first[first]++;
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(was_first[i] > EACH / 3 && was_first[i] < 3 * EACH);
}

TEST(nobody_is_interrupted)
{
	CHECK_INT(start("random:1", 1), 0);
	CHECK_INT(marcel_sched.slice_ns, 0);
	CHECK_INT(marcel_end(), 0);
}

/* More than the fifo has room for at first; each is run once. */
TEST(many_threads_are_ready_at_a_time)
{
	enum { MANY = 5000 / FEWER };
	static marcel_t t[MANY];
	int ran = 0;

	CHECK_INT(start("random:1", 1), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_create(&t[i], NULL, count_me, &ran), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(ran, MANY);
	CHECK_INT(marcel_end(), 0);
}
