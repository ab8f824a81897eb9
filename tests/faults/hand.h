/*
 * The hand that inflicts a fault on the victim, or on its host, a moment after
 * it was asked to, so that the victim is inside a call by then. What has to
 * happen inside the process is done by a thread of it, the rest by a child that
 * was made before MPI began and has nothing of MPI's.
 */
#ifndef TESTS_FAULTS_HAND_H
#define TESTS_FAULTS_HAND_H

#include <stdbool.h>

enum fault {
	FAULT_KILL,    /* SIGKILL */
	FAULT_FREEZE,  /* SIGSTOP, and SIGKILL a while later */
	FAULT_PAUSE,   /* SIGSTOP, and SIGCONT a while later */
	FAULT_VANISH,  /* _exit() */
	FAULT_EXIT,    /* exit() without MPI_Finalize */
	FAULT_ABORT,   /* MPI_Abort() */
	FAULT_RESET,   /* the TCP connections of the process are reset */
	FAULT_CUT,     /* its host loses the carrier */
	FAULT_BLINK,   /* the same, for a moment */
	FAULT_SILENCE, /* packets from and to its host are dropped */
	FAULT_COUNT
};

/* By its name; FAULT_COUNT: there is none such. */
enum fault fault_of(const char *name);

/* In the victim, before MPI_Init. `host`: where it runs. */
void hand_begin(enum fault fault, int host);

/* Now, nearly. */
void hand_ask(void);

/* Until it is done: nothing more will happen, if this process lives on. */
void hand_wait(void);

/* After all; of descriptors none is left. */
void hand_end(void);

#endif
