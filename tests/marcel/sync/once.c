/* sync/once.c */
#include "crowd.h"

#include <errno.h>

static int runs;   /* plain: once gives the order */
static bool ended; /* the function has returned */

static void slow_function(void)
{
	runs++;
	for (int i = 0; i < 10; i++)
		marcel_yield();
	ended = true;
}

static void call_once(void *arg, int i)
{
	CHECK_INT(marcel_once(arg, slow_function), 0);
	CHECK(ended);
	CHECK_INT(runs, 1);
}

TEST(it_runs_once_and_all_callers_wait_until_it_has_returned)
{
	for (size_t c = 0; c < BASE_ARRAY_LEN(crowds); c++) {
		vps_start(crowds[c].nvp);
		for (int n = 0; n < ROUNDS / 50; n++) {
			marcel_once_t once = MARCEL_ONCE_INIT;

			runs = 0;
			ended = false;
			crowd_go(&crowds[c], call_once, &once);
			CHECK_INT(runs, 1);
		}
		vps_stop();
	}
}

static marcel_once_t inner = MARCEL_ONCE_INIT, outer = MARCEL_ONCE_INIT;

static void count_run(void)
{
	runs++;
}

static void nested(void)
{
	marcel_once(&inner, count_run);
	runs++;
}

TEST(a_function_may_use_another_once)
{
	runs = 0;
	CHECK_INT(marcel_once(&outer, nested), 0);
	CHECK_INT(marcel_once(&outer, nested), 0);
	CHECK_INT(marcel_once(&inner, count_run), 0);
	CHECK_INT(runs, 2);
	CHECK_INT(marcel_once(&outer, NULL), EINVAL);
}

/* --- the caller that did not run it frees it --- */

struct page {
	marcel_once_t once;
	int runs;
};

struct caller {
	struct page *page;
	bool ran;
};

static struct page *pages[ROUNDS];
static marcel_key_t caller_key;

static void note_caller(void)
{
	struct caller *me = marcel_getspecific(caller_key);

	marcel_yield();
	me->page->runs++;
	me->ran = true;
}

static void call_or_unmap(void *arg, int i)
{
	for (int n = 0; n < ROUNDS; n++) {
		struct caller me = { .page = pages[n] };

		if (n % 3 == i)
			marcel_yield();
		CHECK_INT(marcel_setspecific(caller_key, &me), 0);
		CHECK_INT(marcel_once(&me.page->once, note_caller), 0);
		if (me.ran)
			continue;
		CHECK_INT(me.page->runs, 1);
		page_free(me.page);
	}
}

TEST(it_may_be_unmapped_by_who_waited_for_it)
{
	static const struct crowd pairs[] = {
		{ 1, 2, 0 }, { 2, 2, 0 }, { VPS_MANY, 2, 0 }, { 2, 1, 1 }
	};

	CHECK_INT(marcel_key_create(&caller_key, NULL), 0);
	for (size_t c = 0; c < BASE_ARRAY_LEN(pairs); c++) {
		for (int n = 0; n < ROUNDS; n++)
			pages[n] = page_new();
		crowd_run(&pairs[c], call_or_unmap, NULL);
	}
	CHECK_INT(marcel_key_delete(caller_key), 0);
}
