/*
 * Several requests at once, from within: what becomes of their memory and of a
 * burst. The requests are complete from the start, and there is no network.
 */
#include "bodies.h"
#include "core/pool.h"
#include "pt2pt/request.h"

#include "../../check.h"

enum { MANY = MADMPI_POOL_HANDFUL + 1 };

static struct madmpi_comm comm;
static MPI_Request array[MANY];
static int nends;

/* In place of nmad's. */
void nm_sr_end_burst(void)
{
	nends++;
}

static void setup(void)
{
	madmpi_object_init(&comm.object, MADMPI_COMM);
	madmpi_request_init();
	nends = 0;
}

static void teardown(void)
{
	madmpi_request_exit();
	CHECK_INT(load_relaxed(&comm.object.refs), 1);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static void make_complete(int n)
{
	struct madmpi_message m = { .comm = &comm, .peer = MPI_PROC_NULL };
	int rc = MPI_SUCCESS;

	for (int i = 0; i < n; i++)
		array[i] = (MPI_Request)madmpi_request_new(
			"test", MADMPI_REQUEST_NOTHING, &m, &rc);
	CHECK_INT(rc, MPI_SUCCESS);
}

/* What was given back last is taken next. */
static bool is_next_of_the_pool(const void *request)
{
	struct madmpi_pool *pool = madmpi_pool_of(MADMPI_REQUEST);
	void *next = madmpi_pool_get(pool);

	madmpi_pool_put(pool, next);
	return next == request;
}

TEST(requests_that_end_together_are_all_given_back)
{
	int n, indices[MANY], flag;
	const void *last;

	for (int i = 0; i < 4; i++) {
		make_complete(MANY);
		last = (const void *)array[MANY - 1];
		CHECK(!is_next_of_the_pool(last));
		if (i == 0)
			madmpi_waitall(MANY, array, MPI_STATUSES_IGNORE);
		else if (i == 1)
			madmpi_testall(MANY, array, &flag, MPI_STATUSES_IGNORE);
		else if (i == 2)
			madmpi_waitsome(MANY, array, &n, indices,
					MPI_STATUSES_IGNORE);
		else
			madmpi_testsome(MANY, array, &n, indices,
					MPI_STATUSES_IGNORE);
		CHECK(array[MANY - 1] == MPI_REQUEST_NULL);
		CHECK(is_next_of_the_pool(last));
	}
}

/* What he asks for is complete, so that he does not poll. */
TEST(who_asks_for_any_or_some_ends_a_burst)
{
	int n, index, indices[1], flag;

	make_complete(4);
	for (int i = 0; i < 6; i++) {
		nends = 0;
		if (i == 0)
			madmpi_request_get_status_any(1, array, &index, &flag,
						      MPI_STATUS_IGNORE);
		else if (i == 1)
			madmpi_request_get_status_some(1, array, &n, indices,
						       MPI_STATUSES_IGNORE);
		else if (i == 2)
			madmpi_waitany(1, &array[0], &index, MPI_STATUS_IGNORE);
		else if (i == 3)
			madmpi_testany(1, &array[1], &index, &flag,
				       MPI_STATUS_IGNORE);
		else if (i == 4)
			madmpi_waitsome(1, &array[2], &n, indices,
					MPI_STATUSES_IGNORE);
		else
			madmpi_testsome(1, &array[3], &n, indices,
					MPI_STATUSES_IGNORE);
		CHECK_INT(nends, 1);
	}
	for (int i = 0; i < 4; i++)
		CHECK(array[i] == MPI_REQUEST_NULL);
}
