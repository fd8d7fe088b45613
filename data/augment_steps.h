/* Inside of augmentation: what was drawn for one sample, and the operations that it consists of. */
#ifndef DATA_AUGMENT_STEPS_H
#define DATA_AUGMENT_STEPS_H

#include "data/augment.h"

/* Random numbers of a sample: each purpose has 64 of its own. Samples without colours and boxes have levels and masks.
 */
enum purpose {
    FOR_BOX,
    FOR_FLIPS,
    FOR_ROTATION,
    FOR_RANDOM,
    FOR_COLOUR,
    FOR_ERASING,
    FOR_MIX,
    FOR_GAMMAS,
    FOR_LEVELS = FOR_COLOUR,
    FOR_MASKS = FOR_BOX
};
double draw_uniform(const struct draw *draw, enum purpose purpose, int number); /* [0, 1) */
double draw_between(const struct draw *draw, enum purpose purpose, int number, double low, double high);
int64_t draw_below(const struct draw *draw, enum purpose purpose, int number, int64_t bound);
double draw_normal(const struct draw *draw, enum purpose purpose, int number);

/* An operation on a sample that was cropped, resized and flipped. `amount`: degrees, pixels (translations), input
 * pixels per pixel (shears), a factor (brightness to sharpness), part of a turn (hue), bits, a threshold. */
enum operation {
    IDENTITY,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    ROTATE,
    BRIGHTNESS,
    SATURATION,
    CONTRAST,
    SHARPNESS,
    POSTERIZE,
    SOLARIZE,
    AUTOCONTRAST,
    EQUALIZE,
    RANDOM_OPERATIONS, /* those before are RandAugment's */
    HUE = RANDOM_OPERATIONS
};
enum { MAX_RANDOM_COUNT = 8, MAX_STEPS = MAX_RANDOM_COUNT + 7 };
struct plan {
    bool flip, flip_vertical;
    int steps;
    struct step {
        enum operation operation;
        float amount;
    } step[MAX_STEPS];
    bool erases;
    int left, top, width, height; /* of what is erased */
};
/* What happens to the sample after its box was chosen. */
void plan_make(const struct augment *augment, const struct draw *draw, int width, int height, struct plan *plan);

/* A sample while it is made: [channels][height][width], and memory of the same size for operations that need it. */
struct canvas {
    int channels, height, width;
    unsigned char *pixels, *other;
};

/* Resampling along one direction: each output is a weighted sum of `counts` inputs from `firsts` on. The weights are
 * whole numbers that add up to WEIGHT_ONE, as floats: every sum is exact. */
enum { WEIGHT_ONE = 1 << 16 };
struct taps {
    int outputs, low, high; /* inputs that are used: low to high - 1 */
    int *firsts, *counts, *starts;
    float *weights;
    size_t room, weights_room;
};
/* What is read of one direction: outputs cover [start, start + length) of the inputs 0 to size - 1. */
struct range {
    double start, length;
    int size;
    bool cut, reversed;
};
struct range range_of(double start, double length, bool cut, bool reversed, int picture, int decoded);

struct augment_scratch {
    struct taps across, down;
    void *columns, *rows, *other; /* memory of resampling and of operations */
    size_t columns_room, rows_room, other_room;
};
/* Antialiased bilinear resampling, as Pillow's; writes [channels][to_height][to_width]. */
tutti_status resize(const struct image *image, const struct range *across, const struct range *down, int to_width,
    int to_height, struct augment_scratch *scratch, unsigned char *sample);
/* The nearest pixel of the first channel. */
void resize_nearest(const struct image *image, const struct range *across, const struct range *down, int to_width,
    int to_height, int32_t *classes);

/* The input's place for each output: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5], at centres of pixels. */
bool step_matrix(const struct step *step, int width, int height, double matrix[6]); /* false: not a movement */
/* Bilinear, with 0 outside; from `pixels` to `other`, which are exchanged then. */
void warp(struct canvas *canvas, const double matrix[6]);
/* The nearest, with -1 outside. */
void warp_classes(const int32_t *from, int width, int height, const double matrix[6], int32_t *to);

/* Applies an operation on colours. */
void recolour(struct canvas *canvas, const struct step *step);

#endif
