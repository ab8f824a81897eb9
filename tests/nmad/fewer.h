/*
 * How often a test of nmad does again what it has done. A sanitizer sees all
 * there is to see within some rounds, and each takes it ten times as long; what
 * comes of very many (a ring that is full, a number that wraps) the same test
 * finds without one.
 */
#ifndef TESTS_NMAD_FEWER_H
#define TESTS_NMAD_FEWER_H

#include <base/compiler.h>

enum { FEWER = BASE_TSAN ? 10 : BASE_ASAN ? 5 : 1 };

#endif
