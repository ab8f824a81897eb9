/*
 * Collective operations of processes that are not all on one host: who sends
 * what to whom. Hosts are made up by the launcher, and are equally large.
 */
#include <dlfcn.h>
#include <nmad/nmad.h>
#include <nmad/sendrecv.h>
#include <stdatomic.h>

#include "../program.h"

enum { MANY = 12, MOST_RANKS = 64 };

/* --- what is sent --- */

static atomic_int sent_to[MOST_RANKS];

/* Our own definition goes before the library's. */
__attribute__((visibility("default"))) int
nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
	    const struct nm_data *data, unsigned flags,
	    struct nm_sr_request *req)
{
	static int (*next)(struct nm_session *, struct nm_gate *, nm_tag_t,
			   const struct nm_data *, unsigned,
			   struct nm_sr_request *);

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_sr_isend");
	atomic_fetch_add(&sent_to[nm_gate_rank(to)], 1);
	return next(s, to, tag, data, flags, req);
}

/* --- who has anything to do with whom --- */

/* A barrier needs nobody whose distance is no power of two. */
static void only_those_who_need_each_other_are_connected(void)
{
	for (int i = 0; i < MANY; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int r = 0; r < size; r++) {
		int ahead = (r - rank + size) % size, back = size - ahead;

		if (r != rank && (ahead & (ahead - 1)) != 0 &&
		    (back & (back - 1)) != 0)
			EXPECT_INT(atomic_load(&sent_to[r]), 0);
	}
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	EXPECT(size <= MOST_RANKS);
	only_those_who_need_each_other_are_connected();
	return program_end("hosts");
}
