/*
 * The formulas of the table of algorithms (madmpi/coll/choose.h).
 */
#ifndef TESTS_MADMPI_COLL_FORMULA_H
#define TESTS_MADMPI_COLL_FORMULA_H

/* With p processes and n bytes. What is no formula fails the test. */
long formula_value(const char *formula, long p, long n);

#endif
