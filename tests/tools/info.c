/*
 * tools/info: marcel-info shows what the environment says, and what is wrong
 * with it.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>

#define INFO run_path("INFO")

/* The rest of the text in which `name` is the first word of a line, or NULL. */
static const char *find(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (; text != NULL; text = strchr(text, '\n')) {
		text += strspn(text, "\n ");
		if (strncmp(text, name, n) == 0 && text[n] == ' ')
			break;
	}
	return text;
}

/* The words of the line on which `name` is the first, one blank between. */
static const char *words_of(const char *text, const char *name)
{
	static char line[512];
	size_t len = 0;

	text = find(text, name);
	for (; text != NULL && *text != '\n' && len < sizeof(line) - 1; text++)
		if (*text != ' ' || line[len - 1] != ' ')
			line[len++] = *text;
	line[len] = 0;
	return line;
}

/* A line of an operation begins with these words. */
static bool lists(const char *text, const char *operation, const char *row)
{
	while ((text = find(text, operation)) != NULL) {
		const char *words = words_of(text, operation);

		if (strstr(words, row) == words + strlen(operation) + 1)
			return true;
		text = strchr(text, '\n');
	}
	printf("# no line of %s \"%s\"\n", operation, row);
	return false;
}

static bool says(const char *text, const char *name, const char *value,
		 const char *source)
{
	char want[200];
	const char *line = words_of(text, name);

	snprintf(want, sizeof(want), "%s %s %s ", name, value, source);
	if (strncmp(line, want, strlen(want)) == 0)
		return true;
	printf("# \"%s\", not \"%s\"\n", line, want);
	return false;
}

TEST(settings_have_their_value_and_its_source)
{
	struct run r = run(NULL,
			   "MARCEL_NVP=3 MARCEL_STACKSIZE=128k PIOM_WAIT=spin "
			   "NMAD_DRIVER=shm+tcp NMAD_TCP_TIMEOUT_MS=77 "
			   "NMAD_BOOT=pmi MADMPI_CHECK=0 exec '%s' --settings",
			   INFO);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(says(r.out, "MARCEL_NVP", "3", "environment"));
	CHECK(says(r.out, "MARCEL_STACKSIZE", "128k", "environment"));
	CHECK(says(r.out, "MARCEL_GUARDS", "auto", "default"));
	CHECK(says(r.out, "PIOM_WAIT", "spin", "environment"));
	CHECK(says(r.out, "PIOM_ENGINE", "marcel", "default"));
	CHECK(says(r.out, "NMAD_DRIVER", "shm+tcp", "environment"));
	CHECK(says(r.out, "NMAD_STRATEGY", "default", "default"));
	CHECK(says(r.out, "NMAD_TCP_TIMEOUT_MS", "77", "environment"));
	CHECK(says(r.out, "NMAD_SHM_CMA", "1", "default"));
	CHECK(says(r.out, "NMAD_SIM_REORDER", "0", "default"));
	CHECK(says(r.out, "NMAD_BOOT", "pmi", "environment"));
	CHECK(says(r.out, "MADMPI_CHECK", "0", "environment"));
	CHECK(says(r.out, "MADMPI_VERBOSE", "0", "default"));
}

TEST(every_variable_of_the_readme_is_shown)
{
	struct run r = run(NULL,
			   "f=$(mktemp); '%s' --settings >$f; sed -n "
			   "'/^## Options/,/^## /p' '%s' | grep -o "
			   "'`[A-Z]*_[A-Z_]*' | tr -d '`' | grep -v "
			   "MADMPI_C | while read v; do grep -q \" $v \" $f "
			   "|| echo $v; done; rm $f",
			   INFO, run_path("README"));

	CHECK_STR(r.out, "");
}

TEST(variables_are_those_of_the_settings_whatever_is_set)
{
	struct run r = run(NULL,
			   "MARCEL_NVP=many PIOM_WAIT=spin exec '%s' "
			   "--variables",
			   INFO);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
	CHECK(has(r.out, "marcel\tMARCEL_NVP\t0\tnot a whole number from 0 to "
			 "256\tvirtual"));
	CHECK(has(r.out, "pioman\tPIOM_WAIT\tauto\tnot one of auto, active,"));
	CHECK(has(r.out, "nmad\tNMAD_DRIVER\t\t\tnetworks"));
	CHECK(has(r.out, "mpicc\tMADMPI_CC\tcc\t\tthe compiler"));
	CHECK(strstr(r.out, "topology") == NULL);
}

TEST(bad_settings_are_named_with_what_is_allowed)
{
	struct run r = run(NULL,
			   "MARCEL_NVP=many NMAD_SHM_SEGMENT=stone exec '%s' "
			   "--settings",
			   INFO);

	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 1);
	CHECK(says(r.out, "MARCEL_NVP", "many", "BAD"));
	CHECK(strstr(words_of(r.out, "MARCEL_NVP"), "from 0 to 256") != NULL);
	CHECK(says(r.out, "NMAD_SHM_SEGMENT", "stone", "BAD"));
	CHECK(strstr(words_of(r.out, "NMAD_SHM_SEGMENT"), "memfd, file"));
	CHECK(says(r.out, "MARCEL_BIND", "1", "default"));
}

TEST(a_variable_that_nothing_reads_is_named)
{
	struct run r = run(
		NULL, "MARCEL_NPV=2 MADMPI_CC=gcc exec '%s' --settings", INFO);

	CHECK_INT(r.code, 1);
	CHECK(strstr(r.out, "nothing reads\n  MARCEL_NPV=2\n") != NULL);
	CHECK(strstr(r.out, "MADMPI_CC") == NULL);
}

TEST(the_topology_has_the_vps_that_were_asked_for)
{
	struct run r = run(NULL, "MARCEL_NVP=3 exec '%s' --topology", INFO);

	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "topology: 3 VPs, ", 17) == 0);
	CHECK(strstr(r.out, "\n  machine 0\n") != NULL);
	for (int i = 0; i < 3; i++) {
		char leaf[32];

		snprintf(leaf, sizeof(leaf), " vp %d: cpu ", i);
		CHECK(strstr(r.out, leaf) != NULL);
	}
	CHECK(strstr(r.out, "vp 3") == NULL);
	CHECK(strstr(r.out, "MARCEL_NVP") == NULL);
	r = run(NULL, "MARCEL_NVP=1 exec '%s' --topology", INFO);
	CHECK(strstr(r.out, "\n  machine 0, vp 0: cpu ") != NULL);
}

TEST(stacks_and_their_guards_are_as_they_would_be)
{
	struct run r = run(NULL,
			   "MARCEL_STACKSIZE=256k MARCEL_GUARDS=mprotect exec "
			   "'%s' --stacks",
			   INFO);

	CHECK_INT(r.code, 0);
	CHECK(says(r.out, "size", "262144", "bytes,"));
	CHECK(says(r.out, "guards", "mprotect,", "4096"));
	CHECK(strstr(r.out, "guards to be had") != NULL);
	r = run(NULL, "MARCEL_GUARDS=canary exec '%s' --stacks", INFO);
	CHECK_INT(r.code, 0);
	CHECK(says(r.out, "guards", "a", "look"));
}

TEST(everything_is_shown_even_if_marcel_does_not_start)
{
	struct run r = run(NULL, "exec '%s'", INFO);

	CHECK_INT(r.code, 0);
	CHECK(strstr(r.out, "kernel Linux ") != NULL);
	CHECK(strstr(words_of(r.out, "membarrier"), "membarrier ") != NULL);
	CHECK(strstr(r.out, "\ntopology: ") != NULL);
	CHECK(strstr(r.out, "\nstacks\n") != NULL);
	CHECK(strstr(r.out, "\nsettings of nmad\n") != NULL);
	r = run(NULL, "MARCEL_DUMP_SIGNAL=SIGNONSENSE exec '%s'", INFO);
	CHECK_INT(r.code, 1);
	CHECK(strstr(r.err, "MARCEL_DUMP_SIGNAL=SIGNONSENSE") != NULL);
	CHECK(strstr(r.out, "marcel does not start") != NULL);
	CHECK(strstr(r.out, "\nsettings of nmad\n") != NULL);
	r = run(NULL, "MARCEL_NVP=x exec '%s' --topology", INFO);
	CHECK_INT(r.code, 1);
	CHECK(strstr(r.err, "MARCEL_NVP=x: not a whole number") != NULL);
	CHECK_STR(r.out, "topology, stacks: marcel does not start\n");
}

TEST(algorithms_are_listed_and_may_be_forced)
{
	struct run r = run(NULL, "exec '%s' --algorithms", INFO);

	CHECK_INT(r.code, 0);
	CHECK(lists(r.out, "barrier", "hosts log h + 2 log h 0 several hosts"));
	CHECK(lists(r.out, "barrier", "shared 1 0 0 blocking, on one node"));
	CHECK(strstr(r.out, "n log p           else up to 128 KiB") != NULL);
	r = run(NULL, "MADMPI_COLL_BCAST=scatter_ring exec '%s' --algorithms",
		INFO);
	CHECK(lists(r.out, "bcast", "shared 1 0 n never"));
	CHECK(strstr(r.out, "2(p - 1) (n / p)  forced\n") != NULL);
	/* Which is not for all operations: then there is still the other. */
	r = run(NULL, "MADMPI_COLL_ALLREDUCE=ring exec '%s' --algorithms",
		INFO);
	CHECK(lists(r.out, "allreduce", "shared 2 0 2n else"));
	CHECK(strstr(r.out, "2(p - 1) (n / p)  forced, if it commutes") !=
	      NULL);
	r = run(NULL, "MADMPI_COLL_BCAST=fastest exec '%s' --settings", INFO);
	CHECK_INT(r.code, 1);
	CHECK(says(r.out, "MADMPI_COLL_BCAST", "fastest", "BAD"));
	CHECK(strstr(r.out, "auto, binomial, scatter_ring, "
			    "shared") != NULL);
}

TEST(bad_arguments_are_named)
{
	struct run r = run(NULL, "exec '%s' --setings", INFO);

	CHECK_INT(r.code, 2);
	CHECK_STR(r.out, "");
	CHECK(strstr(r.err, "unknown option --setings") != NULL);
	r = run(NULL, "exec '%s' --settings now", INFO);
	CHECK_INT(r.code, 2);
	CHECK(strstr(r.err, "unknown argument now") != NULL);
	r = run(NULL, "exec '%s' --help", INFO);
	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "usage: marcel-info ", 19) == 0);
	r = run(NULL, "exec '%s' --version", INFO);
	CHECK_INT(r.code, 0);
	CHECK(strncmp(r.out, "marcel-info ", 12) == 0);
}

TEST(a_full_disk_is_an_error)
{
	CHECK_INT(run(NULL, "exec '%s' --help >/dev/full", INFO).code, 1);
	CHECK_INT(run(NULL, "exec '%s' --settings >/dev/full", INFO).code, 1);
}
