/*
 * Objects of MPI that are not requests.
 */
#include <stdio.h>

#include "objects.h"

/* A message to itself on c. */
static void message(MPI_Comm c)
{
	MPI_Request r;
	int in = 0;

	NEED(MPI_Irecv(&in, 1, MPI_INT, 0, 0, c, &r));
	NEED(MPI_Send(&value, 1, MPI_INT, 0, 0, c));
	NEED(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static bool comm_create(int i)
{
	return MPI_Comm_dup(MPI_COMM_SELF, (MPI_Comm *)&handle[i]) == 0;
}

static void comm_use(int i)
{
	message((MPI_Comm)handle[i]);
}

static void comm_drop(int i)
{
	NEED(MPI_Comm_free((MPI_Comm *)&handle[i]));
}

static MPI_Group whole;

static void group_begin(void)
{
	NEED(MPI_Comm_group(self, &whole));
}

static bool group_create(int i)
{
	int rank = 0;

	return MPI_Group_incl(whole, 1, &rank, (MPI_Group *)&handle[i]) == 0;
}

static void group_use(int i)
{
	NEED(MPI_Group_rank((MPI_Group)handle[i], &value));
}

static void group_drop(int i)
{
	NEED(MPI_Group_free((MPI_Group *)&handle[i]));
}

static void group_end(void)
{
	NEED(MPI_Group_free(&whole));
}

static bool win_create(int i)
{
	return MPI_Win_create(&number[i], sizeof(number[i]), 1, MPI_INFO_NULL,
			      MPI_COMM_SELF, (MPI_Win *)&handle[i]) == 0;
}

static void win_use(int i)
{
	MPI_Win w = (MPI_Win)handle[i];

	NEED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w));
	NEED(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w));
	NEED(MPI_Win_unlock(0, w));
}

static void win_drop(int i)
{
	NEED(MPI_Win_free((MPI_Win *)&handle[i]));
}

/* With memory of ours. */
static bool win_memory_create(int i)
{
	int *memory;

	return MPI_Win_allocate(sizeof(*memory), 1, MPI_INFO_NULL,
				MPI_COMM_SELF, &memory,
				(MPI_Win *)&handle[i]) == 0;
}

static bool memory_create(int i)
{
	return MPI_Alloc_mem(sizeof(value), MPI_INFO_NULL, &handle[i]) == 0;
}

static void memory_drop(int i)
{
	NEED(MPI_Free_mem(handle[i]));
}

static MPI_Win dynamic;

static void region_begin(void)
{
	NEED(MPI_Win_create_dynamic(MPI_INFO_NULL, self, &dynamic));
	NEED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, dynamic));
}

static bool region_create(int i)
{
	return MPI_Win_attach(dynamic, &number[i], sizeof(number[i])) == 0;
}

static void region_use(int i)
{
	NEED(MPI_Put(&value, 1, MPI_INT, 0, (MPI_Aint)&number[i], 1, MPI_INT,
		     dynamic));
	NEED(MPI_Win_flush(0, dynamic));
}

static void region_drop(int i)
{
	NEED(MPI_Win_detach(dynamic, &number[i]));
}

static void region_end(void)
{
	NEED(MPI_Win_unlock(0, dynamic));
	NEED(MPI_Win_free(&dynamic));
}

static bool type_create(int i)
{
	MPI_Datatype *t = (MPI_Datatype *)&handle[i];

	return MPI_Type_vector(2, 1, 2, MPI_INT, t) == 0 &&
	       MPI_Type_commit(t) == 0;
}

static void type_use(int i)
{
	int from[3] = { 1, 2, 3 }, to[2], at = 0;

	NEED(MPI_Pack(from, 1, (MPI_Datatype)handle[i], to, sizeof(to), &at,
		      self));
}

static void type_drop(int i)
{
	NEED(MPI_Type_free((MPI_Datatype *)&handle[i]));
}

/* Its number, as for Fortran. */
static bool number_create(int i)
{
	return type_create(i) && MPI_Type_toint((MPI_Datatype)handle[i]) != 0;
}

static void number_use(int i)
{
	MPI_Datatype t = (MPI_Datatype)handle[i];

	need(MPI_Type_fromint(MPI_Type_toint(t)) == t, "MPI_Type_fromint");
}

static bool keyval_create(int i)
{
	return MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN,
				      MPI_COMM_NULL_DELETE_FN, &number[i],
				      NULL) == 0;
}

static void keyval_use(int i)
{
	NEED(MPI_Comm_set_attr(self, number[i], &value));
	NEED(MPI_Comm_delete_attr(self, number[i]));
}

static void keyval_drop(int i)
{
	NEED(MPI_Comm_free_keyval(&number[i]));
}

/* Of one communicator. */
static bool attribute_create(int i)
{
	return keyval_create(i) &&
	       MPI_Comm_set_attr(self, number[i], &number[i]) == 0;
}

static void attribute_use(int i)
{
	int *at, flag;

	NEED(MPI_Comm_get_attr(self, number[i], &at, &flag));
	need(flag && at == &number[i], "MPI_Comm_get_attr");
}

static void attribute_drop(int i)
{
	NEED(MPI_Comm_delete_attr(self, number[i]));
	keyval_drop(i);
}

static bool info_create(int i)
{
	return MPI_Info_create((MPI_Info *)&handle[i]) == 0;
}

static void info_use(int i)
{
	NEED(MPI_Info_set((MPI_Info)handle[i], "key", "value"));
	NEED(MPI_Info_delete((MPI_Info)handle[i], "key"));
}

static void info_drop(int i)
{
	NEED(MPI_Info_free((MPI_Info *)&handle[i]));
}

static MPI_Info one_info;

static void entry_begin(void)
{
	NEED(MPI_Info_create(&one_info));
}

static const char *entry_key(int i)
{
	static char key[16];

	snprintf(key, sizeof(key), "key %d", i);
	return key;
}

static bool entry_create(int i)
{
	return MPI_Info_set(one_info, entry_key(i), "value") == 0;
}

static void entry_use(int i)
{
	int bytes = 16, flag;
	char v[16];

	NEED(MPI_Info_get_string(one_info, entry_key(i), &bytes, v, &flag));
	need(flag, "MPI_Info_get_string");
}

static void entry_drop(int i)
{
	NEED(MPI_Info_delete(one_info, entry_key(i)));
}

static void entry_end(void)
{
	NEED(MPI_Info_free(&one_info));
}

/* The place is a number that is free, not one that is used. */
static void nth_use(int i)
{
	char key[MPI_MAX_INFO_KEY + 1];
	int n;

	NEED(MPI_Info_get_nkeys(one_info, &n));
	NEED(MPI_Info_get_nthkey(one_info, i % n, key));
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

static bool errhandler_create(int i)
{
	return MPI_Comm_create_errhandler(on_error,
					  (MPI_Errhandler *)&handle[i]) == 0;
}

static void errhandler_use(int i)
{
	NEED(MPI_Comm_set_errhandler(self, (MPI_Errhandler)handle[i]));
	NEED(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
}

static void errhandler_drop(int i)
{
	NEED(MPI_Errhandler_free((MPI_Errhandler *)&handle[i]));
}

static bool error_class_create(int i)
{
	return MPI_Add_error_class(&number[i]) == 0;
}

static void error_class_use(int i)
{
	char text[MPI_MAX_ERROR_STRING];
	int n;

	NEED(MPI_Error_string(number[i], text, &n));
}

static void error_class_drop(int i)
{
	NEED(MPI_Remove_error_class(number[i]));
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static bool op_create(int i)
{
	return MPI_Op_create(add, 1, (MPI_Op *)&handle[i]) == 0;
}

static void op_use(int i)
{
	NEED(MPI_Reduce_local(&value, &number[i], 1, MPI_INT,
			      (MPI_Op)handle[i]));
}

static void op_drop(int i)
{
	NEED(MPI_Op_free((MPI_Op *)&handle[i]));
}

static bool session_create(int i)
{
	return MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN,
				(MPI_Session *)&handle[i]) == 0;
}

static void session_use(int i)
{
	MPI_Group g;

	NEED(MPI_Group_from_session_pset((MPI_Session)handle[i], "mpi://SELF",
					 &g));
	NEED(MPI_Group_free(&g));
}

static void session_drop(int i)
{
	NEED(MPI_Session_finalize((MPI_Session *)&handle[i]));
}

/* Groups of one session. */
static MPI_Session one_session;

static void session_group_begin(void)
{
	NEED(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one_session));
}

static bool session_group_create(int i)
{
	return MPI_Group_from_session_pset(one_session, "mpi://SELF",
					   (MPI_Group *)&handle[i]) == 0;
}

static void session_group_end(void)
{
	NEED(MPI_Session_finalize(&one_session));
}

/* clang-format off */
const struct kind objects_mpi[] = {
	{ "communicator", NULL, comm_create, comm_use, comm_drop, NULL },
	{ "group", group_begin, group_create, group_use, group_drop, group_end },
	{ "window", NULL, win_create, win_use, win_drop, NULL },
	{ "window_memory", NULL, win_memory_create, win_use, win_drop, NULL },
	{ "memory", NULL, memory_create, NULL, memory_drop, NULL },
	{ "region", region_begin, region_create, region_use, region_drop, region_end },
	{ "type", NULL, type_create, type_use, type_drop, NULL },
	{ "number", NULL, number_create, number_use, type_drop, NULL },
	{ "keyval", NULL, keyval_create, keyval_use, keyval_drop, NULL },
	{ "attribute", NULL, attribute_create, attribute_use, attribute_drop, NULL },
	{ "info", NULL, info_create, info_use, info_drop, NULL },
	{ "info_key", entry_begin, entry_create, entry_use, entry_drop, entry_end },
	{ "info_nth", entry_begin, entry_create, nth_use, entry_drop, entry_end },
	{ "errhandler", NULL, errhandler_create, errhandler_use, errhandler_drop, NULL },
	{ "error_class", NULL, error_class_create, error_class_use, error_class_drop, NULL },
	{ "op", NULL, op_create, op_use, op_drop, NULL },
	{ "session", NULL, session_create, session_use, session_drop, NULL },
	{ "session_group", session_group_begin, session_group_create, group_use, group_drop, session_group_end },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */
