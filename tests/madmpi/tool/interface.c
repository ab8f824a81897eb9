/*
 * The tool interface from before MPI_Init to after MPI_Finalize: what is
 * listed can be found by its name and read, lies in one category, and tells the
 * truth: a setting that is written is what MPI begins with, a counter counts.
 */
#include "../program.h"

#include "../join.h"

enum { TEXT = 4096 };

static MPI_T_cvar_handle cvar(const char *name, int *count)
{
	MPI_T_cvar_handle handle;
	int index;

	EXPECT_INT(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
	EXPECT_INT(MPI_T_cvar_handle_alloc(index, NULL, &handle, count),
		   MPI_SUCCESS);
	return handle;
}

static int read_int(const char *name)
{
	int count, value = -77;
	MPI_T_cvar_handle handle = cvar(name, &count);

	EXPECT_INT(count, 1);
	EXPECT_INT(MPI_T_cvar_read(handle, &value), MPI_SUCCESS);
	MPI_T_cvar_handle_free(&handle);
	EXPECT(handle == MPI_T_CVAR_HANDLE_NULL);
	return value;
}

static int write_int(const char *name, int value)
{
	int count, rc;
	MPI_T_cvar_handle handle = cvar(name, &count);

	rc = MPI_T_cvar_write(handle, &value);
	MPI_T_cvar_handle_free(&handle);
	return rc;
}

static unsigned long long counter(const char *name)
{
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	unsigned long long value = 0;
	int index, count;

	EXPECT_INT(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index),
		   MPI_SUCCESS);
	MPI_T_pvar_session_create(&session);
	MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
	EXPECT_INT(count, 1);
	EXPECT_INT(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
	MPI_T_pvar_session_free(&session);
	EXPECT(session == MPI_T_PVAR_SESSION_NULL);
	return value;
}

/* --- one after the other --- */

/* How strings are returned. */
static void texts(void)
{
	char whole[200], part[8] = "xxxxxxx";
	int all = 0, n = sizeof(whole);

	EXPECT_INT(MPI_T_category_get_info(0, NULL, &all, NULL, NULL, NULL,
					   NULL, NULL),
		   0);
	MPI_T_category_get_info(0, whole, &n, NULL, NULL, NULL, NULL, NULL);
	EXPECT_INT(n, all);
	EXPECT_INT(strlen(whole) + 1, all);
	n = 4;
	MPI_T_category_get_info(0, part, &n, NULL, NULL, NULL, NULL, NULL);
	EXPECT_INT(n, all);
	EXPECT(strlen(part) == 3 && strncmp(part, whole, 3) == 0);
	EXPECT(part[4] == 'x');
	n = 0;
	MPI_T_category_get_info(0, part, &n, NULL, NULL, NULL, NULL, NULL);
	EXPECT(n == all && strlen(part) == 3);
	MPI_T_category_get_info(0, part, NULL, NULL, NULL, NULL, NULL, NULL);
	EXPECT_INT(strlen(part), 3);
}

static void words(MPI_T_enum choice, int value)
{
	char name[64];
	int n = 0, item, len = sizeof(name);

	EXPECT_INT(MPI_T_enum_get_info(choice, &n, name, &len), MPI_SUCCESS);
	EXPECT(value >= 0 && value < n);
	for (int i = 0; i < n; i++) {
		len = sizeof(name);
		MPI_T_enum_get_item(choice, i, &item, name, &len);
		EXPECT(item == i && len > 1);
	}
	EXPECT_INT(MPI_T_enum_get_item(choice, n, &item, name, &len),
		   MPI_T_ERR_INVALID_INDEX);
}

static void settings(int scope_wanted)
{
	static char value[TEXT];
	char name[64], help[256];
	int n, len, help_len, index, bind, scope, count, number;
	MPI_T_cvar_handle handle;
	MPI_Datatype type;
	MPI_T_enum choice;

	MPI_T_cvar_get_num(&n);
	EXPECT(n > 40);
	for (int i = 0; i < n; i++) {
		len = sizeof(name);
		help_len = sizeof(help);
		EXPECT_INT(MPI_T_cvar_get_info(i, name, &len, NULL, &type,
					       &choice, help, &help_len, &bind,
					       &scope),
			   MPI_SUCCESS);
		EXPECT(bind == MPI_T_BIND_NO_OBJECT && scope == scope_wanted);
		EXPECT(len > 1 && help_len > 1);
		MPI_T_cvar_get_index(name, &index);
		EXPECT_INT(index, i);
		handle = cvar(name, &count);
		EXPECT_INT(count, type == MPI_CHAR ? TEXT : 1);
		EXPECT_INT(MPI_T_cvar_read(handle, value), MPI_SUCCESS);
		memcpy(&number, value, sizeof(number));
		if (choice != MPI_T_ENUM_NULL)
			words(choice, number);
		MPI_T_cvar_handle_free(&handle);
	}
	EXPECT_INT(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL,
				       NULL, NULL, NULL),
		   MPI_T_ERR_INVALID_INDEX);
	EXPECT_INT(MPI_T_cvar_get_index("no such variable", &index),
		   MPI_T_ERR_INVALID_NAME);
}

static void counters(void)
{
	char name[64];
	int n, len, class, index, readonly, continuous, atomic;

	MPI_T_pvar_get_num(&n);
	EXPECT(n > 20);
	for (int i = 0; i < n; i++) {
		len = sizeof(name);
		MPI_T_pvar_get_info(i, name, &len, NULL, &class, NULL, NULL,
				    NULL, NULL, NULL, &readonly, &continuous,
				    &atomic);
		EXPECT(readonly && continuous && !atomic);
		EXPECT_INT(MPI_T_pvar_get_index(name, class, &index), 0);
		EXPECT_INT(index, i);
		EXPECT_INT(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER,
						&index),
			   MPI_T_ERR_INVALID_NAME);
	}
}

/* Each variable and each type of event is in one category. */
static void categories(void)
{
	int n, ncvars, npvars, nevents, list[200];
	int cvars = 0, pvars = 0, events = 0;

	MPI_T_category_get_num(&n);
	for (int i = 0; i < n; i++) {
		MPI_T_category_get_info(i, NULL, NULL, NULL, NULL, &ncvars,
					&npvars, NULL);
		MPI_T_category_get_cvars(i, ncvars, list);
		for (int k = 0; k < ncvars; k++)
			EXPECT_INT(list[k], cvars++);
		MPI_T_category_get_pvars(i, npvars, list);
		for (int k = 0; k < npvars; k++)
			EXPECT_INT(list[k], pvars++);
		MPI_T_category_get_num_events(i, &nevents);
		MPI_T_category_get_events(i, nevents, list);
		for (int k = 0; k < nevents; k++)
			EXPECT_INT(list[k], events++);
	}
	MPI_T_cvar_get_num(&ncvars);
	MPI_T_pvar_get_num(&npvars);
	MPI_T_event_get_num(&nevents);
	EXPECT(cvars == ncvars && pvars == npvars && events == nevents);
}

/* What is fixed, and what is no handle. */
static void handles(void)
{
	MPI_T_pvar_session one, two;
	MPI_T_pvar_handle h, kept;
	unsigned long long value;
	int count;

	MPI_T_pvar_session_create(&one);
	MPI_T_pvar_session_create(&two);
	MPI_T_pvar_handle_alloc(one, 0, NULL, &h, &count);
	kept = h;
	EXPECT_INT(MPI_T_pvar_start(one, h), MPI_T_ERR_PVAR_NO_STARTSTOP);
	EXPECT_INT(MPI_T_pvar_stop(one, h), MPI_T_ERR_PVAR_NO_STARTSTOP);
	EXPECT_INT(MPI_T_pvar_reset(one, h), MPI_T_ERR_PVAR_NO_WRITE);
	EXPECT_INT(MPI_T_pvar_write(one, h, &value), MPI_T_ERR_PVAR_NO_WRITE);
	EXPECT_INT(MPI_T_pvar_readreset(one, h, &value),
		   MPI_T_ERR_PVAR_NO_ATOMIC);
	EXPECT_INT(MPI_T_pvar_start(one, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
	EXPECT_INT(MPI_T_pvar_read(one, MPI_T_PVAR_ALL_HANDLES, &value),
		   MPI_T_ERR_INVALID_HANDLE);
	EXPECT_INT(MPI_T_pvar_read(two, h, &value), MPI_T_ERR_INVALID_HANDLE);
	EXPECT_INT(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, h, &value),
		   MPI_T_ERR_INVALID_SESSION);
	EXPECT_INT(MPI_T_pvar_handle_free(one, &h), MPI_SUCCESS);
	EXPECT(h == MPI_T_PVAR_HANDLE_NULL);
	EXPECT_INT(MPI_T_pvar_read(one, kept, &value),
		   MPI_T_ERR_INVALID_HANDLE);
	MPI_T_pvar_session_free(&one);
	MPI_T_pvar_session_free(&two);
}

/* Threads that come and go, and ask meanwhile. */
static void *asks(void *arg)
{
	int provided;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
		EXPECT_INT(provided, MPI_THREAD_MULTIPLE);
		handles();
		read_int("MADMPI_CHECK");
		counter("nmad_sends");
		MPI_T_finalize();
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, asks, NULL);
	for (int i = 0; i < 4; i++)
		program_join(t[i]);
}

/* --- before, between and after --- */

static void before(void)
{
	const char *handler = "MADMPI_INITIAL_ERRHANDLER";
	int n, provided;

	EXPECT_INT(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
	EXPECT_INT(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
	EXPECT_INT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), 0);
	texts();
	settings(MPI_T_SCOPE_LOCAL);
	counters();
	categories();
	handles();
	EXPECT_INT(read_int(handler), 0);
	EXPECT_INT(write_int(handler, 3), MPI_T_ERR_INVALID);
	EXPECT_INT(write_int("MADMPI_CHECK", 3), MPI_T_ERR_INVALID);
	EXPECT_INT(write_int("MARCEL_LWP_MAX", 0), MPI_T_ERR_INVALID);
	EXPECT_INT(write_int(handler, 2), MPI_SUCCESS);
	EXPECT_INT(read_int(handler), 2);
	EXPECT_INT((int)counter("nmad_sends"), 0);
}

/* MPI_ERRORS_RETURN is what it has begun with. */
static void between(void)
{
	const char *handler = "MADMPI_INITIAL_ERRHANDLER";
	unsigned long long sends = counter("nmad_sends");
	int x = 0, y;

	FAILS(MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	EXPECT_INT(read_int(handler), 2);
	EXPECT_INT(write_int(handler, 1), MPI_T_ERR_CVAR_SET_NOT_NOW);
	setenv(handler, "mpi_errors_abort", 1);
	EXPECT_INT(read_int(handler), 2);
	settings(MPI_T_SCOPE_LOCAL);
	for (int i = 0; i < 10; i++)
		MPI_Sendrecv(&x, 1, MPI_INT, rank, 0, &y, 1, MPI_INT, rank, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	EXPECT(counter("nmad_sends") >= sends + 10);
	threads();
}

static void after(void)
{
	int n;

	EXPECT_INT(read_int("MADMPI_INITIAL_ERRHANDLER"), 2);
	counters();
	handles();
	EXPECT_INT(MPI_T_finalize(), MPI_SUCCESS);
	EXPECT_INT(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
}

int main(int argc, char **argv)
{
	int rc;

	before();
	program_begin(&argc, &argv);
	between();
	rc = program_end("interface");
	after();
	return rc;
}
