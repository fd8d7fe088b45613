/* Checks in debug builds (Meson's option `debug`).
 * INVARIANT(condition) states what the code around it relies on, whatever the input. A debug build checks it and aborts
 * with file and line; a release build does not evaluate it. It is never for mistakes of a caller or of a file. */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

#ifdef TUTTI_DEBUG
#undef NDEBUG
#include <assert.h>
#define TUTTI_IS_DEBUG 1
#define INVARIANT(condition) assert(condition)
#else
#define TUTTI_IS_DEBUG 0
#define INVARIANT(condition) ((void)sizeof(!(condition)))
#endif

#endif
