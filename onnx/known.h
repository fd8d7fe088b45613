/* Arrays of numbers that are known when the file is read: their elements by type, and how results are made of them. */
#ifndef ONNX_KNOWN_H
#define ONNX_KNOWN_H

#include "onnx/operators.h"

/* So that a small file cannot ask for much memory and time. */
enum { KNOWN_MOST = 1 << 24 };

/* An input of the node; its elements have this type. */
struct known {
    const struct array *array;
    int type;
};
tutti_status known_input(const struct onnx_node *node, size_t position, struct known *x);

/* An element: as a float, and exactly if it is of an integer type. */
struct number {
    double real;
    struct symbolic_integer integer;
};
struct number known_at(const struct known *x, size_t i);
/* Writes the nearest number of this type; integers wrap around. */
void known_put(struct array *y, int type, size_t i, struct number number);
/* Converts a number as Cast does. False: the number of samples cannot become a float. */
bool known_cast(struct number x, int from, int to, struct number *y);

/* An array of zeros; NULL with a message if it is too large. known_like(): with elements as those of x. */
struct array *known_new(int rank, const int64_t *sizes, int type);
struct array *known_like(int rank, const int64_t *sizes, const struct array *x);
/* Makes the array the node's output; NULL: returns the failure of known_new(). */
tutti_status known_finish(const struct onnx_node *node, struct array *y);

/* Row-major steps of an array along its own axes. */
void known_strides(const struct array *x, int64_t *strides);
/* Goes on to the next index in row-major order; false after the last one. */
bool known_next(int rank, const int64_t *sizes, int64_t *at);

/* How an array is read for each element of a result: a step along each of the result's axes. */
struct reading {
    int64_t first, strides[ARRAY_MAX_RANK];
};
size_t reading_at(const struct reading *reading, int rank, const int64_t *at);
/* The shape to which arrays are broadcast by numpy's rules. False: they do not fit. */
bool known_broadcast(const struct array *const *x, int count, int *rank, int64_t *sizes);
struct reading known_broadcast_reading(const struct array *x, int rank);

#endif
