/*
 * nmad/boot/reply.h: who asks for a value reads it when it is whole, and one
 * that nobody waits for any more is there before the next is brought.
 *
 * covers: boot-reply
 */
#include "explore.h"

#include "../../nmad/boot/reply.h"

static struct nm_boot_reply reply;
static ATOMIC(uint32_t) question;

static void ask(void *arg)
{
	bool again = nm_boot_reply_begin(&reply);
	char text[8];
	int rc;

	if (again)
		store_release(&question, 2);
	rc = nm_boot_reply_take(&reply, text, sizeof(text));
	explore_check(rc == 0 || rc == -EAGAIN);
	if (rc == 0)
		explore_check(strcmp(text, again ? "two" : "one") == 0);
}

static void bring_first(void *arg)
{
	nm_boot_reply_bring(&reply, 0, "one");
}

static void bring_second(void *arg)
{
	if (load_acquire(&question) == 2)
		nm_boot_reply_bring(&reply, 0, "two");
}

EXPLORE(what_is_brought_is_read_whole)
{
	explore_name(&reply, sizeof(reply), "reply");
	explore_name(&question, sizeof(question), "question");
	store_relaxed(&reply.has_come, 0);
	reply.asked = false;
	nm_boot_reply_begin(&reply);
	store_relaxed(&question, 1);
	explore_spawn("asker", ask, NULL);
	explore_spawn("first", bring_first, NULL);
	explore_spawn("second", bring_second, NULL);
}
