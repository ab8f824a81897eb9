/*
 * Communicators by hardware, and what the library says of it. Run with a VP a
 * process, each on the next CPU of the machine that MARCEL_TOPOLOGY describes,
 * "package:P l3:1 core:C pu:T": of each kind the process r is in number
 * r / (CPUs of one).
 */
#include <stdbool.h>

#include "../program.h"

static int packages, cores, threads; /* per one of what is above */

/* Which one of the kind the process with this rank is in. */
static int index_of(const char *kind, int r)
{
	if (strcmp(kind, "Package") == 0 || strcmp(kind, "L3Cache") == 0)
		return r / (cores * threads);
	if (strcmp(kind, "Core") == 0)
		return r / threads;
	if (strcmp(kind, "PU") == 0)
		return r;
	return 0;
}

static MPI_Info asking(const char *key, const char *value)
{
	MPI_Info info;

	MPI_Info_create(&info);
	if (key != NULL)
		MPI_Info_set(info, key, value);
	return info;
}

/* Of those that are in the same one, with the last rank first. */
static void check_members(MPI_Comm comm, const char *kind)
{
	int n, r, expected = 0, above = 0;

	EXPECT(comm != MPI_COMM_NULL);
	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &r);
	for (int i = 0; i < size; i++) {
		bool same = index_of(kind, i) == index_of(kind, rank);

		expected += same;
		above += same && i > rank;
	}
	EXPECT_INT(n, expected);
	EXPECT_INT(r, above);
}

static void guided(const char *kind, int split_type, const char *scheme)
{
	char name[80];
	MPI_Info info;
	MPI_Comm comm;

	snprintf(name, sizeof(name), "%s%s", scheme, kind);
	info = asking("mpi_hw_resource_type", name);
	MPI_Comm_split_type(MPI_COMM_WORLD, split_type, -rank, info, &comm);
	check_members(comm, kind);
	MPI_Comm_free(&comm);
	MPI_Info_free(&info);
}

static void nobody(int split_type, const char *key, const char *value)
{
	MPI_Info info = asking(key, value);
	MPI_Comm comm = MPI_COMM_WORLD;

	MPI_Comm_split_type(MPI_COMM_WORLD, split_type, 0, info, &comm);
	EXPECT(comm == MPI_COMM_NULL);
	MPI_Info_free(&info);
}

/* Level by level, until each is alone; the library names what it took. */
static void unguided(void)
{
	MPI_Comm comm = MPI_COMM_WORLD, next;
	int n, before = size;

	for (int level = 0; n = before, n > 1; level++) {
		MPI_Info info = asking(NULL, NULL);
		char kind[MPI_MAX_INFO_VAL];
		int room = sizeof(kind), flag;

		MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, -rank,
				    info, &next);
		EXPECT(next != MPI_COMM_NULL);
		MPI_Comm_size(next, &n);
		EXPECT(n < before);
		MPI_Info_get_string(info, "mpi_hw_resource_type", &room, kind,
				    &flag);
		EXPECT(flag && strncmp(kind, "hwloc://", 8) == 0);
		check_members(next, kind + 8);
		if (level > 0)
			MPI_Comm_free(&comm);
		MPI_Info_free(&info);
		comm = next;
		before = n;
	}
	MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL,
			    &next);
	EXPECT(next == MPI_COMM_NULL);
	if (comm != MPI_COMM_WORLD)
		MPI_Comm_free(&comm);
}

static void sets(void)
{
	MPI_Info info = asking("mpi_pset_name", "mpi://world");
	MPI_Comm comm;
	int n, class;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
			    info, &comm);
	MPI_Comm_size(comm, &n);
	EXPECT_INT(n, size);
	MPI_Comm_free(&comm);
	MPI_Info_set(info, "mpi_pset_name", "mpi://SELF");
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
			    info, &comm);
	MPI_Comm_size(comm, &n);
	EXPECT_INT(n, 1);
	MPI_Comm_free(&comm);
	MPI_Info_set(info, "mpi_hw_resource_type", "Core");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Error_class(MPI_Comm_split_type(MPI_COMM_WORLD,
					    MPI_COMM_TYPE_RESOURCE_GUIDED, 0,
					    info, &comm),
			&class);
	EXPECT_INT(class, MPI_ERR_INFO);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Info_free(&info);
}

/* With one CPU the process is in one of each kind that there is. */
static void what_is_said_of_it(void)
{
	static const char *const kinds[] = { "Machine", "Package", "L3Cache",
					     "Core",    "PU",      "NUMANode" };
	MPI_Info info;
	int n;

	MPI_Get_hw_resource_info(&info);
	MPI_Info_get_nkeys(info, &n);
	EXPECT_INT(n, 6);
	for (int i = 0; i < 6; i++) {
		char key[80], value[8];
		int room = sizeof(value), flag;

		snprintf(key, sizeof(key), "hwloc://%s", kinds[i]);
		MPI_Info_get_string(info, key, &room, value, &flag);
		EXPECT(flag && strcmp(value, "true") == 0);
	}
	MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
	const char *machine = getenv("MARCEL_TOPOLOGY");

	program_begin(&argc, &argv);
	EXPECT(machine != NULL &&
	       sscanf(machine, "package:%d l3:1 core:%d pu:%d", &packages,
		      &cores, &threads) == 3);
	for (int scheme = 0; scheme < 2; scheme++) {
		const char *prefix = scheme ? "hwloc://" : "";

		guided("Package", MPI_COMM_TYPE_HW_GUIDED, prefix);
		guided("L3Cache", MPI_COMM_TYPE_RESOURCE_GUIDED, prefix);
		guided("Core", MPI_COMM_TYPE_HW_GUIDED, prefix);
		guided("PU", MPI_COMM_TYPE_HW_GUIDED, prefix);
		guided("Machine", MPI_COMM_TYPE_HW_GUIDED, prefix);
	}
	guided("mpi_shared_memory", MPI_COMM_TYPE_HW_GUIDED, "");
	nobody(MPI_COMM_TYPE_HW_GUIDED, NULL, NULL);
	nobody(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "L2Cache");
	nobody(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "a moon");
	nobody(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "a moon");
	unguided();
	sets();
	what_is_said_of_it();
	return program_end("hardware");
}
