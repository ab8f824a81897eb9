/*
 * A process of a job, for the tests of launchers: it joins the job through
 * nmad's boot client and then does what its arguments say.
 *
 *   rank WHAT [WHO [NUMBER]]     WHO is the rank that misbehaves
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../nmad/boot/boot.h"

static struct nm_boot *boot;
static const struct nm_boot_info *me;

static void must(int rc)
{
	if (rc != 0) {
		fprintf(stderr, "rank: error %d\n", rc);
		exit(9);
	}
}

static void value_of(int rank, char *out, size_t n)
{
	memset(out, 'a' + rank % 26, n);
}

/* Everyone leaves a value of the greatest size and reads all others'. */
static void exchange(void)
{
	char name[32], want[NM_BOOT_VALUE_MAX], got[NM_BOOT_VALUE_MAX];
	size_t n = 0;

	for (int round = 0; round < 3; round++) {
		snprintf(name, sizeof(name), "value-%d", round);
		value_of(me->rank, want, sizeof(want));
		must(nm_boot_put(boot, name, want, sizeof(want)));
		must(nm_boot_fence(boot));
		for (int r = 0; r < me->size; r++) {
			must(nm_boot_get(boot, r, name, got, sizeof(got), &n));
			value_of(r, want, sizeof(want));
			if (n != sizeof(want) || memcmp(got, want, n) != 0) {
				printf("wrong value of rank %d\n", r);
				exit(8);
			}
		}
	}
}

static void info(void)
{
	char line[256];
	int n;

	must(nm_boot_fence(boot));
	n = snprintf(line, sizeof(line), "%s %d/%d local %d/%d node %d key ",
		     me->client, me->rank, me->size, me->local_rank,
		     me->local_size, me->node[me->rank]);
	for (int i = 0; i < NM_BOOT_KEY_BYTES; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%02x",
			      me->key[i]);
	puts(line);
}

/* Programs that a rank starts are singletons, with any of its descriptors. */
static void child(const char *self)
{
	char command[4096];

	snprintf(command, sizeof(command), "'%s' info", self);
	fflush(stdout);
	if (system(command) != 0)
		exit(7);
	must(nm_boot_fence(boot));
}

/* What a forked child may not do: it fails, and the parent goes on. */
static void forked(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int rc = nm_boot_fence(boot);

		nm_boot_close(boot);
		printf("in the child: %d\n", rc);
		fflush(stdout);
		nm_boot_abort(NULL, 0, NULL);
	}
	exchange();
	waitpid(pid, NULL, 0);
}

/* Also if one of us does not come. */
static void go_on(void)
{
	must(nm_boot_fence(boot));
	must(nm_boot_fence(boot));
	printf("rank %d goes on\n", me->rank);
}

static void misbehave(const char *what, int number)
{
	if (strcmp(what, "exit") == 0) {
		exit(number);
	} else if (strcmp(what, "die") == 0) {
		printf("pid %d\n", getpid());
		fflush(stdout);
		raise(number);
	} else if (strcmp(what, "abort") == 0) {
		nm_boot_abort(boot, number, "the test wants an abort");
	} else if (strcmp(what, "leave") == 0) {
		must(nm_boot_close(boot));
		exit(0);
	} else if (strcmp(what, "late") == 0) {
		go_on();
		must(nm_boot_close(boot));
		exit(number);
	} else if (strcmp(what, "hangup") == 0) {
		close(number);
		pause();
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "info";
	int who = argc > 2 ? atoi(argv[2]) : -1;
	int number = argc > 3 ? atoi(argv[3]) : 0;
	const char *rank = getenv("PMI_RANK"), *fd = getenv("PMI_FD");

	if (strcmp(what, "early") == 0 && rank && atoi(rank) == who)
		return number;
	if (strcmp(what, "hangup") == 0 && fd)
		number = atoi(fd);
	must(nm_boot_open(&boot));
	me = nm_boot_info(boot);
	if (strcmp(what, "info") == 0)
		info();
	else if (strcmp(what, "app") == 0)
		printf("rank %d of program %d\n", me->rank, me->appnum);
	else if (strcmp(what, "exchange") == 0)
		exchange();
	else if (strcmp(what, "child") == 0)
		child(argv[0]);
	else if (strcmp(what, "fork") == 0)
		forked();
	else if (me->rank == who)
		misbehave(what, number);
	else
		go_on();
	must(nm_boot_close(boot));
	return 0;
}
