/* State that stays on a device between inferences: what an output was, an input is in the next one (tutti_carry). */
#ifndef REPLICA_CARRIED_H
#define REPLICA_CARRIED_H

#include "plan/types.h"

struct replica;

/* Which outputs are carried to which inputs. */
struct carry_list {
    int count;
    struct {
        int output, feed; /* numbers among the trainer's */
        size_t bytes;     /* of a sample */
    } items[PLAN_MAX_FEEDS];
};

/* The state of one device. Its jobs change it, and between jobs the trainer's thread. */
struct carried {
    int64_t samples;               /* that it is of; 0: it has not begun, and begins as zeros */
    cl_mem now[PLAN_MAX_FEEDS];    /* of each pair: what inputs read */
    cl_mem next[PLAN_MAX_FEEDS];   /* where outputs are copied to, until the inference has succeeded; NULL: not yet */
    bool in_place[PLAN_MAX_FEEDS]; /* the last inference has written the output over the input */
};

/* A job that reads or writes the state, by the library's memory: a device that hangs must not access the caller's. */
struct carried_access {
    int item;
    int64_t samples;
    bool writes; /* to the device. The other pairs begin as zeros, if the state has not begun */
    size_t bytes;
    float values[];
};
tutti_status carried_access(struct replica *replica, void *access);

/* Makes the buffers for an inference of so many samples. The state begins with the first one that succeeds. */
tutti_status carried_prepare(struct replica *replica, int64_t samples);
/* The pair of a feed, or -1. */
int carried_find(const struct carry_list *list, int feed);
/* Enqueues copies of an output to all inputs that it is carried to. */
tutti_status carried_keep(struct replica *replica, int output, cl_mem from, int64_t samples);
/* After an inference that has succeeded: what was kept is the state. */
void carried_advance(struct replica *replica, int64_t samples);
/* The state has not begun; frees nothing. */
void carried_reset(struct replica *replica);
void carried_free(struct replica *replica);

#endif
