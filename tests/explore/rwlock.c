/*
 * marcel/sync/rwlock.c: a writer is alone, readers see what writers did, all
 * who wait get their turn, the last user may free it; whoever it prefers; and
 * in the child of a fork nobody waits but its own threads.
 *
 * covers: rwlock guard adopt
 */
#include "sync_timers.h"

#include "../../marcel/sync/waitq.c"
#include "../../marcel/sync/rwlock.c"

static marcel_rwlock_t rwlock;
static int data, writers, users;

static void write(void *arg)
{
	marcel_rwlock_wrlock(&rwlock);
	data++;
	marcel_rwlock_unlock(&rwlock);
}

static void read(void *arg)
{
	marcel_rwlock_rdlock(&rwlock);
	explore_check(data >= 0 && data <= writers);
	marcel_rwlock_unlock(&rwlock);
}

static void try_write(void *arg)
{
	if (marcel_rwlock_trywrlock(&rwlock) != 0)
		return;
	data++;
	marcel_rwlock_unlock(&rwlock);
}

/* The last of the users frees it. */
static void drop(void *arg)
{
	bool last;

	read(arg);
	marcel_rwlock_wrlock(&rwlock);
	last = --users == 0;
	marcel_rwlock_unlock(&rwlock);
	if (last)
		explore_gone(&rwlock, sizeof(rwlock));
}

static void all_have_written(void)
{
	explore_check(data == writers);
	explore_check(marcel_rwlock_destroy(&rwlock) == 0);
}

static void names(int n)
{
	world_init();
	writers = n;
	explore_name(&rwlock, sizeof(rwlock), "rwlock");
	explore_name(&data, sizeof(data), "data");
	explore_finish(all_have_written);
}

/* It was locked before the others came. */
static void leave(void *arg)
{
	explore_check(data == 0);
	marcel_rwlock_unlock(&rwlock);
}

static void leave_written(void *arg)
{
	data++;
	marcel_rwlock_unlock(&rwlock);
}

EXPLORE(writers_are_alone)
{
	names(2);
	explore_spawn("writer 1", write, NULL);
	explore_spawn("writer 2", write, NULL);
}

EXPLORE(a_reader_and_a_writer_get_their_turn_after_a_reader)
{
	names(1);
	marcel_rwlock_rdlock(&rwlock);
	explore_spawn("holder", leave, NULL);
	explore_spawn("reader", read, NULL);
	explore_spawn("writer", write, NULL);
}

EXPLORE(a_reader_and_a_writer_get_their_turn_after_a_writer)
{
	names(2);
	marcel_rwlock_wrlock(&rwlock);
	store_relaxed(&((struct rwlock *)&rwlock)->owner, &world_threads[1]);
	explore_spawn("holder", leave_written, NULL);
	explore_spawn("reader", read, NULL);
	explore_spawn("writer", write, NULL);
}

/* --- whom it prefers --- */

static void set_kind(int kind)
{
	marcel_rwlockattr_t attr;

	marcel_rwlockattr_init(&attr);
	explore_check(marcel_rwlockattr_setkind(&attr, kind) == 0);
	explore_check(marcel_rwlock_init(&rwlock, &attr) == 0);
}

/* The second lock does not wait for a writer that waits for the first. */
static void read_twice(void *arg)
{
	marcel_rwlock_rdlock(&rwlock);
	read(arg);
	marcel_rwlock_unlock(&rwlock);
}

EXPLORE(a_reader_that_is_preferred_may_read_again)
{
	names(1);
	set_kind(MARCEL_RWLOCK_PREFER_READER);
	explore_spawn("reader", read_twice, NULL);
	explore_spawn("writer", write, NULL);
}

EXPLORE(a_writer_gets_its_turn_after_readers_that_are_preferred)
{
	names(1);
	set_kind(MARCEL_RWLOCK_PREFER_READER);
	marcel_rwlock_rdlock(&rwlock);
	explore_spawn("holder", leave, NULL);
	explore_spawn("reader", read, NULL);
	explore_spawn("writer", write, NULL);
}

EXPLORE(a_reader_gets_its_turn_after_a_writer_that_is_preferred)
{
	names(2);
	set_kind(MARCEL_RWLOCK_PREFER_WRITER);
	marcel_rwlock_wrlock(&rwlock);
	store_relaxed(&((struct rwlock *)&rwlock)->owner, &world_threads[1]);
	explore_spawn("holder", leave_written, NULL);
	explore_spawn("reader", read, NULL);
	explore_spawn("writer", write, NULL);
}

EXPLORE(a_try_sees_what_was_done_before)
{
	world_init();
	writers = 2;
	explore_spawn("writer", write, NULL);
	explore_spawn("tries", try_write, NULL);
}

EXPLORE(the_last_user_may_free_it)
{
	world_init();
	users = 2;
	explore_spawn("one", drop, NULL);
	explore_spawn("two", drop, NULL);
}

/* --- in time --- */

static void write_in_time(void *arg)
{
	int rc = marcel_rwlock_timedwrlock(&rwlock, &soon);

	if (rc == 0) {
		data++;
		marcel_rwlock_unlock(&rwlock);
	}
	note(rc);
	frames_are_gone(__builtin_frame_address(0));
}

static void stop_reading(void *arg)
{
	marcel_rwlock_unlock(&rwlock);
}

static void read_behind(void *arg)
{
	marcel_rwlock_rdlock(&rwlock);
	marcel_rwlock_unlock(&rwlock);
	others++;
}

static void rwlock_is_free(void)
{
	one_end();
	explore_check(marcel_rwlock_destroy(&rwlock) == 0);
}

EXPLORE(a_reader_that_leaves_and_a_time_end_a_wait_once)
{
	world_init();
	name_timers();
	explore_name(&rwlock, sizeof(rwlock), "rwlock");
	marcel_rwlock_rdlock(&rwlock);
	explore_spawn("writer", write_in_time, NULL);
	explore_spawn("reader", stop_reading, NULL);
	explore_spawn("expires", time_passes, NULL);
	explore_finish(rwlock_is_free);
}

static void a_reader_stays(void)
{
	one_end();
	explore_check(ran_out == 1 && others == 1);
	marcel_rwlock_unlock(&rwlock);
	explore_check(marcel_rwlock_destroy(&rwlock) == 0);
}

/* The first reader stays; the second came behind the writer, or before it. */
static void a_writer_leaves(int kind)
{
	world_init();
	name_timers();
	explore_name(&rwlock, sizeof(rwlock), "rwlock");
	set_kind(kind);
	marcel_rwlock_rdlock(&rwlock);
	explore_spawn("writer", write_in_time, NULL);
	explore_spawn("reader", read_behind, NULL);
	explore_spawn("expires", time_passes, &rwlock);
	explore_finish(a_reader_stays);
}

EXPLORE(a_reader_behind_a_writer_that_leaves_is_let_in)
{
	a_writer_leaves(MARCEL_RWLOCK_FAIR);
}

EXPLORE(a_writer_leaves_whom_preferred_readers_pass)
{
	a_writer_leaves(MARCEL_RWLOCK_PREFER_READER);
}

/* --- that a process has from its maker, whose threads waited for it --- */

static void inherit(void)
{
	struct rwlock *l = (struct rwlock *)&rwlock;

	explore_name(&marcel_generation, sizeof(marcel_generation),
		     "generation");
	marcel_generation = 1;
	store_relaxed(&l->guard.word, QUEUED);
	l->queue.last = (struct marcel_waiter *)8; /* nobody reads it */
}

/* No writer of this process waits, nor writes. */
static void try_read(void *arg)
{
	explore_check(marcel_rwlock_tryrdlock(&rwlock) == 0);
	marcel_rwlock_unlock(&rwlock);
}

EXPLORE(who_waited_in_another_process_keeps_nobody_out)
{
	names(0);
	inherit();
	explore_spawn("tries", try_read, NULL);
	explore_spawn("reads", read, NULL);
}

EXPLORE(who_waited_in_another_process_is_forgotten)
{
	names(2);
	inherit();
	explore_spawn("writer 1", write, NULL);
	explore_spawn("writer 2", write, NULL);
}
