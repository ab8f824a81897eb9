/* pioman/io/set: the moments at which a wait could be lost, one by one. */
#include "io.h"

#include "../../../pioman/io/set.h"
#include "../../../pioman/ltask/poll.h"

/* Nobody polls but this thread. */
static const struct mode alone = { 1, "none", "auto", "0" };

struct place {
	struct piom_io_wait wait;
	struct piom_io_link link;
};

static int enter(struct place *p, int fd, unsigned sides,
		 const struct piom_io_seen *seen)
{
	piom_io_wait_init(&p->wait);
	return piom_io_enter(&p->link, &p->wait, fd, sides, seen);
}

static struct piom_io_seen look(int fd)
{
	struct piom_io_seen seen;

	CHECK_INT(piom_io_look(fd, &seen), 0);
	return seen;
}

static bool has_ended(struct place *p)
{
	return piom_cond_test(&p->wait.done);
}

static void event_before_wait(void)
{
	struct piom_io_seen seen;
	struct place p, other;
	int ends[2], more[2];

	open_sockets(ends);
	open_pipe(more);
	look(more[0]);
	seen = look(ends[0]);
	CHECK_INT(enter(&other, more[0], PIOM_IO_IN, NULL), 0);
	/* The file comes into the set, and its first events. */
	CHECK_INT(enter(&p, ends[0], PIOM_IO_IN, &seen), 0);
	UNTIL(look(ends[0]).out != seen.out);
	CHECK(!has_ended(&p));
	piom_io_leave(&p.link);
	/* What a try has not found comes, and is seen, before the wait. */
	seen = look(ends[0]);
	CHECK_INT(write(ends[1], "x", 1), 1);
	UNTIL(look(ends[0]).in != seen.in);
	CHECK_INT(enter(&p, ends[0], PIOM_IO_IN, &seen), -EAGAIN);
	/* Of the other side nothing has come. */
	seen.out = look(ends[0]).out;
	CHECK_INT(enter(&p, ends[0], PIOM_IO_OUT, &seen), 0);
	piom_io_leave(&p.link);
	piom_io_leave(&other.link);
	close_both(ends);
	close_both(more);
}

TEST(an_event_between_a_try_and_the_wait_is_seen)
{
	with_mode(&alone, event_before_wait);
}

static void asked_for(void)
{
	struct place p[2];
	int ends[2];

	open_pipe(ends);
	look(ends[0]);
	UNTIL(!piom_poll_is_pending(0));
	CHECK_INT(enter(&p[0], ends[0], PIOM_IO_IN, NULL), 0);
	CHECK(piom_poll_is_pending(0));
	CHECK_INT(enter(&p[1], ends[0], PIOM_IO_IN, NULL), 0);
	piom_io_leave(&p[0].link);
	piom_poll();
	CHECK_INT(write(ends[1], "x", 1), 1);
	UNTIL(has_ended(&p[1]));
	CHECK(!has_ended(&p[0]));
	piom_io_leave(&p[1].link);
	UNTIL(!piom_poll_is_pending(0));
	close_both(ends);
}

TEST(the_set_is_asked_from_the_first_wait_to_the_last)
{
	with_mode(&alone, asked_for);
}

/* One wait at two descriptors, and two at one. */
static void ends_once(void)
{
	struct piom_io_link a, b;
	struct piom_io_wait w;
	struct place p;
	int one[2], two[2];

	open_pipe(one);
	open_pipe(two);
	look(one[0]);
	look(two[0]);
	piom_io_wait_init(&w);
	CHECK_INT(piom_io_enter(&a, &w, one[0], PIOM_IO_IN, NULL), 0);
	CHECK_INT(piom_io_enter(&b, &w, two[0], PIOM_IO_IN, NULL), 0);
	CHECK_INT(enter(&p, one[0], PIOM_IO_IN | PIOM_IO_OUT, NULL), 0);
	CHECK_INT(write(one[1], "x", 1), 1);
	CHECK_INT(write(two[1], "x", 1), 1);
	UNTIL(has_ended(&p) && look(two[0]).in > 0);
	CHECK(piom_cond_test(&w.done));
	piom_io_leave(&a);
	piom_io_leave(&b);
	piom_io_leave(&p.link);
	CHECK(!a.gone && !b.gone && !p.link.gone);
	close_both(one);
	close_both(two);
}

TEST(a_wait_ends_once_and_each_of_several_does)
{
	with_mode(&alone, ends_once);
}

static void left(void)
{
	struct place p, other;
	int ends[2];

	open_pipe(ends);
	look(ends[0]);
	CHECK_INT(enter(&other, ends[0], PIOM_IO_IN, NULL), 0);
	CHECK_INT(enter(&p, ends[0], PIOM_IO_IN, NULL), 0);
	piom_io_leave(&p.link);
	memset(&p, 0xff, sizeof(p));
	CHECK_INT(write(ends[1], "x", 1), 1);
	UNTIL(has_ended(&other));
	piom_io_leave(&other.link);
	for (size_t i = 0; i < sizeof(p); i++)
		CHECK_INT(((unsigned char *)&p)[i], 0xff);
	close_both(ends);
}

TEST(who_has_left_is_not_touched)
{
	with_mode(&alone, left);
}

/* An event of a file that has lost its number, but lives on. */
static void old_file(void)
{
	struct piom_io_seen seen;
	struct place p;
	int old[2], new[2], kept;

	open_pipe(old);
	open_pipe(new);
	look(old[0]);
	CHECK_INT(enter(&p, old[0], PIOM_IO_IN, NULL), 0);
	kept = dup(old[0]);
	CHECK_INT(dup2(new[0], old[0]), old[0]);
	piom_io_leave(&p.link);
	CHECK_INT(enter(&p, old[0], PIOM_IO_IN, NULL), 0);
	seen = look(old[0]);
	CHECK_INT(write(old[1], "x", 1), 1);
	for (int i = 0; i < 10; i++)
		UNTIL(true);
	CHECK_INT(look(old[0]).in, seen.in);
	CHECK_INT(write(new[1], "x", 1), 1);
	UNTIL(has_ended(&p));
	piom_io_leave(&p.link);
	CHECK_INT(close(kept), 0);
	close_both(old);
	close_both(new);
}

TEST(an_older_file_of_the_number_wakes_nobody)
{
	with_mode(&alone, old_file);
}

/* The number is given to another file, and back to the first. */
static void brought_back(void)
{
	struct place p;
	int one[2], two[2], number, kept;

	open_pipe(one);
	open_pipe(two);
	number = one[0];
	look(number);
	CHECK_INT(enter(&p, number, PIOM_IO_IN, NULL), 0);
	piom_io_leave(&p.link);
	kept = dup(number);
	CHECK_INT(dup2(two[0], number), number);
	CHECK_INT(enter(&p, number, PIOM_IO_IN, NULL), 0);
	piom_io_leave(&p.link);
	CHECK_INT(dup2(kept, number), number);
	CHECK_INT(enter(&p, number, PIOM_IO_IN, NULL), 0);
	CHECK_INT(write(one[1], "x", 1), 1);
	UNTIL(has_ended(&p));
	CHECK(!p.link.gone);
	piom_io_leave(&p.link);
	CHECK_INT(close(kept), 0);
	close_both(one);
	close_both(two);
}

TEST(a_file_that_gets_its_number_back_wakes_who_waits)
{
	with_mode(&alone, brought_back);
}

static void what_cannot(void)
{
	struct piom_io_seen seen;
	struct place p;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	look(fd);
	CHECK_INT(enter(&p, fd, PIOM_IO_IN, NULL), PIOM_IO_FILE);
	CHECK_INT(close(fd), 0);
	CHECK_INT(enter(&p, fd, PIOM_IO_IN, NULL), -EBADF);
	CHECK_INT(piom_io_look(-1, &seen), -EBADF);
	CHECK_INT(piom_io_look(1 << 20, &seen), -EMFILE);
}

TEST(what_epoll_does_not_take_is_told)
{
	with_mode(&alone, what_cannot);
}
