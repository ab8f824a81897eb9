/*
 * marcel-info: what a program on marcel would find here. It starts the runtime
 * as the environment says and shows its VPs and stacks, the kernel, and every
 * setting with its source.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>

#include "../../marcel/sched/vp.h"
#include "../../marcel/thread/arena.h"
#include "info.h"

enum { EXIT_BAD = 1, EXIT_USAGE = 2 };

enum {
	TOPOLOGY = 1,
	STACKS = 2,
	KERNEL = 4,
	ALGORITHMS = 8,
	SETTINGS = 16,
	ALL = 31,
	VARIABLES = 32
};

/* clang-format off */
static const char help[] =
	"usage: marcel-info [options]\n"
	"Show what a program on marcel would find here; without options: all.\n"
	"\n"
	"Examples:\n"
	"  marcel-info --topology               how many threads run at a time, and where\n"
	"  marcel-info --settings               all environment variables that count\n"
	"  NMAD_DRIVER=tpc marcel-info --settings\n"
	"                                       whether they are spelled right\n"
	"  mpirun -n 2 --bind-to core --tag-output marcel-info --topology\n"
	"                                       what each process of a job has\n"
	"\n"
	"Options:\n"
	"  --topology           levels of the machine, virtual processors, their CPUs\n"
	"  --stacks             stacks of threads and what guards them\n"
	"  --kernel             what the kernel has of what is used\n"
	"  --algorithms         of the collective operations of MPI: when each is used,\n"
	"                       for p processes and n bytes, and its cost\n"
	"  --settings           every setting of marcel, pioman, nmad and madmpi: its\n"
	"                       value, whether that is the default or from the\n"
	"                       environment, and bad ones\n"
	"  --variables          not among all: each setting on a line, whatever the\n"
	"                       environment says: module, name, default, what a bad\n"
	"                       value is not, meaning; tabs between\n"
	"  -h, --help           this text\n"
	"  --version            the version\n"
	"\n"
	"The exit code is\n"
	"  0                    if all is well\n"
	"  1                    if a setting is bad, nobody reads it or the runtime does\n"
	"                       not start\n"
	"  2                    for a bad argument\n";
/* clang-format on */

static void __attribute__((noreturn)) finish(bool good)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("marcel-info");
		exit(EXIT_BAD);
	}
	exit(good ? 0 : EXIT_BAD);
}

static unsigned part_of(const char *option)
{
	static const struct {
		const char *name;
		unsigned part;
	} parts[] = {
		{ "--topology", TOPOLOGY }, { "--stacks", STACKS },
		{ "--kernel", KERNEL },     { "--algorithms", ALGORITHMS },
		{ "--settings", SETTINGS }, { "--variables", VARIABLES },
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(parts); i++)
		if (strcmp(parts[i].name, option) == 0)
			return parts[i].part;
	return 0;
}

static unsigned parse(int argc, char **argv)
{
	unsigned parts = 0, part;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0 ||
		    strcmp(argv[i], "--help") == 0) {
			fputs(help, stdout);
			finish(true);
		}
		if (strcmp(argv[i], "--version") == 0) {
			printf("marcel-info (marcel) %s\n", MARCEL_VERSION);
			finish(true);
		}
		part = part_of(argv[i]);
		if (part == 0) {
			fprintf(stderr,
				"marcel-info: unknown %s %s (see marcel-info "
				"--help)\n",
				argv[i][0] == '-' ? "option" : "argument",
				argv[i]);
			exit(EXIT_USAGE);
		}
		parts |= part;
	}
	return parts != 0 ? parts : ALL;
}

/* --- what was started --- */

static void print_level(const struct marcel_level *l, int depth)
{
	struct marcel_vp *vp;

	printf("%*s%s %u", 2 + 2 * depth, "", marcel_level_name(l->kind),
	       l->index);
	if (l->vp >= 0) {
		vp = &marcel_sched.vps[l->vp];
		if (l->kind != MARCEL_LEVEL_VP)
			printf(", vp %d", l->vp);
		printf(": cpu %d", vp->cpu);
	}
	printf("\n");
	for (unsigned i = 0; i < l->nchildren; i++)
		print_level(l->children[i], depth + 1);
}

static void print_topology(void)
{
	printf("topology: %d VP%s, %s%s\n", marcel_nvp(),
	       marcel_nvp() == 1 ? "" : "s",
	       marcel_sched.bind ? "each bound to its CPU" : "not bound",
	       marcel_sched.oversubscribed ? ", more than CPUs" : "");
	print_level(marcel_topo_machine(), 0);
}

static void print_stacks(void)
{
	static const char *const names[] = {
		[MARCEL_GUARDS_ADVICE] = "MADV_GUARD_INSTALL",
		[MARCEL_GUARDS_MPROTECT] = "mprotect",
		[MARCEL_GUARDS_CANARY] = "a look at each switch",
	};
	struct marcel_arena_counts n;

	marcel_arena_count(&n);
	printf("stacks\n");
	printf("  %-20s %zu bytes, at least %zu\n", "size",
	       marcel_sched.stacksize, marcel_stack_min());
	printf("  %-20s %s, %zu bytes each\n", "guards",
	       names[marcel_arena_guards()], marcel_arena_guard_bytes());
	if (marcel_arena_guards() == MARCEL_GUARDS_MPROTECT)
		printf("  %-20s %u more; stacks beyond are looked at\n",
		       "guards to be had", n.budget);
}

/* False: the runtime does not start; why is on stderr. */
static bool print_runtime(unsigned parts)
{
	if (marcel_init(NULL) < 0) {
		printf("topology, stacks: marcel does not start\n");
		return false;
	}
	if (parts & TOPOLOGY)
		print_topology();
	if (parts & STACKS)
		print_stacks();
	marcel_end();
	return true;
}

int main(int argc, char **argv)
{
	unsigned parts = parse(argc, argv);
	bool good = true;

	if (parts & KERNEL)
		kernel_print();
	if (parts & (TOPOLOGY | STACKS))
		good = print_runtime(parts);
	if (parts & ALGORITHMS)
		algorithms_print();
	if (parts & SETTINGS)
		good &= settings_print();
	if (parts & VARIABLES)
		settings_list();
	finish(good);
}
