/*
 * Who finds out that nothing in this process can move any more, and says so:
 * MARCEL_DEADLOCK.
 */
#ifndef MARCEL_THREAD_HANG_H
#define MARCEL_THREAD_HANG_H

/* In the order of the option's choices. */
enum marcel_hang_mode {
	MARCEL_HANG_OFF,
	MARCEL_HANG_REPORT,
	MARCEL_HANG_ABORT
};

/* The exit code of a process, or job, that was ended for that. */
enum { MARCEL_HANG_EXIT = 123 };

/*
 * The runtime runs, or is about to end. quiet_s: after which it is said that
 * nothing moves, though something might; 0: never. `dump_signal`: ours, or 0.
 * Where there is no kernel thread for it that is said, and all else goes on.
 */
void marcel_hang_init(enum marcel_hang_mode mode, unsigned quiet_s,
		      int dump_signal);
void marcel_hang_exit(void);

/* Somebody asks for a report, dead or not. Signal-safe; nothing if off. */
void marcel_hang_ask(void);

/* In the child of a fork: nobody looks. */
void marcel_hang_forked(void);

#endif
