/*
 * Info objects: keys in their order, values of any length up to the limits,
 * before MPI_Init, after MPI_Finalize and from several threads; and what is no
 * info object, no key, no value.
 */
#include "../program.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300, KEYS = 20, MANY = 100000 / FEWER };
enum { COPIES = 200, HALF = 500 };

static int nkeys(MPI_Info info)
{
	int n = -1;

	EXPECT_INT(MPI_Info_get_nkeys(info, &n), MPI_SUCCESS);
	return n;
}

/* The value, or NULL; until the next call. */
static const char *value_of(MPI_Info info, const char *key)
{
	static char value[MPI_MAX_INFO_VAL];
	int room = sizeof(value), flag = -1;

	EXPECT_INT(MPI_Info_get_string(info, key, &room, value, &flag),
		   MPI_SUCCESS);
	if (!flag)
		EXPECT_INT(room, (int)sizeof(value));
	else
		EXPECT_INT(room, (int)strlen(value) + 1);
	return flag ? value : NULL;
}

static int has(MPI_Info info, const char *key, const char *value)
{
	const char *is = value_of(info, key);

	return is != NULL && strcmp(is, value) == 0;
}

static int is_nth(MPI_Info info, int n, const char *key)
{
	char is[MPI_MAX_INFO_KEY];

	EXPECT_INT(MPI_Info_get_nthkey(info, n, is), MPI_SUCCESS);
	return strcmp(is, key) == 0;
}

static MPI_Info three(void)
{
	MPI_Info info = MPI_INFO_NULL;

	MPI_Info_create(&info);
	EXPECT(info != MPI_INFO_NULL);
	MPI_Info_set(info, "file", "a");
	MPI_Info_set(info, "soft", "0:1");
	MPI_Info_set(info, "File", "");
	return info;
}

static void keys_keep_their_order(void)
{
	MPI_Info info = three(), copy;

	EXPECT_INT(nkeys(info), 3);
	EXPECT(has(info, "file", "a") && has(info, "File", ""));
	EXPECT(value_of(info, "FILE") == NULL);
	MPI_Info_set(info, "file", "another");
	EXPECT_INT(nkeys(info), 3);
	EXPECT(is_nth(info, 0, "file") && is_nth(info, 1, "soft") &&
	       is_nth(info, 2, "File"));
	MPI_Info_dup(info, &copy);
	MPI_Info_delete(info, "soft");
	EXPECT(nkeys(info) == 2 && is_nth(info, 1, "File"));
	EXPECT(value_of(info, "soft") == NULL);
	MPI_Info_free(&info);
	EXPECT(info == MPI_INFO_NULL);
	EXPECT(nkeys(copy) == 3 && is_nth(copy, 1, "soft"));
	EXPECT(has(copy, "file", "another"));
	MPI_Info_free(&copy);
}

static const char *key_number(int i)
{
	static char key[16];

	snprintf(key, sizeof(key), "key %d", i);
	return key;
}

/* Every second key is deleted, and those that are left are numbered. */
static void many_keys_are_found_by_name_and_number(void)
{
	static char seen[MANY];
	char key[MPI_MAX_INFO_KEY];
	MPI_Info info, copy;

	MPI_Info_create(&info);
	for (int i = 0; i < MANY; i++) {
		MPI_Info_set(info, key_number(i), "");
		MPI_Info_set(info, key_number(i), key_number(-i));
	}
	EXPECT_INT(nkeys(info), MANY);
	for (int i = 0; i < MANY; i++)
		EXPECT(has(info, key_number(i), key_number(-i)) &&
		       is_nth(info, i, key_number(i)));
	for (int i = 0; i < MANY; i += 2)
		MPI_Info_delete(info, key_number(i));
	MPI_Info_dup(info, &copy);
	EXPECT_INT(nkeys(copy), MANY / 2);
	for (int i = 0; i < MANY; i++)
		EXPECT((value_of(copy, key_number(i)) != NULL) == i % 2);
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < MANY / 2; i++) {
		MPI_Info_get_nthkey(copy, i, key);
		EXPECT(atoi(key + 4) % 2 == 1 && seen[atoi(key + 4)]++ == 0);
	}
	MPI_Info_free(&info);
	MPI_Info_free(&copy);
}

static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, n = 0;

	EXPECT(f != NULL);
	while (f != NULL && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f != NULL)
		fclose(f);
	return n;
}

/* Every second one is freed: the kernel cannot merge mappings with holes. */
static void many_infos_need_few_mappings(void)
{
	enum { INFOS = 1024 };
	static MPI_Info infos[INFOS];
	int before;

	MPI_Info_create(&infos[0]);
	for (int i = 0; i < KEYS; i++)
		MPI_Info_set(infos[0], key_number(i), "value");
	before = mappings();
	for (int i = 1; i < INFOS; i++)
		MPI_Info_dup(infos[0], &infos[i]);
	for (int i = 1; i < INFOS; i += 2)
		MPI_Info_free(&infos[i]);
	EXPECT(mappings() < before + INFOS / 8);
	for (int i = 0; i < INFOS; i += 2)
		MPI_Info_free(&infos[i]);
}

/* All of it, or what there is room for; and how much would be needed. */
static void values_are_cut(void)
{
	char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL], got[8];
	int room = 4, flag, length;
	MPI_Info info;

	memset(key, 'k', sizeof(key) - 1);
	memset(value, 'v', sizeof(value) - 1);
	key[sizeof(key) - 1] = value[sizeof(value) - 1] = '\0';
	MPI_Info_create(&info);
	EXPECT_INT(MPI_Info_set(info, key, value), MPI_SUCCESS);
	EXPECT(has(info, key, value) && is_nth(info, 0, key));
	MPI_Info_set(info, "k", "value");
	memset(got, 'x', sizeof(got));
	MPI_Info_get_string(info, "k", &room, got, &flag);
	EXPECT(flag && room == 6 && strcmp(got, "val") == 0 && got[4] == 'x');
	room = 0;
	MPI_Info_get_string(info, "k", &room, NULL, &flag);
	EXPECT(flag && room == 6);
	MPI_Info_get(info, "k", 4, got, &flag);
	EXPECT(flag && strcmp(got, "valu") == 0 && got[5] == 'x');
	MPI_Info_get(info, "none", 4, got, &flag);
	EXPECT(!flag && strcmp(got, "valu") == 0);
	length = -1;
	MPI_Info_get_valuelen(info, "none", &length, &flag);
	EXPECT(!flag && length == -1);
	MPI_Info_get_valuelen(info, "k", &length, &flag);
	EXPECT(flag && length == 5);
	MPI_Info_free(&info);
}

static void what_it_was_started_with(char *argv0)
{
	MPI_Info info = MPI_INFO_NULL;
	char number[16];

	snprintf(number, sizeof(number), "%d", size);
	EXPECT(has(MPI_INFO_ENV, "maxprocs", number));
	EXPECT(has(MPI_INFO_ENV, "command", argv0));
	EXPECT(has(MPI_INFO_ENV, "thread_level", "MPI_THREAD_MULTIPLE"));
	EXPECT(value_of(MPI_INFO_ENV, "wdir") != NULL);
	EXPECT(value_of(MPI_INFO_ENV, "argv") == NULL);
	EXPECT_INT(MPI_Info_create_env(0, NULL, &info), MPI_SUCCESS);
	EXPECT_INT(nkeys(info), nkeys(MPI_INFO_ENV));
	MPI_Info_set(info, "host", "mine");
	EXPECT(has(info, "host", "mine") && !has(MPI_INFO_ENV, "host", "mine"));
	MPI_Info_free(&info);
}

static void nonsense(void)
{
	char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
	MPI_Info info = three(), freed = three(), old, env = MPI_INFO_ENV;
	int flag, room = -1;

	memset(key, 'k', sizeof(key) - 1);
	memset(value, 'v', sizeof(value) - 1);
	key[sizeof(key) - 1] = value[sizeof(value) - 1] = '\0';
	old = freed;
	MPI_Info_free(&freed);
	FAILS(MPI_Info_set(old, "a", "b"), MPI_ERR_INFO);
	FAILS(MPI_Info_set(MPI_INFO_NULL, "a", "b"), MPI_ERR_INFO);
	FAILS(MPI_Info_get_nkeys((MPI_Info)MPI_COMM_WORLD, &flag),
	      MPI_ERR_INFO);
	FAILS(MPI_Info_free(&freed), MPI_ERR_INFO);
	FAILS(MPI_Info_free(&env), MPI_ERR_INFO);
	FAILS(MPI_Info_set(MPI_INFO_ENV, "a", "b"), MPI_ERR_INFO);
	FAILS(MPI_Info_delete(MPI_INFO_ENV, "host"), MPI_ERR_INFO);
	FAILS(MPI_Info_set(info, key, "b"), MPI_ERR_INFO_KEY);
	FAILS(MPI_Info_set(info, "", "b"), MPI_ERR_INFO_KEY);
	FAILS(MPI_Info_set(info, NULL, "b"), MPI_ERR_INFO_KEY);
	FAILS(MPI_Info_set(info, "a", value), MPI_ERR_INFO_VALUE);
	FAILS(MPI_Info_set(info, "a", NULL), MPI_ERR_INFO_VALUE);
	FAILS(MPI_Info_delete(info, "a"), MPI_ERR_INFO_NOKEY);
	FAILS(MPI_Info_get_nthkey(info, 3, value), MPI_ERR_ARG);
	FAILS(MPI_Info_get_nthkey(info, -1, value), MPI_ERR_ARG);
	FAILS(MPI_Info_get(info, "file", -1, value, &flag), MPI_ERR_ARG);
	FAILS(MPI_Info_get_string(info, "file", &room, value, &flag),
	      MPI_ERR_ARG);
	FAILS(MPI_Info_get_valuelen(info, "file", &room, NULL), MPI_ERR_ARG);
	FAILS(MPI_Info_dup(info, NULL), MPI_ERR_ARG);
	EXPECT_INT(nkeys(info), 3);
	MPI_Info_free(&info);
}

/* Each sets and deletes keys of its own, and copies those of all. */
static void *change(void *arg)
{
	MPI_Info info = *(MPI_Info *)arg, copy;
	static int number;
	int who = __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED);
	char key[32], value[32];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(key, sizeof(key), "%d.%d", who, i % KEYS);
		snprintf(value, sizeof(value), "%d", i);
		MPI_Info_set(info, key, value);
		MPI_Info_set(info, "all", value);
		if (i % 3 == 0)
			MPI_Info_delete(info, key);
		if (i % 50 == 0) {
			MPI_Info_dup(info, &copy);
			EXPECT(nkeys(copy) > 0);
			MPI_Info_free(&copy);
		}
	}
	return NULL;
}

static void several_threads(void)
{
	pthread_t t[THREADS];
	char value[32];
	MPI_Info info;

	MPI_Info_create(&info);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, change, &info);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	snprintf(value, sizeof(value), "%d", ROUNDS - 1);
	EXPECT(has(info, "all", value));
	for (int i = 0; i < ROUNDS; i++) {
		char key[32];

		snprintf(key, sizeof(key), "0.%d", i % KEYS);
		if (i >= ROUNDS - KEYS)
			EXPECT((value_of(info, key) == NULL) == (i % 3 == 0));
	}
	MPI_Info_free(&info);
}

static pthread_barrier_t both;

/* The last keys move to the places of these, the first ones. */
static void *delete_first_half(void *arg)
{
	MPI_Info *info = arg;
	char key[32];

	for (int i = 0; i < COPIES; i++) {
		pthread_barrier_wait(&both);
		for (int k = 0; k < HALF; k++) {
			snprintf(key, sizeof(key), "key %d", k);
			MPI_Info_delete(*info, key);
		}
		pthread_barrier_wait(&both);
	}
	return NULL;
}

static void copies_miss_no_key_that_stays(void)
{
	MPI_Info info, copy;
	pthread_t t;

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, delete_first_half, &info);
	for (int i = 0; i < COPIES; i++) {
		MPI_Info_create(&info);
		for (int k = 0; k < 2 * HALF; k++)
			MPI_Info_set(info, key_number(k), "");
		pthread_barrier_wait(&both);
		MPI_Info_dup(info, &copy);
		for (int k = HALF; k < 2 * HALF; k++)
			EXPECT(value_of(copy, key_number(k)) != NULL);
		MPI_Info_free(&copy);
		pthread_barrier_wait(&both);
		MPI_Info_free(&info);
	}
	pthread_join(t, NULL);
	pthread_barrier_destroy(&both);
}

int main(int argc, char **argv)
{
	MPI_Info early = three();

	keys_keep_their_order();
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	EXPECT(has(early, "soft", "0:1"));
	keys_keep_their_order();
	many_keys_are_found_by_name_and_number();
	many_infos_need_few_mappings();
	values_are_cut();
	what_it_was_started_with(argv[0]);
	nonsense();
	several_threads();
	copies_miss_no_key_that_stays();
	program_end("info");
	EXPECT(nkeys(early) == 3);
	MPI_Info_free(&early);
	keys_keep_their_order();
	return 0;
}
