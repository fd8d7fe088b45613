/* The training steps that make.py recorded: networks, numbers and files. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include "tests/golden/numbers.h"
#include "tutti.h"

#include <stdio.h>

enum { CLASSES = 10, GOLDEN_BATCH = 4, MAX_SAMPLES = 32, NAME_BYTES = 128 };

struct golden {
    const char *name;
    tutti_tensor (*build)(tutti_network *network, tutti_tensor x, int classes);
    tutti_shape shape;
    double shift; /* of biases, and the inputs' name: see make.py */
    const char *inputs;
    bool smooth;
    bool pixels; /* it gives classes for each pixel: the loss is a node */
};
enum { CASES = 11, PAIRED = 8 }; /* the first ones: each network as it is, and smooth; test_interpreter.c knows these */
extern const struct golden cases[CASES];

/* Labels of a sample. */
int64_t golden_labels(const struct golden *golden);
/* Adds the loss of the network's output, with an input "targets". */
tutti_tensor golden_loss(tutti_network *network, const struct golden *golden, tutti_tensor output);

/* Values as make.py has them. */
double golden_initial(const struct golden *golden, const char *name, const tutti_shape *shape, int64_t index);
int32_t golden_target(int64_t index);
int64_t golden_elements(const tutti_shape *shape);

/* An array of a file. */
struct array {
    char kind[16], name[NAME_BYTES];
    int64_t size;
    double norm, projection, off, off_most;
    int samples;
    double sample[MAX_SAMPLES];
};
/* Fails the test if the file is damaged. */
FILE *golden_open(const struct golden *golden, double *loss, int *correct, int *arrays);
void golden_read(FILE *file, struct array *array);
/* The position of sample number i. */
int64_t golden_position(const struct array *array, int i);

#endif
