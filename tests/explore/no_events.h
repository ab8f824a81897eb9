/*
 * In scenarios nothing is recorded of what happens, nor asked whether it is:
 * included before each.
 */
#ifndef TESTS_EXPLORE_NO_EVENTS_H
#define TESTS_EXPLORE_NO_EVENTS_H

#include <base/trace.h>

#define MARCEL_TRACE_TRACE_H /* marcel's own */

/* Neither done nor left unused. */
#define NOT_DONE(a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))

#define marcel_trace_is_on()               false
#define marcel_trace_is_here()             false
#define marcel_trace_now()                 0
#define marcel_trace(kind, a, b)           NOT_DONE(kind, a, b)
#define marcel_trace_more(k, a, b, c, ...) NOT_DONE(a, b, c)
#define marcel_trace_put(kind, a, b)       NOT_DONE(kind, a, b)
#define marcel_trace_vp(vp, kind, a, b)    NOT_DONE(vp, a, b)
#define marcel_trace_vp_text(vp, k, t, s)  NOT_DONE(vp, t, s)
#define marcel_trace_text(kind, t, s)      NOT_DONE(kind, t, s)
#define marcel_trace_enter(vp, t)          NOT_DONE(vp, t, 0)
#define marcel_trace_leave(vp, s, k, t)    NOT_DONE(vp, s, t)

#endif
