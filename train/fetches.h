/* Where a trainer's outputs go: the arrays that programs pass, by tensor and type. */
#ifndef TRAIN_FETCHES_H
#define TRAIN_FETCHES_H

#include "replica/arrays.h"
#include "tutti.h"

struct kept_outputs;
struct objective;

struct fetched {
    struct arrays arrays;
    float *rounded[PLAN_MAX_OUTPUTS]; /* floats of outputs that the caller wants in another type; else NULL */
};
/* `kept` gets outputs whose data are NULL; if it is NULL, there may be none. Errors: TUTTI_INVALID if a tensor is not
 * an output of the objective, is named twice, or has an impossible type. Call fetches_end() also after a failure. */
tutti_status fetches_begin(struct fetched *fetched, const struct objective *objective, const struct array_list *outputs,
    const tutti_fetch *fetches, int count, struct bound_sizes sizes, struct kept_outputs *kept);
/* Writes the outputs of other types if `status` is TUTTI_OK, and frees what fetches_begin() allocated; returns the
 * status. */
tutti_status fetches_end(struct fetched *fetched, tutti_status status, const struct objective *objective,
    const struct array_list *outputs, const tutti_fetch *fetches, int count, int64_t samples);

#endif
