/* The attributes of operations, for operations that use one another. Each one names its ports in its `struct
 * operation`, in the file that its comment below begins with (`tutti show MODEL --passes` prints them); the comments
 * say what they hold, where the names do not. Shapes include the batch dimension N.
 *
 *   x, y, w, bias   input, output and parameters of a layer
 *   dx, dy, dw, db  gradients of the loss with respect to these
 *   gamma, beta     scale and shift of a batch normalisation
 *   mean, rstd      mean and reciprocal standard deviation of the batch, outputs of batch_norm
 *   constants       struct step_constants (graph/operation.h)
 *
 * What else a node can read and write is in graph/fusion.h. `struct NAME_attributes` are the attributes of the
 * operations in the comment before it; those of families with a header of their own stand there. */
#ifndef LAYERS_LAYERS_H
#define LAYERS_LAYERS_H

#include "layers/operations.h"

/* Axes are counted with the batch axis.
 *
 * channel_sum.c: sum over all axes except this one.
 * concat.c: joins the inputs along the axis. */
struct axis_attributes {
    int axis;
};
ATTRIBUTES(axis)

/* dense.c: x [N, ..., features], w [units, features], y [N, ..., units] */

/* activation.c: the derivative of every activation is computed from its output y. */
struct activation_attributes {
    struct nonlinearity function;
};
ATTRIBUTES(activation)

/* convert.c
 *
 * convert
 *     y = scale[c] x + shift[c] for channel c of x; 0 channels: y = x. f32, or i32 for x of u8, bool or i32. Inputs
 * have no gradient, so it has none. cast (no attributes) y is x as f32. */
enum { CONVERT_CHANNELS = 16 };
struct convert_attributes {
    int channels;
    float scale[CONVERT_CHANNELS], shift[CONVERT_CHANNELS];
    enum value_type type; /* of y */
};
ATTRIBUTES(convert)

/* concat.c: the part of x from `begins` on, of this shape, backwards along reversed axes. All include the batch. */
struct window_attributes {
    tutti_shape shape;
    int64_t begins[TUTTI_MAX_RANK];
    float outside;     /* where x has nothing */
    bool within;       /* x has all of it */
    unsigned reversed; /* axes, as bits */
};
ATTRIBUTES(window)

/* reduce.c: y has no batch if the batch's axis is joined. */
struct reduce_attributes {
    unsigned axes;     /* of x, as bits: they become one number */
    tutti_shape shape; /* of y: the sizes of x without these axes, or with other axes of size 1. Rank 0: with 1 there */
    struct axes kinds; /* of y's axes, where the shape is given */
};
ATTRIBUTES(reduce)

/* movement.c: factor x, repeated along the axes where x has size 1 or none. */
struct expand_attributes {
    tutti_shape shape; /* of y */
    float factor;
    int64_t rows; /* of a sample of y, which has the batch before; 0: y has it if x has it */
};
ATTRIBUTES(expand)

/* movement.c: y's axis i is x's axis order[i]. */
struct transpose_attributes {
    int order[TUTTI_MAX_RANK];
};
ATTRIBUTES(transpose)

/* reshape.c: y is an alias of the memory of x; no launches. */
struct reshape_attributes {
    tutti_shape shape; /* of y */
    struct axes axes;
};
ATTRIBUTES(reshape)
/* Checks a requested shape, which begins with the batch if x has one; sets the one size that may be -1, and the axes.
 */
tutti_status reshape_resolve(const struct value *x, struct reshape_attributes *attributes);
/* reshape_fold() moves the first axis of a sample into the batch, so that its rows are samples for the nodes after it.
 * reshape_unfold() reverses this. */
tutti_status reshape_fold(const struct value *x, struct reshape_attributes *attributes);
tutti_status reshape_unfold(const struct value *x, int64_t size, struct reshape_attributes *attributes);

/* reorder.c: y has the values of x in another layout; one of the two layouts is plain. */
struct reorder_attributes {
    enum value_layout layout; /* of y */
};
ATTRIBUTES(reorder)

/* dropout.c: its gradient is dropout of dy with the same mask. */
struct dropout_attributes {
    float probability;
    int stream; /* its number in the network, for the random numbers */
};
ATTRIBUTES(dropout)

/* random.c: offset + scale times a random number, of the input's shape. */
struct random_attributes {
    float offset, scale;
    int stream; /* as dropout's */
};
ATTRIBUTES(random)

/* layer_norm.c: mean and rstd are those of each row, for the gradient, which has no attributes. */
struct layer_norm_attributes {
    int axis; /* the last one */
    float epsilon;
};
ATTRIBUTES(layer_norm)

/* embedding.c: ids i32 [...], table [rows, width], y [..., width]. Ids outside the table give zeros. from_end: negative
 * ids count from the end of the table. */
struct embedding_attributes {
    bool from_end;
};
struct embedding_gradient_attributes {
    bool from_end;
    tutti_shape shape; /* of the table */
};
ATTRIBUTES(embedding)
ATTRIBUTES(embedding_gradient)

/* resample.c: along the axis, each element is a weighted sum of elements at constant positions, or `outside` if it has
 * no position. The inputs are x, the table of positions and weights, and the transposed table, for the gradient. A
 * table is starts i32 [outputs + 1], positions i32 [taps] and weights [taps] (layers/resample.h makes it). */
struct resample_attributes {
    int axis;
    float outside;
};
ATTRIBUTES(resample)

/* matmul.c: a [..., m, k], b [..., k, n], y [..., m, n]. The leading dimensions are equal, or one input has none. */
struct matmul_attributes {
    bool transpose_a, transpose_b; /* the last two dimensions, before the product */
    bool full_precision;           /* operands are not rounded, whatever --precision allows */
};
ATTRIBUTES(matmul)

/* softmax.c, over the last dimension */

#endif
