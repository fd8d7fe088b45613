#include "base/random.h"
#include "data/augment_steps.h"

#include <math.h>

enum { NUMBERS = 64, PURPOSES = 8 };

static uint32_t stream_of(const struct draw *draw)
{
    return RANDOM_AUGMENT + (uint32_t)(draw->epoch & 0xffffff);
}

static uint64_t index_of(const struct draw *draw, enum purpose purpose, int number)
{
    return ((uint64_t)draw->sample * PURPOSES + purpose) * NUMBERS + (uint64_t)number;
}

double draw_uniform(const struct draw *draw, enum purpose purpose, int number)
{
    return (double)random_uniform(draw->seed, stream_of(draw), index_of(draw, purpose, number));
}

double draw_between(const struct draw *draw, enum purpose purpose, int number, double low, double high)
{
    return low + draw_uniform(draw, purpose, number) * (high - low);
}

int64_t draw_below(const struct draw *draw, enum purpose purpose, int number, int64_t bound)
{
    const uint64_t index = index_of(draw, purpose, number);
    return (int64_t)random_below(draw->seed, stream_of(draw), index, (uint64_t)bound);
}

double draw_normal(const struct draw *draw, enum purpose purpose, int number)
{
    return (double)random_normal(draw->seed, stream_of(draw), index_of(draw, purpose, number));
}

static void add_step(struct plan *plan, enum operation operation, double amount)
{
    plan->step[plan->steps++] = (struct step) { operation, (float)amount };
}

/* Amounts of RandAugment's operations, as torchvision has them. `part`: the magnitude from 0 to 1. */
static double amount_of(enum operation operation, double part, bool negative, int width, int height)
{
    const double sign = negative ? -1 : 1;
    switch (operation) {
    case SHEAR_X:
    case SHEAR_Y: return sign * 0.3 * part;
    case TRANSLATE_X: return trunc(sign * 150.0 / 331 * width * part);
    case TRANSLATE_Y: return trunc(sign * 150.0 / 331 * height * part);
    case ROTATE: return sign * 30 * part;
    case POSTERIZE: return 8 - rint(4 * part);
    case SOLARIZE: return 255 * (1 - part);
    default: return 1 + sign * 0.9 * part;
    }
}

static void plan_random(
    const struct augment *augment, const struct draw *draw, int width, int height, struct plan *plan)
{
    for (int i = 0; i < augment->random_count; i++) {
        const enum operation operation = (enum operation)draw_below(draw, FOR_RANDOM, 2 * i, RANDOM_OPERATIONS);
        const bool negative = draw_uniform(draw, FOR_RANDOM, 2 * i + 1) < 0.5;
        add_step(plan, operation, amount_of(operation, augment->random_magnitude / 30.0, negative, width, height));
    }
}

/* Plans brightness, contrast, saturation and hue in a random order. */
static void plan_colour(const struct augment *augment, const struct draw *draw, struct plan *plan)
{
    const enum operation operations[] = { BRIGHTNESS, CONTRAST, SATURATION, HUE };
    const float amounts[] = { augment->brightness, augment->contrast, augment->saturation, augment->hue };
    int order[] = { 0, 1, 2, 3 };
    for (int i = 3; i > 0; i--) {
        const int64_t j = draw_below(draw, FOR_COLOUR, i, i + 1);
        const int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < 4; i++) {
        const int of = order[i];
        const double centre = operations[of] == HUE ? 0 : 1, most = (double)amounts[of];
        if (most > 0)
            add_step(plan, operations[of], draw_between(draw, FOR_COLOUR, 4 + of, centre - most, centre + most));
    }
}

/* Pads the sample with black and cuts out a part of its size: the same as moving it, with black from outside. */
static void plan_padding(const struct augment *augment, const struct draw *draw, struct plan *plan)
{
    const int pad = augment->pad;
    if (pad == 0) return;
    add_step(plan, TRANSLATE_X, (double)(draw_below(draw, FOR_BOX, 62, 2 * (int64_t)pad + 1) - pad));
    add_step(plan, TRANSLATE_Y, (double)(draw_below(draw, FOR_BOX, 63, 2 * (int64_t)pad + 1) - pad));
}

/* As torchvision's RandomErasing: a part of 0.02 to 0.33, ratios of 0.3 to 3.3, ten tries. */
static void plan_erasing(const struct draw *draw, int width, int height, struct plan *plan)
{
    for (int i = 0; i < 10 && !plan->erases; i++) {
        const double part = (double)width * height * draw_between(draw, FOR_ERASING, 4 * i, 0.02, 0.33);
        const double ratio = exp(draw_between(draw, FOR_ERASING, 4 * i + 1, log(0.3), log(3.3)));
        const double h = rint(sqrt(part * ratio)), w = rint(sqrt(part / ratio));
        if (h >= height || w >= width) continue;
        plan->erases = true;
        plan->width = (int)w;
        plan->height = (int)h;
        plan->top = (int)draw_below(draw, FOR_ERASING, 4 * i + 2, height - plan->height + 1);
        plan->left = (int)draw_below(draw, FOR_ERASING, 4 * i + 3, width - plan->width + 1);
    }
}

void plan_make(const struct augment *augment, const struct draw *draw, int width, int height, struct plan *plan)
{
    *plan = (struct plan) { .steps = 0 };
    if (!draw->training) return;
    plan->flip = augment->flip && draw_uniform(draw, FOR_FLIPS, 0) < 0.5;
    plan->flip_vertical = augment->flip_vertical && draw_uniform(draw, FOR_FLIPS, 1) < 0.5;
    plan_padding(augment, draw, plan);
    const double rotate = (double)augment->rotate;
    if (rotate > 0) add_step(plan, ROTATE, draw_between(draw, FOR_ROTATION, 0, -rotate, rotate));
    plan_random(augment, draw, width, height, plan);
    plan_colour(augment, draw, plan);
    if (draw_uniform(draw, FOR_ERASING, 63) < (double)augment->erase) plan_erasing(draw, width, height, plan);
}
