/* The optimizers in double precision, one number at a time, after the formulas in PyTorch's documentation; and a list
 * of trainings in which each of them occurs. */
#ifndef TESTS_TRAIN_REFERENCE_H
#define TESTS_TRAIN_REFERENCE_H

#include "tutti.h"

/* A parameter and the states that its optimizer keeps; they begin as 0. */
struct reference {
    double p, a, b, c;
};

/* Makes step number 1, 2, ... with the rate and the weight decay of the parameter. */
void reference_update(
    struct reference *r, const tutti_training *training, double gradient, double rate, double decay, int step);

/* Every rule, with settings for small networks: epsilon is large, or steps would be of rounding where gradients are
 * nearly 0. */
enum { REFERENCE_TRAININGS = 16 };
extern const tutti_training reference_trainings[REFERENCE_TRAININGS];

#endif
