/*
 * Error classes: each of the ABI has a name and a text, errno becomes one.
 */
#include <errno.h>
#include <string.h>

#include "bodies.h"
#include "env/error.h"

#include "../../check.h"

TEST(every_class_has_a_string_that_names_it)
{
	char text[MPI_MAX_ERROR_STRING];
	int length, class;

	for (int code = 0; code <= MPI_ERR_ABI; code++) {
		CHECK_INT(madmpi_error_string(code, text, &length), 0);
		CHECK_INT(strlen(text), length);
		CHECK(strstr(text, code ? "MPI_ERR_" : "MPI_SUCCESS") == text);
		CHECK(strchr(text, ':') != NULL);
		CHECK_INT(madmpi_error_class(code, &class), 0);
		CHECK_INT(class, code);
	}
	for (int code = 1001; code <= 1018; code++) {
		CHECK_INT(madmpi_error_string(code, text, &length), 0);
		CHECK(strstr(text, "MPI_T_ERR_") == text);
	}
}

TEST(no_two_classes_share_a_name)
{
	for (int a = 0; a <= MPI_ERR_ABI; a++)
		for (int b = 0; b < a; b++) {
			CHECK(strcmp(madmpi_error_name(a),
				     madmpi_error_name(b)) != 0);
		}
	CHECK(madmpi_error_name(MPI_ERR_ABI + 1) == NULL);
	CHECK(madmpi_error_name(-1) == NULL);
}

TEST(errors_from_below_become_classes)
{
	CHECK_INT(madmpi_error_class_of_errno(0), MPI_SUCCESS);
	CHECK_INT(madmpi_error_class_of_errno(-EMSGSIZE), MPI_ERR_TRUNCATE);
	CHECK_INT(madmpi_error_class_of_errno(-ENOMEM), MPI_ERR_NO_MEM);
	CHECK_INT(madmpi_error_class_of_errno(-ECONNRESET),
		  MPI_ERR_PROC_ABORTED);
	CHECK_INT(madmpi_error_class_of_errno(-EINVAL), MPI_ERR_ARG);
	CHECK_INT(madmpi_error_class_of_errno(-EPROTOTYPE), MPI_ERR_TYPE);
	CHECK_INT(madmpi_error_class_of_errno(-EIO), MPI_ERR_OTHER);
}

TEST(predefined_handlers_are_found_by_number_and_back)
{
	static const MPI_Errhandler all[] = { MPI_ERRORS_ARE_FATAL,
					      MPI_ERRORS_ABORT,
					      MPI_ERRORS_RETURN };

	for (int i = 0; i < 3; i++) {
		struct madmpi_errhandler *e = madmpi_errhandler_of(all[i]);

		CHECK(e != NULL);
		CHECK(madmpi_errhandler_handle(e) == all[i]);
	}
	CHECK(madmpi_errhandler_of(MPI_ERRHANDLER_NULL) == NULL);
	CHECK(madmpi_errhandler_of((MPI_Errhandler)0) == NULL);
	CHECK(madmpi_errhandler_of((MPI_Errhandler)MPI_COMM_WORLD) == NULL);
}
