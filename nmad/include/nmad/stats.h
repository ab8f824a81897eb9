/*
 * What nmad has done so far, in numbers: for tools, for tests, and for who
 * wonders where the time goes. NMAD_STATS=1 prints them when nmad stops, a line
 * each on stderr, "nmad[PID]: NAME VALUE", and the system calls of each rail; a
 * dump (MARCEL_DUMP_SIGNAL) shows those that are not 0.
 *
 * All count from the nm_init() that started nmad, always.
 *
 *   lock_taken      times somebody entered the core
 *   lock_busy       tries that found somebody inside: what they had was left
 *                   to him; or tried again, by those who may wait
 *   rail_taken      times somebody owned a rail
 *   rail_busy       tries that found it owned
 *   blocks          pieces of memory taken for messages that nobody has asked
 *                   for, transfers and answers
 *   slabs           mappings from which these pieces are cut
 *   refills         times the match tables were looked after for memory
 *   sends           sends and receives that were started
 *   receives
 *   packets_out     packets formed, and packets that came
 *   packets_in
 *   eager_out       messages that left with their payload, and that came so
 *   eager_in
 *   cut_out         of those: in parts that left over several rails at once,
 *   cut_in          and that came so
 *   rdv_out         messages announced, whose payload follows when a receive
 *   rdv_in          has matched; and that were announced to us
 *   early           of those that came: before their turn or their session
 *   unexpected      before their receive
 *   sys_sends       system calls of drivers that send to the network,
 *   sys_receives    receive from it,
 *   sys_looks       ask which connection has got something, which peer died,
 *   sys_copies      copy between processes,
 *   sys_bells       wake a process that sleeps
 *
 * What opens, connects, falls asleep and closes is not among the system calls.
 */
#ifndef NMAD_STATS_H
#define NMAD_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The texts are constants, of the process. */
struct nm_counter {
	const char *name; /* as above; stays what it means, others may come */
	const char *help; /* what is counted, in a line */
	uint64_t value;   /* a sum; never less while nmad runs */
};

/*
 * The first n counters, always in the same order; returns how many there are,
 * so that nm_stats_read(NULL, 0) says for how many to have room. All 0 while
 * nmad does not run. From any thread at any time but beside nm_init() and
 * nm_exit(); from a signal handler, too. Does not block. Each value is exact
 * once those who send and poll are still, and meanwhile a little late; two of
 * them need not be of the same moment.
 */
size_t nm_stats_read(struct nm_counter *out, size_t n);

#ifdef __cplusplus
}
#endif

#endif
