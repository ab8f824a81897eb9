/*
 * Which host this is: the same text in two processes, the same kernel.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

enum { BASE_HOST_ID = 40 };

/* The kernel's boot id, or else the host's name; zeros behind it. */
void base_host_id(char id[BASE_HOST_ID]);

#endif
