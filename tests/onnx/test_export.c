/* Writes networks as ONNX files and reads them again: the same outputs for the same inputs. With TUTTI_EXPORTS=FOLDER,
 * files and arrays stay there, for check_exports.py, and the largest models are written, too. */
#include "base/file.h"
#include "formats/npz.h"
#include "models/models.h"
#include <check.h>
#undef fail

#include "tutti_onnx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 400, SAMPLES = 3 };
#define LIMIT 1e-5 /* of the largest element: sums in another order */
#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

struct net {
    tutti_network *network;
    tutti_trainer *trainer;
    int input_count, output_count;
    struct npz_array inputs[TUTTI_ONNX_PORTS], outputs[TUTTI_ONNX_PORTS];
    tutti_tensor tensors[TUTTI_ONNX_PORTS]; /* of the outputs */
};

static tutti_runtime *runtime;
static char folder[NAME];

static const char *in_folder(const char *name, const char *suffix)
{
    static char paths[4][NAME];
    static int next;
    char *path = paths[next++ % 4];
    ck_assert_int_lt(snprintf(path, NAME, "%s/%s%s", folder, name, suffix), NAME);
    return path;
}

static const char *recorded(const char *name)
{
    static char path[NAME];
    ck_assert_int_lt(snprintf(path, NAME, "%s/tests/onnx/files/%s.onnx", getenv("TUTTI_SOURCE"), name), NAME);
    return path;
}

static void begin(void)
{
    const char *keep = getenv("TUTTI_EXPORTS"), *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tutti-export-XXXXXX", parent ? parent : "/tmp");
    if (keep) snprintf(folder, sizeof folder, "%s", keep);
    ck_assert(keep || mkdtemp(folder));
    runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
}

static void end(void)
{
    tutti_close(runtime);
    if (!getenv("TUTTI_EXPORTS")) rmdir(folder);
}

/* ------------------------------------------------------------------------------------------------ networks ---- */

static struct npz_array array_of(const tutti_network *network, tutti_tensor tensor, const char *name)
{
    tutti_tensor_info info = { .size = sizeof info };
    GOOD(tutti_network_tensor(network, tensor, &info));
    struct npz_array array = { .name = name ? name : info.name, .rank = info.shape.rank + 1, .sizes = { SAMPLES } };
    size_t count = SAMPLES;
    for (int i = 0; i < info.shape.rank; i++) {
        array.sizes[i + 1] = info.shape.sizes[i];
        count *= (size_t)info.shape.sizes[i];
    }
    const enum npz_type types[] = { [TUTTI_DTYPE_F32] = NPZ_F32,
        [TUTTI_DTYPE_I32] = NPZ_I32,
        [TUTTI_DTYPE_U8] = NPZ_U8,
        [TUTTI_DTYPE_BOOL] = NPZ_BOOL };
    array.type = types[info.dtype];
    array.data = calloc(count, npz_type_size(array.type));
    ck_assert_ptr_nonnull(array.data);
    for (size_t i = 0; i < count; i++) {
        if (array.type == NPZ_F32)
            ((float *)array.data)[i] = (float)((i * 7919 + 13) % 257) / 128 - 1;
        else if (array.type == NPZ_I32)
            ((int32_t *)array.data)[i] = (int32_t)(i * 7 % 5);
        else
            ((unsigned char *)array.data)[i] = i % 2;
    }
    return array;
}

static tutti_dtype dtype_of(enum npz_type type)
{
    return type == NPZ_F32 ? TUTTI_DTYPE_F32
        : type == NPZ_I32  ? TUTTI_DTYPE_I32
        : type == NPZ_U8   ? TUTTI_DTYPE_U8
                           : TUTTI_DTYPE_BOOL;
}

/* Compiles the network, which has named its outputs, and computes them. */
static void run(struct net *net)
{
    const char *name;
    tutti_tensor tensor;
    tutti_feed feeds[TUTTI_ONNX_PORTS];
    tutti_fetch fetches[TUTTI_ONNX_PORTS];
    for (int i = 0; tutti_network_input(net->network, i, &tensor) == TUTTI_OK; i++) {
        struct npz_array *array = &net->inputs[net->input_count++];
        *array = array_of(net->network, tensor, NULL);
        feeds[i] = (tutti_feed) { array->name, dtype_of(array->type), array->data };
    }
    for (int i = 0; tutti_network_output(net->network, i, &name, &tensor) == TUTTI_OK; i++) {
        struct npz_array *array = &net->outputs[net->output_count];
        *array = array_of(net->network, tensor, name);
        ck_assert_int_eq(array->type, NPZ_F32);
        net->tensors[net->output_count] = tensor;
        fetches[net->output_count++] = (tutti_fetch) { tensor, TUTTI_DTYPE_F32, array->data };
    }
    ck_assert_int_gt(net->output_count, 0);
    net->trainer = tutti_compile(net->network, net->tensors[0],
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = SAMPLES,
            .seed = 5,
            .outputs = net->tensors + 1,
            .output_count = net->output_count - 1 });
    ck_assert_msg(net->trainer != NULL, "%s", tutti_message(NULL));
    GOOD(tutti_infer(net->trainer, feeds, net->input_count, SAMPLES, fetches, net->output_count));
}

static void net_free(struct net *net)
{
    for (int i = 0; i < net->input_count; i++) free(net->inputs[i].data);
    for (int i = 0; i < net->output_count; i++) free(net->outputs[i].data);
    tutti_trainer_free(net->trainer);
    tutti_network_free(net->network);
}

static void compare(const char *file, const struct npz_array *got, const struct npz_array *wanted)
{
    const float *a = got->data, *b = wanted->data;
    double largest = 0.01, worst = 0;
    size_t count = 1;
    ck_assert_str_eq(got->name, wanted->name);
    ck_assert_int_eq(got->rank, wanted->rank);
    for (int i = 0; i < got->rank; i++) {
        ck_assert_msg(got->sizes[i] == wanted->sizes[i], "%s: %s, axis %d", file, got->name, i);
        count *= (size_t)got->sizes[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        largest = fmax(largest, isinf(b[i]) ? 0 : fabs((double)b[i]));
        const double error = a[i] == b[i] ? 0 : fabs((double)a[i] - (double)b[i]);
        worst = error <= worst ? worst : error; /* NaN counts */
    }
    ck_assert_msg(
        worst <= LIMIT * largest, "%s: %s is off by %g, with elements up to %g", file, got->name, worst, largest);
}

/* Writes the network, reads it again, and compares. */
static void expect_same(tutti_network *network, const char *name, uint64_t external_bytes)
{
    struct net first = { .network = network }, again = { 0 };
    tutti_onnx made = { .size = sizeof made };
    const char *path = in_folder(name, ".onnx");
    GOOD(tutti_network_status(network));
    run(&first);
    GOOD(tutti_export_onnx(network, first.trainer, path, &(tutti_onnx_export_options) { 0, external_bytes }));
    GOOD(tutti_import_onnx(runtime, path, NULL, &made));
    again.network = made.network;
    run(&again);
    ck_assert_int_eq(again.output_count, first.output_count);
    for (int i = 0; i < first.output_count; i++) compare(name, &again.outputs[i], &first.outputs[i]);
    if (getenv("TUTTI_EXPORTS")) {
        GOOD(npz_save(in_folder(name, ".inputs.npz"), first.inputs, first.input_count));
        GOOD(npz_save(in_folder(name, ".outputs.npz"), first.outputs, first.output_count));
    } else {
        remove(path);
    }
    net_free(&again);
    net_free(&first);
}

/* ------------------------------------------------------------------------------------------------------- tests ---- */

static const char *const files[] = { "mlp", "mlp_external", "residual", "residual_folded", "digits", "merged", "angles",
    "logic", "logarithms", "types", "transformer", "transformer_new", "pointwise", "attributes", "binary", "reductions",
    "old", "movement", "shapes", "convolutions", "products", "windows", "windows_new" };
enum { FILES = sizeof files / sizeof *files };

START_TEST(files_stay_the_same)
{
    tutti_onnx made = { .size = sizeof made };
    GOOD(tutti_import_onnx(runtime, recorded(files[_i]), NULL, &made));
    expect_same(made.network, files[_i], 0);
}
END_TEST

static const struct {
    const char *name;
    tutti_shape input;
    bool large;
} nets[] = {
    { "linear", { 1, { 1 } } },
    { "mlp", { 3, { 1, 28, 28 } } },
    { "lenet", { 3, { 1, 28, 28 } } },
    { "resnet18", { 3, { 3, 40, 40 } } },
    { "mobilenet_v2", { 3, { 3, 40, 40 } } },
    { "resnet50", { 3, { 3, 64, 64 } }, true },
    { "vgg16", { 3, { 3, 64, 64 } }, true },
};
enum { NETS = sizeof nets / sizeof *nets };

START_TEST(models_stay_the_same)
{
    char name[64];
    if (nets[_i].large && !getenv("TUTTI_EXPORTS")) return;
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    const tutti_tensor x = tutti_input(network, "input", nets[_i].input);
    GOOD(tutti_output(network, "output", model_find(nets[_i].name)->build(network, x, 10)));
    snprintf(name, sizeof name, "model_%s", nets[_i].name);
    expect_same(network, name, 0);
}
END_TEST

/* Operations of tutti_op() on x [6, 8, 10], y [8, 1] and a constant of shape [6, 1, 10], in this order. */
static const struct {
    const char *operation;
    int inputs;
    const char *attributes;
} operations[] = {
    { "abs", 1 },
    { "acos", 1 },
    { "acosh", 1 },
    { "add", 2 },
    { "and", 2 },
    { "asin", 1 },
    { "asinh", 1 },
    { "atan", 1 },
    { "atanh", 1 },
    { "ceil", 1 },
    { "celu", 1, "alpha=0.5" },
    { "clip", 1, "min=-0.25" },
    { "clip", 1, "min=-0.5 max=0.5" },
    { "copy", 1 },
    { "cos", 1 },
    { "cosh", 1 },
    { "div", 2 },
    { "elu", 1, "alpha=0.5" },
    { "equal", 2 },
    { "erf", 1 },
    { "exp", 1 },
    { "expand", 1, "shape=2,6,8,10" },
    { "floor", 1 },
    { "fmod", 2 },
    { "gelu", 1 },
    { "gelu_tanh", 1 },
    { "greater", 2 },
    { "greater_or_equal", 2 },
    { "hard_sigmoid", 1 },
    { "hard_swish", 1 },
    { "is_inf", 1 },
    { "is_nan", 1 },
    { "leaky_relu", 1, "alpha=0.3" },
    { "less", 2 },
    { "less_or_equal", 2 },
    { "log", 1 },
    { "max", 2 },
    { "min", 2 },
    { "mish", 1 },
    { "mod", 2 },
    { "mul", 2 },
    { "neg", 1 },
    { "not", 1 },
    { "or", 2 },
    { "pow", 2 },
    { "prelu", 2 },
    { "reciprocal", 1 },
    { "reduce_l1", 1 },
    { "reduce_l2", 1, "axes=1 keepdims=0" },
    { "reduce_log_sum_exp", 1, "axes=0,2 keepdims=0" },
    { "reduce_max", 1, "axes=2" },
    { "reduce_mean", 1, "axes=0" },
    { "reduce_min", 1, "keepdims=0" },
    { "reduce_prod", 1, "axes=0" },
    { "reduce_sum", 1, "axes=0,2 keepdims=0" },
    { "reduce_sum_square", 1 },
    { "relu", 1 },
    { "reshape", 1, "shape=4,-1,2" },
    { "round", 1 },
    { "scale", 1, "factor=-3" },
    { "selu", 1 },
    { "sigmoid", 1 },
    { "sign", 1 },
    { "silu", 1 },
    { "sin", 1 },
    { "sinh", 1 },
    { "slice", 1, "axes=1,-1 starts=2,-5 ends=7,-1" },
    { "pad", 1, "before=0,1,2 behind=3,0,1 value=0.5" },
    { "softmax", 1 },
    { "softplus", 1 },
    { "softsign", 1 },
    { "sqrt", 1 },
    { "square", 1 },
    { "sub", 2 },
    { "tan", 1 },
    { "tanh", 1 },
    { "thresholded_relu", 1, "alpha=0.25" },
    { "transpose", 1 },
    { "transpose", 1, "perm=0,2,1" },
    { "trunc", 1 },
    { "where", 3 },
    { "xor", 2 },
    { "concat", 1, "axis=1" },
    { "dropout", 1, "ratio=0.25" },
};
enum { OPERATIONS = sizeof operations / sizeof *operations, AT_ONCE = 15 };

START_TEST(operations_stay_the_same)
{
    float fixed[60];
    char name[64];
    for (int i = 0; i < 60; i++) fixed[i] = (float)(i - 30) / 16;
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    const tutti_tensor inputs[] = { tutti_input(network, "x", TUTTI_SHAPE(6, 8, 10)),
        tutti_input(network, "y", TUTTI_SHAPE(8, 1)), tutti_constant(network, "z", TUTTI_SHAPE(6, 1, 10), fixed) };
    (void)tutti_output(network, "y_too", tutti_relu(network, inputs[1])); /* each part reads it */
    for (int i = _i * AT_ONCE; i < (_i + 1) * AT_ONCE && i < OPERATIONS; i++) {
        snprintf(name, sizeof name, "%s_%d", operations[i].operation, i);
        GOOD(tutti_output(network, name,
            tutti_op(network, operations[i].operation, inputs, operations[i].inputs, operations[i].attributes)));
    }
    snprintf(name, sizeof name, "operations_%d", _i);
    expect_same(network, name, 0);
}
END_TEST

/* What the builders alone make: types of inputs, pooling, layers on sequences, shared parameters, several names. */
START_TEST(layers_stay_the_same)
{
    const float mean[] = { 0.5f, 0.25f, 0.125f, 0, 1, 2 }, std[] = { 1, 2, 3, 4, 5, 6 };
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
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
    expect_same(network, "layers", 0);
}
END_TEST

START_TEST(large_arrays_lie_beside)
{
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    const tutti_tensor x = tutti_input(network, "input", TUTTI_SHAPE(40));
    GOOD(tutti_output(network, "output", tutti_dense(network, tutti_dense(network, x, 50, NULL), 30, NULL)));
    expect_same(network, "beside", 1000);
    if (!getenv("TUTTI_EXPORTS")) ck_assert_int_eq(remove(in_folder("beside", ".onnx.data")), 0);
}
END_TEST

/* check_exports.py has run the file. After a change, it is the residual.onnx that TUTTI_EXPORTS leaves. */
START_TEST(bytes_stay_the_same)
{
    struct net net = { 0 };
    tutti_onnx made = { .size = sizeof made };
    unsigned char *wanted = NULL, *got = NULL;
    size_t wanted_size, got_size;
    GOOD(tutti_import_onnx(runtime, recorded("residual"), NULL, &made));
    net.network = made.network;
    run(&net);
    GOOD(tutti_export_onnx(net.network, net.trainer, in_folder("bytes", ".onnx"), NULL));
    GOOD(file_read(in_folder("bytes", ".onnx"), 1 << 20, &got, &got_size));
    GOOD(file_read(recorded("exported"), 1 << 20, &wanted, &wanted_size));
    ck_assert_uint_eq(got_size, wanted_size);
    ck_assert_mem_eq(got, wanted, wanted_size);
    free(got);
    free(wanted);
    remove(in_folder("bytes", ".onnx"));
    net_free(&net);
}
END_TEST

static void expect_refused(const struct net *net, tutti_status status, const char *path, const char *words)
{
    ck_assert_int_eq(tutti_export_onnx(net->network, net->trainer, path, NULL), status);
    ck_assert_msg(strstr(tutti_message(NULL), words) != NULL, "%s", tutti_message(NULL));
}

START_TEST(refusals)
{
    struct net net = { .network = tutti_network_new(runtime) };
    ck_assert_ptr_nonnull(net.network);
    const tutti_tensor x = tutti_input(net.network, "input", TUTTI_SHAPE(4));
    const tutti_tensor targets = tutti_input(net.network, "wanted", TUTTI_SHAPE(4));
    const tutti_tensor y = tutti_dense(net.network, x, 4, NULL);
    const tutti_tensor loss = tutti_l1(net.network, y, targets, NULL);
    expect_refused(&net, TUTTI_INVALID, in_folder("none", ".onnx"), "tutti_output()");
    GOOD(tutti_output(net.network, "y", y));
    run(&net);
    expect_refused(&net, TUTTI_FILE, in_folder("none/none", ".onnx"), "none");
    GOOD(tutti_output(net.network, "loss", loss));
    expect_refused(&net, TUTTI_UNSUPPORTED, in_folder("none", ".onnx"), "l1 (layer");
    net_free(&net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("export");
    TCase *tests = tcase_create("export");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, files_stay_the_same, 0, FILES);
    tcase_add_loop_test(tests, models_stay_the_same, 0, NETS);
    tcase_add_loop_test(tests, operations_stay_the_same, 0, (OPERATIONS + AT_ONCE - 1) / AT_ONCE);
    tcase_add_test(tests, layers_stay_the_same);
    tcase_add_test(tests, large_arrays_lie_beside);
    tcase_add_test(tests, bytes_stay_the_same);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
