/* The embedded default data: digits drawn by strokes, each with its own slant, turn, size, thickness, shift and noise.
 * Image i depends on seed and i alone, is computed in whole numbers, and so is the same on every machine. */
#ifndef FORMATS_DIGITS_H
#define FORMATS_DIGITS_H

#include "formats/dataset.h"

#define DIGITS_SIDE 28
#define DIGITS_CLASSES 10
#define DIGITS_TRAINING 10000
#define DIGITS_TEST 2000

/* Draws image `index` of the endless sequence of a seed into pixels[28][28] and returns the digit, 0 .. 9. */
int digits_draw(uint64_t seed, uint64_t index, unsigned char *pixels);
/* Images first .. first + samples - 1. */
tutti_status digits_make(uint64_t seed, uint64_t first, int64_t samples, struct dataset *dataset);

#endif
