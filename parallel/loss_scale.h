/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", 3.2, with the constants that have
 * become usual). Small gradients become zero in half precision, so the loss, and with it all gradients, are
 * multiplied by a scale, by which the update divides again. The scale is as large as gradients allow: a step in which
 * some of them are not finite updates nothing and halves the scale; after many good steps in a row it is doubled. The
 * scale is a power of two, so it does not change the bits of numbers that neither underflow nor overflow. */
#ifndef PARALLEL_LOSS_SCALE_H
#define PARALLEL_LOSS_SCALE_H

#include "graph/operation.h"

#include <stdbool.h>

struct loss_scale {
    bool on;      /* else `scale` stays 1 */
    double scale; /* between 1 and LOSS_SCALE_MOST */
    int64_t good; /* steps since it was changed */
    /* Steps of the training that the optimizer's states do not include: they updated nothing, or were before the
     * states began again. */
    int64_t skipped;
};

#define LOSS_SCALE_MOST 0x1p24 /* its inverse, and running statistics times it, are well within normal floats */

void loss_scale_init(struct loss_scale *loss_scale, bool on);
void loss_scale_constants(const struct loss_scale *loss_scale, struct step_constants *constants);
/* Returns whether a step whose losses are finite, but whose gradients are not, is skipped; else the training
 * diverges. */
bool loss_scale_can_fall(const struct loss_scale *loss_scale);
/* Halves the scale, for gradients that are computed again. */
void loss_scale_lower(struct loss_scale *loss_scale);
/* After a step. */
void loss_scale_skipped(struct loss_scale *loss_scale);
void loss_scale_updated(struct loss_scale *loss_scale);
/* Takes over what another rank that averages parameters has, unless this one's scale is more cautious. */
void loss_scale_join(struct loss_scale *loss_scale, const struct loss_scale *other);
/* Takes over the scale of a checkpoint, which has none if `on` is false. */
void loss_scale_resume(struct loss_scale *loss_scale, const struct loss_scale *saved);

#endif
