#include "parallel/loss_scale.h"

#define INITIAL 0x1p16
enum { GROWS_AFTER = 2000 };

static void change(struct loss_scale *loss_scale, double scale)
{
    loss_scale->scale = scale;
    loss_scale->good = 0;
}

void loss_scale_init(struct loss_scale *loss_scale, bool on)
{
    *loss_scale = (struct loss_scale) { .on = on, .scale = on ? INITIAL : 1 };
}

void loss_scale_constants(const struct loss_scale *loss_scale, struct step_constants *constants)
{
    constants->gradient_weight *= (float)loss_scale->scale;
    constants->unscale = (float)(1 / loss_scale->scale);
}

bool loss_scale_can_fall(const struct loss_scale *loss_scale)
{
    return loss_scale->scale > 1;
}

void loss_scale_lower(struct loss_scale *loss_scale)
{
    change(loss_scale, loss_scale->scale / 2);
}

void loss_scale_skipped(struct loss_scale *loss_scale)
{
    loss_scale->skipped++;
    loss_scale_lower(loss_scale);
}

void loss_scale_updated(struct loss_scale *loss_scale)
{
    loss_scale->good++;
    if (loss_scale->on && loss_scale->good >= GROWS_AFTER && loss_scale->scale < LOSS_SCALE_MOST)
        change(loss_scale, 2 * loss_scale->scale);
}

void loss_scale_join(struct loss_scale *loss_scale, const struct loss_scale *other)
{
    const bool lower = other->scale < loss_scale->scale;
    if (lower || (other->scale == loss_scale->scale && other->good < loss_scale->good)) {
        loss_scale->scale = other->scale;
        loss_scale->good = other->good;
    }
    /* The fewest: a bias correction for more steps than the states have makes smaller updates, not larger ones. */
    if (other->skipped < loss_scale->skipped) loss_scale->skipped = other->skipped;
}

void loss_scale_resume(struct loss_scale *loss_scale, const struct loss_scale *saved)
{
    loss_scale->skipped = saved->skipped;
    if (!loss_scale->on || !saved->on) return;
    loss_scale->scale = saved->scale;
    loss_scale->good = saved->good;
}
