/*
 * The settings of pioman as the tables that it reads them from itself, for who
 * shows them all. Their form is internal (<base/option.h>).
 */
#ifndef PIOMAN_SETTINGS_H
#define PIOMAN_SETTINGS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct base_option_table;

/* The i-th table, always in the same order; NULL: there are no more. Anyone, at
 * any time. */
const struct base_option_table *piom_settings(size_t i);

#ifdef __cplusplus
}
#endif

#endif
