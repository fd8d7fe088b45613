/* Evaluation of a source. */
#ifndef TRAIN_EVALUATE_H
#define TRAIN_EVALUATE_H

#include "tutti.h"

struct tutti_scores;

/* Computes loss and accuracy over a source, and scores unless they are NULL. If cancelled, ends early and sets *whole
 * to false. */
tutti_status trainer_evaluate(tutti_trainer *trainer, const tutti_source *source, struct tutti_scores *scores,
    tutti_metrics *metrics, bool *whole);

#endif
