/*
 * Attributes of communicators and datatypes: the program's functions are called
 * when an object is copied or freed, in the right order and with the right
 * arguments; what they return is heeded; keyvals live as long as they are used.
 */
#include "../program.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

enum { THREADS = 4, ROUNDS = 200, MANY = 100000 / FEWER };

/* --- the functions --- */

static int ncopied, ndeleted, fail, keep;
static void *deleted[16];

static void reset(void)
{
	ncopied = ndeleted = fail = 0;
	keep = 1;
}

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out,
		int *flag)
{
	EXPECT(comm == MPI_COMM_WORLD && extra == &ncopied);
	ncopied++;
	*(void **)out = (char *)in + 1;
	*flag = keep;
	return fail;
}

static int delete (MPI_Comm comm, int keyval, void *value, void *extra)
{
	EXPECT(comm != MPI_COMM_NULL && extra == &ncopied);
	if (fail == 0)
		deleted[ndeleted++ % 16] = value;
	return fail;
}

static int type_copy(MPI_Datatype type, int keyval, void *extra, void *in,
		     void *out, int *flag)
{
	EXPECT(type != MPI_DATATYPE_NULL && extra == NULL);
	ncopied++;
	*(void **)out = (char *)in + 1;
	*flag = keep;
	return fail;
}

static int type_delete(MPI_Datatype type, int keyval, void *value, void *extra)
{
	EXPECT(type != MPI_DATATYPE_NULL && extra == NULL);
	if (fail == 0)
		deleted[ndeleted++ % 16] = value;
	return fail;
}

static char place[64];

static void *get(MPI_Comm comm, int key)
{
	void *value = NULL;
	int flag = -1;

	EXPECT_INT(MPI_Comm_get_attr(comm, key, &value, &flag), MPI_SUCCESS);
	EXPECT(flag || value == NULL);
	return value;
}

/* --- communicators --- */

static void set_replaces_and_deletes(void)
{
	int key = MPI_KEYVAL_INVALID;

	reset();
	MPI_Comm_create_keyval(copy, delete, &key, &ncopied);
	EXPECT(key != MPI_KEYVAL_INVALID);
	EXPECT(get(MPI_COMM_WORLD, key) == NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, &place[1]);
	EXPECT(get(MPI_COMM_WORLD, key) == &place[1]);
	EXPECT(get(MPI_COMM_SELF, key) == NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, &place[2]);
	EXPECT(ndeleted == 1 && deleted[0] == &place[1]);
	EXPECT(get(MPI_COMM_WORLD, key) == &place[2]);
	/* A function that fails leaves all as it is. */
	fail = MPI_ERR_OTHER;
	FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &place[3]), MPI_ERR_OTHER);
	FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), MPI_ERR_OTHER);
	fail = 0;
	EXPECT(get(MPI_COMM_WORLD, key) == &place[2] && ndeleted == 1);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
	EXPECT(ndeleted == 2 && deleted[1] == &place[2]);
	EXPECT(get(MPI_COMM_WORLD, key) == NULL);
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), MPI_SUCCESS);
	MPI_Comm_free_keyval(&key);
	EXPECT_INT(key, MPI_KEYVAL_INVALID);
	EXPECT_INT(ndeleted, 2);
}

/* A keyval that is freed serves the attributes that there are. */
static void a_keyval_lives_while_it_is_used(void)
{
	int key, old;
	MPI_Comm dup;

	reset();
	MPI_Comm_create_keyval(copy, delete, &key, &ncopied);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, &place[1]);
	old = key;
	MPI_Comm_free_keyval(&key);
	key = old;
	EXPECT_INT(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
	EXPECT(ndeleted == 0 && key == MPI_KEYVAL_INVALID);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	EXPECT_INT(ncopied, 1);
	EXPECT(get(dup, old) == &place[2]);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, old);
	EXPECT(ndeleted == 1 && deleted[0] == &place[1]);
	MPI_Comm_free(&dup);
	EXPECT(ndeleted == 2 && deleted[1] == &place[2]);
	FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, old, NULL), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_free_keyval(&old), MPI_ERR_KEYVAL);
}

static void the_copy_is_as_its_function_says(void)
{
	int keys[4];
	MPI_Comm dup;

	reset();
	MPI_Comm_create_keyval(copy, delete, &keys[0], &ncopied);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN,
			       &keys[1], NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &keys[2],
			       &ncopied);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &keys[3], &ncopied);
	for (int i = 0; i < 4; i++)
		MPI_Comm_set_attr(MPI_COMM_WORLD, keys[i], &place[10 * i]);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	EXPECT(get(dup, keys[0]) == &place[1]);
	EXPECT(get(dup, keys[1]) == &place[10]);
	EXPECT(get(dup, keys[2]) == NULL);
	EXPECT(get(dup, keys[3]) == &place[30]);
	/* The other way round; those of a communicator that is not freed stay.
	 */
	fail = MPI_ERR_OTHER;
	FAILS(MPI_Comm_free(&dup), MPI_ERR_OTHER);
	EXPECT(dup != MPI_COMM_NULL && get(dup, keys[0]) == &place[1]);
	fail = 0;
	MPI_Comm_free(&dup);
	EXPECT(ndeleted == 2 && deleted[0] == &place[30]);
	EXPECT(deleted[1] == &place[1]);
	keep = 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	EXPECT(get(dup, keys[0]) == NULL && get(dup, keys[1]) == &place[10]);
	MPI_Comm_free(&dup);
	fail = MPI_ERR_TOPOLOGY;
	dup = MPI_COMM_SELF;
	FAILS(MPI_Comm_dup(MPI_COMM_WORLD, &dup), MPI_ERR_TOPOLOGY);
	EXPECT(dup == MPI_COMM_NULL);
	fail = 0;
	for (int i = 0; i < 4; i++) {
		MPI_Comm_delete_attr(MPI_COMM_WORLD, keys[i]);
		MPI_Comm_free_keyval(&keys[i]);
	}
}

/* The newest first, whichever were deleted before. */
static void those_left_are_deleted_in_their_order(void)
{
	enum { KEYS = 7 };
	static const int gone[] = { 3, 6, 0, 5 }, left[] = { 3, 4, 2, 1 };
	int keys[KEYS];
	MPI_Comm dup;

	reset();
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	for (int i = 0; i < KEYS; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &keys[i],
				       &ncopied);
		MPI_Comm_set_attr(dup, keys[i], &place[i]);
	}
	/* In the middle, the newest, the oldest; the newest again. */
	for (int i = 0; i < 4; i++) {
		MPI_Comm_delete_attr(dup, keys[gone[i]]);
		EXPECT(deleted[i] == &place[gone[i]]);
	}
	MPI_Comm_set_attr(dup, keys[3], &place[3]);
	MPI_Comm_free(&dup);
	EXPECT_INT(ndeleted, 8);
	for (int i = 0; i < 4; i++)
		EXPECT(deleted[4 + i] == &place[left[i]]);
	for (int i = 0; i < KEYS; i++)
		MPI_Comm_free_keyval(&keys[i]);
}

/* Nothing is held while they run. */
static int other_key;

static int deletes_another(MPI_Comm comm, int keyval, void *value, void *extra)
{
	EXPECT(get(comm, keyval) == value);
	/* But it is called for its own already. */
	FAILS(MPI_Comm_delete_attr(comm, keyval), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_set_attr(comm, keyval, NULL), MPI_ERR_KEYVAL);
	return MPI_Comm_delete_attr(comm, other_key);
}

static void a_function_may_use_attributes(void)
{
	MPI_Comm dup;
	int key;

	reset();
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &other_key,
			       &ncopied);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes_another, &key,
			       NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_set_attr(dup, other_key, &place[5]);
	MPI_Comm_set_attr(dup, key, &place[6]);
	MPI_Comm_free(&dup);
	EXPECT(ndeleted == 1 && deleted[0] == &place[5]);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&other_key);
}

static void many_keyvals(void)
{
	static int keys[MANY];

	for (int i = 0; i < MANY; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN,
				       MPI_COMM_NULL_DELETE_FN, &keys[i], NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, keys[i],
				  (void *)(intptr_t)(i + 1));
	}
	for (int i = 0; i < MANY; i++)
		EXPECT(get(MPI_COMM_SELF, keys[i]) ==
		       (void *)(intptr_t)(i + 1));
	for (int i = MANY - 1; i >= 0; i -= 2)
		MPI_Comm_delete_attr(MPI_COMM_SELF, keys[i]);
	for (int i = 0; i < MANY; i++) {
		EXPECT((get(MPI_COMM_SELF, keys[i]) == NULL) == i % 2);
		MPI_Comm_delete_attr(MPI_COMM_SELF, keys[i]);
		MPI_Comm_free_keyval(&keys[i]);
	}
}

static void the_old_names(void)
{
	void *value;
	int key, flag;

	reset();
	MPI_Keyval_create(MPI_DUP_FN, delete, &key, &ncopied);
	MPI_Attr_put(MPI_COMM_SELF, key, &place[7]);
	MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag);
	EXPECT(flag && value == &place[7]);
	MPI_Attr_delete(MPI_COMM_SELF, key);
	EXPECT(ndeleted == 1 && deleted[0] == &place[7]);
	MPI_Keyval_free(&key);
	EXPECT_INT(key, MPI_KEYVAL_INVALID);
}

static int predefined(int key)
{
	int *value = get(MPI_COMM_WORLD, key);

	EXPECT(value != NULL);
	return *value;
}

/* The highest tag is one. */
static void send_with_tag(int tag)
{
	int out = rank, in = -1;
	MPI_Status st;

	MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, tag, &in, 1, MPI_INT,
		     (rank + size - 1) % size, tag, MPI_COMM_WORLD, &st);
	EXPECT_INT(in, (rank + size - 1) % size);
	EXPECT_INT(st.MPI_TAG, tag);
}

static void what_is_always_there(void)
{
	int *appnum = get(MPI_COMM_WORLD, MPI_APPNUM);

	if (appnum != NULL)
		EXPECT_INT(*appnum, 0);
	else /* nobody has started us */
		EXPECT_INT(size, 1);
	send_with_tag(predefined(MPI_TAG_UB));
	EXPECT(predefined(MPI_TAG_UB) >= 32767);
	EXPECT_INT(predefined(MPI_HOST), MPI_PROC_NULL);
	EXPECT_INT(predefined(MPI_IO), MPI_ANY_SOURCE);
	EXPECT(predefined(MPI_WTIME_IS_GLOBAL) >> 1 == 0);
	EXPECT_INT(predefined(MPI_UNIVERSE_SIZE), size);
	EXPECT_INT(predefined(MPI_LASTUSEDCODE), MPI_ERR_LASTCODE);
	FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, place),
	      MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO), MPI_ERR_KEYVAL);
}

/* --- datatypes --- */

static void datatypes(void)
{
	MPI_Datatype type, dup;
	void *value;
	int key, flag;

	reset();
	MPI_Type_create_keyval(type_copy, type_delete, &key, NULL);
	MPI_Type_contiguous(3, MPI_INT, &type);
	MPI_Type_set_attr(type, key, &place[1]);
	MPI_Type_set_attr(MPI_INT, key, &place[9]);
	MPI_Type_dup(type, &dup);
	MPI_Type_get_attr(dup, key, &value, &flag);
	EXPECT(flag && value == &place[2]);
	MPI_Type_free(&type);
	EXPECT(ndeleted == 1 && deleted[0] == &place[1]);
	fail = MPI_ERR_OTHER;
	FAILS(MPI_Type_free(&dup), MPI_ERR_OTHER);
	type = MPI_INT;
	FAILS(MPI_Type_dup(dup, &type), MPI_ERR_OTHER);
	EXPECT(type == MPI_DATATYPE_NULL);
	fail = 0;
	MPI_Type_free(&dup);
	MPI_Type_get_attr(MPI_INT, key, &value, &flag);
	EXPECT(flag && value == &place[9]);
	MPI_Type_delete_attr(MPI_INT, key);
	EXPECT(ndeleted == 3 && deleted[2] == &place[9]);
	MPI_Type_get_attr(MPI_INT, key, &value, &flag);
	EXPECT(!flag);
	/* A keyval of one kind is none of the other. */
	FAILS(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
	MPI_Type_free_keyval(&key);
}

static void nonsense(void)
{
	int none = MPI_KEYVAL_INVALID, flag;
	void *value;

	FAILS(MPI_Comm_free_keyval(&none), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_free_keyval(NULL), MPI_ERR_ARG);
	FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, none, &value, &flag),
	      MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL, &flag),
	      MPI_ERR_ARG);
	FAILS(MPI_Comm_set_attr(MPI_COMM_NULL, none, NULL), MPI_ERR_COMM);
	FAILS(MPI_Type_set_attr(MPI_DATATYPE_NULL, none, NULL), MPI_ERR_TYPE);
	FAILS(MPI_Type_delete_attr(MPI_INT, 1 << 30), MPI_ERR_KEYVAL);
	FAILS(MPI_Comm_create_keyval(NULL, NULL, NULL, NULL), MPI_ERR_ARG);
}

/* --- several threads, on one communicator --- */

/* Each with keyvals of its own. */
static void *use(void *arg)
{
	int key;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN,
				       MPI_COMM_NULL_DELETE_FN, &key, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
		EXPECT(get(MPI_COMM_SELF, key) == &key);
		MPI_Comm_delete_attr(MPI_COMM_SELF, key);
		MPI_Comm_free_keyval(&key);
	}
	return NULL;
}

/* All use one keyval: each value that was set is deleted once. */
static int shared_key, set_by[THREADS][ROUNDS];

static int counts(MPI_Comm comm, int keyval, void *value, void *extra)
{
	__atomic_fetch_add((int *)value, 1, __ATOMIC_RELAXED);
	sched_yield();
	return MPI_SUCCESS;
}

static void *share(void *arg)
{
	int *mine = arg;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_set_attr(MPI_COMM_SELF, shared_key, &mine[i]);
		if (i % 3 == 0)
			MPI_Comm_delete_attr(MPI_COMM_SELF, shared_key);
	}
	return NULL;
}

static void several_threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, use, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, counts, &shared_key,
			       NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, share, set_by[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	MPI_Comm_delete_attr(MPI_COMM_SELF, shared_key);
	MPI_Comm_free_keyval(&shared_key);
	for (int i = 0; i < THREADS * ROUNDS; i++)
		EXPECT_INT(set_by[i / ROUNDS][i % ROUNDS], 1);
}

/* --- the end: those of MPI_COMM_SELF, last first, while MPI works --- */

static int at_end;

static int last_words(MPI_Comm comm, int keyval, void *value, void *extra)
{
	int flag = -1, one = 1, sum = 0;

	MPI_Finalized(&flag);
	EXPECT(comm == MPI_COMM_SELF && flag == 0);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(sum, size);
	EXPECT((intptr_t)value == 2 - at_end);
	at_end++;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int keys[2];

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	set_replaces_and_deletes();
	a_keyval_lives_while_it_is_used();
	the_copy_is_as_its_function_says();
	those_left_are_deleted_in_their_order();
	a_function_may_use_attributes();
	many_keyvals();
	the_old_names();
	what_is_always_there();
	datatypes();
	nonsense();
	several_threads();
	for (int i = 0; i < 2; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words,
				       &keys[i], NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, keys[i],
				  (void *)(intptr_t)(i + 1));
		MPI_Comm_free_keyval(&keys[i]);
	}
	program_end("attributes");
	return at_end == 2 ? 0 : 1;
}
