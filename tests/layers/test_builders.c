/* Messages of the builders of normalisation, activations, arithmetic, joins and pooling for wrong attributes and
 * shapes, and the resulting shapes for right ones. Needs no device. */
#include <check.h>
#include <math.h>
#include <string.h>
#undef fail /* base/status.h has its own */

#include "graph/network.h"
#include "runtime/device.h"
#include "tutti_sequences.h"

/* image: [6, 5, 7], other: [6, 4, 7], features: [12]. */
struct inputs {
    tutti_network *network;
    tutti_tensor image, other, features;
};

static tutti_tensor zero_epsilon_is_default(struct inputs *in)
{
    return tutti_batch_norm(in->network, in->image, &(tutti_batch_norm_options) { .epsilon = 0 });
}
static tutti_tensor epsilon(struct inputs *in)
{
    return tutti_batch_norm(in->network, in->image, &(tutti_batch_norm_options) { .epsilon = -1 });
}
static tutti_tensor momentum(struct inputs *in)
{
    return tutti_batch_norm(in->network, in->image, &(tutti_batch_norm_options) { .momentum = 1.5f });
}
static tutti_tensor norm_of_rows(struct inputs *in)
{
    return tutti_batch_norm(in->network, tutti_reshape(in->network, in->features, TUTTI_SHAPE(3, 4)), NULL);
}
static tutti_tensor clip(struct inputs *in)
{
    return tutti_clip(in->network, in->image, 2, 1);
}
static tutti_tensor clip_nan(struct inputs *in)
{
    return tutti_clip(in->network, in->image, NAN, 1);
}
static tutti_tensor slope(struct inputs *in)
{
    return tutti_leaky_relu(in->network, in->image, -0.5f);
}
static tutti_tensor add(struct inputs *in)
{
    return tutti_add(in->network, in->image, in->other);
}
static tutti_tensor mul(struct inputs *in)
{
    return tutti_mul(in->network, in->image, in->features);
}
static tutti_tensor concat_sizes(struct inputs *in)
{
    return tutti_concat(in->network, (tutti_tensor[]) { in->image, in->other }, 2, 0);
}
static tutti_tensor concat_dimension(struct inputs *in)
{
    return tutti_concat(in->network, (tutti_tensor[]) { in->image, in->image }, 2, 3);
}
static tutti_tensor concat_none(struct inputs *in)
{
    return tutti_concat(in->network, NULL, 0, 0);
}
static tutti_tensor concat_many(struct inputs *in)
{
    enum { MANY = 73 }; /* a node takes 8 of them, and 8 nodes are joined by one */
    tutti_tensor many[MANY];
    tutti_shape shape;
    for (int i = 0; i < MANY; i++) many[i] = in->image;
    const tutti_tensor joined = tutti_concat(in->network, many, MANY, 0);
    ck_assert_int_eq(tutti_shape_of(in->network, joined, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.sizes[0], 6 * MANY);
    const tutti_tensor named = tutti_op(in->network, "concat", many, MANY, "axis=-1 name=all");
    ck_assert_int_eq(tutti_shape_of(in->network, named, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.sizes[2], 7 * MANY);
    return named;
}
static tutti_tensor input_too_many(struct inputs *in)
{
    tutti_tensor last = in->image;
    for (int i = 3; i < 255; i++) last = tutti_input(in->network, NULL, TUTTI_SHAPE(1));
    ck_assert_int_ge(last.id, 0);
    return tutti_input(in->network, "another", TUTTI_SHAPE(1));
}
static tutti_tensor conv_sized(struct inputs *in)
{
    return tutti_conv_sized(in->network, in->image, 4, NULL, 2, NULL);
}
static tutti_tensor conv_transpose_sized(struct inputs *in)
{
    return tutti_conv_transpose_sized(in->network, in->image, 4, (int64_t[9]) { 1 }, 9, NULL);
}
static tutti_tensor pool_sized(struct inputs *in)
{
    return tutti_pool_sized(in->network, in->image, TUTTI_POOL_MAX, (int64_t[]) { 3 }, 1, NULL);
}
static tutti_tensor reshape(struct inputs *in)
{
    return tutti_reshape(in->network, in->image, TUTTI_SHAPE(11, -1));
}
static tutti_tensor reshape_two_open(struct inputs *in)
{
    return tutti_reshape(in->network, in->image, TUTTI_SHAPE(-1, -1));
}
static tutti_tensor reshape_zero(struct inputs *in)
{
    return tutti_reshape(in->network, in->image, TUTTI_SHAPE(0, 210));
}
static tutti_tensor input_too_large(struct inputs *in)
{
    return tutti_input(in->network, "huge", TUTTI_SHAPE(1 << 22, 1 << 21, 1 << 21));
}
static tutti_tensor dense_too_large(struct inputs *in)
{
    const tutti_tensor x = tutti_input(in->network, "tall", TUTTI_SHAPE(1 << 22, 1 << 20, 1));
    return tutti_dense(in->network, x, INT32_MAX, &(tutti_dense_options) { .name = "fc", .no_bias = true });
}
static tutti_tensor unknown_init(struct inputs *in)
{
    return tutti_dense(in->network, in->features, 3, &(tutti_dense_options) { .init = (tutti_initialiser)77 });
}
static tutti_tensor name_of_bytes(struct inputs *in)
{
    return tutti_dense(in->network, in->features, 3, &(tutti_dense_options) { .name = "caf\xe9" });
}
static tutti_tensor name_of_surrogates(struct inputs *in)
{
    return tutti_dense(in->network, in->features, 3, &(tutti_dense_options) { .name = "\xed\xa0\x80" });
}
static tutti_tensor name_in_utf8(struct inputs *in)
{
    return tutti_dense(in->network, in->features, 3, &(tutti_dense_options) { .name = "caf\xc3\xa9 \xf0\x9f\x8d\xb5" });
}
static tutti_tensor scope_of_bytes(struct inputs *in)
{
    tutti_scope_push(in->network, "\xff");
    return tutti_dense(in->network, in->features, 3, NULL);
}
static tutti_tensor pool_kernel(struct inputs *in)
{
    return tutti_max_pool(in->network, in->image, 6, NULL);
}
static tutti_tensor pool_no_kernel(struct inputs *in)
{
    return tutti_max_pool(in->network, in->image, 0, NULL);
}
static tutti_tensor pool_stride(struct inputs *in)
{
    return tutti_average_pool(in->network, in->image, 2, &(tutti_pool_options) { .stride = -1 });
}
static tutti_tensor conv_kernel(struct inputs *in)
{
    return tutti_conv(in->network, in->image, 4, TUTTI_SHAPE(3), NULL);
}
static tutti_tensor conv_groups(struct inputs *in)
{
    return tutti_conv_transpose(in->network, in->image, 4, TUTTI_SHAPE(3, 3), &(tutti_conv_options) { .groups = 4 });
}
static tutti_tensor conv_padding(struct inputs *in)
{
    return tutti_conv(in->network, in->image, 4, TUTTI_SHAPE(3, 3), &(tutti_conv_options) { .padding = { -3 } });
}
static tutti_tensor pooling_kind(struct inputs *in)
{
    return tutti_pool(in->network, in->image, (tutti_pooling)7, TUTTI_SHAPE(3, 3), NULL);
}
static tutti_tensor pooling_window(struct inputs *in)
{
    return tutti_pool(in->network, in->image, TUTTI_POOL_MAX, TUTTI_SHAPE(3, 9), NULL);
}
static tutti_tensor pool_padding(struct inputs *in)
{
    return tutti_max_pool(in->network, in->image, 3, &(tutti_pool_options) { .padding = 2 });
}
static tutti_tensor pool_of_features(struct inputs *in)
{
    return tutti_global_average_pool(in->network, in->features);
}
static tutti_tensor adaptive(struct inputs *in)
{
    return tutti_adaptive_average_pool(in->network, in->image, 0, 2);
}
static tutti_tensor matmul_of_features(struct inputs *in)
{
    return tutti_matmul(in->network, "product", in->features, in->image, false, false);
}
static tutti_tensor matmul_leading(struct inputs *in)
{
    const tutti_tensor rows = tutti_reshape(in->network, in->image, TUTTI_SHAPE(3, 10, 7));
    return tutti_matmul(in->network, NULL, in->image, rows, false, true);
}
static tutti_tensor einsum_sizes(struct inputs *in)
{
    return tutti_einsum(in->network, "abc,abd->cd", (tutti_tensor[]) { in->image, in->other }, 2);
}
static tutti_tensor einsum_axes(struct inputs *in)
{
    return tutti_einsum(in->network, "ab->a", &in->image, 1);
}
static tutti_tensor einsum_output(struct inputs *in)
{
    return tutti_einsum(in->network, "abc->d", &in->image, 1);
}
static tutti_tensor lstm_of_features(struct inputs *in)
{
    return tutti_lstm(in->network, in->features, 3, NULL);
}
static tutti_tensor gru_hidden(struct inputs *in)
{
    return tutti_gru(in->network, tutti_reshape(in->network, in->features, TUTTI_SHAPE(3, 4)), 0, NULL);
}
static tutti_tensor attention_heads(struct inputs *in)
{
    const tutti_tensor q = tutti_reshape(in->network, in->features, TUTTI_SHAPE(3, 4));
    return tutti_attention(in->network, q, q, q, &(tutti_attention_options) { .heads = 3 });
}
static tutti_tensor attention_axes(struct inputs *in)
{
    return tutti_attention(in->network, in->features, in->features, in->features, NULL);
}
static tutti_tensor norm_epsilon(struct inputs *in)
{
    return tutti_layer_norm(in->network, "norm", in->image, -1);
}
static tutti_tensor norm_of_nothing(struct inputs *in)
{
    return tutti_layer_norm(in->network, NULL, tutti_input_typed(in->network, "one", TUTTI_DTYPE_F32, NULL, 0), 0);
}
static tutti_tensor embedding_of_floats(struct inputs *in)
{
    return tutti_embedding(in->network, "words", in->features, 5, 3);
}
static tutti_tensor embedding_of_no_rows(struct inputs *in)
{
    return tutti_embedding(in->network, "words", in->features, 0, 3);
}

/* An operation that needs the length of sequences as a number. */
static tutti_tensor frames(struct inputs *in)
{
    return tutti_input(in->network, "frames", TUTTI_SHAPE(TUTTI_SEQUENCE, 8));
}
static tutti_tensor op_of_frames(struct inputs *in, const char *operation, const char *attributes)
{
    const tutti_tensor x = frames(in);
    return tutti_op(in->network, operation, &x, 1, attributes);
}
static tutti_tensor sequence_concat(struct inputs *in)
{
    const tutti_tensor x = frames(in);
    return tutti_concat(in->network, (tutti_tensor[]) { x, x }, 2, 0);
}
static tutti_tensor sequence_flatten(struct inputs *in)
{
    return tutti_flatten(in->network, frames(in));
}
static tutti_tensor sequence_reshape(struct inputs *in)
{
    return tutti_reshape(in->network, frames(in), TUTTI_SHAPE(TUTTI_SEQUENCE, TUTTI_SEQUENCE, 8));
}
static tutti_tensor sequence_parameter(struct inputs *in)
{
    return tutti_parameter(in->network, "positions", TUTTI_SHAPE(TUTTI_SEQUENCE, 8), NULL);
}
static tutti_tensor sequence_features(struct inputs *in)
{
    const tutti_tensor columns = op_of_frames(in, "transpose", NULL);
    return tutti_dense(in->network, columns, 4, &(tutti_dense_options) { .name = "fc" });
}
static tutti_tensor sequence_conv(struct inputs *in)
{
    const tutti_tensor image = tutti_reshape(in->network, frames(in), TUTTI_SHAPE(1, TUTTI_SEQUENCE, 8));
    return tutti_conv2d(in->network, image, 4, 3, NULL);
}
static tutti_tensor sequence_pool(struct inputs *in)
{
    const tutti_tensor image = tutti_reshape(in->network, frames(in), TUTTI_SHAPE(8, TUTTI_SEQUENCE, 1));
    return tutti_global_average_pool(in->network, image);
}
static tutti_tensor sequence_add(struct inputs *in)
{
    return tutti_add(in->network, frames(in), tutti_input(in->network, "table", TUTTI_SHAPE(5, 8)));
}
static tutti_tensor sequence_matmul(struct inputs *in)
{
    const tutti_tensor table = tutti_input(in->network, "table", TUTTI_SHAPE(4, 5));
    return tutti_matmul(in->network, NULL, table, frames(in), false, false);
}
static tutti_tensor sequence_slice(struct inputs *in)
{
    return op_of_frames(in, "slice", "axes=0 starts=0 ends=-2");
}
static tutti_tensor sequence_pad(struct inputs *in)
{
    return op_of_frames(in, "pad", "before=0,0 after=3,0");
}
static tutti_tensor sequence_classes(struct inputs *in)
{
    const int64_t eight = 8;
    const tutti_tensor labels = tutti_input_typed(in->network, "labels", TUTTI_DTYPE_I32, &eight, 1);
    return tutti_cross_entropy(in->network, frames(in), labels, NULL);
}

static const struct {
    tutti_tensor (*build)(struct inputs *in);
    tutti_status status;
    const char *says[2];
} wrong[] = {
    { zero_epsilon_is_default, TUTTI_OK, { NULL } },
    { epsilon, TUTTI_INVALID, { "batch_norm", "epsilon is -1: it must be positive" } },
    { momentum, TUTTI_INVALID, { "batch_norm", "momentum is 1.5" } },
    { norm_of_rows, TUTTI_SHAPE, { "[C, H, W] or [features]", "2 dimensions" } },
    { clip, TUTTI_INVALID, { "min is 2", "max is 1" } },
    { clip_nan, TUTTI_INVALID, { "min is nan", "max is 1" } },
    { slope, TUTTI_INVALID, { "alpha is -0.5", "positive" } },
    { add, TUTTI_SHAPE, { "[6, 5, 7]", "[6, 4, 7]" } },
    { mul, TUTTI_SHAPE, { "[6, 5, 7]", "[12]" } },
    { concat_sizes, TUTTI_SHAPE, { "input 1", "dimension other than 0" } },
    { concat_dimension, TUTTI_INVALID, { "dimension 3", "have 3" } },
    { concat_none, TUTTI_INVALID, { "0 inputs", "at least 1" } },
    { concat_many, TUTTI_OK, { NULL } },
    { input_too_many, TUTTI_INVALID, { "input another is one too many", "at most 255" } },
    { conv_sized, TUTTI_SHAPE, { "conv: the kernel has 2 sizes at NULL" } },
    { conv_transpose_sized, TUTTI_SHAPE, { "conv_transpose: the kernel has 9 sizes" } },
    { pool_sized, TUTTI_SHAPE, { "the kernel has 1 sizes, and the input 2 axes" } },
    { reshape, TUTTI_SHAPE, { "210 elements", NULL } },
    { reshape_two_open, TUTTI_SHAPE, { "only one size may be -1", NULL } },
    { reshape_zero, TUTTI_SHAPE, { "size 0 in dimension 0", NULL } },
    { input_too_large, TUTTI_SHAPE, { "huge", "4194304, 2097152, 2097152" } },
    { dense_too_large, TUTTI_SHAPE, { "fc", "2^48" } },
    { unknown_init, TUTTI_INVALID, { "weight", "initialiser 77 does not exist" } },
    { name_of_bytes, TUTTI_INVALID, { "dense", "not UTF-8" } },
    { name_of_surrogates, TUTTI_INVALID, { "dense", "not UTF-8" } },
    { name_in_utf8, TUTTI_OK, { NULL } },
    { scope_of_bytes, TUTTI_INVALID, { "tutti_scope_push", "UTF-8" } },
    { pool_kernel, TUTTI_SHAPE, { "kernel is 6", "height with padding, 5" } },
    { pool_no_kernel, TUTTI_INVALID, { "kernel is 0", "at least 1" } },
    { pool_stride, TUTTI_INVALID, { "average_pool", "stride is -1" } },
    { conv_kernel, TUTTI_SHAPE, { "the kernel has 1 sizes, and the input 2 axes", NULL } },
    { conv_groups, TUTTI_SHAPE, { "groups 4 must divide", NULL } },
    { conv_padding, TUTTI_INVALID, { "pads -3", NULL } },
    { pooling_kind, TUTTI_INVALID, { "there is no kind 7", NULL } },
    { pooling_window, TUTTI_SHAPE, { "a window spans 9 elements along axis 2, which has 7", NULL } },
    { pool_padding, TUTTI_INVALID, { "padding is 2", "half the kernel, 1" } },
    { pool_of_features, TUTTI_SHAPE, { "must be an image", "1 dimensions" } },
    { adaptive, TUTTI_INVALID, { "output size is 0 x 2", NULL } },
    { einsum_sizes, TUTTI_INVALID, { "'abc,abd->cd'", "sums over an axis that has several sizes" } },
    { einsum_axes, TUTTI_INVALID, { "'ab->a'", "does not fit an input's axes" } },
    { einsum_output, TUTTI_INVALID, { "'abc->d'", "in the output that is in no input" } },
    { lstm_of_features, TUTTI_SHAPE, { "[length, features] for each sample" } },
    { gru_hidden, TUTTI_INVALID, { "the hidden size is 0" } },
    { attention_heads, TUTTI_SHAPE, { "3 heads do not divide the last axis, of 4" } },
    { attention_axes, TUTTI_SHAPE, { "must be [heads, length, width]" } },
    { matmul_of_features, TUTTI_SHAPE, { "product: matmul: the inputs [6, 1, 12] and [6, 5, 7]", "12 is not 5" } },
    { matmul_leading, TUTTI_SHAPE, { "[6, 5, 7] for each sample and [3, 10, 7] for each sample", "must be equal" } },
    { norm_epsilon, TUTTI_INVALID, { "norm", "epsilon is -1" } },
    { norm_of_nothing, TUTTI_SHAPE, { "no dimension to normalise over", NULL } },
    { embedding_of_floats, TUTTI_INVALID, { "words", "must be of int32" } },
    { embedding_of_no_rows, TUTTI_INVALID, { "words", "the table is 0 x 3" } },
    { sequence_concat, TUTTI_SHAPE, { "concat", "TUTTI_SEQUENCE, along dimension 0" } },
    { sequence_flatten, TUTTI_SHAPE, { "reshape", "1 of the input's sizes and 0 of the shape's" } },
    { sequence_reshape, TUTTI_SHAPE, { "reshape", "1 of the input's sizes and 2 of the shape's" } },
    { sequence_parameter, TUTTI_SHAPE, { "positions", "TUTTI_SEQUENCE, as its size in dimension 0" } },
    { sequence_features, TUTTI_SHAPE, { "fc.weight", "TUTTI_SEQUENCE, as its size in dimension 1" } },
    { sequence_conv, TUTTI_SHAPE, { "conv2d", "TUTTI_SEQUENCE, among its sizes" } },
    { sequence_pool, TUTTI_SHAPE, { "average_pool", "TUTTI_SEQUENCE, among its sizes" } },
    { sequence_add, TUTTI_SHAPE, { "[T, 8] and [5, 8]", NULL } },
    { sequence_matmul, TUTTI_SHAPE, { "[4, 5] and [T, 8]", "5 is not T" } },
    { sequence_slice, TUTTI_SHAPE, { "slice", "axis 0 has the length of sequences" } },
    { sequence_pad, TUTTI_SHAPE, { "pad: axis 0 has the length of sequences", NULL } },
    { sequence_classes, TUTTI_SHAPE, { "axis 0 of the predictions", "TUTTI_SEQUENCE" } },
};

static struct inputs inputs_new(struct tutti_runtime *runtime)
{
    struct inputs in = { .network = tutti_network_new(runtime) };
    in.image = tutti_input(in.network, "image", TUTTI_SHAPE(6, 5, 7));
    in.other = tutti_input(in.network, "other", TUTTI_SHAPE(6, 4, 7));
    in.features = tutti_input(in.network, "features", TUTTI_SHAPE(12));
    return in;
}

START_TEST(test_builders_say_what_is_wrong)
{
    struct tutti_runtime runtime = { 0 };
    struct inputs in = inputs_new(&runtime);
    tutti_tensor y = wrong[_i].build(&in);
    ck_assert_int_eq(tutti_network_status(in.network), wrong[_i].status);
    ck_assert_int_eq(y.id < 0, wrong[_i].status != TUTTI_OK);
    for (int i = 0; i < 2 && wrong[_i].says[i]; i++)
        ck_assert_msg(strstr(tutti_message(NULL), wrong[_i].says[i]) != NULL, "'%s' does not say '%s'",
            tutti_message(NULL), wrong[_i].says[i]);
    tutti_network_free(in.network);
}
END_TEST

static void check_shape(const struct inputs *in, tutti_tensor y, tutti_shape want)
{
    tutti_shape shape;
    ck_assert_int_eq(tutti_shape_of(in->network, y, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.rank, want.rank);
    for (int i = 0; i < want.rank; i++) ck_assert_int_eq(shape.sizes[i], want.sizes[i]);
}

START_TEST(test_kernels_by_pointer)
{
    struct tutti_runtime runtime = { 0 };
    const struct inputs in = inputs_new(&runtime);
    const int64_t kernel[] = { 2, 3 };
    check_shape(&in, tutti_conv_sized(in.network, in.image, 4, kernel, 2, NULL), TUTTI_SHAPE(4, 4, 5));
    check_shape(&in, tutti_conv_transpose_sized(in.network, in.image, 4, kernel, 2, NULL), TUTTI_SHAPE(4, 6, 9));
    check_shape(&in, tutti_pool_sized(in.network, in.image, TUTTI_POOL_MAX, kernel, 2, NULL), TUTTI_SHAPE(6, 2, 2));
    tutti_network_free(in.network);
}
END_TEST

/* The length of sequences passes through, and becomes a number when the graph is bound. */
START_TEST(test_sequences_pass_through)
{
    enum { T = TUTTI_SEQUENCE };
    struct tutti_runtime runtime = { 0 };
    const struct inputs in = { .network = tutti_network_new(&runtime) };
    tutti_network *n = in.network;
    const int64_t length = T;
    const tutti_tensor ids = tutti_input_typed(n, "ids", TUTTI_DTYPE_I32, &length, 1);
    const tutti_tensor x = tutti_input(n, "x", TUTTI_SHAPE(T, 8));
    const tutti_tensor words = tutti_embedding(n, NULL, ids, 10, 8);
    check_shape(&in, words, TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_add(n, x, words), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_mul(n, x, tutti_input(n, "row", TUTTI_SHAPE(1, 8))), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_layer_norm(n, NULL, x, 0), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_dropout(n, tutti_relu(n, x), 0.5f), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_dense(n, x, 12, NULL), TUTTI_SHAPE(T, 12));
    const tutti_tensor split = tutti_reshape(n, x, TUTTI_SHAPE(T, 2, 4));
    check_shape(&in, split, TUTTI_SHAPE(T, 2, 4));
    check_shape(&in, tutti_reshape(n, split, TUTTI_SHAPE(T, -1)), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_reshape(n, split, TUTTI_SHAPE(-1, 8)), TUTTI_SHAPE(T, 8));
    check_shape(&in, tutti_op(n, "reshape", &split, 1, "shape=4,-2,2"), TUTTI_SHAPE(4, T, 2));
    const tutti_tensor heads = tutti_op(n, "transpose", &split, 1, "perm=1,0,2");
    check_shape(&in, heads, TUTTI_SHAPE(2, T, 4));
    const tutti_tensor scores = tutti_softmax(n, tutti_matmul(n, NULL, heads, heads, false, true));
    check_shape(&in, scores, TUTTI_SHAPE(2, T, T));
    check_shape(&in, tutti_matmul(n, NULL, scores, heads, false, false), TUTTI_SHAPE(2, T, 4));
    check_shape(&in, tutti_op(n, "reduce_mean", &x, 1, "axes=0"), TUTTI_SHAPE(1, 8));
    check_shape(&in, tutti_op(n, "reduce_max", &x, 1, "axes=-1 keepdims=0"), TUTTI_SHAPE(T));
    check_shape(&in, tutti_op(n, "reduce_log_sum_exp", &x, 1, "axes=-1 keepdims=0"), TUTTI_SHAPE(T));
    check_shape(&in, tutti_op(n, "slice", &x, 1, "axes=0 starts=0 ends=1"), TUTTI_SHAPE(1, 8));
    check_shape(&in, tutti_op(n, "slice", &x, 1, "axes=1 starts=2 ends=5"), TUTTI_SHAPE(T, 3));
    check_shape(&in, tutti_op(n, "pad", &x, 1, "before=0,1 after=0,2"), TUTTI_SHAPE(T, 11));
    check_shape(&in, tutti_concat(n, (tutti_tensor[]) { x, words }, 2, 1), TUTTI_SHAPE(T, 16));
    const tutti_tensor table = tutti_parameter(n, "table", TUTTI_SHAPE(7, 8), NULL);
    check_shape(&in, tutti_op(n, "prefix", &table, 1, "axes=0"), TUTTI_SHAPE(T, 8));
    const tutti_tensor row = tutti_input(n, "one", TUTTI_SHAPE(1, 8));
    check_shape(&in, tutti_op(n, "expand", &row, 1, "shape=-2,8"), TUTTI_SHAPE(T, 8));
    ck_assert_msg(
        tutti_cross_entropy(n, x, ids, &(tutti_loss_options) { .class_axis = -1 }).id >= 0, "%s", tutti_message(NULL));
    struct graph bound;
    ck_assert_int_eq(graph_bind(&n->graph, (struct bound_sizes) { 3, 0 }, &bound), TUTTI_INVALID);
    ck_assert_msg(graph_bind(&n->graph, (struct bound_sizes) { 3, 7 }, &bound) == TUTTI_OK, "%s", tutti_message(NULL));
    ck_assert_int_eq(graph_validate(&bound), TUTTI_OK);
    ck_assert(!graph_has_sequences(&bound));
    ck_assert(shape_equal(bound.values[scores.id].shape, TUTTI_SHAPE(3, 2, 7, 7)));
    graph_free(&bound);
    ck_assert_int_eq(graph_bind(&n->graph, (struct bound_sizes) { 3, 8 }, &bound), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "the first 8 elements are taken along axis 0, which has 7"));
    tutti_network_free(n);
}
END_TEST

START_TEST(test_shapes)
{
    struct tutti_runtime runtime = { 0 };
    struct inputs in = inputs_new(&runtime);
    tutti_network *n = in.network;
    check_shape(&in, tutti_max_pool(n, in.image, 2, NULL), TUTTI_SHAPE(6, 2, 3));
    check_shape(&in, tutti_max_pool(n, in.image, 2, &(tutti_pool_options) { .ceil_mode = true }), TUTTI_SHAPE(6, 3, 4));
    /* The last window would begin in the padding after the image: it is dropped, as in PyTorch. */
    tutti_pool_options dropped = { .stride = 3, .padding = 1, .ceil_mode = true };
    check_shape(&in, tutti_average_pool(n, in.image, 2, &dropped), TUTTI_SHAPE(6, 2, 3));
    tutti_pool_options wide = { .kernel_w = 3, .stride = 1, .stride_w = 2, .padding = 1, .padding_w = -1 };
    check_shape(&in, tutti_average_pool(n, in.image, 2, &wide), TUTTI_SHAPE(6, 6, 3));
    check_shape(&in, tutti_global_average_pool(n, in.image), TUTTI_SHAPE(6, 1, 1));
    check_shape(&in, tutti_global_max_pool(n, in.image), TUTTI_SHAPE(6, 1, 1));
    check_shape(&in, tutti_adaptive_average_pool(n, in.image, 3, 9), TUTTI_SHAPE(6, 3, 9));
    ck_assert_int_eq(tutti_adaptive_average_pool(n, in.image, 5, 7).id, in.image.id);
    tutti_conv_options skewed = { .stride = { 2, 1 }, .padding = { 1, -1 }, .padding_after = { 2 }, .groups = 3 };
    check_shape(&in, tutti_conv(n, in.image, 9, TUTTI_SHAPE(3, 2), &skewed), TUTTI_SHAPE(9, 3, 6));
    skewed.output_padding[0] = 1;
    check_shape(&in, tutti_conv_transpose(n, in.image, 9, TUTTI_SHAPE(3, 2), &skewed), TUTTI_SHAPE(9, 9, 8));
    const tutti_tensor volume = tutti_reshape(n, in.image, TUTTI_SHAPE(2, 3, 5, 7));
    check_shape(&in, tutti_conv(n, volume, 4, TUTTI_SHAPE(3, 3, 3), &(tutti_conv_options) { .padding = { 1 } }),
        TUTTI_SHAPE(4, 3, 5, 7));
    check_shape(&in,
        tutti_conv_transpose(n, volume, 4, TUTTI_SHAPE(2, 2, 2), &(tutti_conv_options) { .stride = { 2 } }),
        TUTTI_SHAPE(4, 6, 10, 14));
    check_shape(&in, tutti_pool(n, volume, TUTTI_POOL_AVERAGE, TUTTI_SHAPE(2, 2, 3), NULL), TUTTI_SHAPE(2, 1, 2, 2));
    check_shape(&in, tutti_pool(n, in.image, TUTTI_POOL_LP, TUTTI_SHAPE(2, 2), NULL), TUTTI_SHAPE(6, 2, 3));
    check_shape(&in, tutti_flatten(n, in.image), TUTTI_SHAPE(210));
    check_shape(&in, tutti_reshape(n, in.image, TUTTI_SHAPE(7, -1, 2)), TUTTI_SHAPE(7, 15, 2));
    check_shape(&in, tutti_concat(n, (tutti_tensor[]) { in.image, in.other }, 2, 1), TUTTI_SHAPE(6, 9, 7));
    check_shape(&in, tutti_batch_norm(n, in.features, NULL), TUTTI_SHAPE(12));
    ck_assert_int_eq(tutti_network_status(n), TUTTI_OK);
    tutti_network_free(n);
}
END_TEST

/* tutti_op() on the image [6, 5, 7], and on `other` [6, 4, 7] where it takes two inputs. */
static const struct {
    const char *operation, *attributes;
    int inputs;
    tutti_status status;
    const char *says;
    int rank; /* of what is made; 0: nothing */
} operations[] = {
    { "gelu_of_tomorrow", NULL, 1, TUTTI_UNSUPPORTED, "gelu_of_tomorrow", 0 },
    { NULL, NULL, 1, TUTTI_UNSUPPORTED, "(NULL)", 0 },
    { "exp", NULL, 2, TUTTI_INVALID, "it got 2 inputs: it takes 1", 0 },
    { "exp", NULL, 0, TUTTI_INVALID, "it got 0 inputs", 0 },
    { "exp", "alpha=2", 1, TUTTI_INVALID, "no attribute 'alpha'", 0 },
    { "add", NULL, 2, TUTTI_SHAPE, "[6, 5, 7] and [6, 4, 7]", 0 },
    { "reduce_sum", "axes=3", 1, TUTTI_INVALID, "'axes=3'", 0 },
    { "reduce_sum", "axes=-4", 1, TUTTI_INVALID, "'axes=-4'", 0 },
    { "reduce_sum", "axes=1,1", 1, TUTTI_INVALID, "'axes=1,1'", 0 },
    { "reduce_sum", "axes=1,", 1, TUTTI_INVALID, "'axes=1,'", 0 },
    { "reduce_sum", "axes=0,1,2,0,1,2,0,1", 1, TUTTI_INVALID, "axes", 0 },
    { "reduce_sum", "axes", 1, TUTTI_INVALID, "'axes'", 0 },
    { "reduce_sum", "keepdims=2", 1, TUTTI_INVALID, "'keepdims=2'", 0 },
    { "transpose", "perm=0,1", 1, TUTTI_INVALID, "'perm=0,1'", 0 },
    { "expand", "shape=6,5,8", 1, TUTTI_SHAPE, "size 7 of axis 2 cannot become 8", 0 },
    { "expand", NULL, 1, TUTTI_INVALID, "needs the attribute 'shape'", 0 },
    { "reshape", NULL, 1, TUTTI_INVALID, "needs the attribute 'shape'", 0 },
    { "reshape", "shape=7,-1,-1", 1, TUTTI_SHAPE, "only one size may be -1", 0 },
    { "reshape", "shape=200,200", 1, TUTTI_SHAPE, "do not multiply", 0 },
    { "reshape", "shape=7,2.5", 1, TUTTI_INVALID, "'shape=7,2.5'", 0 },
    { "reshape", "shape=1e300", 1, TUTTI_INVALID, "'shape=1e300'", 0 },
    { "slice", NULL, 1, TUTTI_INVALID, "needs the attribute 'starts'", 0 },
    { "pad", "before=0,0,0 mode=mirror", 1, TUTTI_INVALID, "mode can be one of: constant reflect edge wrap", 0 },
    { "topk", NULL, 1, TUTTI_INVALID, "needs the attribute 'k'", 0 },
    { "topk", "k=1,2", 1, TUTTI_INVALID, "k must be a whole number", 0 },
    { "group_norm", "groups=2.7", 1, TUTTI_INVALID, "groups must be a whole number", 0 },
    { "group_norm", "groups=-1", 1, TUTTI_INVALID, "groups is -1", 0 },
    { "lrn", "size=inf", 1, TUTTI_INVALID, "size must be a whole number", 0 },
    { "rotary_embedding", "heads=0.5", 3, TUTTI_INVALID, "heads must be a whole number", 0 },
    { "cross_entropy", "class_axis=99999999999", 2, TUTTI_INVALID, "class_axis is 2147483647", 0 },
    { "topk", "sorted=1", 1, TUTTI_INVALID, "it has k, axis, largest, name", 0 },
    { "slice", "starts=1,1 ends=2", 1, TUTTI_INVALID, "as many ends as starts", 0 },
    { "slice", "starts=5 ends=5", 1, TUTTI_INVALID, "nothing lies from 5 to 5", 0 },
    { "slice", "axes=3 starts=0 ends=1", 1, TUTTI_INVALID, "axis 3 does not exist", 0 },
    { "slice", "starts=1.5 ends=2", 1, TUTTI_INVALID, "'starts=1.5'", 0 },
    { "slice", "axes=-1,0 starts=-3,1 ends=1000,2", 1, TUTTI_OK, NULL, 3 },
    { "pad", "before=1", 1, TUTTI_INVALID, "each of the 3 axes", 0 },
    { "pad", "before=-6,0,0", 1, TUTTI_SHAPE, "outside the input's 6", 0 },
    { "pad", "before=0,1,1 after=1,0,0 value=-2", 1, TUTTI_OK, NULL, 3 },
    { "leaky_relu", "alpha=-1", 1, TUTTI_INVALID, "alpha is -1", 0 },
    { "exp", "name=\xff", 1, TUTTI_INVALID, "not UTF-8", 0 },
    { "reduce_mean", "  axes=-1,0   keepdims=0 name=mean ", 1, TUTTI_OK, NULL, 1 },
    { "reduce_max", NULL, 1, TUTTI_OK, NULL, 3 },
    { "reduce_l2", "axes=-1 keepdims=0", 1, TUTTI_OK, NULL, 2 },
    { "reduce_log_sum_exp", "axes=3", 1, TUTTI_INVALID, "'axes=3'", 0 },
    { "prelu", NULL, 1, TUTTI_INVALID, "it got 1 inputs: it takes 2", 0 },
    { "celu", "alpha=0", 1, TUTTI_INVALID, "alpha is 0: it must be finite and not 0", 0 },
    { "celu", "alpha=1e-40", 1, TUTTI_INVALID, "alpha is 9.99995e-41", 0 },
    { "celu", "alpha=inf", 1, TUTTI_INVALID, "alpha is inf", 0 },
    { "celu", "alpha=-0.5", 1, TUTTI_OK, NULL, 3 },
    { "elu", "alpha=0", 1, TUTTI_OK, NULL, 3 },
    { "attention", "dropout=1", 3, TUTTI_INVALID, "dropout is 1: it must be at least 0 and less than 1", 0 },
    { "attention", "dropout=-0.5", 3, TUTTI_INVALID, "dropout is -0.5", 0 },
    { "attention", "dropout=0.25", 3, TUTTI_OK, NULL, 3 },
    { "attention", "softcap=1e-40", 3, TUTTI_INVALID, "softcap is too small", 0 },
    { "celu", "alpha=x", 1, TUTTI_INVALID, "'alpha=x'", 0 },
    { "reshape", "shape=7,-1", 1, TUTTI_OK, NULL, 2 },
    { "expand", "shape=2,6,5,7", 1, TUTTI_OK, NULL, 4 },
    { "concat", "axis=1", 2, TUTTI_OK, NULL, 3 },
    { "concat", NULL, 0, TUTTI_INVALID, "it got 0 inputs: it takes at least 1", 0 },
    { "matmul", NULL, 2, TUTTI_SHAPE, "[6, 5, 7] and [6, 4, 7] cannot be multiplied: 7 is not 4", 0 },
    { "matmul", "transpose_a=1", 2, TUTTI_SHAPE, "[6, 5, 7], transposed, and [6, 4, 7]", 0 },
    { "matmul", "transpose_b=2", 2, TUTTI_INVALID, "'transpose_b=2'", 0 },
    { "matmul", NULL, 1, TUTTI_INVALID, "it got 1 inputs: it takes 2", 0 },
    { "matmul", "transpose_b=1", 2, TUTTI_OK, NULL, 3 },
    { "embedding", NULL, 2, TUTTI_INVALID, "must be of int32", 0 },
    { "layer_norm", NULL, 2, TUTTI_SHAPE, "mul: the inputs have the shapes [6, 5, 7] and [6, 4, 7]", 0 },
    { "layer_norm", "axis=3", 1, TUTTI_INVALID, "'axis=3'", 0 },
    { "layer_norm", "axis=1", 1, TUTTI_OK, NULL, 3 },
    { "rms_norm", "epsilon=-1", 1, TUTTI_INVALID, "epsilon is -1", 0 },
    { "group_norm", "groups=4", 1, TUTTI_INVALID, "groups is 4, which does not divide the 6 channels", 0 },
    { "lp_norm", "p=3", 1, TUTTI_UNSUPPORTED, "p is 3", 0 },
    { "lrn", "size=0", 1, TUTTI_INVALID, "size is 0", 0 },
    { "log_softmax", "axis=3", 1, TUTTI_INVALID, "'axis=3'", 0 },
    { "log_softmax", "axis=-3", 1, TUTTI_OK, NULL, 3 },
    { "arange", "end=5", 1, TUTTI_INVALID, "it got 1 inputs: it takes 0 to 0", 0 },
    { "arange", NULL, 0, TUTTI_INVALID, "needs the attribute 'end'", 0 },
    { "arange", "end=5 step=0", 0, TUTTI_INVALID, "from 0 to before 5 by 0 there are no numbers", 0 },
    { "arange", "start=5 end=5", 0, TUTTI_INVALID, "there are no numbers", 0 },
    { "arange", "end=1e12", 0, TUTTI_INVALID, "or more than 268435456", 0 },
    { "arange", "start=5 end=-1.5 step=-2", 0, TUTTI_OK, NULL, 1 },
    { "full", NULL, 0, TUTTI_INVALID, "needs the attribute 'shape'", 0 },
    { "full", "shape=2,0", 0, TUTTI_SHAPE, "size 1 is 0", 0 },
    { "full", "shape=65536,65536", 0, TUTTI_SHAPE, "size 1 is 65536", 0 },
    { "full", "shape=2,3,1 value=4", 0, TUTTI_OK, NULL, 3 },
};

START_TEST(test_operations_by_name)
{
    struct tutti_runtime runtime = { 0 };
    struct inputs in = inputs_new(&runtime);
    const tutti_tensor inputs[] = { in.image, in.other, in.other };
    const tutti_tensor y =
        tutti_op(in.network, operations[_i].operation, inputs, operations[_i].inputs, operations[_i].attributes);
    ck_assert_msg(tutti_network_status(in.network) == operations[_i].status, "status %d: '%s'",
        (int)tutti_network_status(in.network), tutti_message(NULL));
    if (operations[_i].says)
        ck_assert_msg(strstr(tutti_message(NULL), operations[_i].says) != NULL, "'%s' does not say '%s'",
            tutti_message(NULL), operations[_i].says);
    tutti_shape shape = { 0 };
    if (operations[_i].rank) ck_assert_int_eq(tutti_shape_of(in.network, y, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.rank, operations[_i].rank);
    tutti_network_free(in.network);
}
END_TEST

/* Sizes along the first axis. Numbers are read as doubles: as floats, 1 / 0.01 is above 100. */
static const struct {
    const char *operation, *attributes;
    bool sequence; /* of an input [TUTTI_SEQUENCE, 8], else [6, 5, 7] */
    int inputs;
    int64_t size;
} sized[] = {
    { "arange", "end=1 step=0.01", false, 0, 100 },
    { "arange", "end=0.3 step=0.1", false, 0, 3 },
    { "arange", "end=2.1 step=0.7", false, 0, 4 },
    { "arange", "start=16777216 end=16777217", false, 0, 1 },
    { "slice", "starts=0 ends=9223372036854775807 axes=0", true, 1, TUTTI_SEQUENCE },
    { "slice", "starts=-9223372036854775808 ends=2 axes=0", false, 1, 2 },
    { "slice", "starts=-9 ends=-1 axes=0", false, 1, 5 },
    { "slice", "starts=5 ends=-9223372036854775808 steps=-1 axes=0", false, 1, 6 },
};

START_TEST(test_sizes_by_name)
{
    struct tutti_runtime runtime = { 0 };
    struct inputs in = inputs_new(&runtime);
    const tutti_tensor input = sized[_i].sequence ? frames(&in) : in.image;
    tutti_shape shape = { 0 };
    const tutti_tensor y = tutti_op(in.network, sized[_i].operation, &input, sized[_i].inputs, sized[_i].attributes);
    ck_assert_int_eq(tutti_shape_of(in.network, y, &shape), TUTTI_OK);
    ck_assert_int_eq(shape.sizes[0], sized[_i].size);
    tutti_network_free(in.network);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("builders");
    TCase *tcase = tcase_create("builders");
    tcase_add_loop_test(tcase, test_builders_say_what_is_wrong, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tcase, test_shapes);
    tcase_add_test(tcase, test_kernels_by_pointer);
    tcase_add_test(tcase, test_sequences_pass_through);
    tcase_add_loop_test(tcase, test_operations_by_name, 0, sizeof operations / sizeof *operations);
    tcase_add_loop_test(tcase, test_sizes_by_name, 0, sizeof sized / sizeof *sized);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
