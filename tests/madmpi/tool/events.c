/*
 * Events: what happens is told to whoever has registered, as it was, in its
 * order, at a level that his callback has, and to nobody else; what finds no
 * room is counted; who ends it is told when nothing more comes.
 */
#include "../program.h"

#include <base/atomic.h>
#include <marcel/marcel.h>

enum {
	TAG = 71,
	LARGE = 1 << 20,
	FLOOD = 1500,
	ENDS = 2000 / FEWER,
	MANY = 100000 / FEWER
};

struct data {
	int peer, tag;
	MPI_Count bytes;
};

/* What a callback saw of messages with our tag; the last one. */
static struct seen {
	marcel_sem_t sem;
	struct data data;
	MPI_Count last; /* the raiser's: when the last event was */
	MPI_Count when; /* of data */
	ATOMIC(int) n;
} seen;

static int to, from;

static MPI_T_event_registration listen_to(const char *name)
{
	MPI_T_event_registration r;
	int index = -1;

	EXPECT_INT(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &r),
		   MPI_SUCCESS);
	return r;
}

static void give(MPI_T_event_registration r, MPI_T_cb_safety level,
		 MPI_T_event_cb_function fn, void *arg)
{
	EXPECT_INT(
		MPI_T_event_register_callback(r, level, MPI_INFO_NULL, arg, fn),
		MPI_SUCCESS);
}

static void end(MPI_T_event_registration r)
{
	EXPECT_INT(MPI_T_event_handle_free(r, NULL, NULL), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_handle_free(r, NULL, NULL),
		   MPI_T_ERR_INVALID_HANDLE);
}

/* --- facts --- */

static void types(void)
{
	MPI_Datatype types[3];
	MPI_Aint at[3];
	MPI_T_enum choice;
	MPI_Info info;
	int n, len, help_len, all, index, bind, nkeys;
	char name[64], help[128];

	EXPECT_INT(MPI_T_event_get_num(&n), MPI_SUCCESS);
	EXPECT(n >= 2);
	for (int i = 0; i < n; i++) {
		len = sizeof(name);
		help_len = sizeof(help);
		all = 3;
		EXPECT_INT(MPI_T_event_get_info(i, name, &len, NULL, types, at,
						&all, &choice, &info, help,
						&help_len, &bind),
			   MPI_SUCCESS);
		EXPECT(len > 1 && help_len > 1 && all >= 1 && all <= 3);
		EXPECT(types[0] == MPI_INT && at[0] == 0);
		EXPECT(all < 3 || (types[2] == MPI_COUNT && at[2] == 8));
		EXPECT(choice == MPI_T_ENUM_NULL);
		EXPECT_INT(bind, MPI_T_BIND_NO_OBJECT);
		MPI_Info_get_nkeys(info, &nkeys);
		EXPECT_INT(nkeys, 0);
		MPI_Info_free(&info);
		EXPECT_INT(MPI_T_event_get_index(name, &index), MPI_SUCCESS);
		EXPECT_INT(index, i);
		/* An array that is too short is filled. */
		types[0] = types[1] = MPI_CHAR;
		len = 1;
		MPI_T_event_get_info(i, NULL, NULL, NULL, types, NULL, &len,
				     NULL, NULL, NULL, NULL, NULL);
		EXPECT(len == all);
		EXPECT(types[0] == MPI_INT && types[1] == MPI_CHAR);
	}
	EXPECT_INT(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL,
					NULL, NULL, NULL, NULL, NULL),
		   MPI_T_ERR_INVALID_INDEX);
	EXPECT_INT(MPI_T_event_get_index("one", &index),
		   MPI_T_ERR_INVALID_NAME);
}

static void sources(void)
{
	MPI_T_source_order order;
	MPI_Count ticks, most, one, two;
	int n;

	EXPECT_INT(MPI_T_source_get_num(&n), MPI_SUCCESS);
	EXPECT_INT(n, 1);
	EXPECT_INT(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order,
					 &ticks, &most, NULL),
		   MPI_SUCCESS);
	EXPECT(order == MPI_T_SOURCE_ORDERED && ticks > 0 && most > ticks);
	EXPECT_INT(MPI_T_source_get_timestamp(0, &one), MPI_SUCCESS);
	EXPECT_INT(MPI_T_source_get_timestamp(0, &two), MPI_SUCCESS);
	EXPECT(one <= two && one > 0);
	EXPECT_INT(MPI_T_source_get_timestamp(1, &two),
		   MPI_T_ERR_INVALID_INDEX);
}

static void hints(void)
{
	MPI_T_event_registration r = listen_to("nmad_unexpected");
	MPI_Info info;

	EXPECT_INT(MPI_T_event_handle_set_info(r, MPI_INFO_NULL), 0);
	EXPECT_INT(MPI_T_event_handle_get_info(r, &info), MPI_SUCCESS);
	MPI_Info_free(&info);
	EXPECT_INT(MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_NONE,
						 MPI_INFO_NULL),
		   MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_callback_get_info(
			   r, MPI_T_CB_REQUIRE_THREAD_SAFE, &info),
		   MPI_SUCCESS);
	MPI_Info_free(&info);
	EXPECT_INT(
		MPI_T_event_register_callback(r, 1, MPI_INFO_NULL, NULL, NULL),
		MPI_T_ERR_INVALID);
	end(r);
	EXPECT_INT(MPI_T_event_handle_get_info(r, &info),
		   MPI_T_ERR_INVALID_HANDLE);
}

/* --- one message --- */

static void record(MPI_T_event_instance e, MPI_T_event_registration r,
		   MPI_T_cb_safety level, void *arg)
{
	struct data d = { -1, -1, -1 };
	MPI_Count when, bytes;
	int peer, tag, source = -1;

	EXPECT(arg == &seen && r != NULL);
	EXPECT_INT(level, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
	EXPECT_INT(MPI_T_event_copy(e, &d), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_read(e, 0, &peer), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_read(e, 1, &tag), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_read(e, 2, &bytes), MPI_SUCCESS);
	EXPECT(d.peer == peer && d.tag == tag && d.bytes == bytes);
	EXPECT_INT(MPI_T_event_read(e, 3, &tag), MPI_T_ERR_INVALID_INDEX);
	EXPECT_INT(MPI_T_event_get_source(e, &source), MPI_SUCCESS);
	EXPECT_INT(source, 0);
	EXPECT_INT(MPI_T_event_get_timestamp(e, &when), MPI_SUCCESS);
	EXPECT(when >= seen.last);
	seen.last = when;
	if (d.tag != TAG)
		return; /* the library's own */
	seen.data = d;
	seen.when = when;
	fetch_add_relaxed(&seen.n, 1);
	marcel_sem_post(&seen.sem);
}

static void never(MPI_T_event_instance e, MPI_T_event_registration r,
		  MPI_T_cb_safety level, void *arg)
{
	(void)e, (void)r, (void)level, (void)arg;
	EXPECT(!"called");
}

/* A message that nobody asks for before its event was raised. */
static void unexpected(int bytes, MPI_Comm comm)
{
	static char out[100], in[100];
	MPI_Request send;

	MPI_Isend(out, bytes, MPI_BYTE, to, TAG, comm, &send);
	marcel_sem_wait(&seen.sem);
	EXPECT_INT(seen.data.peer, from);
	EXPECT_INT(seen.data.bytes, bytes);
	MPI_Recv(in, bytes, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
}

static void message(void)
{
	MPI_T_event_registration r = listen_to("nmad_unexpected");
	MPI_T_event_registration other = listen_to("nmad_lost");
	MPI_Count before, after;

	give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	give(other, MPI_T_CB_REQUIRE_MPI_RESTRICTED, never, NULL);
	MPI_T_source_get_timestamp(0, &before);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 20; i++)
		unexpected(5 * i, MPI_COMM_WORLD);
	MPI_T_source_get_timestamp(0, &after);
	EXPECT(before <= seen.when && seen.when <= after);
	EXPECT_INT(load_relaxed(&seen.n), 20);
	end(r);
	end(other);
}

/* The lowest level that is enough is called; the others are not. */
static void levels(void)
{
	MPI_T_event_registration r = listen_to("nmad_unexpected");
	MPI_T_event_registration low = listen_to("nmad_unexpected");

	give(low, MPI_T_CB_REQUIRE_NONE, never, NULL);
	give(r, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, record, &seen);
	MPI_Barrier(MPI_COMM_WORLD);
	unexpected(1, MPI_COMM_WORLD);
	give(r, MPI_T_CB_REQUIRE_THREAD_SAFE, record, &seen);
	give(r, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, never, NULL);
	give(r, MPI_T_CB_REQUIRE_NONE, never, NULL);
	unexpected(2, MPI_COMM_WORLD);
	give(r, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, record, &seen);
	give(r, MPI_T_CB_REQUIRE_THREAD_SAFE, NULL, NULL);
	unexpected(3, MPI_COMM_WORLD);
	end(r);
	end(low);
}

/* A large message begins and ends at both of its ends. */
static void rendezvous(void)
{
	static const char *const names[] = { "nmad_rdv_out", "nmad_rdv_out_end",
					     "nmad_rdv_in", "nmad_rdv_in_end" };
	MPI_T_event_registration r[4];
	char *out = calloc(1, LARGE), *in = malloc(LARGE);

	if (size == 1) /* which copies it */
		goto no_network;
	store_relaxed(&seen.n, 0);
	for (int i = 0; i < 4; i++) {
		r[i] = listen_to(names[i]);
		give(r[i], MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	}
	/* Until nobody has ears for what is unexpected any more. */
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(out, LARGE, MPI_BYTE, to, TAG, in, LARGE, MPI_BYTE, from,
		     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 4; i++)
		marcel_sem_wait(&seen.sem);
	EXPECT_INT(seen.data.bytes, LARGE);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 4; i++)
		end(r[i]);
	EXPECT_INT(load_relaxed(&seen.n), 4);
	EXPECT(marcel_sem_trywait(&seen.sem) != 0);
no_network:
	free(out);
	free(in);
}

/* It takes itself away, and another one of the same kind stays. */
static ATOMIC(int) ncalled;

static void only_once(MPI_T_event_instance e, MPI_T_event_registration r,
		      MPI_T_cb_safety level, void *arg)
{
	(void)e, (void)level, (void)arg;
	EXPECT_INT(fetch_add_relaxed(&ncalled, 1), 0);
	give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, NULL, NULL);
}

static void callbacks_come_and_go(void)
{
	MPI_T_event_registration first = listen_to("nmad_unexpected");
	MPI_T_event_registration r = listen_to("nmad_unexpected");

	give(first, MPI_T_CB_REQUIRE_MPI_RESTRICTED, only_once, NULL);
	give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	MPI_Barrier(MPI_COMM_WORLD);
	unexpected(10, MPI_COMM_WORLD);
	unexpected(11, MPI_COMM_WORLD);
	EXPECT_INT(load_relaxed(&ncalled), 1);
	give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, NULL, NULL);
	give(first, MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	MPI_Barrier(MPI_COMM_WORLD);
	unexpected(12, MPI_COMM_WORLD);
	end(first);
	end(r);
}

/* --- too many --- */

static marcel_sem_t began, go, counted;
static ATOMIC(int) ndropped, nraised;

static void slow(MPI_T_event_instance e, MPI_T_event_registration r,
		 MPI_T_cb_safety level, void *arg)
{
	(void)e, (void)r, (void)level, (void)arg;
	if (fetch_add_relaxed(&nraised, 1) == 0) {
		marcel_sem_post(&began);
		marcel_sem_wait(&go);
	}
	marcel_sem_post(&counted);
}

static void dropped(MPI_Count count, MPI_T_event_registration r, int source,
		    MPI_T_cb_safety level, void *arg)
{
	EXPECT(count > 0 && source == 0 && r != NULL && arg == &go);
	EXPECT_INT(level, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
	fetch_add_relaxed(&ndropped, (int)count);
	for (MPI_Count i = 0; i < count; i++)
		marcel_sem_post(&counted);
}

/* Of a registration that comes when some are dropped: it hears of later ones.
 */
static void dropped_later(MPI_Count count, MPI_T_event_registration r,
			  int source, MPI_T_cb_safety level, void *arg)
{
	(void)r, (void)source, (void)level, (void)arg;
	EXPECT(count > 0 && count < 100); /* the library's own */
}

static void nothing(MPI_T_event_instance e, MPI_T_event_registration r,
		    MPI_T_cb_safety level, void *arg)
{
	(void)e, (void)r, (void)level, (void)arg;
}

static void flood(void)
{
	MPI_T_event_registration r = listen_to("nmad_unexpected"), late;

	marcel_sem_init(&began, 0, 0);
	marcel_sem_init(&go, 0, 0);
	marcel_sem_init(&counted, 0, 0);
	give(r, MPI_T_CB_REQUIRE_THREAD_SAFE, slow, &go);
	EXPECT_INT(MPI_T_event_set_dropped_handler(r, dropped), MPI_SUCCESS);
	for (int i = 0; i < FLOOD; i++)
		MPI_Send(&i, 1, MPI_INT, rank, i, MPI_COMM_WORLD);
	marcel_sem_wait(&began);
	MPI_Probe(rank, FLOOD - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	late = listen_to("nmad_unexpected");
	EXPECT_INT(MPI_T_event_set_dropped_handler(late, dropped_later),
		   MPI_SUCCESS);
	give(late, MPI_T_CB_REQUIRE_THREAD_SAFE, nothing, NULL);
	marcel_sem_post(&go);
	for (int i = 0; i < FLOOD; i++)
		marcel_sem_wait(&counted);
	EXPECT(load_relaxed(&ndropped) > 0 && load_relaxed(&nraised) > 1);
	for (int i = 0, x; i < FLOOD; i++)
		MPI_Recv(&x, 1, MPI_INT, rank, i, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	end(r);
	end(late);
}

/* --- the end --- */

static marcel_sem_t freed_sem;

static void freed(MPI_T_event_registration r, MPI_T_cb_safety level, void *arg)
{
	EXPECT(arg == &freed_sem && r != NULL);
	EXPECT(level != MPI_T_CB_REQUIRE_NONE);
	marcel_sem_post(&freed_sem);
}

static void frees(MPI_T_event_instance e, MPI_T_event_registration r,
		  MPI_T_cb_safety level, void *arg)
{
	int value;

	(void)level;
	EXPECT_INT(MPI_T_event_handle_free(r, arg, freed), MPI_SUCCESS);
	EXPECT_INT(MPI_T_event_handle_free(r, arg, freed),
		   MPI_T_ERR_INVALID_HANDLE);
	EXPECT(marcel_sem_trywait(&freed_sem) != 0);
	EXPECT_INT(MPI_T_event_read(e, 0, &value), MPI_SUCCESS);
}

/* In a callback and elsewhere. */
static void frees_itself(void)
{
	MPI_T_event_registration r = listen_to("nmad_unexpected");
	int x = 0;

	marcel_sem_init(&freed_sem, 0, 0);
	give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, frees, &freed_sem);
	for (int i = 0; i < 2; i++)
		MPI_Send(&x, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
	marcel_sem_wait(&freed_sem);
	for (int i = 0; i < 2; i++)
		MPI_Recv(&x, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	r = listen_to("nmad_unexpected");
	EXPECT_INT(MPI_T_event_handle_free(r, &freed_sem, freed), MPI_SUCCESS);
	marcel_sem_wait(&freed_sem);
	EXPECT(marcel_sem_trywait(&freed_sem) != 0);
}

/*
 * One is freed just when a callback of it is about to return: it is told once,
 * by whichever of both comes last.
 */
static ATOMIC(int) is_called, is_ending, nfreed;

static void returns_late(MPI_T_event_instance e, MPI_T_event_registration r,
			 MPI_T_cb_safety level, void *arg)
{
	(void)e, (void)r, (void)level, (void)arg;
	store_relaxed(&is_called, 1);
	for (int i = 1; !load_relaxed(&is_ending); i++)
		if (i % 1000 == 0)
			marcel_yield();
}

static void count_freed(MPI_T_event_registration r, MPI_T_cb_safety level,
			void *arg)
{
	(void)r, (void)level;
	fetch_add_relaxed(&nfreed, 1);
	marcel_sem_post(arg);
}

static void freed_as_it_returns(void)
{
	int x = 0;

	marcel_sem_init(&freed_sem, 0, 0);
	for (int i = 0; i < ENDS; i++) {
		MPI_T_event_registration r = listen_to("nmad_unexpected");

		store_relaxed(&is_called, 0);
		store_relaxed(&is_ending, 0);
		give(r, MPI_T_CB_REQUIRE_MPI_RESTRICTED, returns_late, NULL);
		MPI_Send(&x, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
		while (!load_relaxed(&is_called))
			marcel_yield();
		store_relaxed(&is_ending, 1);
		for (int k = i % 64; k > 0; k--)
			(void)load_relaxed(&is_called);
		EXPECT_INT(MPI_T_event_handle_free(r, &freed_sem, count_freed),
			   MPI_SUCCESS);
		marcel_sem_wait(&freed_sem);
		MPI_Recv(&x, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	EXPECT_INT(load_relaxed(&nfreed), ENDS);
}

/* Others of that kind and of another come and go. */
static void one_of_many_is_told(void)
{
	static MPI_T_event_registration r[MANY];

	for (int i = 0; i < MANY; i++)
		r[i] = listen_to(i % 2 ? "nmad_unexpected" : "nmad_rdv_in");
	for (int i = 0; i < MANY - 1; i++)
		end(r[i]);
	give(r[MANY - 1], MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	MPI_Barrier(MPI_COMM_WORLD);
	unexpected(80, MPI_COMM_WORLD);
	end(r[MANY - 1]);
}

/* A process alone may begin anew; who has registered has. */
static void once_more(void)
{
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
	marcel_sem_init(&seen.sem, 0, 0);
	MPI_Group_from_session_pset(session, "mpi://SELF", &group);
	MPI_Comm_create_from_group(group, "once more", MPI_INFO_NULL,
				   MPI_ERRORS_ARE_FATAL, &comm);
	unexpected(70, comm);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
	MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
	MPI_T_event_registration early;
	int provided;

	EXPECT_INT(MPI_T_event_get_num(&provided), MPI_T_ERR_NOT_INITIALIZED);
	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
	types();
	sources();
	early = listen_to("nmad_unexpected");
	give(early, MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	program_begin(&argc, &argv);
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	marcel_sem_init(&seen.sem, 0, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	unexpected(50, MPI_COMM_WORLD);
	end(early);
	store_relaxed(&seen.n, 0);
	types();
	hints();
	message();
	levels();
	rendezvous();
	callbacks_come_and_go();
	flood();
	frees_itself();
	freed_as_it_returns();
	one_of_many_is_told();
	early = listen_to("nmad_unexpected");
	give(early, MPI_T_CB_REQUIRE_MPI_RESTRICTED, record, &seen);
	program_end("events");
	if (size == 1)
		once_more();
	end(early);
	return MPI_T_finalize();
}
