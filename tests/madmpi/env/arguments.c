/*
 * Every function that is exported, called with each of its arguments wrong in
 * turn: none may crash, hang or succeed, and each says an error class that the
 * standard has for it. Before that it is called with all of them right, which
 * is all that is done with the argument "right": for MADMPI_CHECK=0.
 *
 * The calls are made from the table of functions by arguments.py; here is what
 * they are made of. Alone, as a wrong call of one process leaves others
 * waiting.
 */
#include "../program.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

enum { CLASSES = 3 };

struct wrong {
	const char *what;
	int classes[CLASSES]; /* those that it may be reported as; 0: none */
};

struct function {
	const char *name;
	int (*call)(int wrong); /* 0: nothing is wrong, else that of the list */
	const struct wrong *wrong;
	int nwrong;
	int has_right_call;
};

/* --- right arguments --- */

static struct {
	MPI_Comm comm, cart, graph, dist_graph;
	MPI_Group group;
	MPI_Datatype datatype, uncommitted;
	MPI_Op op;
	MPI_Errhandler errhandler;
	MPI_Info info;
	MPI_Request request;
	MPI_Session session;
	MPI_Win win, dynamic;
	MPI_File file;
	int comm_keyval, type_keyval, win_keyval;
} right;

static struct {
	int out[16], in[16];
} data;

static char memory[4096];
static char long_text[4096];

/* Where results go. */
static struct {
	void *p;
	int i[8];
	MPI_F08_status f08;
	MPI_Count c[8];
	MPI_Aint a[8];
	MPI_Datatype type[8];
	char text[4096];
} results;

static MPI_Status statuses[2];

static const int ones[2] = { 1, 1 }, zeros[2] = { 0, 0 };
static const int negative[2] = { -1, -1 };
static const MPI_Count ones_c[2] = { 1, 1 }, zeros_c[2] = { 0, 0 };
static const MPI_Count negative_c[2] = { -1, -1 };
static int range[1][3] = { { 0, 0, 1 } };
static int range_outside[1][3] = { { 0, 1, 1 } };
static int range_endless[1][3] = { { 0, 0, 0 } };
static int range_below[1][3] = { { -1, 0, 1 } };
static const int distribs[2] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK };
static const int dargs[2] = { MPI_DISTRIBUTE_DFLT_DARG,
			      MPI_DISTRIBUTE_DFLT_DARG };
static MPI_Datatype types[2] = { MPI_INT, MPI_INT };
static MPI_Datatype types_null[2] = { MPI_DATATYPE_NULL, MPI_INT };

/* To be found by MPI_Dims_create. */
static int *no_dims(void)
{
	memset(results.i, 0, sizeof(results.i));
	return results.i;
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

static void ignore_session(MPI_Session *session, int *code, ...)
{
	(void)session;
	(void)code;
}

static void ignore_win(MPI_Win *win, int *code, ...)
{
	(void)win;
	(void)code;
}

static void ignore_file(MPI_File *file, int *code, ...)
{
	(void)file;
	(void)code;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void add_large(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
	(void)type;
	for (MPI_Count i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

/* --- objects, and their ends --- */

static MPI_Comm fresh_comm(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(right.comm, &comm);
	return comm;
}

static void end_comm(MPI_Comm comm)
{
	MPI_Comm_free(&comm);
}

static MPI_Group fresh_group(void)
{
	MPI_Group group;

	MPI_Group_incl(right.group, 1, zeros, &group);
	return group;
}

static void end_group(MPI_Group group)
{
	MPI_Group_free(&group);
}

static MPI_Datatype fresh_datatype(void)
{
	MPI_Datatype type;

	MPI_Type_contiguous(1, MPI_INT, &type);
	return type;
}

static void end_datatype(MPI_Datatype type)
{
	if (type != MPI_INT) /* MPI_Type_match_size gives one of these */
		MPI_Type_free(&type);
}

static MPI_Op fresh_op(void)
{
	MPI_Op op;

	MPI_Op_create(add, 1, &op);
	return op;
}

static void end_op(MPI_Op op)
{
	MPI_Op_free(&op);
}

static MPI_Errhandler fresh_errhandler(void)
{
	MPI_Errhandler errhandler;

	MPI_Comm_create_errhandler(ignore, &errhandler);
	return errhandler;
}

static void end_errhandler(MPI_Errhandler errhandler)
{
	MPI_Errhandler_free(&errhandler);
}

static MPI_Info fresh_info(void)
{
	MPI_Info info;

	MPI_Info_create(&info);
	return info;
}

static void end_info(MPI_Info info)
{
	MPI_Info_free(&info);
}

/* A receive whose message is there. */
static MPI_Request fresh_request(void)
{
	MPI_Request request;

	MPI_Irecv(data.in, 1, MPI_INT, 0, 99, right.comm, &request);
	MPI_Send(data.out, 1, MPI_INT, 0, 99, right.comm);
	return request;
}

static void end_request(MPI_Request request)
{
	MPI_Cancel(&request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void end_collective(MPI_Request request)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static MPI_Request fresh_persistent(void)
{
	MPI_Request request;

	MPI_Send_init(data.out, 1, MPI_INT, MPI_PROC_NULL, 0, right.comm,
		      &request);
	return request;
}

static void end_persistent(MPI_Request request)
{
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Request_free(&request);
}

static int query(void *extra, MPI_Status *status)
{
	(void)extra, (void)status;
	return MPI_SUCCESS;
}

static int let_go(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra, (void)complete;
	return MPI_SUCCESS;
}

static void end_general(MPI_Request request)
{
	MPI_Grequest_complete(request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* What the call completes, unless it fails. */
static MPI_Request completed;

static MPI_Request completed_general(void)
{
	MPI_Grequest_start(query, let_go, cancel, NULL, &completed);
	return completed;
}

static void end_completed(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Grequest_complete(completed);
	MPI_Wait(&completed, MPI_STATUS_IGNORE);
}

/* Both ends of a partitioned message, which are active. */
static MPI_Request partitioned[2];

static MPI_Request active_partitioned(int which)
{
	MPI_Psend_init(data.out, 2, 1, MPI_INT, 0, 97, right.comm,
		       MPI_INFO_NULL, &partitioned[0]);
	MPI_Precv_init(data.in, 2, 1, MPI_INT, 0, 97, right.comm, MPI_INFO_NULL,
		       &partitioned[1]);
	MPI_Startall(2, partitioned);
	return partitioned[which];
}

/* One of them may be ready: then it is refused. */
static void end_partitioned(int rc)
{
	(void)rc;
	MPI_Pready(0, partitioned[0]);
	MPI_Pready(1, partitioned[0]);
	MPI_Waitall(2, partitioned, MPI_STATUSES_IGNORE);
	MPI_Request_free(&partitioned[0]);
	MPI_Request_free(&partitioned[1]);
}

static MPI_Message fresh_message(void)
{
	MPI_Message message;

	MPI_Send(data.out, 1, MPI_INT, 0, 98, right.comm);
	MPI_Mprobe(0, 98, right.comm, &message, MPI_STATUS_IGNORE);
	return message;
}

static void end_message(MPI_Message message)
{
	MPI_Mrecv(data.in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

static MPI_Session fresh_session(void)
{
	MPI_Session session;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	return session;
}

static void end_session(MPI_Session session)
{
	MPI_Session_finalize(&session);
}

static int keep(MPI_Comm comm, int keyval, void *extra, void *in, void *out,
		int *flag)
{
	(void)comm, (void)keyval, (void)extra;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int fresh_comm_keyval(void)
{
	int keyval;

	MPI_Comm_create_keyval(keep, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
	return keyval;
}

static void end_comm_keyval(int keyval)
{
	MPI_Comm_free_keyval(&keyval);
}

static int fresh_type_keyval(void)
{
	int keyval;

	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN,
			       &keyval, NULL);
	return keyval;
}

static void end_type_keyval(int keyval)
{
	MPI_Type_free_keyval(&keyval);
}

static int fresh_win_keyval(void)
{
	int keyval;

	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN,
			      &keyval, NULL);
	return keyval;
}

static void end_win_keyval(int keyval)
{
	MPI_Win_free_keyval(&keyval);
}

static MPI_Win fresh_win(void)
{
	MPI_Win win;
	void *base;

	MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, right.comm, &base, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	return win;
}

static void end_win(MPI_Win win)
{
	MPI_Win_free(&win);
}

static int own_class(void)
{
	int class;

	MPI_Add_error_class(&class);
	return class;
}

static int own_code(void)
{
	int code;

	MPI_Add_error_code(MPI_ERR_OTHER, &code);
	return code;
}

/* --- handles that were freed, and of other kinds --- */

#define FREED(type, short)                                                     \
	static type freed_##short(void)                                        \
	{                                                                      \
		type handle = fresh_##short();                                 \
                                                                               \
		end_##short(handle);                                           \
		return handle;                                                 \
	}

FREED(MPI_Comm, comm)
FREED(MPI_Group, group)
FREED(MPI_Datatype, datatype)
FREED(MPI_Op, op)
FREED(MPI_Errhandler, errhandler)
FREED(MPI_Info, info)
FREED(MPI_Request, request)
FREED(MPI_Message, message)
FREED(MPI_Session, session)
FREED(MPI_Win, win)

/* There are no files that could be freed. */
static MPI_File freed_file(void)
{
	return (MPI_File)freed_win();
}

static int freed_keyval(void)
{
	int keyval = fresh_comm_keyval();

	end_comm_keyval(keyval);
	return keyval;
}

static void *foreign_to(const char *kind)
{
	return strcmp(kind, "MPI_Op") == 0 ? (void *)right.datatype
					   : (void *)right.op;
}

/* No object lies there. */
static void *odd = (char *)&data + 1;

static MPI_Datatype *types_freed(void)
{
	static MPI_Datatype list[2] = { MPI_INT, MPI_INT };

	list[0] = freed_datatype();
	return list;
}

/* --- lists of requests --- */

static MPI_Request listed[1];
static int list_is_persistent;

static MPI_Request *requests_fresh(void)
{
	list_is_persistent = 0;
	listed[0] = fresh_request();
	return listed;
}

static MPI_Request *requests_persistent(void)
{
	list_is_persistent = 1;
	listed[0] = fresh_persistent();
	return listed;
}

static MPI_Request *requests_freed(void)
{
	static MPI_Request list[1];

	list[0] = freed_request();
	return list;
}

static MPI_Request *requests_foreign(void)
{
	static MPI_Request list[1];

	list[0] = foreign_to("MPI_Request");
	return list;
}

static void end_requests(int rc)
{
	(void)rc;
	if (listed[0] == MPI_REQUEST_NULL)
		return;
	if (list_is_persistent)
		end_persistent(listed[0]);
	else
		end_request(listed[0]);
	listed[0] = MPI_REQUEST_NULL;
}

/* --- what some calls need before and after --- */

static MPI_Request expected, sent;

static void expect_message(void)
{
	MPI_Irecv(data.in + 8, 1, MPI_INT, 0, 0, right.comm, &expected);
}

static void end_expected(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Cancel(&expected);
	MPI_Wait(&expected, MPI_STATUS_IGNORE);
}

static void attach(void)
{
	MPI_Buffer_attach(memory, sizeof(memory));
}

static void end_attach(int rc)
{
	void *buffer;
	int bytes;

	if (rc == MPI_SUCCESS)
		MPI_Buffer_detach(&buffer, &bytes);
}

/* The call detaches it, unless it fails. */
static void end_detach(int rc)
{
	end_attach(rc == MPI_SUCCESS ? MPI_ERR_OTHER : MPI_SUCCESS);
}

static void comm_attach(void)
{
	MPI_Comm_attach_buffer(right.comm, memory, sizeof(memory));
}

static void end_comm_attach(int rc)
{
	void *buffer;
	int bytes;

	if (rc == MPI_SUCCESS)
		MPI_Comm_detach_buffer(right.comm, &buffer, &bytes);
}

static void end_comm_detach(int rc)
{
	end_comm_attach(rc == MPI_SUCCESS ? MPI_ERR_OTHER : MPI_SUCCESS);
}

static void session_attach(void)
{
	MPI_Session_attach_buffer(right.session, memory, sizeof(memory));
}

static void end_session_attach(int rc)
{
	void *buffer;
	int bytes;

	if (rc == MPI_SUCCESS)
		MPI_Session_detach_buffer(right.session, &buffer, &bytes);
}

static void end_session_detach(int rc)
{
	end_session_attach(rc == MPI_SUCCESS ? MPI_ERR_OTHER : MPI_SUCCESS);
}

/* For the name of a process set. */
static void make_room(void)
{
	results.i[0] = sizeof(results.text);
}

static void attach_and_expect(void)
{
	attach();
	expect_message();
}

static void end_and_detach(int rc)
{
	end_expected(rc);
	end_attach(MPI_SUCCESS);
}

static void send_message(void)
{
	MPI_Isend(data.out, 1, MPI_INT, 0, 0, right.comm, &sent);
}

/* The call receives it, unless it fails. */
static void end_receive(int rc)
{
	if (rc != MPI_SUCCESS)
		MPI_Recv(data.in, 1, MPI_INT, 0, 0, right.comm,
			 MPI_STATUS_IGNORE);
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void end_probe(int rc)
{
	(void)rc;
	end_receive(MPI_ERR_OTHER);
}

static void set_key(void)
{
	MPI_Info_set(right.info, "key", "value");
}

static void set_attrs(void)
{
	MPI_Comm_set_attr(right.comm, right.comm_keyval, NULL);
	MPI_Type_set_attr(right.datatype, right.type_keyval, NULL);
	MPI_Win_set_attr(right.win, right.win_keyval, NULL);
}

#include "arguments_tool.h"
#include "arguments_win.h"

static void free_memory(int rc)
{
	if (rc == MPI_SUCCESS)
		MPI_Free_mem(results.p);
}

#include "arguments_calls.h"

/* --- all of them --- */

static const char *current_function, *current_case;
static int cases, failures;

static void crashed(int signal)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s, %s: signal %d\n",
			 current_function, current_case, signal);

	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(2);
	_exit(1);
}

/* Of one process that is its own neighbour. */
static void make_topologies(void)
{
	MPI_Cart_create(right.comm, 1, ones, zeros, 0, &right.cart);
	MPI_Graph_create(right.comm, 1, ones, zeros, 0, &right.graph);
	MPI_Dist_graph_create_adjacent(right.comm, 1, zeros, ones, 1, zeros,
				       ones, MPI_INFO_NULL, 0,
				       &right.dist_graph);
}

static void make_right_ones(void)
{
	MPI_Comm_dup(MPI_COMM_SELF, &right.comm);
	make_topologies();
	MPI_Comm_group(MPI_COMM_SELF, &right.group);
	right.datatype = fresh_datatype();
	MPI_Type_commit(&right.datatype);
	right.uncommitted = fresh_datatype();
	right.op = fresh_op();
	right.errhandler = MPI_ERRORS_RETURN;
	right.file = MPI_FILE_NULL; /* the only one */
	right.info = fresh_info();
	right.request = fresh_request();
	right.session = fresh_session();
	begin_tool();
	tool.cvar = fresh_tool_cvar();
	tool.session = fresh_tool_session();
	tool.pvar = fresh_tool_pvar();
	right.comm_keyval = fresh_comm_keyval();
	right.type_keyval = fresh_type_keyval();
	right.win_keyval = fresh_win_keyval();
	right.win = fresh_win();
	MPI_Win_create_dynamic(MPI_INFO_NULL, right.comm, &right.dynamic);
	MPI_Win_set_errhandler(right.dynamic, MPI_ERRORS_RETURN);
	memset(long_text, 'x', sizeof(long_text) - 1);
}

static void free_right_ones(void)
{
	end_win(right.win);
	end_win(right.dynamic);
	end_win_keyval(right.win_keyval);
	end_comm(right.comm);
	end_comm(right.cart);
	end_comm(right.graph);
	end_comm(right.dist_graph);
	end_group(right.group);
	end_datatype(right.datatype);
	end_datatype(right.uncommitted);
	end_op(right.op);
	end_info(right.info);
	end_request(right.request);
	end_session(right.session);
	end_tool_cvar(tool.cvar);
	end_tool_session(tool.session);
	MPI_T_finalize();
	end_comm_keyval(right.comm_keyval);
	end_type_keyval(right.type_keyval);
}

static int is_allowed(const struct wrong *w, int class)
{
	for (int i = 0; i < CLASSES; i++)
		if (w->classes[i] != MPI_SUCCESS && w->classes[i] == class)
			return 1;
	return 0;
}

static void say(const struct function *f, const char *what, int class)
{
	char text[MPI_MAX_ERROR_STRING];
	int length;

	MPI_Error_string(class, text, &length);
	printf("%s, %s: %s\n", f->name, what, text);
	failures++;
}

static void call(const struct function *f, int wrong)
{
	const struct wrong *w = wrong > 0 ? &f->wrong[wrong - 1] : NULL;
	int class;

	current_function = f->name;
	current_case = w != NULL ? w->what : "nothing wrong";
	class = class_of(f->call(wrong));
	cases++;
	if (w == NULL ? class != MPI_SUCCESS : !is_allowed(w, class))
		say(f, current_case, class);
}

int main(int argc, char **argv)
{
	int right_only = argc == 2 && strcmp(argv[1], "right") == 0;
	int n = (int)(sizeof(functions) / sizeof(functions[0]));

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	EXPECT_INT(size, 1);
	make_right_ones();
	signal(SIGSEGV, crashed);
	signal(SIGBUS, crashed);
	signal(SIGFPE, crashed);
	for (int i = 0; i < n; i++) {
		/* What hangs is named by the last line. */
		printf("%s\n", functions[i].name);
		fflush(stdout);
		if (functions[i].has_right_call)
			call(&functions[i], 0);
		for (int k = 1; k <= functions[i].nwrong && !right_only; k++)
			call(&functions[i], k);
	}
	free_right_ones();
	printf("%d functions, %d calls, %d not as they should be\n", n, cases,
	       failures);
	EXPECT_INT(failures, 0);
	return program_end("arguments");
}
