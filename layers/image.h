/* Images: [N, C, H, W], of operations with two axes of space. */
#ifndef LAYERS_IMAGE_H
#define LAYERS_IMAGE_H

#include "graph/graph.h"

enum { IMAGE_SPACE = 2, IMAGE_RANK = SPACE_AXIS + IMAGE_SPACE };

/* Whether x has as many axes as an image, and numbers as sizes. What the axes were of before does not matter: the
 * operation takes them so. */
tutti_status image_check(const char *operation, const struct value *x);
/* An output of floats. */
struct value image_value(tutti_shape shape, bool batched);

#endif
