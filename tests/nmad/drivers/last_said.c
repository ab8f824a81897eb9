/*
 * What a rank has said last, and whom it may never hear of again: the rail is
 * lost under its message of the barrier at the end, while it waits in the
 * launcher's fence for those who wait for that message.
 */
#include "../../check.h"
#include "../../run.h"

enum { RANKS_MAX = 5, FRAMES_MAX = 4 /* more are not sent to one rank */ };

static void is_heard(const char *drivers)
{
	for (int ranks = 2; ranks <= RANKS_MAX; ranks++)
		for (int lose = 1; lose <= FRAMES_MAX; lose++) {
			struct run r =
				run(NULL,
				    "L=lose=%d; NMAD_DRIVER=%s "
				    "exec \"$MPIRUN\" -n %d \"$RANK\" leave",
				    lose, drivers, ranks);

			if (r.code != 0)
				check_fail(__FILE__, __LINE__,
					   "%s, %d ranks, lose=%d: code %d, "
					   "and \"%s\"",
					   drivers, ranks, lose, r.code, r.err);
		}
}

TEST(what_is_said_last_is_heard_where_both_lose_the_rail)
{
	is_heard("lossy:shm,$L,both=1+tcp");
}

TEST(what_is_said_last_is_heard_where_one_loses_the_rail)
{
	is_heard("lossy:shm,$L+tcp");
}

TEST(what_is_said_last_is_heard_where_two_rails_are_lost)
{
	is_heard("lossy:shm,$L,both=1+lossy:shm,$L,both=1+tcp");
}
