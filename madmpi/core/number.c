/*
 * The objects that have a number; an object's link, which is the pool's while
 * the object is free, holds it.
 */
#include "core/number.h"

#include <marcel/marcel.h>
#include <mpi.h>

#include "bodies.h"
#include "core/ids.h"

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;

/* l: the numbers less HANDLE_CONSTANTS */
static struct madmpi_ids ids = MADMPI_IDS_INITIALIZER;

/* The mutex is held. A number for o; without memory it stays without one. */
static void take_number(struct madmpi_object *o)
{
	int i = madmpi_ids_take(&ids, o);

	if (i >= 0)
		o->link = (void *)(uintptr_t)(i + MADMPI_HANDLE_CONSTANTS);
}

int madmpi_number_of(void *handle, uint32_t kind)
{
	struct madmpi_object *o;
	int i;

	if (madmpi_handle_is_constant(handle))
		return (int)(uintptr_t)handle;
	o = madmpi_handle_object(handle, kind);
	if (o == NULL)
		return 0;
	marcel_mutex_lock(&mutex);
	if (o->link == NULL)
		take_number(o);
	i = (int)(uintptr_t)o->link;
	marcel_mutex_unlock(&mutex);
	return i;
}

void *madmpi_number_handle(int number, uint32_t kind)
{
	struct madmpi_object *o;

	if (number < 0)
		return NULL;
	if (number < MADMPI_HANDLE_CONSTANTS)
		return (void *)(uintptr_t)number;
	marcel_mutex_lock(&mutex);
	o = madmpi_ids_at(&ids, number - MADMPI_HANDLE_CONSTANTS);
	if (o != NULL && load_relaxed(&o->kind) != kind)
		o = NULL;
	marcel_mutex_unlock(&mutex);
	return o;
}

void madmpi_number_drop_slow(struct madmpi_object *o)
{
	marcel_mutex_lock(&mutex);
	madmpi_ids_put(&ids, (int)(uintptr_t)o->link - MADMPI_HANDLE_CONSTANTS);
	o->link = NULL;
	marcel_mutex_unlock(&mutex);
}

/* --- what programs call, also as MPI_*_c2f and MPI_*_f2c --- */

/* MPI_Comm_toint */
int madmpi_comm_toint(MPI_Comm comm)
{
	return madmpi_number_of(comm, MADMPI_COMM);
}

/* MPI_Comm_fromint */
MPI_Comm madmpi_comm_fromint(int comm)
{
	return madmpi_number_handle(comm, MADMPI_COMM);
}

/* MPI_Errhandler_toint */
int madmpi_errhandler_toint(MPI_Errhandler errhandler)
{
	return madmpi_number_of(errhandler, MADMPI_ERRHANDLER);
}

/* MPI_Errhandler_fromint */
MPI_Errhandler madmpi_errhandler_fromint(int errhandler)
{
	return madmpi_number_handle(errhandler, MADMPI_ERRHANDLER);
}

/* MPI_File_toint */
int madmpi_file_toint(MPI_File file)
{
	return madmpi_number_of(file, MADMPI_FILE);
}

/* MPI_File_fromint */
MPI_File madmpi_file_fromint(int file)
{
	return madmpi_number_handle(file, MADMPI_FILE);
}

/* MPI_Group_toint */
int madmpi_group_toint(MPI_Group group)
{
	return madmpi_number_of(group, MADMPI_GROUP);
}

/* MPI_Group_fromint */
MPI_Group madmpi_group_fromint(int group)
{
	return madmpi_number_handle(group, MADMPI_GROUP);
}

/* MPI_Info_toint */
int madmpi_info_toint(MPI_Info info)
{
	return madmpi_number_of(info, MADMPI_INFO);
}

/* MPI_Info_fromint */
MPI_Info madmpi_info_fromint(int info)
{
	return madmpi_number_handle(info, MADMPI_INFO);
}

/* MPI_Message_toint */
int madmpi_message_toint(MPI_Message message)
{
	return madmpi_number_of(message, MADMPI_MESSAGE);
}

/* MPI_Message_fromint */
MPI_Message madmpi_message_fromint(int message)
{
	return madmpi_number_handle(message, MADMPI_MESSAGE);
}

/* MPI_Op_toint */
int madmpi_op_toint(MPI_Op op)
{
	return madmpi_number_of(op, MADMPI_OP);
}

/* MPI_Op_fromint */
MPI_Op madmpi_op_fromint(int op)
{
	return madmpi_number_handle(op, MADMPI_OP);
}

/* MPI_Request_toint */
int madmpi_request_toint(MPI_Request request)
{
	return madmpi_number_of(request, MADMPI_REQUEST);
}

/* MPI_Request_fromint */
MPI_Request madmpi_request_fromint(int request)
{
	return madmpi_number_handle(request, MADMPI_REQUEST);
}

/* MPI_Session_toint */
int madmpi_session_toint(MPI_Session session)
{
	return madmpi_number_of(session, MADMPI_SESSION);
}

/* MPI_Session_fromint */
MPI_Session madmpi_session_fromint(int session)
{
	return madmpi_number_handle(session, MADMPI_SESSION);
}

/* MPI_Type_toint */
int madmpi_type_toint(MPI_Datatype datatype)
{
	return madmpi_number_of(datatype, MADMPI_TYPE);
}

/* MPI_Type_fromint */
MPI_Datatype madmpi_type_fromint(int datatype)
{
	return madmpi_number_handle(datatype, MADMPI_TYPE);
}

/* MPI_Win_toint */
int madmpi_win_toint(MPI_Win win)
{
	return madmpi_number_of(win, MADMPI_WIN);
}

/* MPI_Win_fromint */
MPI_Win madmpi_win_fromint(int win)
{
	return madmpi_number_handle(win, MADMPI_WIN);
}
