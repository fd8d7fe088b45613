/* Buckets: ranges of the gradient arena in the order in which backward completes them. */
#ifndef PLAN_BUCKETS_H
#define PLAN_BUCKETS_H

#include "plan/plan.h"

/* Fills plan->buckets from the launches of the step. Together they cover the arena once. */
tutti_status buckets_find(struct plan *plan);

#endif
