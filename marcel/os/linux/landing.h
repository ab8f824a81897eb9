/*
 * What the unwinder does in a frame of C++, or of C with -fexceptions: the
 * table of call sites in the function's language-specific data (Itanium C++
 * ABI, "Exception Handling Tables"; the same for both).
 *
 * Compilers list there what may throw, which is calls, and not the instructions
 * between. Who is interrupted there and unwound finds nothing, and C++ ends the
 * process; or it finds the landing pad of calls around, which relies on what
 * registers hold at these. And what catches everything may be the end of the
 * process, or keep what is to end the thread.
 */
#ifndef MARCEL_OS_LINUX_LANDING_H
#define MARCEL_OS_LINUX_LANDING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the frame, which is at this offset in its function, can be unwound as
 * by an exception; `exact`: not in a call there. lsda NULL: there is nothing to
 * do in it. False: or the table is not understood. From signal handlers, too.
 */
bool os_landing_passes(const void *lsda, uintptr_t offset, bool exact);

#endif
