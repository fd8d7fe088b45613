#include "layers/image.h"

tutti_status image_check(const char *operation, const struct value *x)
{
    if (x->shape.rank == IMAGE_RANK) return shape_check_numbers(&x->shape, operation);
    return fail(TUTTI_SHAPE, "%s: the input must be an image [C, H, W], but it has %d dimensions", operation,
        x->shape.rank - 1);
}

struct value image_value(tutti_shape shape, bool batched)
{
    return (
        struct value) { .type = TYPE_F32, .batched = batched, .shape = shape, .axes = axes_with_channels(shape.rank) };
}
