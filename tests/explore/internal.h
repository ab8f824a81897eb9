/*
 * The explorer's parts, in the order in which an access passes through them:
 * memory.c announces a step, search.c picks whose step is next and which
 * message it reads, dpor.c finds out who should have been picked before, too,
 * thread.c switches there, memory.c makes the step and seq.c keeps the order of
 * seq_cst ones; race.c watches plain accesses, trace.c tells the story.
 *
 * All state is in one block outside the executable's data, which is put back
 * before each execution.
 */
#ifndef TESTS_EXPLORE_INTERNAL_H
#define TESTS_EXPLORE_INTERNAL_H

#include <setjmp.h>
#include <ucontext.h>

#include "explore.h"
#include "explore_atomic.h"

enum {
	THREADS_MAX = 7, /* thread 0 runs setup and finish */
	CLOCKS = 8,      /* at least as many; a round number is faster */
	LOCS_MAX = 80,
	MSGS_MAX = 100, /* of one word in one execution */
	SEQ_MAX = 256,  /* seq_cst accesses of one execution, and one */
	STEPS_MAX = 1000,
	OPTIONS_MAX = 128,
	NAMES_MAX = 64,
	GUESSES = 256,   /* where a word is looked for first */
	SPIN_MAX = 4,    /* words one spin loop looks at */
	SPINS_MAX = 500, /* after so many a loop never gives up */
};

/* Of seq_cst accesses, numbered from 1. */
struct seq_set {
	uint64_t bits[SEQ_MAX / 64];
};

/* What happened before: of each thread so much, of each word such a message. */
struct view {
	uint16_t clock[CLOCKS];
	uint8_t seen[LOCS_MAX];
	struct seq_set seq;
};

struct msg {
	uint64_t value;
	int step;         /* that wrote it, or 0 */
	int seq;          /* the seq_cst access that wrote it, or 0 */
	struct view view; /* zero unless a release */
};

/* An atomic word, known since its first access. */
struct loc {
	const void *addr;
	unsigned size;
	int n;     /* messages */
	int first; /* older ones belong to former uses of this memory */
	int last_write, last_load; /* steps; 0: none yet */
	struct seq_set seq_accesses;
	struct msg msg[MSGS_MAX];
};

enum kind {
	OP_LOAD,
	OP_STORE,
	OP_RMW,
	OP_CAS,
	OP_WAIT,
	OP_WAKE,
	OP_RELAX,
	OP_CHOOSE,
};

/* What a thread is about to do. */
struct op {
	enum kind kind;
	enum explore_rmw rmw;
	int loc;
	unsigned shift; /* bits: a futex word inside a larger one */
	memory_order order, fail;
	bool weak;
	uint64_t value, expected;
	int n; /* of choose and wake */
	const struct explore_site *site;
};

/* How a step can go besides "reads message number n". */
enum { WRITES = 240, SPURIOUS, SPIN_ON, SPIN_OUT };

/* One way to go on: this thread makes its step like that. */
struct option {
	uint8_t thread;
	uint8_t how; /* message read, or one of the above */
	uint8_t loc;
	bool writes;
};

/* Of each thread the number of the last step that comes before something. */
struct steps {
	uint16_t of[CLOCKS];
};

/* What was done at a node: its first one is where step 1 is made. */
struct step {
	uint8_t thread;
	int load_before;    /* the load before it of this word, if it is one */
	struct steps after; /* itself, and what comes before it */
};

/* A point where the execution could go on in several ways. */
struct node {
	struct step step;
	unsigned threads; /* bits: those whose options are to be tried */
	unsigned todo;    /* of these, those that are not among them yet */
	int n, cur;
	struct option option[OPTIONS_MAX];
	int nsleep; /* need not be tried: tried before, nothing met since */
	struct option sleep[OPTIONS_MAX];
};

enum state {
	READY,   /* to be run up to its next step */
	PENDING, /* has announced a step */
	FUTEX,   /* sleeps on op.loc */
	PARKED,
	SPINNING, /* until a word it looked at changes */
	DONE,
};

struct thread {
	const char *name;
	void (*fn)(void *arg);
	void *arg;
	enum state state;
	bool may_sleep; /* for ever */
	struct op op;
	uint8_t how; /* the option picked */
	struct view view;
	struct steps before; /* its next step */
	bool token;
	struct view token_view;
	struct steps token_before;
	int spurious_cas, spurious_futex;
	/* the spin loop: words and messages seen since the last relax */
	int nspin;
	struct {
		int loc, msg;
	} spin[SPIN_MAX];
	bool spin_out, spin_forced;
	int spins;
	/* thread.c's */
	bool made, started;
	jmp_buf base, here;
	ucontext_t uc;
	char *stack;
	char *tls;
};

struct trace {
	uint8_t thread;
	const char *what;
	const struct explore_site *site;
	int loc;
	int order; /* -1: none */
	bool reads, writes;
	int msg, newest;
	uint64_t got, put;
};

struct name {
	const char *p;
	size_t bytes;
	char text[32];
};

enum outcome { RUNNING, COMPLETE, CUT, FAILED };

struct explorer {
	jmp_buf outside; /* where a failure in setup or finish goes */
	int mutant;      /* the access that is weaker than written; or 0 */
	uint64_t bound;  /* of executions */

	/* the scenario */
	uint64_t executions, cuts;
	uint64_t outcomes, expected;
	bool has_expected;
	const char *expected_error;
	int nodes, nodes_max;
	struct node node[STEPS_MAX];

	/* one execution */
	enum outcome outcome;
	int threads, current, depth;
	int fresh;    /* the first step that no earlier execution made */
	bool running; /* threads take turns: not in setup and finish */
	void (*finish)(void);
	int spurious_cas, spurious_futex;
	struct thread thread[THREADS_MAX];
	uint32_t token_word[THREADS_MAX]; /* never written: a place */
	int seqs;
	struct seq_set seq_after[SEQ_MAX]; /* who is later in S */
	int locs;
	struct loc loc[LOCS_MAX];
	uint8_t loc_guess[GUESSES]; /* by address; of any execution */
	bool named;                 /* an earlier execution has */
	int names;
	struct name name[NAMES_MAX];
	int traces;
	struct trace trace[2 * STEPS_MAX];
	char error[512];
	char error_more[512];
};

extern struct explorer *X;

static inline struct thread *self(void)
{
	return &X->thread[X->current];
}

/* search.c */
void search_next(void); /* whose step is next; returns when it is ours */
void search_end(enum outcome o);

/* dpor.c */
void dpor_step(struct node *n); /* the option picked is about to be made */
void dpor_join(struct steps *to, const struct steps *from);

/* thread.c */
void threads_init(void);
void threads_reset(void);
void thread_resume(int t);
bool thread_is_tls(const void *p);

/* memory.c */
void view_join(struct view *to, const struct view *from);
void thread_wake_spinners(int loc);

/* seq.c */
void seq_join(struct seq_set *to, const struct seq_set *from);
bool seq_may_load(const struct thread *t, int loc, int m);
/* After the message's view was joined; before the write has a message. */
void seq_load(struct thread *t, int loc, int m);
int seq_write(struct thread *t, int loc);

/* race.c */
enum race { RACE_READ, RACE_WRITE, RACE_ATOMIC, RACE_GONE };
void race_init(void); /* before threads_init() */
void race_reset(void);
void race_access(const void *p, size_t bytes, enum race kind, const void *pc);

/* trace.c */
void trace_add(const char *what, const struct explore_site *s, int loc,
	       int order);
void trace_read(int msg, uint64_t got);
void trace_write(uint64_t put);
void trace_print(void);
const char *trace_address(const void *p, char *out, size_t bytes);
const char *trace_source(const void *pc, char *out, size_t bytes);

#endif
