/* What travels between host and device beside a step: ranges of the gradient arena in the order in which backward
 * completes them (buckets), and of the parameters' in the order in which forward needs them. */
#ifndef PLAN_BUCKETS_H
#define PLAN_BUCKETS_H

#include "plan/types.h"

/* Fills plan->buckets from the launches of the step. Together they cover the arena once. */
tutti_status buckets_find(struct plan *plan);
/* Likewise plan->needs. */
tutti_status needs_find(struct plan *plan);

#endif
