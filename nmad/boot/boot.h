/*
 * How a process learns who it is: its rank, the size of the job, who shares
 * its host, the job's key, and the small values ("my tcp address") that the
 * processes of a job leave for each other before any of them can be reached.
 *
 * Who answers is the launcher, through a client that is found from the
 * environment: PMI-1 on PMI_FD or PMI_PORT (our mpirun, Hydra, Slurm), PMIx
 * where PMIX_RANK is set (Open MPI's mpirun, PRRTE, Slurm's pmix), or nobody,
 * and then the process is a job of one. NMAD_BOOT=auto|pmi|pmi2|pmix|singleton
 * forces; PMI-2 is spoken only if it is forced, since those who speak it on
 * PMI_FD (Slurm, Hydra) answer PMI-1 there as well.
 *
 * Nothing here needs marcel or any other part of nmad: it may be opened first,
 * so that its local rank and size can be given to marcel_init(). A call blocks
 * its kernel thread for one round trip to the launcher (about 50 us; a fence
 * until all have come), allocates, and is made by one thread at a time; abort
 * is the exception. Every failure has been said on stderr, with what was
 * expected and what came, when its -errno is returned; -ECONNRESET means that
 * the launcher is gone.
 */
#ifndef NMAD_BOOT_H
#define NMAD_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <base/compiler.h>
#include <base/option.h>

enum {
	NM_BOOT_KEY_BYTES = 16,
	NM_BOOT_NAME_MAX = 48, /* characters of a value's name */
	/* Bytes of a value: Slurm reads a request of 1024 characters. */
	NM_BOOT_VALUE_MAX = 440,
};

/* Constant after nm_boot_open(), but for `key`. */
struct nm_boot_info {
	const char *client; /* "pmi", "pmi2", "pmix" or "singleton" */
	int rank, size;
	int appnum; /* of its program among those of the job; -1: nobody says */
	int local_rank, local_size; /* among the ranks of my host */
	const int *node;            /* size numbers; ranks with the same one
				     * share a host */
	int nthreads; /* kernel threads of the client's library: they wake
		       * nobody but who asks it */
	/*
	 * Known to the processes of this job and to nobody else; who shows it
	 * is one of us. Valid after the first nm_boot_fence().
	 */
	unsigned char key[NM_BOOT_KEY_BYTES];
};

struct nm_boot;

/*
 * Find the launcher and ask it who we are. From now on programs that this
 * process starts are no part of the job: the connection closes on exec and its
 * environment variables are gone. What was tried and what the environment has
 * is said if it fails, and a warning if srun started several processes and
 * tells them nothing of each other. 0, or -errno and nothing to close: -EINVAL
 * (nonsense in the environment), -EPROTO (nonsense from the launcher),
 * -ETIMEDOUT (no answer to the first question), -ENOMEM, -ECONNRESET.
 */
int nm_boot_open(struct nm_boot **out);

/* Valid until nm_boot_close(). */
const struct nm_boot_info *nm_boot_info(const struct nm_boot *b);

/*
 * Leave a value for the others, who see it after the next fence. A rank gives
 * a name once, of letters, digits, '-', '_' and '.'; the value is any bytes.
 * -EINVAL: empty, too long or a bad name; -EPROTO: the launcher refused.
 */
int nm_boot_put(struct nm_boot *b, const char *name, const void *value,
		size_t bytes);

/* Wait until every rank of the job has called it as often as this one. */
int nm_boot_fence(struct nm_boot *b);

/*
 * The value that `rank` has left before the last fence. Any number of times;
 * best on first use of a peer, not for all peers at the start. *bytes is its
 * length. -ENOENT: it has left none, silently, and some launchers take seconds
 * to say so; -EMSGSIZE: longer than room.
 */
int nm_boot_get(struct nm_boot *b, int rank, const char *name, void *out,
		size_t room, size_t *bytes);

/*
 * The same in two steps that do not block, for who must not: ask for one value,
 * then look until the answer is another than -EAGAIN. One at a time; any other
 * call but abort forgets what was asked. By any thread, but one at a time with
 * all calls. ask: 0, or -EAGAIN: the launcher takes nothing now.
 */
int nm_boot_ask(struct nm_boot *b, int rank, const char *name);
int nm_boot_answer(struct nm_boot *b, void *out, size_t room, size_t *bytes);

/*
 * End the whole job now: say `text` (if not NULL), tell the launcher, which
 * kills the others and exits with `code`, and _exit(code). From any thread, at
 * any time; b may be NULL. In a forked child it ends that child only.
 */
void nm_boot_abort(struct nm_boot *b, int code, const char *text) BASE_NORETURN;

/*
 * A launcher that is gone is missed by who asks it, and no call of MPI does.
 * This descriptor hangs up then (POLLRDHUP), until nm_boot_close(); -1: there
 * is none, and the client calls nm_boot_lost() by itself, or nobody launched
 * us.
 */
int nm_boot_fd(const struct nm_boot *b);

/*
 * It has: end this process, which nobody would end otherwise, and say so. From
 * any thread.
 */
void nm_boot_lost(void) BASE_NORETURN;

/*
 * Leave the job in good order, after which exiting is no failure to the
 * launcher. b is freed whatever is returned. In a forked child: frees only.
 */
int nm_boot_close(struct nm_boot *b);

/* --- for the clients: boot.c, pmi.c, pmi2.c, pmix.c, singleton.c --- */

/*
 * A client. Names have been checked, values are hexadecimal text of at most
 * 2 * NM_BOOT_VALUE_MAX characters. The contracts are those above.
 */
struct nm_boot_client {
	const char *name;
	/* A launcher has set one of these; NULL: none is needed. */
	const char *variables[2];
	/* Fill b->info and b->priv; sets b->has_key if it knows the key. */
	int (*open)(struct nm_boot *b);
	int (*put)(struct nm_boot *b, const char *name, const char *text);
	int (*fence)(struct nm_boot *b);
	int (*get)(struct nm_boot *b, int rank, const char *name, char *out,
		   size_t room);
	/* NULL, both: there is nobody to be asked for a value. */
	int (*ask)(struct nm_boot *b, int rank, const char *name);
	int (*answer)(struct nm_boot *b, char *out, size_t room);
	void (*abort)(struct nm_boot *b, int code);
	int (*close)(struct nm_boot *b, bool forked);
};

extern const struct nm_boot_client nm_boot_pmi, nm_boot_pmi2, nm_boot_pmix,
	nm_boot_singleton;

/* One caller at a time, but for abort, which reads constant fields only. */
struct nm_boot {
	const struct nm_boot_client *client;
	struct nm_boot_info info;
	int *node;    /* info.node, ours to free */
	int fd;       /* as nm_boot_fd() says; the client's to open and close */
	void *priv;   /* the client's */
	bool has_key; /* info.key is valid */
	pid_t pid;    /* who opened it: a forked child must not use it */
};

/* For who lists them. */
extern const struct base_option_table nm_boot_options;

#endif
