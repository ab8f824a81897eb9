/*
 * Exceptions of C++ around MPI calls that block, in many user threads and some
 * std::threads at once: what a thread throws, has on its way or handles is its
 * own, whoever runs on its VP meanwhile and wherever it goes on.
 */
#include "../program.h"

#include <exception>
#include <marcel/marcel.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

enum { USER = 200, STANDARD = 8, WORKERS = USER + STANDARD, ROUNDS = 3 };

/* Thread i of each process talks to thread i of its neighbours. */
struct worker {
	int id;
	bool is_user;
};

static int next()
{
	return (rank + 1) % size;
}

static int previous()
{
	return (rank - 1 + size) % size;
}

/* What worker i of that process has to say. */
static int word(int process, int i, int round)
{
	return process * 100000 + i * 10 + round;
}

/* A user thread goes on elsewhere, if there is more than one VP. */
static void move(const worker &w)
{
	marcel_vpset_t there;
	int vp = (marcel_current_vp() + 1) % marcel_nvp();

	if (!w.is_user)
		return;
	marcel_vpset_zero(&there);
	marcel_vpset_add(&there, vp);
	EXPECT_INT(marcel_setaffinity(marcel_self(), &there), 0);
	EXPECT_INT(marcel_current_vp(), vp);
}

/* Has others run, and comes back somewhere else. */
static int exchange(const worker &w, int said)
{
	int heard = -1;
	MPI_Request r;

	MPI_Isend(&said, 1, MPI_INT, next(), w.id, MPI_COMM_WORLD, &r);
	move(w);
	MPI_Recv(&heard, 1, MPI_INT, previous(), w.id, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	return heard;
}

/* Throws what it has heard. */
[[noreturn]] static void hear(const worker &w, int round)
{
	int heard = exchange(w, word(rank, w.id, round));

	throw std::runtime_error(std::to_string(heard));
}

static void check(const std::exception &e, const worker &w, int round)
{
	EXPECT(e.what() == std::to_string(word(previous(), w.id, round)));
}

static void what_was_heard_is_caught(const worker &w, int round)
{
	bool caught = false;

	try {
		hear(w, round);
	} catch (std::runtime_error &e) {
		check(e, w, round);
		caught = true;
	}
	EXPECT(caught);
	EXPECT(std::current_exception() == nullptr);
}

/* Requests that wait for their end while an exception passes. */
struct pending {
	const worker &w;
	int out, in;
	MPI_Request r[2];

	pending(const worker &mine, int round)
		: w(mine), out(word(rank, mine.id, round)), in(-1)
	{
		MPI_Irecv(&in, 1, MPI_INT, previous(), w.id, MPI_COMM_WORLD,
			  &r[0]);
		MPI_Isend(&out, 1, MPI_INT, next(), w.id, MPI_COMM_WORLD,
			  &r[1]);
	}
	pending(const pending &) = delete;
	pending &operator=(const pending &) = delete;
	~pending()
	{
		EXPECT_INT(std::uncaught_exceptions(), 1);
		move(w);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		EXPECT_INT(in, out + (previous() - rank) * 100000);
		EXPECT_INT(std::uncaught_exceptions(), 1);
		try {
			throw exchange(w, w.id);
		} catch (int heard) {
			EXPECT_INT(heard, w.id);
			EXPECT_INT(std::uncaught_exceptions(), 1);
		}
		EXPECT_INT(std::uncaught_exceptions(), 1);
	}
};

static void destructors_complete_requests(const worker &w, int round)
{
	int caught = -1;

	try {
		pending first(w, round);
		pending second(w, round + 1);

		throw w.id;
	} catch (int id) {
		caught = id;
	}
	EXPECT_INT(caught, w.id);
	EXPECT_INT(std::uncaught_exceptions(), 0);
}

/* Handled, and others too, while the thread blocks; then thrown again. */
static void handle(const worker &w, int round)
{
	try {
		hear(w, round);
	} catch (std::exception &e) {
		EXPECT_INT(exchange(w, w.id), w.id);
		check(e, w, round);
		try {
			hear(w, round + 1);
		} catch (std::exception &inner) {
			EXPECT_INT(exchange(w, w.id), w.id);
			check(inner, w, round + 1);
		}
		EXPECT_INT(exchange(w, w.id), w.id);
		EXPECT(std::current_exception() != nullptr);
		throw;
	}
}

static void what_is_held_is_thrown_again(const worker &w, int round)
{
	bool caught = false;

	try {
		handle(w, round);
	} catch (std::runtime_error &e) {
		EXPECT_INT(exchange(w, w.id), w.id);
		check(e, w, round);
		caught = true;
	}
	EXPECT(caught);
}

/* Threads of one process pass exceptions to each other, by messages. */
static void one_throws_what_another_has_caught(const worker &w, int round)
{
	std::exception_ptr *out = new std::exception_ptr, *in = nullptr;
	int to = (w.id + 1) % WORKERS, from = (w.id + WORKERS - 1) % WORKERS;
	int caught = -1;
	MPI_Request r;

	try {
		throw word(rank, w.id, round);
	} catch (int) {
		*out = std::current_exception();
	}
	MPI_Isend(&out, sizeof(out), MPI_BYTE, 0, to, MPI_COMM_SELF, &r);
	MPI_Recv(&in, sizeof(in), MPI_BYTE, 0, w.id, MPI_COMM_SELF,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	try {
		std::rethrow_exception(*in);
	} catch (int value) {
		EXPECT_INT(exchange(w, w.id), w.id);
		caught = value;
	}
	EXPECT_INT(caught, word(rank, from, round));
	delete in;
}

static void work(const worker &w)
{
	for (int round = 0; round < ROUNDS; round++) {
		EXPECT(std::current_exception() == nullptr);
		EXPECT_INT(std::uncaught_exceptions(), 0);
		what_was_heard_is_caught(w, round);
		destructors_complete_requests(w, round);
		what_is_held_is_thrown_again(w, round);
		one_throws_what_another_has_caught(w, round);
	}
}

static void *work_as_user_thread(void *arg)
{
	work(*static_cast<worker *>(arg));
	return NULL;
}

int main(int argc, char **argv)
{
	std::vector<worker> w(WORKERS);
	std::vector<marcel_t> user(USER);
	std::vector<std::thread> standard;

	program_begin(&argc, &argv);
	for (int i = 0; i < WORKERS; i++) {
		w[i] = { i, i < USER };
		if (i < USER)
			EXPECT_INT(marcel_create(&user[i], NULL,
						 work_as_user_thread, &w[i]),
				   0);
		else
			standard.emplace_back(work, std::cref(w[i]));
	}
	for (auto &t : user)
		EXPECT_INT(marcel_join(t, NULL), 0);
	for (auto &t : standard)
		t.join();
	return program_end("exceptions");
}
