/* Images: [N, C, H, W], of operations with two axes of space. */
#ifndef LAYERS_IMAGE_H
#define LAYERS_IMAGE_H

#include "graph/graph.h"

enum { IMAGE_SPACE = 2, IMAGE_RANK = SPACE_AXIS + IMAGE_SPACE };

/* Height and width of a window that slides over an image. Pooling has no dilation and no groups: 0. */
struct window {
    int64_t kernel[IMAGE_SPACE], stride[IMAGE_SPACE], padding[IMAGE_SPACE], dilation[IMAGE_SPACE], groups;
};
#define WINDOW_ATTRIBUTE(of, name) ATTRIBUTE_NAMED(of, SIZES, window.name, #name)
/* Description of the members of `window`. */
#define WINDOW_ATTRIBUTES(of)                                                                  \
    WINDOW_ATTRIBUTE(of, kernel), WINDOW_ATTRIBUTE(of, stride), WINDOW_ATTRIBUTE(of, padding), \
        WINDOW_ATTRIBUTE(of, dilation), WINDOW_ATTRIBUTE(of, groups)

/* Checks that x has as many axes as an image, and numbers as sizes. The previous kinds of its axes do not matter: the
 * operation takes them as those of an image. */
tutti_status image_check(const char *operation, const struct value *x);
/* Returns an image of floats, as an output. */
struct value image_value(tutti_shape shape, bool batched);

#endif
