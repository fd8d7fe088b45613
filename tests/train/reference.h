/* The optimizers in double precision, one number at a time, after the formulas in PyTorch's documentation. */
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

#endif
