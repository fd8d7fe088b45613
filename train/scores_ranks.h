/* Scores over all ranks. */
#ifndef TRAIN_SCORES_RANKS_H
#define TRAIN_SCORES_RANKS_H

#include "tutti_scores.h"

#include <stdint.h>

struct tutti_trainer;

/* Returns a hash of what must be equal on all ranks; makes the scores those of all ranks together. */
uint64_t scores_hash(const tutti_scores *scores);
tutti_status scores_total(struct tutti_trainer *trainer, tutti_scores *scores);

#endif
