/*
 * libibverbs, found when a device is there and not before: a process that has
 * none loads neither it nor what it needs. What posts and polls are inline
 * functions of its header, which call the device's code directly.
 *
 * All of these but the texts may take libc's locks, allocate and sleep in the
 * kernel: they are for open(), close() and the clerk (clerk.c), never for who
 * polls; get_cq_event and ack_cq_events do neither, and modify_qp to the state
 * of error is a system call, as closing a socket is.
 */
#ifndef NMAD_DRIVERS_VERBS_LIB_H
#define NMAD_DRIVERS_VERBS_LIB_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/* The header has macros with these names, which would call by the linker. */
#undef ibv_query_port
#undef ibv_reg_mr

#define VERBS_FUNCTIONS(X)                                                     \
	X(fork_init)                                                           \
	X(get_device_list)                                                     \
	X(free_device_list)                                                    \
	X(get_device_name)                                                     \
	X(open_device)                                                         \
	X(close_device)                                                        \
	X(query_device)                                                        \
	X(query_port)                                                          \
	X(query_gid)                                                           \
	X(get_async_event)                                                     \
	X(ack_async_event)                                                     \
	X(alloc_pd)                                                            \
	X(dealloc_pd)                                                          \
	X(reg_mr)                                                              \
	X(dereg_mr)                                                            \
	X(create_comp_channel)                                                 \
	X(destroy_comp_channel)                                                \
	X(create_cq)                                                           \
	X(destroy_cq)                                                          \
	X(get_cq_event)                                                        \
	X(ack_cq_events)                                                       \
	X(create_srq)                                                          \
	X(modify_srq)                                                          \
	X(destroy_srq)                                                         \
	X(create_qp)                                                           \
	X(modify_qp)                                                           \
	X(destroy_qp)                                                          \
	X(create_ah)                                                           \
	X(destroy_ah)                                                          \
	X(wc_status_str)                                                       \
	X(event_type_str)

struct verbs_lib {
#define X(name) typeof(ibv_##name) *name;
	VERBS_FUNCTIONS(X)
#undef X
};

/* Valid after nm_verbs_lib_load(). */
extern struct verbs_lib nm_verbs_lib;

/*
 * Load it, once; it stays. 0; -ENODEV: not to be had; `loud`: with a line that
 * says why.
 */
int nm_verbs_lib_load(bool loud);

#endif
