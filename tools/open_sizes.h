/* Sizes that an ONNX file leaves open. */
#ifndef TOOLS_OPEN_SIZES_H
#define TOOLS_OPEN_SIZES_H

#include "tutti_onnx.h"

struct open_sizes;
/* From a text "NAME=N,NAME=N", or NULL, and from the shapes of the arrays in a .npz file, each for the input of its
 * name, or NULL. Returns an exit status. */
int open_sizes_read(const char *command, const char *text, const char *arrays, struct open_sizes **sizes);
const tutti_onnx_size *open_sizes_list(const struct open_sizes *sizes, int *count);
void open_sizes_free(struct open_sizes *sizes); /* accepts NULL */

#endif
