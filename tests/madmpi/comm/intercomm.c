/*
 * Intercommunicators: who is in them, who gets their messages, what is made of
 * them.
 */
#include "../two_groups.h"

#include <limits.h>
#include <pthread.h>

static void ranks_are_of_the_own_group_peers_of_the_other(void)
{
	int n, r, flag, ranks[64], got[64];
	MPI_Group world, own, others;

	MPI_Comm_rank(inter, &r);
	EXPECT_INT(r, mine);
	MPI_Comm_size(inter, &n);
	EXPECT_INT(n, nmine);
	MPI_Comm_remote_size(inter, &n);
	EXPECT_INT(n, nothers);
	MPI_Comm_test_inter(inter, &flag);
	EXPECT(flag);
	MPI_Comm_test_inter(local, &flag);
	EXPECT(!flag);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Comm_group(inter, &own);
	MPI_Comm_remote_group(inter, &others);
	MPI_Group_size(own, &n);
	EXPECT_INT(n, nmine);
	MPI_Group_rank(others, &r);
	EXPECT_INT(r, MPI_UNDEFINED);
	for (int i = 0; i < size; i++)
		ranks[i] = i;
	MPI_Group_translate_ranks(own, nmine, ranks, world, got);
	for (int i = 0; i < nmine; i++)
		EXPECT_INT(got[i], world_of_own(i));
	MPI_Group_translate_ranks(others, nothers, ranks, world, got);
	for (int i = 0; i < nothers; i++)
		EXPECT_INT(got[i], world_of_other(i));
	MPI_Group_free(&world);
	MPI_Group_free(&own);
	MPI_Group_free(&others);
}

/* --- messages --- */

/* All to all of the other group, received from whoever it is. */
static void messages_go_to_the_other_group(void)
{
	MPI_Request r[64];
	MPI_Status st;
	int seen[64] = { 0 }, got;

	for (int i = 0; i < nothers; i++)
		MPI_Isend(&rank, 1, MPI_INT, i, mine, inter, &r[i]);
	for (int i = 0; i < nothers; i++) {
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, inter,
			 &st);
		EXPECT_INT(got, world_of_other(st.MPI_SOURCE));
		EXPECT_INT(st.MPI_TAG, st.MPI_SOURCE);
		EXPECT_INT(seen[st.MPI_SOURCE]++, 0);
	}
	MPI_Waitall(nothers, r, MPI_STATUSES_IGNORE);
	MPI_Barrier(inter); /* what comes next is not received above */
}

/* A pair in the two groups; who is left over has nobody. */
static int partner(void)
{
	return mine < nothers ? mine : MPI_PROC_NULL;
}

static void expect_from(int peer, int got, const MPI_Status *st)
{
	EXPECT_INT(st->MPI_SOURCE, peer);
	if (peer != MPI_PROC_NULL)
		EXPECT_INT(got, world_of_other(peer));
}

static void probes_tell_ranks_of_the_other_group(void)
{
	int peer = partner(), got = -1, flag = 0;
	MPI_Request r;
	MPI_Message m;
	MPI_Status st;

	MPI_Issend(&rank, 1, MPI_INT, peer, 4, inter, &r);
	if (peer != MPI_PROC_NULL) {
		MPI_Probe(MPI_ANY_SOURCE, 4, inter, &st);
		EXPECT_INT(st.MPI_SOURCE, peer);
		MPI_Iprobe(peer, MPI_ANY_TAG, inter, &flag, &st);
		EXPECT(flag);
		EXPECT_INT(st.MPI_TAG, 4);
		MPI_Mprobe(MPI_ANY_SOURCE, 4, inter, &m, &st);
		EXPECT_INT(st.MPI_SOURCE, peer);
		MPI_Mrecv(&got, 1, MPI_INT, &m, &st);
		expect_from(peer, got, &st);
	}
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Mprobe(MPI_PROC_NULL, 4, inter, &m, &st);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Mrecv(&got, 1, MPI_INT, &m, &st);
}

static void every_way_of_sending(void)
{
	int peer = partner(), got = -1, room = MPI_BSEND_OVERHEAD + 64, size_;
	void *buffer = malloc((size_t)room);
	MPI_Request r[2];
	MPI_Status st[2];

	MPI_Sendrecv(&rank, 1, MPI_INT, peer, 1, &got, 1, MPI_INT, peer, 1,
		     inter, &st[0]);
	expect_from(peer, got, &st[0]);
	MPI_Comm_attach_buffer(inter, buffer, room);
	MPI_Bsend(&rank, 1, MPI_INT, peer, 2, inter);
	MPI_Recv(&got, 1, MPI_INT, peer, 2, inter, &st[0]);
	expect_from(peer, got, &st[0]);
	MPI_Comm_detach_buffer(inter, &buffer, &size_);
	EXPECT_INT(size_, room);
	free(buffer);
	MPI_Send_init(&rank, 1, MPI_INT, peer, 3, inter, &r[0]);
	MPI_Recv_init(&got, 1, MPI_INT,
		      peer == MPI_PROC_NULL ? peer : MPI_ANY_SOURCE, 3, inter,
		      &r[1]);
	for (int i = 0; i < 3; i++) {
		got = -1;
		MPI_Startall(2, r);
		MPI_Waitall(2, r, st);
		expect_from(peer, got, &st[1]);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	got = rank;
	MPI_Sendrecv_replace(&got, 1, MPI_INT, peer, 1, peer, 1, inter, &st[0]);
	expect_from(peer, got, &st[0]);
}

static void receives_can_be_given_up(void)
{
	MPI_Request r;
	MPI_Status st;
	int got, flag;

	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 99, inter, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag);
}

static void peers_are_counted_in_the_other_group(void)
{
	MPI_Request r;
	int x = 0;

	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	FAILS(MPI_Send(&x, 1, MPI_INT, nothers, 0, inter), MPI_ERR_RANK);
	FAILS(MPI_Irecv(&x, 1, MPI_INT, nothers, 0, inter, &r), MPI_ERR_RANK);
	FAILS(MPI_Probe(nothers, 0, inter, MPI_STATUS_IGNORE), MPI_ERR_RANK);
	FAILS(MPI_Send(&x, 1, MPI_INT, MPI_ROOT, 0, inter), MPI_ERR_RANK);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
}

static void freed_with_messages_on_their_way(void)
{
	int peer = partner(), got = -1;
	MPI_Request r[2];
	MPI_Status st[2];
	MPI_Comm dup;

	MPI_Comm_dup(inter, &dup);
	MPI_Irecv(&got, 1, MPI_INT, peer, 1, dup, &r[0]);
	MPI_Isend(&rank, 1, MPI_INT, peer, 1, dup, &r[1]);
	MPI_Comm_free(&dup);
	EXPECT(dup == MPI_COMM_NULL);
	MPI_Waitall(2, r, st);
	expect_from(peer, got, &st[0]);
}

/* --- comparing --- */

static int compare(MPI_Comm a, MPI_Comm b)
{
	int result = -1, other = -1;

	MPI_Comm_compare(a, b, &result);
	MPI_Comm_compare(b, a, &other);
	EXPECT_INT(result, other);
	return result;
}

/* The own group with its ranks the other way round. */
static MPI_Group reversed(void)
{
	MPI_Group own, out;
	int ranks[64];

	for (int i = 0; i < nmine; i++)
		ranks[i] = nmine - 1 - i;
	MPI_Comm_group(inter, &own);
	MPI_Group_incl(own, nmine, ranks, &out);
	MPI_Group_free(&own);
	return out;
}

static void both_groups_are_compared(void)
{
	MPI_Group own, turned;
	MPI_Comm dup, both, one, united;

	MPI_Comm_dup(inter, &dup);
	MPI_Comm_group(inter, &own);
	turned = reversed();
	MPI_Comm_create(inter, turned, &both);
	MPI_Comm_create(inter, first ? own : turned, &one);
	MPI_Intercomm_merge(inter, !first, &united);
	EXPECT_INT(compare(inter, inter), MPI_IDENT);
	EXPECT_INT(compare(inter, dup), MPI_CONGRUENT);
	/* The second group has two, or the two look the same. */
	EXPECT_INT(compare(inter, both),
		   size > 2 ? MPI_SIMILAR : MPI_CONGRUENT);
	EXPECT_INT(compare(inter, one), size > 2 ? MPI_SIMILAR : MPI_CONGRUENT);
	EXPECT_INT(compare(inter, local), MPI_UNEQUAL);
	EXPECT_INT(compare(inter, MPI_COMM_WORLD), MPI_UNEQUAL);
	EXPECT_INT(compare(united, MPI_COMM_WORLD), MPI_CONGRUENT);
	MPI_Group_free(&own);
	MPI_Group_free(&turned);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&both);
	MPI_Comm_free(&one);
	MPI_Comm_free(&united);
}

/* The second group without its last process, if it has more. */
static void a_part_is_not_the_whole(void)
{
	MPI_Comm less;

	MPI_Comm_split(inter, !first && mine > 0 && mine == nmine - 1, 0,
		       &less);
	if (less == MPI_COMM_NULL)
		return;
	EXPECT_INT(compare(inter, less),
		   size > 2 ? MPI_UNEQUAL : MPI_CONGRUENT);
	MPI_Comm_free(&less);
}

/* --- copies --- */

static int copies, deletions;

static int copy_fn(MPI_Comm comm, int keyval, void *extra, void *in, void *out,
		   int *flag)
{
	(void)keyval, (void)extra;
	EXPECT(comm == inter);
	*(char **)out = (char *)in + 1;
	*flag = 1;
	copies++;
	return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	deletions++;
	return MPI_SUCCESS;
}

static void a_copy_has_groups_attributes_and_handler(void)
{
	static char data[2];
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Errhandler handler;
	MPI_Comm dup;
	void *value;
	int keyval, flag, n;

	MPI_Comm_create_keyval(copy_fn, delete_fn, &keyval, NULL);
	MPI_Comm_set_attr(inter, keyval, data);
	MPI_Comm_set_name(inter, "two groups");
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_dup(inter, &dup);
	EXPECT_INT(copies, 1);
	MPI_Comm_get_attr(dup, keyval, &value, &flag);
	EXPECT(flag && value == data + 1);
	MPI_Comm_get_attr(dup, MPI_TAG_UB, &value, &flag);
	EXPECT(flag && *(int *)value >= 32767);
	MPI_Comm_get_name(inter, name, &n);
	EXPECT(strcmp(name, "two groups") == 0);
	MPI_Comm_get_name(dup, name, &n);
	EXPECT_INT(n, 0);
	MPI_Comm_get_errhandler(dup, &handler);
	EXPECT(handler == MPI_ERRORS_RETURN);
	MPI_Comm_remote_size(dup, &n);
	EXPECT_INT(n, nothers);
	MPI_Comm_disconnect(&dup);
	EXPECT(dup == MPI_COMM_NULL);
	EXPECT_INT(deletions, 1);
	MPI_Comm_delete_attr(inter, keyval);
	EXPECT_INT(deletions, 2);
	MPI_Comm_free_keyval(&keyval);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
}

static void hints_are_the_copys(void)
{
	char value[8];
	int room = sizeof(value), flag;
	MPI_Info info, used;
	MPI_Comm dup;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
	MPI_Comm_dup_with_info(inter, info, &dup);
	MPI_Comm_get_info(dup, &used);
	MPI_Info_get_string(used, "mpi_assert_no_any_tag", &room, value, &flag);
	EXPECT(flag && strcmp(value, "true") == 0);
	MPI_Info_free(&used);
	MPI_Info_free(&info);
	MPI_Comm_free(&dup);
}

static void copies_do_not_mix_messages(void)
{
	int peer = partner(), one = 1, two = 2, got[2] = { -1, -1 };
	MPI_Request r[2];
	MPI_Comm dup;

	MPI_Comm_dup(inter, &dup);
	MPI_Irecv(&got[0], 1, MPI_INT, peer, MPI_ANY_TAG, inter, &r[0]);
	MPI_Irecv(&got[1], 1, MPI_INT, peer, MPI_ANY_TAG, dup, &r[1]);
	MPI_Send(&two, 1, MPI_INT, peer, 5, dup);
	MPI_Send(&one, 1, MPI_INT, peer, 5, inter);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	if (peer != MPI_PROC_NULL) {
		EXPECT_INT(got[0], 1);
		EXPECT_INT(got[1], 2);
	}
	MPI_Comm_free(&dup);
}

static void many_come_and_go(void)
{
	MPI_Comm comm[20];
	int n;

	for (int i = 0; i < 20; i++)
		MPI_Comm_dup(i > 0 ? comm[i - 1] : inter, &comm[i]);
	for (int i = 19; i >= 0; i--) {
		MPI_Barrier(comm[i]);
		MPI_Comm_remote_size(comm[i], &n);
		EXPECT_INT(n, nothers);
		MPI_Comm_free(&comm[i]);
	}
}

/* --- parts --- */

static void expect_sizes(MPI_Comm comm, int own, int others)
{
	int n, flag;

	MPI_Comm_test_inter(comm, &flag);
	EXPECT(flag);
	MPI_Comm_size(comm, &n);
	EXPECT_INT(n, own);
	MPI_Comm_remote_size(comm, &n);
	EXPECT_INT(n, others);
}

static void create_takes_members_of_the_own_group(void)
{
	MPI_Group all = reversed(), one, none = MPI_GROUP_EMPTY, world;
	int zero = 0, r;
	MPI_Comm comm;

	MPI_Comm_create(inter, all, &comm);
	expect_sizes(comm, nmine, nothers);
	MPI_Comm_rank(comm, &r);
	EXPECT_INT(r, nmine - 1 - mine);
	MPI_Comm_free(&comm);
	/* Its first member, that is the last process of the group. */
	MPI_Group_incl(all, 1, &zero, &one);
	MPI_Comm_create(inter, first ? all : one, &comm);
	EXPECT((comm != MPI_COMM_NULL) == (first || mine == nmine - 1));
	if (comm != MPI_COMM_NULL) {
		expect_sizes(comm, first ? nmine : 1, first ? 1 : nothers);
		MPI_Comm_free(&comm);
	}
	MPI_Comm_create(inter, first ? all : none, &comm);
	EXPECT(comm == MPI_COMM_NULL);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	FAILS(MPI_Comm_create(inter, world, &comm), MPI_ERR_GROUP);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
	MPI_Group_free(&world);
	MPI_Group_free(&one);
	MPI_Group_free(&all);
}

static int how_many(int n, int odd)
{
	return odd ? n / 2 : n - n / 2;
}

/* Those of even ranks, the others: each with its like of the other group. */
static void split_unites_a_color_of_both_groups(void)
{
	int odd = mine % 2, own = how_many(nmine, odd), r, got;
	int others = how_many(nothers, odd);
	MPI_Status st;
	MPI_Comm comm;

	MPI_Comm_split(inter, odd, -mine, &comm);
	EXPECT((comm == MPI_COMM_NULL) == (others == 0));
	if (comm == MPI_COMM_NULL)
		return;
	expect_sizes(comm, own, others);
	MPI_Comm_rank(comm, &r);
	EXPECT_INT(r, own - 1 - mine / 2);
	r = r < others ? r : MPI_PROC_NULL;
	MPI_Sendrecv(&mine, 1, MPI_INT, r, 1, &got, 1, MPI_INT, r, 1, comm,
		     &st);
	if (r != MPI_PROC_NULL)
		EXPECT_INT(got, 2 * (others - 1 - r) + odd);
	MPI_Comm_free(&comm);
}

static void a_color_of_one_group_is_nobodys(void)
{
	MPI_Comm comm;

	MPI_Comm_split(inter, first, 0, &comm);
	EXPECT(comm == MPI_COMM_NULL);
	MPI_Comm_split(inter, first ? MPI_UNDEFINED : 1, 0, &comm);
	EXPECT(comm == MPI_COMM_NULL);
}

static void who_shares_memory(void)
{
	MPI_Comm comm;
	int r;

	MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, -mine, MPI_INFO_NULL,
			    &comm);
	expect_sizes(comm, nmine, nothers); /* the tests run on one machine */
	MPI_Comm_rank(comm, &r);
	EXPECT_INT(r, nmine - 1 - mine);
	MPI_Comm_free(&comm);
	MPI_Comm_split_type(inter, first ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED,
			    0, MPI_INFO_NULL, &comm);
	EXPECT(comm == MPI_COMM_NULL);
}

/* --- merging --- */

static int rank_after_merge(int high)
{
	MPI_Comm comm;
	int n, r, flag, sum, result;

	MPI_Intercomm_merge(inter, high, &comm);
	MPI_Comm_test_inter(comm, &flag);
	EXPECT(!flag);
	MPI_Comm_size(comm, &n);
	EXPECT_INT(n, size);
	MPI_Comm_rank(comm, &r);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	EXPECT_INT(sum, size * (size - 1) / 2);
	result = compare(comm, MPI_COMM_WORLD);
	EXPECT(result == MPI_SIMILAR || result == MPI_CONGRUENT);
	MPI_Comm_free(&comm);
	return r;
}

static void the_high_group_is_behind(void)
{
	int r, theirs;

	EXPECT_INT(rank_after_merge(first ? 0 : 1), rank);
	EXPECT_INT(rank_after_merge(first ? 7 : 0),
		   first ? nothers + mine : mine);
	for (int high = 0; high < 2; high++) {
		r = rank_after_merge(high) - mine;
		EXPECT(r == 0 || r == nothers);
		if (partner() == MPI_PROC_NULL)
			continue;
		MPI_Sendrecv(&r, 1, MPI_INT, partner(), 0, &theirs, 1, MPI_INT,
			     partner(), 0, inter, MPI_STATUS_IGNORE);
		EXPECT((r == 0) != (theirs == 0));
	}
}

/* A group of one cannot disagree. */
static void a_group_says_one_thing(void)
{
	MPI_Comm comm = MPI_COMM_NULL;

	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	FAILS(MPI_Intercomm_merge(inter, !first && mine == 0, &comm),
	      size > 2 ? MPI_ERR_ARG : MPI_SUCCESS);
	EXPECT((comm == MPI_COMM_NULL) == (size > 2));
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
}

static void handlers_come_from_the_own_group(void)
{
	MPI_Errhandler handler;
	MPI_Comm made, united;

	MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, world_of_other(0), 0,
			     &made);
	MPI_Comm_get_errhandler(made, &handler);
	EXPECT(handler == MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(made,
				first ? MPI_ERRORS_ABORT : MPI_ERRORS_RETURN);
	MPI_Intercomm_merge(made, first, &united);
	MPI_Comm_get_errhandler(united, &handler);
	EXPECT(handler == (first ? MPI_ERRORS_ABORT : MPI_ERRORS_RETURN));
	MPI_Comm_free(&united);
	MPI_Comm_free(&made);
	MPI_Comm_set_errhandler(local, MPI_ERRORS_ARE_FATAL);
}

/* --- making them --- */

static void leaders_may_meet_in_another_one(void)
{
	MPI_Comm comm;

	MPI_Intercomm_create(local, nmine - 1, inter, nothers - 1, INT_MAX,
			     &comm);
	EXPECT_INT(compare(comm, inter), MPI_CONGRUENT);
	MPI_Comm_free(&comm);
}

/* What a program receives there, it receives from programs. */
static void leaders_meet_unseen(void)
{
	MPI_Request r;
	MPI_Comm comm;
	int got, flag;

	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
		  &r);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, world_of_other(0), 0,
			     &comm);
	MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
	EXPECT(!flag);
	MPI_Cancel(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
}

static MPI_Comm local_of[4];

static void *make_one(void *tag)
{
	MPI_Comm comm;

	MPI_Intercomm_create(local_of[*(int *)tag], 0, MPI_COMM_WORLD,
			     world_of_other(0), *(int *)tag, &comm);
	EXPECT_INT(compare(comm, inter), MPI_CONGRUENT);
	MPI_Barrier(comm);
	MPI_Comm_free(&comm);
	return NULL;
}

static void tags_tell_several_at_once_apart(void)
{
	int tag[4] = { 0, 1, 2, 3 };
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		MPI_Comm_dup(local, &local_of[i]);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, make_one,
			       &tag[first ? i : 3 - i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4; i++)
		MPI_Comm_free(&local_of[i]);
}

/* 0 and 1 on one side, 1 and 2 on the other: 1 takes part in both calls. */
static void groups_must_not_overlap(void)
{
	MPI_Comm pair[2], comm = MPI_COMM_NULL;

	for (int i = 0; i < 2; i++)
		MPI_Comm_split(MPI_COMM_WORLD,
			       rank == i || rank == i + 1 ? 0 : MPI_UNDEFINED,
			       0, &pair[i]);
	for (int i = 0; i < 2; i++) {
		if (pair[i] == MPI_COMM_NULL)
			continue;
		if (size > 2) {
			MPI_Comm_set_errhandler(pair[i], MPI_ERRORS_RETURN);
			FAILS(MPI_Intercomm_create(pair[i], i, MPI_COMM_WORLD,
						   i ? 0 : 2, 9, &comm),
			      MPI_ERR_GROUP);
			EXPECT(comm == MPI_COMM_NULL);
		}
		MPI_Comm_free(&pair[i]);
	}
}

/* All of the group are told what is wrong with the leader's arguments. */
static void wrong_arguments_of_making(void)
{
	MPI_Comm bad = rank == 0 ? MPI_COMM_NULL : MPI_COMM_WORLD;
	MPI_Comm comm = MPI_COMM_NULL, world;

	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Intercomm_create(world, 0, bad, 0, 1, &comm), MPI_ERR_COMM);
	FAILS(MPI_Intercomm_create(world, 0, world, size, 1, &comm),
	      MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create(world, 0, world, MPI_ANY_SOURCE, 1, &comm),
	      MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create(world, 0, world, 0, 1, &comm), MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create(world, size, world, 0, 1, &comm),
	      MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create(world, -1, world, 0, 1, &comm),
	      MPI_ERR_RANK);
	FAILS(MPI_Intercomm_create(world, 0, world, 0, -1, &comm), MPI_ERR_TAG);
	FAILS(MPI_Intercomm_create(world, 0, world, 0, MPI_ANY_TAG, &comm),
	      MPI_ERR_TAG);
	FAILS(MPI_Intercomm_create(MPI_COMM_NULL, 0, world, 0, 1, &comm),
	      MPI_ERR_COMM);
	FAILS(MPI_Intercomm_create(inter, 0, world, 0, 1, &comm), MPI_ERR_COMM);
	FAILS(MPI_Intercomm_create(world, 0, world, 0, 1, NULL), MPI_ERR_ARG);
	EXPECT(comm == MPI_COMM_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&world);
}

static void what_is_for_one_kind_only(void)
{
	MPI_Group group = MPI_GROUP_NULL, own;
	MPI_Comm comm = MPI_COMM_NULL;
	int n = -1;

	MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_group(inter, &own);
	FAILS(MPI_Comm_remote_size(local, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_remote_group(local, &group), MPI_ERR_COMM);
	FAILS(MPI_Intercomm_merge(local, 0, &comm), MPI_ERR_COMM);
	FAILS(MPI_Comm_create_group(inter, own, 0, &comm), MPI_ERR_COMM);
	FAILS(MPI_Comm_remote_size(inter, NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_remote_group(inter, NULL), MPI_ERR_ARG);
	FAILS(MPI_Intercomm_merge(inter, 0, NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_test_inter(inter, NULL), MPI_ERR_ARG);
	EXPECT_INT(n, -1);
	EXPECT(group == MPI_GROUP_NULL && comm == MPI_COMM_NULL);
	MPI_Group_free(&own);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(local, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	two_groups_begin();
	ranks_are_of_the_own_group_peers_of_the_other();
	messages_go_to_the_other_group();
	probes_tell_ranks_of_the_other_group();
	every_way_of_sending();
	receives_can_be_given_up();
	peers_are_counted_in_the_other_group();
	freed_with_messages_on_their_way();
	both_groups_are_compared();
	a_part_is_not_the_whole();
	a_copy_has_groups_attributes_and_handler();
	hints_are_the_copys();
	copies_do_not_mix_messages();
	many_come_and_go();
	create_takes_members_of_the_own_group();
	split_unites_a_color_of_both_groups();
	a_color_of_one_group_is_nobodys();
	who_shares_memory();
	the_high_group_is_behind();
	a_group_says_one_thing();
	handlers_come_from_the_own_group();
	leaders_may_meet_in_another_one();
	leaders_meet_unseen();
	tags_tell_several_at_once_apart();
	groups_must_not_overlap();
	wrong_arguments_of_making();
	what_is_for_one_kind_only();
	two_groups_end();
	return program_end("intercomm");
}
