/*
 * The file: its name, its header, its chunks. Calls fail by -errno.
 */
#ifndef MARCEL_TRACE_FILE_H
#define MARCEL_TRACE_FILE_H

#include "ring.h"

/*
 * Make the file, under the name that it has until the rank is known. What is
 * wrong with `path` is said. chunk: bytes of those of events.
 */
int marcel_trace_file_open(const char *path, int nvp, size_t chunk);

/* A chunk of events of that ring, whose room on the disk is had; or NULL,
 * errno. */
struct marcel_trace_head *marcel_trace_file_map(unsigned ring);

/* Its owner writes to it no more; what is unused of it goes back. */
void marcel_trace_file_unmap(struct marcel_trace_head *h);

/* Bytes of events that a chunk holds. */
size_t marcel_trace_file_room(void);

/* Another chunk, which is complete. Anyone, while the file is open. */
void marcel_trace_file_append(enum marcel_trace_chunk_type type,
			      const void *data, size_t bytes);
void marcel_trace_file_append_clock(enum marcel_trace_chunk_type type);
void marcel_trace_file_append_modules(void);

/* The rank: so the file is called from now on. size 0: there is no job. */
void marcel_trace_file_name(int rank, int size);

void marcel_trace_file_close(void);

/* Nothing was recorded: it goes away. */
void marcel_trace_file_drop(void);

/* In a child of fork(): it is the parent's. */
void marcel_trace_file_forked(void);

/* The path that it was asked for. */
const char *marcel_trace_file_path(void);

#endif
