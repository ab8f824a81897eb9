/*
 * A tool that comes when MPI runs finds settings that nobody can change any
 * more, and can read them.
 */
#include "../program.h"

int main(int argc, char **argv)
{
	int n, provided, scope, count, value, index;
	MPI_T_cvar_handle handle;

	program_begin(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
	MPI_T_cvar_get_num(&n);
	for (int i = 0; i < n; i++) {
		MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
				    NULL, &scope);
		EXPECT_INT(scope, MPI_T_SCOPE_CONSTANT);
	}
	MPI_T_cvar_get_index("MADMPI_CHECK", &index);
	MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
	EXPECT_INT(MPI_T_cvar_read(handle, &value), MPI_SUCCESS);
	EXPECT_INT(value, 1);
	EXPECT_INT(MPI_T_cvar_write(handle, &value), MPI_T_ERR_CVAR_SET_NEVER);
	MPI_T_cvar_handle_free(&handle);
	MPI_T_finalize();
	return program_end("late");
}
