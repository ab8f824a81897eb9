/*
 * The tool interface, for arguments.c: its objects, which may be there from the
 * beginning.
 */
#ifndef TESTS_MADMPI_ENV_ARGUMENTS_TOOL_H
#define TESTS_MADMPI_ENV_ARGUMENTS_TOOL_H

static struct {
	MPI_T_cvar_handle cvar;
	MPI_T_pvar_session session;
	MPI_T_pvar_handle pvar;
} tool;

static MPI_T_cvar_handle fresh_tool_cvar(void)
{
	MPI_T_cvar_handle handle;
	int count;

	MPI_T_cvar_handle_alloc(0, NULL, &handle, &count);
	return handle;
}

static void end_tool_cvar(MPI_T_cvar_handle handle)
{
	MPI_T_cvar_handle_free(&handle);
}

static MPI_T_pvar_session fresh_tool_session(void)
{
	MPI_T_pvar_session session;

	MPI_T_pvar_session_create(&session);
	return session;
}

static void end_tool_session(MPI_T_pvar_session session)
{
	MPI_T_pvar_session_free(&session);
}

static MPI_T_pvar_handle fresh_tool_pvar(void)
{
	MPI_T_pvar_handle handle;
	int count;

	MPI_T_pvar_handle_alloc(tool.session, 0, NULL, &handle, &count);
	return handle;
}

static void end_tool_pvar(MPI_T_pvar_handle handle)
{
	MPI_T_pvar_handle_free(tool.session, &handle);
}

/* That of a setting which has one. */
static MPI_T_enum tool_enum(void)
{
	MPI_T_enum choice = MPI_T_ENUM_NULL;

	for (int i = 0; choice == MPI_T_ENUM_NULL; i++)
		MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, &choice, NULL,
				    NULL, NULL, NULL);
	return choice;
}

static void begin_tool(void)
{
	int provided;

	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
}

static void end_tool(int rc)
{
	if (rc == MPI_SUCCESS)
		MPI_T_finalize();
}

#endif
