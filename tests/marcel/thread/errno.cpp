/* The same program as C++. */
#include "errno.c"
