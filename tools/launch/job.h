/*
 * mpirun: what its parts share. One process, one thread, one poll loop: the
 * ranks are its children, each with a socket on which it speaks PMI-1 and two
 * pipes for what it prints. Whatever goes wrong first ends the job: it is said
 * once, the others get SIGTERM and, a second later, SIGKILL. With --keep-going
 * the others go on without a rank that fails, and the job ends with its last.
 *
 *   options.c   the command line; help.c and complete.c show its table
 *   bind.c      which CPUs each may use
 *   children.c  start, signal, reap
 *   pmi.c       the server of the ranks' requests
 *   output.c    lines of the ranks -> our stdout and stderr
 *   hang.c      whether no rank can ever go on: MARCEL_DEADLOCK
 *   mpirun.c    the loop, signals, deadlines, the exit code
 */
#ifndef LAUNCH_JOB_H
#define LAUNCH_JOB_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
	RANKS_MAX = 4096,
	LINE = 4096,        /* bytes of a PMI request, newline included */
	PIECE = 16384,      /* a line of output longer than this is split */
	EXIT_USAGE = 2,     /* the command line is wrong */
	EXIT_TIMEOUT = 124, /* --timeout, as of timeout(1) */
	EXIT_NO_EXEC = 126, /* the program cannot be run */
	EXIT_NO_FILE = 127, /* the program does not exist */
	GRACE_MS = 1000,    /* from SIGTERM to SIGKILL */
	LOST_MS = 500,      /* from a lost connection to "it is dead" */
	PARTIAL_MS = 50,    /* a prompt without newline on a terminal */
	KVS_BUCKETS = 1021,
};

/* What each rank is bound to. */
enum bind {
	BIND_NONE,
	BIND_HWTHREAD,
	BIND_CORE,
	BIND_L3CACHE,
	BIND_NUMA,
	BIND_PACKAGE
};

/* A program of the job, with ranks first..first + ranks - 1. */
struct program {
	int first, ranks;
	const char *soft;       /* NULL: `ranks` it is */
	const char *dir, *path; /* NULL: as we are */
	char **env;             /* variables that are set: "VAR=VALUE" */
	int nenv;
	char **argv; /* ends with NULL */
};

/* What the command line says. */
struct options {
	struct program *programs;
	int nprograms;
	int ranks; /* of all */
	enum bind bind;
	bool report; /* the bindings */
	bool tag_output;
	bool keep_going;
	int timeout_s;      /* 0: none */
	const char *output; /* the directory for it; NULL: our stdout */
};

/* Where lines go: our stdout or stderr. */
struct sink {
	int fd;
	const char *name;
	char *buf; /* what is not written yet: buf[at..len) */
	size_t at, len, room;
	int broken; /* errno of the write that failed; then all is dropped */
};

/* What a rank prints: one pipe. */
struct stream {
	int fd; /* -1: closed */
	struct sink *sink;
	size_t len;    /* of the unfinished line */
	bool in_line;  /* a part of it has been written already */
	long flush_at; /* ms; when to show an unfinished line; 0: never */
	char buf[PIECE];
};

/* A child and its connection. */
struct rank {
	int number;
	int program;
	pid_t pid;         /* also its process group; 0: reaped */
	int pmi;           /* -1: closed */
	bool joined, left; /* it has sent init, finalize */
	bool gone;         /* no barrier waits for it any more */
	bool in_barrier;
	bool failed;  /* the others go on without it: --keep-going */
	long lost_at; /* ms; when the connection broke; 0: it did not */
	size_t len;
	char in[LINE];
	struct stream out[2];
	int hang_fd;            /* hang.c's socket, or -1 */
	struct hang_rank *hang; /* or NULL */
};

struct kvs_entry;

struct job {
	struct options opt;
	struct rank *ranks;
	int running;          /* ranks that are not reaped */
	int members;          /* those that a barrier waits for */
	int waiting;          /* those in the barrier */
	int joined;           /* those that have called MPI_Init */
	int code;             /* the exit code so far */
	bool failed;          /* the job is being ended */
	long kill_at, end_at; /* ms: SIGKILL, --timeout; 0: not set */
	int hang_phase;       /* hang.c's */
	long hang_due;  /* ms; when its report is printed; 0: none is due */
	int interrupts; /* signals that ask for an end, so far */
	int key_fd;     /* the job key, for the ranks */
	char kvs_name[64];
	struct kvs_entry *kvs[KVS_BUCKETS];
	struct sink sinks[2];
	cpu_set_t *places; /* for rank i: places[i % nplaces] */
	int nplaces;       /* 0: ranks are left alone */
	/* What a child gets back, since mpirun changed its own. */
	sigset_t old_mask;
	struct sigaction old_chld;
	struct rlimit old_limit;
	/* A terminal is read by us and passed on: the ranks are in process
	 * groups of their own, which may not read it. */
	int tty_to; /* the pipe to rank 0; -1: stdin is inherited, or ended */
	size_t tty_len;
	char tty_buf[4096];
};

/* options.c: exits with EXIT_USAGE after a message, 0 after --help. */
void options_parse(struct options *o, int argc, char **argv);

/* bind.c: false: there is no kind of that name; finds the job's places. */
bool bind_named(const char *text, enum bind *out);
void bind_find(struct job *j);

/* children.c */
void children_start(struct job *j);
void children_reap(struct job *j);
void children_signal(struct job *j, int sig);

/*
 * Whether the kernel is ending its process, which it may take long for on a
 * machine that has much else to do.
 */
bool child_is_exiting(const struct rank *r);

/* pmi.c: read and answer what the rank has asked; */
void pmi_serve(struct job *j, struct rank *r);
void pmi_define(struct job *j, const char *key, const char *value);
/* The rank has ended, or is no part of the job any more. */
void pmi_without(struct job *j, struct rank *r);
void pmi_forget(struct job *j);

/* output.c: where a rank prints to instead of a pipe, or -1; */
int output_open(const struct job *j, int rank, const char *name);
void stream_read(struct job *j, struct stream *s, int rank);
void stream_finish(struct job *j, struct stream *s, int rank);
void stream_show_partial(struct job *j, struct stream *s, int rank);
void sink_flush(struct sink *s);
bool sink_is_full(const struct sink *s);

/*
 * hang.c: the rank's end of a socket, if its program wants that, else -1; read
 * and judge what the rank has said; it has ended.
 * hang_ask(): every rank is to say what it waits for; false: none can. What
 * they say is printed by hang_look(), at hang_due at the latest.
 */
int hang_open(struct rank *r, const struct program *p);
void hang_serve(struct job *j, struct rank *r);
void hang_close(struct job *j, struct rank *r);
bool hang_ask(struct job *j);
void hang_look(struct job *j, long now);

/* mpirun.c */
long now_ms(void);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *must(void *memory);
/* End the job: say why, unless something else was first, and set the code. */
void job_fail(struct job *j, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, of one rank: with --keep-going the others go on without it. */
void rank_fail(struct job *j, struct rank *r, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
