/* Shared by elementwise kernels. */
#ifndef LAYERS_ELEMENTWISE_H
#define LAYERS_ELEMENTWISE_H

#include "graph/operation.h"

/* Outputs of more bytes than this bypass the caches: they would not stay in one until they are read again. */
#define STREAM_BYTES ((size_t)24 << 20)

/* Floats of a task of a CPU-class device, for n floats in all: a multiple of the vector width. */
int64_t elementwise_task_floats(const struct capabilities *device, int64_t n);
/* Zeroes the lanes past the channels of a blocked value; nothing where there are none. */
void elementwise_clear_padding(struct launch_list *list, const struct value *value, cl_mem buffer);

/* For implementations: what they fit, in place of which input they can store. */
const char *fits_cpu_class(const struct problem *problem);
const char *fits_gpu_class(const struct problem *problem);
bool in_place_first(const struct problem *problem, int input);
bool in_place_first_two(const struct problem *problem, int input);
/* The gradient of an operation that is linear in its first input and its own transpose: the operation itself. */
tutti_status gradient_by_itself(struct graph *graph, const struct node *node, const struct node_gradients *g);
/* Work-items of a group for kernels that take any: `wanted`, or the largest power of two that the device has. */
size_t group_size(const struct capabilities *device, size_t wanted);
/* Sets a work-item for each of `items`, in groups of that size; for each of `planes`, unless it is 0. */
void items_launch(
    struct launch *launch, const struct capabilities *device, size_t wanted, int64_t items, int64_t planes);

#endif
