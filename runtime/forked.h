/* Children of fork(): the threads of drivers and of this library are not in them, so that calls would wait for ever. */
#ifndef RUNTIME_FORKED_H
#define RUNTIME_FORKED_H

#include "tutti.h"

/* Notes that this process uses drivers from now on; TUTTI_UNSUPPORTED in a child of a process that did. */
tutti_status forked_begin(void);
/* TUTTI_UNSUPPORTED in a child of a process that used drivers before it called fork(). */
tutti_status forked_check(void);
/* Like the function above, without a message. */
bool is_forked(void);

#endif
