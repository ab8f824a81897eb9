/*
 * mpirun --help: what a newcomer needs first, then all options, then what the
 * exit code says.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

enum { COLUMN = 23, WIDTH = 80 }; /* where the options' texts begin, end */

/* clang-format off */
static const char head[] =
	"usage: mpirun [options] program [arguments] [: [options] program ...]\n"
	"       mpirun -configfile FILE\n"
	"Start programs on this machine, as one MPI job.\n"
	"\n"
	"Examples:\n"
	"  mpirun -n 4 ./solver                  four processes\n"
	"  mpirun -n 4 --bind-to core ./solver   each on a core of its own\n"
	"  mpirun -n 2 --tag-output ./solver     who says what\n"
	"  mpirun -n 2 --timeout 60 ./solver     for a minute at most\n"
	"  mpirun -n 1 ./master : -n 8 ./worker  two programs, nine processes\n"
	"  mpirun -n 2 -x NMAD_DRIVER=tcp ./solver\n"
	"                                        over TCP, not shared memory\n";

static const char tail[] =
	"\n"
	"The exit code is\n"
	"  0              if all processes have exited with 0\n"
	"  what it was    for the first that exited with another, or that has called\n"
	"                 MPI_Abort\n"
	"  128 + signal   for the first that a signal has killed\n"
	"  2              if the command line is wrong; then nothing has been started\n"
	"  123            if MARCEL_DEADLOCK=abort has found a deadlock\n"
	"  124            if --timeout has ended the job\n"
	"  126, 127       if a program cannot be run, or is not found\n"
	"\n"
	"When a process dies, the others are ended, but with --keep-going only by\n"
	"MPI_Abort, --timeout and signals to mpirun. One Ctrl-C asks the processes to\n"
	"end, a second one ends them. Standard input goes to rank 0.\n"
	"\n"
	"More: \"man mpirun\" about all this; \"man marcel-env\" lists the environment\n"
	"variables that change how threads, networks and MPI work, marcel-info shows\n"
	"what they are here. On several machines srun (Slurm), mpiexec.hydra (MPICH) or\n"
	"Open MPI's mpirun start the same programs.\n";
/* clang-format on */

static const char *const headings[] = {
	[OF_PROGRAM] = "Of a program (each after a colon has its own)",
	[OF_PLACE] = "Where processes run",
	[OF_OUTPUT] = "What they print",
	[OF_END] = "When something fails, or takes long",
	[OF_ELSE] = "Else",
};

/* Lines of text behind what is at column `at`. */
static void print_text(const char *line, int at)
{
	for (;;) {
		int n = (int)strcspn(line, "\n");

		printf("%*s%.*s\n", COLUMN - at, "", n, line);
		if (line[n] == '\0')
			return;
		line += n + 1;
		at = 0;
	}
}

/* What its value may be, in lines of the terminal's usual width. */
static void print_words(const struct option *t)
{
	char text[256], *line = text;

	option_words(t, text, sizeof(text));
	while (strlen(line) > WIDTH - COLUMN) {
		char *end = line + WIDTH - COLUMN;

		while (*end != ' ')
			end--;
		*end = '\0';
		print_text(line, 0);
		line = end + 1;
	}
	print_text(line, 0);
}

/* "  -n N, -np N", and the text beside it, or below where it is too long. */
static void print(const struct option *t)
{
	int at = 0;

	for (int i = 0; i < 2 && t->names[i] != NULL; i++) {
		at += printf("%s%s", i == 0 ? "  " : ", ", t->names[i]);
		if (t->value != NULL)
			at += printf(" %s", t->value);
	}
	if (at > COLUMN - 2)
		at = printf("\n") - 1;
	print_text(t->help, at);
	if (t->takes == TAKES_WORD)
		print_words(t);
}

void help_print(void)
{
	fputs(head, stdout);
	for (int group = OF_PROGRAM; group <= OF_ELSE; group++) {
		printf("\n%s:\n", headings[group]);
		for (const struct option *t = option_table; t->help; t++)
			if ((int)t->group == group)
				print(t);
	}
	fputs(tail, stdout);
}
