/*
 * The end of the process: one thread is in exit(), and calling exit() again,
 * by it or by another thread, would lose the exit code of the first call.
 */
#ifndef MADMPI_PROC_ENDING_H
#define MADMPI_PROC_ENDING_H

#include <stdbool.h>

#include <base/compiler.h>

/*
 * The caller is in exit(): it is the thread that ends the process. If another
 * thread does that already, the caller waits for ever.
 */
void madmpi_ending_begin(void);

bool madmpi_ending_has_begun(void);

/* Wait for ever if another thread ends the process; else return at once. */
void madmpi_ending_wait(void);

/*
 * End the process with this code: by exit(), or, if the caller is in exit()
 * already, without the exit handlers that are left.
 */
void madmpi_ending_exit(int code) BASE_NORETURN BASE_COLD;

/* In the child of a fork(), which no thread ends yet. */
void madmpi_ending_forked(void);

#endif
