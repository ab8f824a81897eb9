/*
 * The judge of random programmes: one small log for each of its rules, once as
 * it may be and once as it may not.
 */
#include "../../check.h"

#include <stdio.h>

#include <nmad/sendrecv.h>

#include "model.h"

static struct model m;
static uint32_t now;

/* Two that send, of rank 1 and 2, and one that receives, rank 0. */
static void setup(void)
{
	memset(&m, 0, sizeof(m));
	m.ranks = 3;
	m.sessions = 1;
	for (int r = 0; r < 3; r++)
		m.threads[r] = 1;
	m.threads[0] = 2;
	now = 0;
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, NULL);
}

/* One that begins and ends now; its number. */
static int add(int rank, int thread, struct model_op op)
{
	struct model_thread *th = &m.thread[rank][thread];

	op.begin = ++now;
	op.end = ++now;
	th->ops[th->n] = op;
	return model_number(rank, thread, th->n++);
}

static struct model_op *op_of(int number)
{
	return (struct model_op *)model_op(&m, number);
}

static int sent(int from, uint32_t tag)
{
	return add(
		from, 0,
		(struct model_op){ .kind = MODEL_SEND, .tag = tag, .got = -1 });
}

/* Of any source; `tag` or, if it is 0, any. */
static int posted(enum model_kind kind, uint32_t tag, int got)
{
	return add(0, 0,
		   (struct model_op){ .kind = (uint8_t)kind,
				      .peer = MODEL_ANY,
				      .any_tag = tag == 0,
				      .tag = tag,
				      .got = got });
}

static int cancelled(int recv, int got)
{
	return add(0, 0,
		   (struct model_op){ .kind = MODEL_CANCEL,
				      .target = recv % MODEL_OPS,
				      .got = got });
}

static void complete(int number)
{
	op_of(number)->done = ++now;
}

static void is_good(void)
{
	const char *wrong = model_judge(&m, 0, 0);

	if (wrong != NULL)
		printf("# %s\n", wrong);
	CHECK(wrong == NULL);
}

static void is_wrong(const char *how)
{
	const char *wrong = model_judge(&m, 0, 0);

	CHECK(wrong != NULL);
	if (strncmp(wrong, how, strlen(how)) != 0)
		printf("# %s\n", wrong);
	CHECK(strncmp(wrong, how, strlen(how)) == 0);
}

TEST(every_message_comes_once)
{
	int a = sent(1, 1), r;

	is_wrong("nobody has got");
	posted(MODEL_RECV, 1, a);
	is_good();
	r = posted(MODEL_RECV, 1, a);
	is_wrong("got what somebody else has got");
	op_of(r)->tag = 2;
	is_wrong("got what does not fit");
}

TEST(messages_of_one_sender_do_not_overtake)
{
	int a = sent(1, 1), b = sent(1, 1), r, q;

	r = posted(MODEL_RECV, 1, a);
	q = posted(MODEL_RECV, 0, b);
	is_good();
	op_of(r)->got = b;
	op_of(q)->got = a;
	is_wrong("a circle");
}

TEST(messages_of_other_tags_may)
{
	int a = sent(1, 1), b = sent(1, 2);

	posted(MODEL_RECV, 2, b);
	posted(MODEL_RECV, 1, a);
	is_good();
}

/* 1 sends a and b, 2 sends c and d: d < a and b < c would go round. */
TEST(messages_of_two_senders_may_come_in_any_order_but_only_in_one)
{
	int a = sent(1, 1), b = sent(1, 2), c = sent(2, 2), d = sent(2, 1);
	int r[4];

	r[0] = posted(MODEL_RECV, 1, a);
	r[1] = posted(MODEL_RECV, 1, d);
	r[2] = posted(MODEL_RECV, 2, c);
	r[3] = posted(MODEL_RECV, 2, b);
	is_good();
	op_of(r[2])->got = b;
	op_of(r[3])->got = c;
	is_good();
	op_of(r[0])->got = d;
	op_of(r[1])->got = a;
	is_wrong("a circle");
}

TEST(of_two_receives_the_first_is_served_first)
{
	int r = posted(MODEL_RECV, 1, -1), q = posted(MODEL_RECV, 0, -1);
	int a = sent(1, 1), b = sent(1, 1);

	op_of(r)->got = a;
	op_of(q)->got = b;
	is_good();
	op_of(r)->got = b;
	op_of(q)->got = a;
	is_wrong("a circle");
}

TEST(receives_of_two_threads_are_not_ordered_while_they_overlap)
{
	int a = sent(1, 1), b = sent(1, 1);
	int r = posted(MODEL_RECV, 1, b);
	int q = add(0, 1, *op_of(r));

	op_of(q)->got = a;
	is_wrong("a circle");
	op_of(q)->begin = op_of(r)->begin;
	is_good();
}

TEST(a_receive_can_be_given_up_until_a_message_is_there)
{
	int a = sent(1, 1), b = sent(1, 2), r;

	r = posted(MODEL_RECV, 1, -1);
	cancelled(r, 0);
	posted(MODEL_RECV, 1, a);
	posted(MODEL_RECV, 2, b);
	is_good();
	/* b is here, so a is. */
	setup();
	a = sent(1, 1);
	b = sent(1, 2);
	complete(posted(MODEL_RECV, 2, b));
	r = posted(MODEL_RECV, 1, -1);
	cancelled(r, 0);
	posted(MODEL_RECV, 1, a);
	is_wrong("too late");
}

TEST(what_was_not_sent_yet_does_not_hold_a_receive)
{
	int r = posted(MODEL_RECV, 1, -1);

	cancelled(r, -1);
	op_of(r)->got = sent(1, 1);
	is_wrong("it could have been cancelled");
}

TEST(a_probe_shows_what_the_next_receive_gets)
{
	int a = sent(1, 1), b = sent(1, 2), p = posted(MODEL_PROBE, 0, a);

	posted(MODEL_RECV, 0, a);
	posted(MODEL_RECV, 0, b);
	is_good();
	op_of(p)->got = b;
	is_wrong("a circle");
}

TEST(a_probe_does_not_show_what_is_taken)
{
	int a = sent(1, 1);

	posted(MODEL_RECV, 1, a);
	posted(MODEL_PROBE, 1, a);
	is_wrong("a probe has found what was taken");
}

TEST(a_probe_finds_what_must_be_there)
{
	int a = sent(1, 1), b = sent(1, 2), r;

	r = posted(MODEL_RECV, 2, b);
	posted(MODEL_PROBE, 1, -1);
	posted(MODEL_RECV, 1, a);
	is_good();
	op_of(r)->done = op_of(r)->end;
	is_wrong("too late");
}

TEST(a_matched_probe_takes)
{
	int a = sent(1, 1), b = sent(1, 1), p = posted(MODEL_MPROBE, 1, a);
	int r = posted(MODEL_RECV, 1, b);

	is_good();
	op_of(p)->got = b;
	op_of(r)->got = a;
	is_wrong("a circle");
}

TEST(a_synchronous_send_waits_for_its_receive)
{
	int a = sent(1, 1), r;

	op_of(a)->flags = NM_SEND_SYNC;
	r = posted(MODEL_RECV, 1, a);
	complete(a);
	is_good();
	op_of(a)->done = op_of(r)->begin - 1;
	is_wrong("a synchronous send is complete");
}

TEST(nothing_arrives_before_it_is_sent)
{
	int r = posted(MODEL_RECV, 1, -1);

	complete(r);
	op_of(r)->got = sent(1, 1);
	is_wrong("too late");
}

TEST(nothing_is_found_before_it_is_sent)
{
	int p = posted(MODEL_PROBE, 1, -1), a = sent(1, 1);

	posted(MODEL_RECV, 1, a);
	is_good();
	op_of(p)->got = a;
	is_wrong("too late");
}
