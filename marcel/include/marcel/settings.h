/*
 * The settings of marcel as the tables that it reads them from itself, for who
 * shows them all. Their form is internal (<base/option.h>).
 */
#ifndef MARCEL_SETTINGS_H
#define MARCEL_SETTINGS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct base_option_table;

/* The i-th table, always in the same order; NULL: there are no more. Anyone, at
 * any time. */
const struct base_option_table *marcel_settings(size_t i);

#ifdef __cplusplus
}
#endif

#endif
