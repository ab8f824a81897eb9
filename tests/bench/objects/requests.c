/*
 * Requests, and messages that wait.
 */
#include <stdlib.h>

#include "objects.h"

static void meet(int i, int tag)
{
	NEED(MPI_Send(&value, 1, MPI_INT, 0, tag, self));
	NEED(MPI_Wait((MPI_Request *)&handle[i], MPI_STATUS_IGNORE));
}

static bool receive_create(int i)
{
	return MPI_Irecv(&number[i], 1, MPI_INT, 0, i, self,
			 (MPI_Request *)&handle[i]) == 0;
}

static void receive_use(int i)
{
	MPI_Status st;
	int flag;

	NEED(MPI_Request_get_status((MPI_Request)handle[i], &flag, &st));
}

static void receive_drop(int i)
{
	meet(i, i);
}

static void receive_cancel(int i)
{
	NEED(MPI_Cancel((MPI_Request *)&handle[i]));
	NEED(MPI_Wait((MPI_Request *)&handle[i], MPI_STATUS_IGNORE));
}

static bool any_source_create(int i)
{
	return MPI_Irecv(&number[i], 1, MPI_INT, MPI_ANY_SOURCE, i, self,
			 (MPI_Request *)&handle[i]) == 0;
}

static bool unexpected_create(int i)
{
	return MPI_Send(&value, 1, MPI_INT, 0, i, self) == 0;
}

static void unexpected_use(int i)
{
	int flag;

	NEED(MPI_Iprobe(0, i, self, &flag, MPI_STATUS_IGNORE));
	need(flag, "MPI_Iprobe");
}

static void unexpected_drop(int i)
{
	NEED(MPI_Recv(&number[i], 1, MPI_INT, 0, i, self, MPI_STATUS_IGNORE));
}

/* Sends that wait for their receives. */
static bool synchronous_create(int i)
{
	return MPI_Issend(&value, 1, MPI_INT, 0, i, self,
			  (MPI_Request *)&handle[i]) == 0;
}

static void synchronous_drop(int i)
{
	unexpected_drop(i);
	NEED(MPI_Wait((MPI_Request *)&handle[i], MPI_STATUS_IGNORE));
}

static void synchronous_cancel(int i)
{
	MPI_Status st;
	int cancelled;

	NEED(MPI_Cancel((MPI_Request *)&handle[i]));
	NEED(MPI_Wait((MPI_Request *)&handle[i], &st));
	NEED(MPI_Test_cancelled(&st, &cancelled));
	need(cancelled, "MPI_Cancel");
}

/* They have been taken by a probe. */
static bool matched_create(int i)
{
	return MPI_Send(&value, 1, MPI_INT, 0, i, self) == 0 &&
	       MPI_Mprobe(0, i, self, (MPI_Message *)&handle[i],
			  MPI_STATUS_IGNORE) == 0;
}

static void matched_drop(int i)
{
	NEED(MPI_Mrecv(&number[i], 1, MPI_INT, (MPI_Message *)&handle[i],
		       MPI_STATUS_IGNORE));
}

static bool persistent_create(int i)
{
	return MPI_Recv_init(&number[i], 1, MPI_INT, 0, i, self,
			     (MPI_Request *)&handle[i]) == 0;
}

static void persistent_use(int i)
{
	NEED(MPI_Start((MPI_Request *)&handle[i]));
	meet(i, i);
}

static void request_drop(int i)
{
	NEED(MPI_Request_free((MPI_Request *)&handle[i]));
}

/* Freed while active; ended by a message. */
static bool orphan_create(int i)
{
	MPI_Request r;

	if (MPI_Irecv(&number[i], 1, MPI_INT, 0, i, self, &r) != 0)
		return false;
	return MPI_Request_free(&r) == 0;
}

static void orphan_drop(int i)
{
	NEED(MPI_Send(&value, 1, MPI_INT, 0, i, self));
}

static int query(void *state, MPI_Status *st)
{
	(void)state;
	MPI_Status_set_elements(st, MPI_INT, 0);
	MPI_Status_set_cancelled(st, 0);
	return MPI_SUCCESS;
}

static int forget(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int never(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

static bool general_create(int i)
{
	return MPI_Grequest_start(query, forget, never, NULL,
				  (MPI_Request *)&handle[i]) == 0;
}

static void general_drop(int i)
{
	NEED(MPI_Grequest_complete((MPI_Request)handle[i]));
	NEED(MPI_Wait((MPI_Request *)&handle[i], MPI_STATUS_IGNORE));
}

static bool partitioned_create(int i)
{
	return MPI_Precv_init(&number[i], 1, 1, MPI_INT, 0, i, self,
			      MPI_INFO_NULL, (MPI_Request *)&handle[i]) == 0;
}

/* Both ends, so that no terms are missing. */
static MPI_Request *other_end;

static void partitioned_begin(void)
{
	other_end = places(sizeof(*other_end));
}

static bool pair_create(int i)
{
	return MPI_Psend_init(&value, 1, 1, MPI_INT, 0, i, self, MPI_INFO_NULL,
			      &other_end[i]) == 0 &&
	       partitioned_create(i);
}

static void pair_use(int i)
{
	NEED(MPI_Start((MPI_Request *)&handle[i]));
	NEED(MPI_Start(&other_end[i]));
	NEED(MPI_Pready(0, other_end[i]));
	NEED(MPI_Wait(&other_end[i], MPI_STATUS_IGNORE));
	NEED(MPI_Wait((MPI_Request *)&handle[i], MPI_STATUS_IGNORE));
}

static void pair_drop(int i)
{
	pair_use(i);
	NEED(MPI_Request_free(&other_end[i]));
	request_drop(i);
}

static void partitioned_end(void)
{
	free(other_end);
}

static void *bsend_buffer;

static void bsend_begin(void)
{
	size_t bytes = (size_t)most * (MPI_BSEND_OVERHEAD + 64);

	bsend_buffer = malloc(bytes);
	NEED(MPI_Buffer_attach_c(bsend_buffer, (MPI_Count)bytes));
}

static bool bsend_create(int i)
{
	return MPI_Bsend(&value, 1, MPI_INT, 0, i, self) == 0;
}

static void bsend_end(void)
{
	NEED(MPI_Buffer_detach(&bsend_buffer, &value));
	free(bsend_buffer);
}

/* clang-format off */
const struct kind objects_requests[] = {
	{ "receive", NULL, receive_create, receive_use, receive_drop, NULL },
	{ "receive_cancelled", NULL, receive_create, receive_use, receive_cancel, NULL },
	{ "any_source", NULL, any_source_create, receive_use, receive_drop, NULL },
	{ "unexpected", NULL, unexpected_create, unexpected_use, unexpected_drop, NULL },
	{ "synchronous", NULL, synchronous_create, receive_use, synchronous_drop, NULL },
	{ "synchronous_cancelled", NULL, synchronous_create, receive_use, synchronous_cancel, NULL },
	{ "matched", NULL, matched_create, NULL, matched_drop, NULL },
	{ "persistent", NULL, persistent_create, persistent_use, request_drop, NULL },
	{ "orphan", NULL, orphan_create, NULL, orphan_drop, NULL },
	{ "general", NULL, general_create, receive_use, general_drop, NULL },
	{ "partitioned", partitioned_begin, pair_create, pair_use, pair_drop, partitioned_end },
	{ "partitioned_receive", NULL, partitioned_create, NULL, request_drop, NULL },
	{ "buffered", bsend_begin, bsend_create, unexpected_use, unexpected_drop, bsend_end },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */
