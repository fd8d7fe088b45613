/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", 3.2; the numbers are those that have
 * become usual). Gradients that are small are zero as half-precision numbers, so the loss, and with it all gradients,
 * are multiplied by a scale, which the update divides by again. It is as large as gradients allow: a step in which some
 * of them are not finite updates nothing and halves the scale, and after many steps in a row that were good it is
 * doubled. A power of two: what is neither too small nor too large stays the same to the bit. */
#ifndef TRAIN_LOSS_SCALE_H
#define TRAIN_LOSS_SCALE_H

#include "graph/operation.h"

#include <stdbool.h>

struct loss_scale {
    bool on;      /* or it is 1, and stays so */
    double scale; /* between 1 and LOSS_SCALE_MOST */
    int64_t good; /* steps since it was changed */
    /* Steps of the training that the optimizer's states know nothing of: they have updated nothing, or were before the
     * states began anew. */
    int64_t skipped;
};

#define LOSS_SCALE_MOST 0x1p24 /* the inverse and running statistics times it stay normal floats by far */

void loss_scale_init(struct loss_scale *loss_scale, bool on);
void loss_scale_constants(const struct loss_scale *loss_scale, struct step_constants *constants);
/* Whether a step whose losses, but not gradients, are finite is skipped; else the training diverges. */
bool loss_scale_can_fall(const struct loss_scale *loss_scale);
/* After a step. */
void loss_scale_skipped(struct loss_scale *loss_scale);
void loss_scale_updated(struct loss_scale *loss_scale);
/* That of a checkpoint, which has none where `on` is false. */
void loss_scale_resume(struct loss_scale *loss_scale, const struct loss_scale *saved);

#endif
