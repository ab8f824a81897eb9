/*
 * The error classes of the ABI with a text for each.
 */
#include "env/error.h"

#include <stddef.h>

/* clang-format off */
#define C(name, text) { name, #name, text }

static const struct {
	int code;
	const char *name;
	const char *text;
} classes[] = {
	C(MPI_SUCCESS, "no error"),
	C(MPI_ERR_BUFFER, "invalid buffer"),
	C(MPI_ERR_COUNT, "invalid count"),
	C(MPI_ERR_TYPE, "invalid datatype"),
	C(MPI_ERR_TAG, "invalid tag"),
	C(MPI_ERR_COMM, "invalid communicator"),
	C(MPI_ERR_RANK, "invalid rank"),
	C(MPI_ERR_REQUEST, "invalid request"),
	C(MPI_ERR_ROOT, "invalid root"),
	C(MPI_ERR_GROUP, "invalid group"),
	C(MPI_ERR_OP, "invalid operation"),
	C(MPI_ERR_TOPOLOGY, "invalid topology"),
	C(MPI_ERR_DIMS, "invalid dimensions"),
	C(MPI_ERR_ARG, "invalid argument"),
	C(MPI_ERR_UNKNOWN, "unknown error"),
	C(MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
	C(MPI_ERR_OTHER, "other error"),
	C(MPI_ERR_INTERN, "internal error"),
	C(MPI_ERR_PENDING, "operation neither failed nor completed"),
	C(MPI_ERR_IN_STATUS, "the error is in the status"),
	C(MPI_ERR_ACCESS, "permission denied"),
	C(MPI_ERR_AMODE, "invalid access mode"),
	C(MPI_ERR_ASSERT, "invalid assertion"),
	C(MPI_ERR_BAD_FILE, "invalid file name"),
	C(MPI_ERR_BASE, "invalid base address"),
	C(MPI_ERR_CONVERSION, "data conversion failed"),
	C(MPI_ERR_DISP, "invalid displacement"),
	C(MPI_ERR_DUP_DATAREP, "data representation already defined"),
	C(MPI_ERR_FILE_EXISTS, "file exists"),
	C(MPI_ERR_FILE_IN_USE, "file in use"),
	C(MPI_ERR_FILE, "invalid file handle"),
	C(MPI_ERR_INFO_KEY, "info key too long"),
	C(MPI_ERR_INFO_NOKEY, "no such info key"),
	C(MPI_ERR_INFO_VALUE, "info value too long"),
	C(MPI_ERR_INFO, "invalid info object"),
	C(MPI_ERR_IO, "input or output failed"),
	C(MPI_ERR_KEYVAL, "invalid keyval"),
	C(MPI_ERR_LOCKTYPE, "invalid lock type"),
	C(MPI_ERR_NAME, "service name not published"),
	C(MPI_ERR_NO_MEM, "out of memory"),
	C(MPI_ERR_NOT_SAME, "arguments differ between processes"),
	C(MPI_ERR_NO_SPACE, "not enough space"),
	C(MPI_ERR_NO_SUCH_FILE, "no such file"),
	C(MPI_ERR_PORT, "invalid port name"),
	C(MPI_ERR_QUOTA, "quota exceeded"),
	C(MPI_ERR_READ_ONLY, "read-only file or file system"),
	C(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
	C(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
	C(MPI_ERR_RMA_RANGE, "target memory is not in the window"),
	C(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
	C(MPI_ERR_RMA_SYNC, "wrong synchronization of a window"),
	C(MPI_ERR_SERVICE, "service name not published"),
	C(MPI_ERR_SIZE, "invalid size"),
	C(MPI_ERR_SPAWN, "processes could not be started"),
	C(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
	C(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
	C(MPI_ERR_WIN, "invalid window"),
	C(MPI_ERR_RMA_FLAVOR, "wrong flavor of window"),
	C(MPI_ERR_PROC_ABORTED, "a peer process is gone"),
	C(MPI_ERR_VALUE_TOO_LARGE, "value too large to store"),
	C(MPI_ERR_SESSION, "invalid session"),
	C(MPI_ERR_ERRHANDLER, "invalid error handler"),
	C(MPI_ERR_ABI, "ABI problem"),
	C(MPI_T_ERR_CANNOT_INIT, "tool interface cannot be initialized"),
	C(MPI_T_ERR_NOT_ACCESSIBLE, "tool interface not accessible"),
	C(MPI_T_ERR_NOT_INITIALIZED, "tool interface not initialized"),
	C(MPI_T_ERR_NOT_SUPPORTED, "not supported by the tool interface"),
	C(MPI_T_ERR_MEMORY, "out of memory in the tool interface"),
	C(MPI_T_ERR_INVALID, "invalid use of the tool interface"),
	C(MPI_T_ERR_INVALID_INDEX, "invalid index"),
	C(MPI_T_ERR_INVALID_ITEM, "item index out of range"),
	C(MPI_T_ERR_INVALID_SESSION, "invalid tool session"),
	C(MPI_T_ERR_INVALID_HANDLE, "invalid tool handle"),
	C(MPI_T_ERR_INVALID_NAME, "invalid variable or category name"),
	C(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
	C(MPI_T_ERR_OUT_OF_SESSIONS, "no more tool sessions"),
	C(MPI_T_ERR_CVAR_SET_NOT_NOW, "variable cannot be set now"),
	C(MPI_T_ERR_CVAR_SET_NEVER, "variable cannot be set any more"),
	C(MPI_T_ERR_PVAR_NO_WRITE, "variable cannot be written"),
	C(MPI_T_ERR_PVAR_NO_STARTSTOP, "variable cannot be started or stopped"),
	C(MPI_T_ERR_PVAR_NO_ATOMIC, "variable cannot be read and written atomically"),
	C(MPI_ERR_LASTCODE, "last error code"),
};
/* clang-format on */

const char *madmpi_error_name(int code)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(classes); i++)
		if (classes[i].code == code)
			return classes[i].name;
	return NULL;
}

const char *madmpi_error_text(int code)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(classes); i++)
		if (classes[i].code == code)
			return classes[i].text;
	return NULL;
}
