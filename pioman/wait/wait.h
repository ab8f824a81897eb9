/*
 * What waiting needs inside pioman.
 */
#ifndef PIOMAN_WAIT_WAIT_H
#define PIOMAN_WAIT_WAIT_H

/*
 * Between two looks at something that another thread does soon: lets another
 * ready user thread run, or the kernel another kernel thread. Never parks.
 */
void piom_wait_relax(void);

#endif
