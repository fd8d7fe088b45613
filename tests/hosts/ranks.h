/* Shared by programs that mpirun starts as two ranks: each runs the test that its argument names. */
#ifndef TESTS_HOSTS_RANKS_H
#define TESTS_HOSTS_RANKS_H

#include "tests/train/training.h"

extern tutti_hosts *hosts;

struct mode {
    const char *name; /* NULL ends the list */
    void (*test)(void);
    double limit_s; /* of hosts; 0: the default */
};
extern const struct mode modes[];

/* Both ranks have the same numbers, to the bit. */
void same_on_ranks(struct session *session);

#endif
