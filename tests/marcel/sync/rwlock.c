/* sync/rwlock.c */
#include "crowd.h"

#include <errno.h>

struct shared {
	marcel_rwlock_t l;
	long value; /* plain: the lock gives exclusion and order */
	ATOMIC(int) readers, writers;
};

static void read_or_write(void *arg, int i)
{
	struct shared *s = arg;

	for (int n = 0; n < ROUNDS; n++) {
		if ((n + i) % 4 == 0) {
			CHECK_INT(marcel_rwlock_wrlock(&s->l), 0);
			CHECK_INT(fetch_add_relaxed(&s->writers, 1), 0);
			CHECK_INT(load_relaxed(&s->readers), 0);
			s->value++;
			if (n % 3 == 0)
				marcel_yield();
			fetch_sub_relaxed(&s->writers, 1);
		} else {
			long before;

			CHECK_INT(marcel_rwlock_rdlock(&s->l), 0);
			fetch_add_relaxed(&s->readers, 1);
			before = s->value;
			if (n % 3 == 0)
				marcel_yield();
			CHECK_INT(s->value, before);
			CHECK_INT(load_relaxed(&s->writers), 0);
			fetch_sub_relaxed(&s->readers, 1);
		}
		CHECK_INT(marcel_rwlock_unlock(&s->l), 0);
	}
}

static void init_kind(marcel_rwlock_t *l, int kind)
{
	marcel_rwlockattr_t attr;

	CHECK_INT(marcel_rwlockattr_init(&attr), 0);
	CHECK_INT(marcel_rwlockattr_setkind(&attr, kind), 0);
	CHECK_INT(marcel_rwlock_init(l, &attr), 0);
	CHECK_INT(marcel_rwlockattr_destroy(&attr), 0);
}

static void check_writers_are_alone(const struct crowd *crowd, int kind)
{
	struct shared s = { .value = 0 };

	init_kind(&s.l, kind);
	crowd_run(crowd, read_or_write, &s);
	CHECK_INT(s.value, (long)crowd_size(crowd) * ROUNDS / 4);
	CHECK_INT(marcel_rwlock_destroy(&s.l), 0);
}

TEST(a_writer_is_alone)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++)
		for (int kind = MARCEL_RWLOCK_FAIR;
		     kind <= MARCEL_RWLOCK_PREFER_WRITER; kind++)
			check_writers_are_alone(&crowds[c], kind);
}

/* Threads that lock in the order of their numbers; 'w' or 'r' each. */
struct line {
	marcel_rwlock_t l;
	const char *kinds;
	ATOMIC(int) come, in;
	marcel_event_t leave[CROWD_MAX];
};

static void stand_in_line(void *arg, int i)
{
	struct line *x = arg;

	fetch_add_relaxed(&x->come, 1);
	CHECK_INT(x->kinds[i] == 'w' ? marcel_rwlock_wrlock(&x->l)
				     : marcel_rwlock_rdlock(&x->l),
		  0);
	fetch_add_relaxed(&x->in, 1);
	marcel_event_wait(&x->leave[i]);
	CHECK_INT(marcel_rwlock_unlock(&x->l), 0);
}

static void let_run(void)
{
	for (int i = 0; i < 2 * CROWD_MAX; i++)
		marcel_yield();
}

TEST(a_waiting_writer_keeps_new_readers_out_and_all_get_their_turn)
{
	struct crowd_member m[CROWD_MAX];
	marcel_t t[CROWD_MAX];
	struct line x = { .kinds = "rrwrrwr" };
	static const int in_after[] = { 2, 2, 3, 5, 5, 6, 7 };
	int n = (int)strlen(x.kinds);

	sole_vp_start();
	for (int i = 0; i < n; i++) {
		m[i] = (struct crowd_member){ stand_in_line, &x, i };
		marcel_create(&t[i], NULL, crowd_main, &m[i]);
		while (load_relaxed(&x.come) <= i)
			marcel_yield();
		let_run();
	}
	CHECK_INT(load_relaxed(&x.in),
		  2); /* readers together; the writer waits */
	CHECK_INT(marcel_rwlock_tryrdlock(&x.l), EBUSY);
	CHECK_INT(marcel_rwlock_trywrlock(&x.l), EBUSY);
	CHECK_INT(marcel_rwlock_destroy(&x.l), EBUSY);
	for (int i = 0; i < n; i++) {
		CHECK_INT(load_relaxed(&x.in), in_after[i]);
		marcel_event_set(&x.leave[i]);
		marcel_join(t[i], NULL);
		let_run();
	}
	CHECK_INT(load_relaxed(&x.in), n);
	CHECK_INT(marcel_rwlock_destroy(&x.l), 0);
	vps_stop();
}

/* --- whom a lock prefers --- */

/*
 * Who comes when, as in a line, and who is let in when: at first, and after
 * each has left, in the order of this list.
 */
static const struct turns {
	const char *kinds;
	const char *in[3]; /* of each kind of lock */
} turns[] = {
	{ "rwr", { "0,1,2,", "02,,1,", "0,1,2," } },
	{ "rwrwr", { "0,1,2,3,4,", "024,,,1,3,", "0,1,3,24,," } },
	{ "wrwrw", { "0,1,2,3,4,", "0,13,,2,4,", "0,2,4,13,," } },
	{ "wwrrw", { "0,1,23,,4,", "0,23,,1,4,", "0,1,4,23,," } },
	{ "wrr", { "0,12,,", "0,12,,", "0,12,," } },
	{ "www", { "0,1,2,", "0,1,2,", "0,1,2," } },
};

struct preferring {
	struct line line;
	ATOMIC(bool) in[CROWD_MAX];
};

static void stand_and_tell(void *arg, int i)
{
	struct preferring *p = arg;
	struct line *x = &p->line;

	fetch_add_relaxed(&x->come, 1);
	CHECK_INT(x->kinds[i] == 'w' ? marcel_rwlock_wrlock(&x->l)
				     : marcel_rwlock_rdlock(&x->l),
		  0);
	store_relaxed(&p->in[i], true);
	marcel_event_wait(&x->leave[i]);
	CHECK_INT(marcel_rwlock_unlock(&x->l), 0);
}

static void check_turns(const struct turns *turn, int kind)
{
	int n = (int)strlen(turn->kinds), told = 0, end = 0;
	int order[CROWD_MAX];
	struct preferring p = { .line.kinds = turn->kinds };
	struct crowd_member m[CROWD_MAX];
	char in[2 * CROWD_MAX];
	marcel_t t[CROWD_MAX];

	init_kind(&p.line.l, kind);
	for (int i = 0; i < n; i++) {
		m[i] = (struct crowd_member){ stand_and_tell, &p, i };
		CHECK_INT(marcel_create(&t[i], NULL, crowd_main, &m[i]), 0);
		while (load_relaxed(&p.line.come) <= i)
			marcel_yield();
		let_run();
	}
	for (int gone = 0; gone < n; gone++) {
		for (int i = 0; i < n; i++) {
			if (!load_relaxed(&p.in[i]))
				continue;
			store_relaxed(&p.in[i], false);
			order[told++] = i;
			in[end++] = (char)('0' + i);
		}
		in[end++] = ',';
		CHECK(gone < told);
		marcel_event_set(&p.line.leave[order[gone]]);
		CHECK_INT(marcel_join(t[order[gone]], NULL), 0);
		let_run();
	}
	in[end] = '\0';
	CHECK_STR(in, turn->in[kind]);
	CHECK_INT(marcel_rwlock_destroy(&p.line.l), 0);
}

TEST(the_kind_of_a_lock_says_whose_turn_it_is)
{
	static const marcel_rwlock_t by_word =
		MARCEL_RWLOCK_PREFER_WRITER_INITIALIZER;
	marcel_rwlock_t by_attr;

	init_kind(&by_attr, MARCEL_RWLOCK_PREFER_WRITER);
	CHECK_INT(memcmp(&by_attr, &by_word, sizeof(by_word)), 0);
	sole_vp_start();
	for (size_t i = 0; i < BASE_ARRAY_LEN(turns); i++)
		for (int kind = MARCEL_RWLOCK_FAIR;
		     kind <= MARCEL_RWLOCK_PREFER_WRITER; kind++)
			check_turns(&turns[i], kind);
	vps_stop();
}

static void *write_once(void *arg)
{
	CHECK_INT(marcel_rwlock_wrlock(arg), 0);
	CHECK_INT(marcel_rwlock_unlock(arg), 0);
	return NULL;
}

/* Only where readers are preferred, and there in every way. */
TEST(who_reads_may_lock_again_while_a_writer_waits_if_readers_are_preferred)
{
	static const struct timespec past = { .tv_sec = 1 };

	sole_vp_start();
	for (int kind = MARCEL_RWLOCK_FAIR;
	     kind <= MARCEL_RWLOCK_PREFER_WRITER_NP; kind++) {
		bool again = kind == MARCEL_RWLOCK_PREFER_READER ||
			     kind == MARCEL_RWLOCK_PREFER_WRITER_NP;
		marcel_rwlock_t l;
		marcel_t writer;

		init_kind(&l, kind);
		CHECK_INT(marcel_rwlock_rdlock(&l), 0);
		CHECK_INT(marcel_create(&writer, NULL, write_once, &l), 0);
		let_run();
		CHECK_INT(marcel_rwlock_trywrlock(&l), EBUSY);
		CHECK_INT(marcel_rwlock_tryrdlock(&l), again ? 0 : EBUSY);
		CHECK_INT(marcel_rwlock_timedrdlock(&l, &past),
			  again ? 0 : ETIMEDOUT);
		if (again) {
			CHECK_INT(marcel_rwlock_rdlock(&l), 0);
			for (int i = 0; i < 3; i++)
				CHECK_INT(marcel_rwlock_unlock(&l), 0);
		}
		CHECK_INT(marcel_rwlock_destroy(&l), EBUSY);
		CHECK_INT(marcel_rwlock_unlock(&l), 0);
		CHECK_INT(marcel_join(writer, NULL), 0);
		CHECK_INT(marcel_rwlock_destroy(&l), 0);
	}
	vps_stop();
}

TEST(errors_are_those_of_posix)
{
	marcel_rwlockattr_t attr;
	marcel_rwlock_t l;
	int shared, kind;

	vps_start(1);
	CHECK_INT(marcel_rwlockattr_init(&attr), 0);
	CHECK_INT(marcel_rwlockattr_getkind(&attr, &kind), 0);
	CHECK_INT(kind, MARCEL_RWLOCK_FAIR);
	CHECK_INT(marcel_rwlockattr_setkind(&attr, -1), EINVAL);
	CHECK_INT(marcel_rwlockattr_setkind(&attr,
					    MARCEL_RWLOCK_PREFER_WRITER_NP + 1),
		  EINVAL);
	CHECK_INT(marcel_rwlockattr_setkind(&attr, MARCEL_RWLOCK_PREFER_READER),
		  0);
	CHECK_INT(marcel_rwlockattr_getkind(&attr, &kind), 0);
	CHECK_INT(kind, MARCEL_RWLOCK_PREFER_READER);
	CHECK_INT(marcel_rwlock_init(&l, &attr), 0);
	CHECK_INT(marcel_rwlockattr_setpshared(&attr, MARCEL_PROCESS_PRIVATE),
		  0);
	CHECK_INT(marcel_rwlockattr_setpshared(&attr, MARCEL_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(marcel_rwlockattr_setpshared(&attr, 2), EINVAL);
	CHECK_INT(marcel_rwlockattr_getpshared(&attr, &shared), 0);
	CHECK_INT(shared, MARCEL_PROCESS_PRIVATE);
	CHECK_INT(marcel_rwlockattr_destroy(&attr), 0);
	CHECK_INT(marcel_rwlockattr_getpshared(&attr, &shared), EINVAL);
	CHECK_INT(marcel_rwlockattr_setpshared(&attr, 0), EINVAL);
	CHECK_INT(marcel_rwlockattr_getkind(&attr, &kind), EINVAL);
	CHECK_INT(marcel_rwlockattr_setkind(&attr, kind), EINVAL);
	CHECK_INT(marcel_rwlock_init(&l, &attr), EINVAL);
	CHECK_INT(marcel_rwlock_init(&l, NULL), 0);
	CHECK_INT(marcel_rwlock_unlock(&l), EPERM);
	CHECK_INT(marcel_rwlock_wrlock(&l), 0);
	CHECK_INT(marcel_rwlock_wrlock(&l), EDEADLK);
	CHECK_INT(marcel_rwlock_rdlock(&l), EDEADLK);
	CHECK_INT(marcel_rwlock_trywrlock(&l), EBUSY);
	CHECK_INT(marcel_rwlock_tryrdlock(&l), EBUSY);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	CHECK_INT(marcel_rwlock_tryrdlock(&l), 0);
	CHECK_INT(marcel_rwlock_tryrdlock(&l), 0);
	CHECK_INT(marcel_rwlock_trywrlock(&l), EBUSY);
	CHECK_INT(marcel_rwlock_destroy(&l), EBUSY);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	CHECK_INT(marcel_rwlock_destroy(&l), 0);
	vps_stop();
}

static void *unlock_of_other(void *arg)
{
	CHECK_INT(marcel_rwlock_unlock(arg), EPERM);
	return NULL;
}

TEST(only_the_writer_unlocks_what_it_locked)
{
	marcel_rwlock_t l = MARCEL_RWLOCK_INITIALIZER;
	marcel_t t;

	vps_start(1);
	CHECK_INT(marcel_rwlock_wrlock(&l), 0);
	CHECK_INT(marcel_create(&t, NULL, unlock_of_other, &l), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	vps_stop();
}

TEST(too_many_readers_is_eagain)
{
	marcel_rwlock_t l = MARCEL_RWLOCK_INITIALIZER;

	vps_start(1);
	memset(&l, 0xf8, 1);
	memset((char *)&l + 1, 0xff, 3); /* the word's count of readers */
	CHECK_INT(marcel_rwlock_rdlock(&l), EAGAIN);
	CHECK_INT(marcel_rwlock_tryrdlock(&l), EAGAIN);
	CHECK_INT(marcel_rwlock_unlock(&l), 0);
	CHECK_INT(marcel_rwlock_rdlock(&l), 0);
	vps_stop();
}

/* Everybody drops its reference as a writer, some after having read. */
struct counted {
	marcel_rwlock_t l;
	int references;
};

struct pages {
	struct counted *page[ROUNDS];
};

static void drop_references(void *arg, int i)
{
	struct pages *p = arg;

	for (int n = 0; n < ROUNDS; n++) {
		struct counted *c = p->page[n];
		bool last;

		if ((n + i) % 2) {
			marcel_rwlock_rdlock(&c->l);
			marcel_yield();
			marcel_rwlock_unlock(&c->l);
		}
		marcel_rwlock_wrlock(&c->l);
		last = --c->references == 0;
		marcel_rwlock_unlock(&c->l);
		if (last)
			page_free(c);
	}
}

TEST(unlock_touches_nothing_after_it_let_the_next_in)
{
	static struct pages p;

	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		for (int n = 0; n < ROUNDS; n++) {
			p.page[n] = page_new();
			p.page[n]->references = crowd_size(&crowds[c]);
		}
		crowd_run(&crowds[c], drop_references, &p);
	}
}
