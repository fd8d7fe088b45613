/* Batches that are announced before their steps, so that devices with their own memory can get them ahead. */
#ifndef PARALLEL_LOOKAHEAD_H
#define PARALLEL_LOOKAHEAD_H

#include "replica/batch.h"

struct lookahead {
    struct batch expected, next; /* of the step that comes now, and of the one after it; number 0: not known */
    uint64_t announced;          /* how many */
};

/* Announces the batch after that of the next step. It must not change until its own step, or another one in its place,
 * has ended. */
void lookahead_announce(struct lookahead *lookahead, const struct batch *next);
void lookahead_withdraw(struct lookahead *lookahead); /* that batch is not known any more */
/* Ends announcements: their arrays may have other contents by now. */
void lookahead_reset(struct lookahead *lookahead);
/* A step has ended: the next batch is expected now. */
void lookahead_advance(struct lookahead *lookahead);
/* Returns the number of a step's batch, if it is the expected one; else 0. */
uint64_t lookahead_number(const struct lookahead *lookahead, const struct batch *batch);
/* Returns the next batch, if it has this many samples: then it is divided as they are, unless shares change. Else
 * returns one with number 0. */
struct batch lookahead_next(const struct lookahead *lookahead, int64_t samples);

#endif
