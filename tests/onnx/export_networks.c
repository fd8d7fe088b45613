/* Networks that have, together, every operation that can be written as ONNX. */
#include "tests/onnx/export_networks.h"

#include "tutti_inspect.h"
#include "tutti_sequences.h"

#include <stdio.h>
#include <string.h>

/* An operation of tutti_op() on x [6, 10, 10], y [10, 1] and a constant of shape [6, 1, 10], in this order. */
struct named {
    const char *operation;
    int inputs;
    const char *attributes;
};
/* Those with attributes, and those whose schema names no operator of ONNX. */
static const struct named named[] = {
    { "celu", 1, "alpha=0.5" },
    { "clip", 1, "min=-0.25" },
    { "clip", 1, "min=-0.5 max=0.5" },
    { "elu", 1, "alpha=0.5" },
    { "expand", 1, "shape=2,6,10,10" },
    { "fmod", 2 },
    { "gelu_tanh", 1 },
    { "hard_sigmoid", 1 },
    { "leaky_relu", 1, "alpha=0.3" },
    { "mod", 2 },
    { "reduce_l2", 1, "axes=1 keepdims=0" },
    { "reduce_log_sum_exp", 1, "axes=0,2 keepdims=0" },
    { "reduce_max", 1, "axes=2" },
    { "reduce_mean", 1, "axes=0" },
    { "reduce_min", 1, "keepdims=0" },
    { "reduce_prod", 1, "axes=0" },
    { "reduce_sum", 1, "axes=0,2 keepdims=0" },
    { "reshape", 1, "shape=4,-1,2" },
    { "scale", 1, "factor=-3" },
    { "silu", 1 },
    { "slice", 1, "axes=1,-1 starts=2,-5 ends=7,-1" },
    { "pad", 1, "before=0,1,2 after=3,0,1 value=0.5" },
    { "softmax", 1 },
    { "square", 1 },
    { "thresholded_relu", 1, "alpha=0.25" },
    { "transpose", 1 },
    { "transpose", 1, "perm=0,2,1" },
    { "trunc", 1 },
    { "where", 3 },
    { "concat", 1, "axis=1" },
    { "dropout", 1, "ratio=0.25" },
    { "random_uniform", 1, "offset=-1 scale=3" },
    { "random_normal", 1, "offset=2 scale=0.5" },
    { "swish", 1, "alpha=0.75" },
    { "swiglu", 2, "alpha=1.5" },
    { "shift", 1, "by=-0.5" },
    { "power", 1, "exponent=3" },
    { "slice", 1, "axes=1,2 starts=-1,7 ends=-9,1 steps=-1,-2" },
    { "pad", 1, "before=1,2,0 after=0,1,3 mode=reflect" },
    { "tile", 1, "repeats=2,1,3" },
    { "depth_to_space", 1, "blocksize=1 mode=crd" },
    { "space_to_depth", 1, "blocksize=2" },
    { "resize", 1, "axes=1,2 scales=1.5,2 mode=cubic" },
    { "group_norm", 1, "groups=3" },
    { "rms_norm", 1 },
    { "lp_norm", 1 },
    { "lrn", 1, "size=3" },
    { "mean_variance_norm", 1 },
    { "argmax", 1, "axis=1" },
    { "argmax", 1, "axis=2 keepdims=0 select_last_index=1" },
    { "argmin", 1, "axis=0 keepdims=0" },
    { "hardmax", 1, "axis=1" },
    { "cumsum", 1, "axis=1 exclusive=1" },
    { "cumsum", 1, "axis=2 reverse=1" },
    { "cumprod", 1, "axis=2" },
    { "cumprod", 1, "axis=1 exclusive=1 reverse=1" },
    { "topk", 1, "k=3 axis=1" },
    { "topk", 1, "k=2 largest=0" },
    { "trilu", 1, "upper=0 k=1" },
    { "trilu", 1, "k=-2" },
    { "max_pool", 1, "kernel_shape=3,2 strides=2,1 pads=1,0,0,1" },
    { "average_pool", 1, "kernel_shape=2,3 auto_pad=same_upper" },
    { "lp_pool", 1, "kernel_shape=2,2 p=3" },
};
enum { NAMED = sizeof named / sizeof *named, MOST_OPERATIONS = 256, AT_ONCE = 15 };

static bool is_named(const char *operation)
{
    for (int i = 0; i < NAMED; i++)
        if (!strcmp(named[i].operation, operation)) return true;
    return false;
}

/* Lists them, and all others whose schema names an operator of ONNX. Returns their number. */
static int list_operations(struct named *list)
{
    tutti_operation_info info = { .size = sizeof info };
    int count = NAMED;
    memcpy(list, named, sizeof named);
    for (int i = 0; tutti_operation(i, &info) == TUTTI_OK && count < MOST_OPERATIONS; i++) {
        if (!info.onnx || is_named(info.name)) continue;
        list[count++] = (struct named) { info.name, info.input_count, NULL };
    }
    return count;
}

static int part_count(void)
{
    struct named list[MOST_OPERATIONS];
    return (list_operations(list) + AT_ONCE - 1) / AT_ONCE;
}

static void build_operations(tutti_network *network, int part)
{
    static float fixed[60];
    char name[64];
    struct named list[MOST_OPERATIONS];
    const int count = list_operations(list);
    ck_assert_int_lt(count, MOST_OPERATIONS);
    for (int i = 0; i < 60; i++) fixed[i] = (float)(i - 30) / 16;
    const tutti_tensor inputs[] = { tutti_input(network, "x", TUTTI_SHAPE(6, 10, 10)),
        tutti_input(network, "y", TUTTI_SHAPE(10, 1)), tutti_constant(network, "z", TUTTI_SHAPE(6, 1, 10), fixed) };
    (void)tutti_output(network, "y_too", tutti_relu(network, inputs[1])); /* each part reads it */
    for (int i = part * AT_ONCE; i < (part + 1) * AT_ONCE && i < count; i++) {
        snprintf(name, sizeof name, "%s_%d", list[i].operation, i);
        GOOD(tutti_output(
            network, name, tutti_op(network, list[i].operation, inputs, list[i].inputs, list[i].attributes)));
    }
}

/* Parts that only builders make: types of inputs, pooling, layers on sequences, shared parameters, several names. */
static void build_layers(tutti_network *network)
{
    const float mean[] = { 0.5f, 0.25f, 0.125f, 0, 1, 2 }, std[] = { 1, 2, 3, 4, 5, 6 };
    const tutti_tensor bytes = tutti_input_typed(network, "bytes", TUTTI_DTYPE_U8, (int64_t[]) { 6, 9, 11 }, 3);
    const tutti_tensor ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I64, (int64_t[]) { 5 }, 1);
    const tutti_tensor truths = tutti_input_typed(network, "truths", TUTTI_DTYPE_BOOL, (int64_t[]) { 4 }, 1);
    const tutti_tensor image = tutti_normalise(
        network, bytes, &(tutti_normalise_options) { .scale = 0.5f, .mean = mean, .std = std, .channels = 6 });
    GOOD(tutti_output(network, "truths_too", tutti_cast(network, truths, TUTTI_DTYPE_F32)));
    GOOD(tutti_output(network, "image", image));
    GOOD(tutti_output(network, "max",
        tutti_max_pool(network, image, 3, &(tutti_pool_options) { .stride = 2, .padding = 1, .ceil_mode = true })));
    GOOD(tutti_output(network, "mean",
        tutti_average_pool(network, image, 2, &(tutti_pool_options) { .padding = 1, .exclude_padding = true })));
    GOOD(tutti_output(network, "mean_all",
        tutti_average_pool(network, image, 3, &(tutti_pool_options) { .stride = 2, .padding = 1, .kernel_w = 2 })));
    GOOD(tutti_output(network, "global", tutti_global_max_pool(network, image)));
    GOOD(tutti_output(network, "adaptive", tutti_adaptive_average_pool(network, image, 4, 3)));
    GOOD(tutti_output(network, "thirds", tutti_adaptive_average_pool(network, image, 3, 11)));
    GOOD(tutti_output(network, "conv",
        tutti_conv2d(network, image, 4, 3,
            &(tutti_conv2d_options) { .groups = 2,
                .stride = 2,
                .dilation = 2,
                .padding = 1,
                .padding_w = 2,
                .kernel_w = 2,
                .stride_w = 1 })));
    GOOD(tutti_output(network, "norm", tutti_batch_norm(network, image, NULL)));
    const tutti_tensor words = tutti_embedding(network, "words", ids, 6, 8);
    const tutti_tensor y = tutti_dense(network, tutti_layer_norm(network, "ln", words, 0), 7, NULL);
    const tutti_tensor table = tutti_find_parameter(network, "words.weight");
    GOOD(tutti_output(network, "y", y));
    GOOD(tutti_output(network, "y_again", tutti_relu(network, y)));
    GOOD(tutti_output(network, "scores", tutti_matmul(network, NULL, y, y, false, true)));
    GOOD(tutti_output(
        network, "tied", tutti_dense(network, words, 6, &(tutti_dense_options) { .weight = &table, .no_bias = true })));
    const float numbers[30] = { 1, -2, 3, 0.5f };
    const tutti_tensor fixed = tutti_constant(network, "fixed", TUTTI_SHAPE(3, 2, 5), numbers);
    GOOD(tutti_output(network, "spread", tutti_matmul(network, NULL, fixed, words, false, false)));
    GOOD(tutti_output(network, "last", tutti_dense(network, tutti_flatten(network, words), 3, NULL)));
}

static void put(tutti_network *network, const char *name, tutti_tensor tensor)
{
    const tutti_status status = tutti_output(network, name, tensor);
    ck_assert_msg(status == TUTTI_OK, "%s: %s", name, tutti_message(NULL));
}

/* An operation of one to three inputs. */
static tutti_tensor op(tutti_network *network, const char *operation, const char *attributes, tutti_tensor a,
    const tutti_tensor *b, const tutti_tensor *c)
{
    const tutti_tensor inputs[] = { a, b ? *b : a, c ? *c : a };
    return tutti_op(network, operation, inputs, 1 + (b != NULL) + (c != NULL), attributes);
}

/* Data and indices of samples, and the same for all. */
struct indexed {
    tutti_tensor x, ids, fixed, four, places, along, each, best, most, columns, two;
};

static struct indexed add_indexed(tutti_network *network)
{
    static float table[480], few[] = { 3, -1, 0, 5 }, pairs[] = { 3, -1, 0, 5, 2, 2 }, rows[96];
    for (int i = 0; i < 480; i++) table[i] = (float)(i * 37 % 101) / 50;
    for (int i = 0; i < 96; i++) rows[i] = (float)(i % 8);
    struct indexed t = { .x = tutti_input(network, "x", TUTTI_SHAPE(6, 8, 10)),
        .ids = tutti_input_typed(network, "ids", TUTTI_DTYPE_I32, (int64_t[]) { 3 }, 1),
        .fixed = tutti_constant(network, "fixed", TUTTI_SHAPE(6, 8, 10), table),
        .four = tutti_constant(network, "four", TUTTI_SHAPE(2, 2), few),
        .places = tutti_constant(network, "places", TUTTI_SHAPE(3, 2), pairs),
        .along = tutti_constant(network, "along", TUTTI_SHAPE(6, 8, 2), rows),
        .each = tutti_constant(network, "each", TUTTI_SHAPE(6, 8, 2), table) };
    t.best = op(network, "argmax", "axis=2", t.x, NULL, NULL);
    t.most = op(network, "reduce_max", "axes=2", t.x, NULL, NULL);
    t.columns = op(network, "reshape", "shape=3,1", op(network, "cast", NULL, t.ids, NULL, NULL), NULL, NULL);
    (void)tutti_topk(network, t.most, 2, 1, true, &t.two); /* [6, 2, 1] */
    return t;
}

static void build_gathered(tutti_network *network)
{
    const struct indexed t = add_indexed(network);
    put(network, "slices_x_fixed", op(network, "gather", "axis=1", t.x, &t.four, NULL));
    put(network, "slices_x_own", op(network, "gather", "axis=0", t.x, &t.ids, NULL));
    put(network, "slices_x_own_last", op(network, "gather", "axis=2", t.x, &t.ids, NULL));
    put(network, "slices_x_best", op(network, "gather", "axis=2", t.x, &t.best, NULL));
    put(network, "slices_fixed_own", op(network, "gather", "axis=0", t.fixed, &t.ids, NULL));
    put(network, "slices_fixed_own_last", op(network, "gather", "axis=2", t.fixed, &t.ids, NULL));
    put(network, "elements_own", op(network, "gather_elements", "axis=2", t.x, &t.best, NULL));
    put(network, "elements_fixed", op(network, "gather_elements", "axis=2", t.x, &t.along, NULL));
    put(network, "elements_of_fixed", op(network, "gather_elements", "axis=2", t.fixed, &t.best, NULL));
    put(network, "nd_fixed", op(network, "gather_nd", NULL, t.x, &t.places, NULL));
    put(network, "nd_own", op(network, "gather_nd", NULL, t.x, &t.columns, NULL));
    put(network, "nd_of_fixed", op(network, "gather_nd", NULL, t.fixed, &t.columns, NULL));
    put(network, "nd_rows", op(network, "gather_nd", "batch_dims=1", t.x, &t.two, NULL));
    put(network, "nd_rows_of_fixed", op(network, "gather_nd", "batch_dims=1", t.fixed, &t.two, NULL));
}

static void build_scattered(tutti_network *network)
{
    const struct indexed t = add_indexed(network);
    put(network, "put_own", op(network, "scatter_elements", "axis=2", t.x, &t.best, &t.most));
    put(network, "put_fixed", op(network, "scatter_elements", "axis=2 reduction=add", t.x, &t.along, &t.each));
    put(network, "put_on_fixed", op(network, "scatter_elements", "axis=2 reduction=mul", t.fixed, &t.best, &t.most));
    put(network, "put_largest", op(network, "scatter_elements", "axis=2 reduction=max", t.x, &t.along, &t.each));
    const tutti_tensor three = op(network, "gather", NULL, t.x, &t.ids, NULL),
                       some = op(network, "gather_nd", NULL, t.x, &t.places, NULL);
    put(network, "put_slices_own", op(network, "scatter_nd", "reduction=add", t.x, &t.columns, &three));
    put(network, "put_slices_fixed", op(network, "scatter_nd", NULL, t.x, &t.places, &some));
    put(network, "put_slices_on_fixed", op(network, "scatter_nd", "reduction=min", t.fixed, &t.columns, &three));
    put(network, "hot", op(network, "one_hot", "depth=6 off=-1 on=2", t.ids, NULL, NULL));
    put(network, "hot_first", op(network, "one_hot", "depth=4 axis=0", t.ids, NULL, NULL));
}

static void build_lines(tutti_network *network)
{
    static float counts[] = { 0, 1, 2, 3, 4, 5, 6, 9 };
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(6, 8, 10));
    const tutti_tensor length = tutti_input_typed(network, "length", TUTTI_DTYPE_I32, NULL, 0);
    const tutti_tensor lengths = tutti_input_typed(network, "lengths", TUTTI_DTYPE_I32, (int64_t[]) { 8 }, 1);
    const tutti_tensor fixed = tutti_constant(network, "fixed", TUTTI_SHAPE(8), counts);
    tutti_tensor places = { -1 }, only = { -1 };
    put(network, "best", tutti_topk(network, x, 4, 1, true, &places));
    put(network, "places", places);
    (void)tutti_topk(network, x, 2, -1, false, &only);
    put(network, "only_places", only);
    const tutti_tensor signs = op(network, "sign", NULL, x, NULL, NULL);
    put(network, "last_of_equal", op(network, "argmax", "axis=2 select_last_index=1", signs, NULL, NULL));
    put(network, "first_of_equal", op(network, "argmin", "axis=1", signs, NULL, NULL));
    put(network, "turned", op(network, "reverse_sequence", "time_axis=1", x, &length, NULL));
    put(network, "turned_each", op(network, "reverse_sequence", "time_axis=2 batch_axis=1", x, &lengths, NULL));
    put(network, "turned_fixed", op(network, "reverse_sequence", "time_axis=0 batch_axis=1", x, &fixed, NULL));
}

static void build_recurrent(tutti_network *network)
{
    tutti_tensor h = { -1 }, c = { -1 }, h2 = { -1 }, h3 = { -1 };
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(7, 5));
    const tutti_tensor count = tutti_input_typed(network, "length", TUTTI_DTYPE_I32, NULL, 0);
    const tutti_tensor length = op(network, "clip", "min=1", op(network, "cast", NULL, count, NULL, NULL), NULL, NULL);
    const tutti_tensor first = tutti_input(network, "first", TUTTI_SHAPE(2, 4));
    const tutti_tensor one = tutti_input(network, "one", TUTTI_SHAPE(1, 4));
    const tutti_recurrent_options both = {
        .name = "both", .bidirectional = true, .initial_h = &first, .lengths = &length, .last_h = &h, .last_c = &c
    };
    put(network, "lstm", tutti_lstm(network, x, 4, &both));
    put(network, "lstm_h", h);
    put(network, "lstm_c", c);
    put(network, "gru", tutti_gru(network, x, 4, &(tutti_recurrent_options) { .name = "gru", .last_h = &h2 }));
    put(network, "gru_h", h2);
    put(network, "gru_before",
        tutti_gru(network, x, 4,
            &(tutti_recurrent_options) {
                .name = "before", .reset_before = true, .reverse = true, .no_bias = true, .initial_h = &one }));
    put(network, "rnn",
        tutti_rnn(network, x, 4,
            &(tutti_recurrent_options) {
                .name = "rnn", .reverse = true, .clip = 0.5f, .functions = { TUTTI_RECURRENT_RELU } }));
    (void)tutti_rnn(network, x, 4, &(tutti_recurrent_options) { .name = "last", .last_h = &h3 });
    put(network, "rnn_h", h3);
    const tutti_tensor w = tutti_parameter(network, "W", TUTTI_SHAPE(1, 16, 5), NULL),
                       r = tutti_parameter(network, "R", TUTTI_SHAPE(1, 16, 4), NULL);
    const tutti_tensor b = tutti_parameter(network, "B", TUTTI_SHAPE(1, 32), NULL),
                       p = tutti_parameter(network, "P", TUTTI_SHAPE(1, 12), NULL);
    put(network, "peeping",
        tutti_lstm(network, x, 4,
            &(tutti_recurrent_options) { .name = "peeping",
                .initial_c = &one,
                .w = &w,
                .r = &r,
                .b = &b,
                .p = &p,
                .clip = 1,
                .functions = { TUTTI_RECURRENT_SIGMOID, TUTTI_RECURRENT_TANH, TUTTI_RECURRENT_RELU } }));
    put(network, "coupled",
        tutti_lstm(
            network, x, 4, &(tutti_recurrent_options) { .name = "coupled", .w = &w, .r = &r, .input_forget = true }));
}

static void build_spectral(tutti_network *network)
{
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(3, 9, 10));
    const tutti_tensor z = tutti_input(network, "z", TUTTI_SHAPE(7, 6, 2)),
                       real = tutti_input(network, "real", TUTTI_SHAPE(7, 6, 1));
    const tutti_tensor spectrum = tutti_rfft2(network, x);
    put(network, "rfft", tutti_rfft(network, x, -1, 0));
    put(network, "rfft_padded", tutti_rfft(network, x, 1, 16));
    put(network, "rfft_cut", tutti_rfft(network, x, 2, 7));
    put(network, "rfft2", spectrum);
    put(network, "irfft", tutti_irfft(network, z, 1, 0));
    put(network, "irfft_odd", tutti_irfft(network, z, 0, 13));
    put(network, "irfft_cut", tutti_irfft(network, z, 1, 5));
    put(network, "irfft2", tutti_irfft2(network, spectrum, 10));
    const tutti_tensor modes = tutti_rfft2_modes(network, x, 4, 3);
    put(network, "modes", modes);
    put(network, "from_modes", tutti_irfft2_modes(network, modes, 9, 10));
    put(network, "dft", op(network, "dft", "axis=0", z, NULL, NULL));
    put(network, "dft_inverse", op(network, "dft", "axis=1 inverse=1 length=8", z, NULL, NULL));
    put(network, "dft_real", op(network, "dft", "axis=0", real, NULL, NULL));
    put(network, "dft_real_inverse", op(network, "dft", "axis=0 inverse=1", real, NULL, NULL));
    put(network, "dft_half", op(network, "dft", "axis=1 onesided=1", real, NULL, NULL));
    put(network, "dft_half_inverse", op(network, "dft", "axis=1 onesided=1 inverse=1", z, NULL, NULL));
}

static void build_images(tutti_network *network)
{
    static float path[24];
    for (int i = 0; i < 24; i++) path[i] = (float)(i - 12) / 10;
    const tutti_tensor image = tutti_input(network, "image", TUTTI_SHAPE(4, 6, 7)),
                       volume = tutti_input(network, "volume", TUTTI_SHAPE(2, 4, 5, 6));
    const tutti_tensor line = tutti_input(network, "line", TUTTI_SHAPE(4, 9)),
                       grid = tutti_input(network, "grid", TUTTI_SHAPE(3, 5, 2));
    const tutti_tensor fixed = tutti_constant(network, "fixed", TUTTI_SHAPE(3, 4, 2), path);
    const tutti_tensor space = tutti_input(network, "space", TUTTI_SHAPE(2, 3, 2, 3));
    put(network, "up",
        tutti_conv_transpose(network, image, 6, TUTTI_SHAPE(3, 2),
            &(tutti_conv_options) {
                .name = "up", .stride = { 2, 3 }, .padding = { 1, 0 }, .groups = 2, .output_padding = { 1, 0 } }));
    put(network, "up_line",
        tutti_conv_transpose(network, line, 3, TUTTI_SHAPE(3),
            &(tutti_conv_options) { .name = "up_line", .stride = { 2 }, .dilation = { 2 } }));
    put(network, "up_volume",
        tutti_conv_transpose(network, volume, 3, TUTTI_SHAPE(2, 3, 2),
            &(tutti_conv_options) {
                .name = "up_volume", .stride = { 2, 1, 2 }, .no_bias = true, .padding_after = { 1, 1, 1 } }));
    put(network, "conv_line",
        tutti_conv(network, line, 3, TUTTI_SHAPE(3), &(tutti_conv_options) { .name = "conv_line", .padding = { 1 } }));
    put(network, "conv_volume",
        tutti_conv(network, volume, 3, TUTTI_SHAPE(2, 3, 2),
            &(tutti_conv_options) { .name = "conv_volume", .stride = { 2, 1, 1 } }));
    put(network, "pool_line", tutti_pool(network, line, TUTTI_POOL_MAX, TUTTI_SHAPE(3), NULL));
    put(network, "pool_volume",
        tutti_pool(network, volume, TUTTI_POOL_AVERAGE, TUTTI_SHAPE(2, 2, 3),
            &(tutti_pooling_options) { .ceil_mode = true, .exclude_padding = true }));
    put(network, "sampled", op(network, "grid_sample", NULL, image, &grid, NULL));
    put(network, "nearest", op(network, "grid_sample", "mode=nearest padding_mode=border", image, &grid, NULL));
    put(network, "cubic",
        op(network, "grid_sample", "mode=cubic padding_mode=reflection align_corners=1", image, &grid, NULL));
    put(network, "sampled_fixed", op(network, "grid_sample", "padding_mode=border", image, &fixed, NULL));
    put(network, "sampled_volume",
        op(network, "grid_sample", "align_corners=1", volume,
            &(tutti_tensor) { op(network, "transpose", "perm=1,2,3,0",
                op(network, "slice", "axes=0 starts=0 ends=3", op(network, "concat", NULL, space, &space, NULL), NULL,
                    NULL),
                NULL, NULL)
                                  .id },
            NULL));
}

/* Rows that are samples for a while, attention, and what is repeated for each sample. */
static void build_rows(tutti_network *network)
{
    static float angles[20];
    for (int i = 0; i < 20; i++) angles[i] = (float)i / 10;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(2, 5, 8)),
                       bytes = tutti_input_typed(network, "flag", TUTTI_DTYPE_U8, NULL, 0);
    const tutti_tensor cosine = tutti_constant(network, "cos", TUTTI_SHAPE(5, 4), angles),
                       sine = tutti_constant(network, "sin", TUTTI_SHAPE(5, 4), angles);
    const tutti_tensor own = tutti_parameter(network, "own", TUTTI_SHAPE(1, 1, 8), NULL);
    const tutti_tensor rows = op(network, "fold", NULL, x, NULL, NULL);
    const tutti_tensor token = tutti_op(network, "expand", &own, 1, "shape=2,1,8");
    put(network, "flag_too", tutti_cast(network, bytes, TUTTI_DTYPE_F32));
    put(network, "rows",
        op(network, "unfold", "size=2", tutti_dense(network, op(network, "softmax", NULL, rows, NULL, NULL), 3, NULL),
            NULL, NULL));
    put(network, "rows_best",
        op(network, "unfold", "size=2",
            op(network, "gather", "axis=0", rows,
                &(tutti_tensor) { op(network, "argmax", "axis=0 keepdims=0", rows, NULL, NULL).id }, NULL),
            NULL, NULL));
    put(network, "token", tutti_add(network, x, token));
    put(network, "turned",
        tutti_op(network, "rotary_embedding", (tutti_tensor[]) { x, cosine, sine }, 3, "interleaved=1"));
    put(network, "attention", tutti_attention(network, x, x, x, &(tutti_attention_options) { .causal = true }));
}

static void build_sequences(tutti_network *network)
{
    static float table[64];
    for (int i = 0; i < 64; i++) table[i] = (float)(i % 9) / 9;
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(TUTTI_SEQUENCE, 8));
    const tutti_tensor positions = tutti_constant(network, "positions", TUTTI_SHAPE(8, 8), table);
    const tutti_tensor one = tutti_parameter(network, "one", TUTTI_SHAPE(1, 8), NULL);
    const tutti_tensor known = tutti_add(network, x, op(network, "prefix", "axes=0", positions, NULL, NULL));
    put(network, "known", known);
    put(network, "repeated", tutti_mul(network, x, op(network, "expand", "shape=-2,8", one, NULL, NULL)));
    const tutti_tensor heads = op(network, "transpose", "perm=1,0,2",
        op(network, "reshape", "shape=-2,2,4", tutti_dense(network, known, 8, NULL), NULL, NULL), NULL, NULL);
    put(network, "attention", tutti_attention(network, heads, heads, heads, NULL));
    put(network, "rows",
        op(network, "unfold", "size=2",
            op(network, "softmax", NULL, op(network, "fold", NULL, heads, NULL, NULL), NULL, NULL), NULL, NULL));
    put(network, "lstm", tutti_lstm(network, x, 4, NULL));
    put(network, "first", op(network, "slice", "axes=0 starts=0 ends=1", x, NULL, NULL));
}

static const struct {
    const char *name;
    void (*build)(tutti_network *network);
} groups[] = {
    { "layers", build_layers },
    { "gathered", build_gathered },
    { "scattered", build_scattered },
    { "lines", build_lines },
    { "recurrent", build_recurrent },
    { "spectral", build_spectral },
    { "images", build_images },
    { "rows", build_rows },
    { "sequences", build_sequences },
};
enum { GROUPS = sizeof groups / sizeof *groups };

int export_networks(void)
{
    return part_count() + GROUPS;
}

const char *export_network(tutti_network *network, int i)
{
    static char name[40];
    const int parts = part_count();
    if (i >= parts) {
        groups[i - parts].build(network);
        return groups[i - parts].name;
    }
    build_operations(network, i);
    snprintf(name, sizeof name, "operations_%d", i);
    return name;
}
