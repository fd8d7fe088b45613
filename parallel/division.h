/* The division of a batch over the replicas. */
#ifndef PARALLEL_DIVISION_H
#define PARALLEL_DIVISION_H

#include "plan/types.h"

struct tutti_trainer;

/* Divides a batch over the replicas that are present (membership.h): neither lost nor suspect. */
tutti_status divide_over_devices(
    const struct tutti_trainer *trainer, enum plan_mode mode, int64_t samples, int64_t *parts);

#endif
