/* Writes networks as ONNX files and reads them again: the same outputs for the same inputs. With TUTTI_EXPORTS=FOLDER,
 * files and arrays stay there, for check_exports.py, and the largest models are written, too.
 *
 *   test_export [few]
 *
 * few: the interpreter computes outputs, and kernels those of one network in EIGHTH. */
#include "base/file.h"
#include "base/memory.h"
#include "formats/npz.h"
#include "graph/network.h"
#include "graph/operation.h"
#include "models/models.h"
#include "onnx/export/export.h"
#include "runtime/device.h"
#include "tests/interpreted.h"
#include "tests/onnx/export_networks.h"
#include "tests/onnx/files.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 400, SAMPLES = 3, LENGTH = 5, SEED = 5, EIGHTH = 8 }; /* LENGTH: of sequences */
#define LIMIT 1e-5                                                  /* of the largest element: sums in another order */

struct net {
    tutti_network *network;
    tutti_trainer *trainer;
    int input_count, output_count;
    struct npz_array inputs[TUTTI_ONNX_PORTS], outputs[TUTTI_ONNX_PORTS];
    tutti_tensor tensors[TUTTI_ONNX_PORTS]; /* of the outputs */
};

static tutti_runtime *runtime;
static bool few;
static int networks_done;
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
    file_path(path, NAME, name, strlen(name), ".onnx");
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
        array.sizes[i + 1] = info.shape.sizes[i] == TUTTI_SEQUENCE ? LENGTH : info.shape.sizes[i];
        count *= (size_t)array.sizes[i + 1];
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

static bool has_steps(const tutti_network *network)
{
    tutti_tensor input;
    for (int i = 0; tutti_network_input(network, i, &input) == TUTTI_OK; i++) {
        tutti_tensor_info info = { .size = sizeof info };
        GOOD(tutti_network_tensor(network, input, &info));
        for (int k = 0; k < info.shape.rank; k++)
            if (info.shape.sizes[k] == TUTTI_SEQUENCE) return true;
    }
    return false;
}

static void run_by_kernels(struct net *net, const tutti_feed *feeds, const tutti_fetch *fetches, int64_t length)
{
    net->trainer = tutti_compile(net->network, net->tensors[0],
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = SAMPLES,
            .sequence = length,
            .seed = SEED,
            .outputs = net->tensors + 1,
            .output_count = net->output_count - 1 });
    ck_assert_msg(net->trainer != NULL, "%s", tutti_message(NULL));
    GOOD(tutti_infer(net->trainer, feeds, net->input_count, SAMPLES, fetches, net->output_count));
}

static size_t count_of(const struct npz_array *array)
{
    size_t count = 1;
    for (int i = 0; i < array->rank; i++) count *= (size_t)array->sizes[i];
    return count;
}

static double element_at(const struct npz_array *array, size_t i)
{
    return array->type == NPZ_F32 ? (double)((const float *)array->data)[i]
        : array->type == NPZ_I32  ? ((const int32_t *)array->data)[i]
                                  : ((const unsigned char *)array->data)[i];
}

/* The values that the trainer gave the parameters. */
static void write_parameters(const struct net *net, const struct interpreted *made)
{
    const char *name;
    tutti_shape shape;
    for (int p = 0; tutti_parameter_info(net->network, p, &name, &shape, NULL) == TUTTI_OK; p++) {
        int64_t count = 1;
        for (int i = 0; i < shape.rank; i++) count *= shape.sizes[i];
        float *values = malloc((size_t)count * sizeof *values);
        ck_assert_ptr_nonnull(values);
        GOOD(tutti_get_parameter(net->trainer, name, values, count));
        double *to = interpreted_parameter(made, interpreted_find(made, name));
        for (int64_t i = 0; to && i < count; i++) to[i] = (double)values[i];
        free(values);
    }
}

/* The trainer, which gives parameters their values, is of the input alone, which is of floats, and has no kernels. */
static void run_by_interpreter(struct net *net, int64_t length)
{
    tutti_tensor input;
    struct interpreted made;
    GOOD(tutti_network_input(net->network, 0, &input));
    net->trainer = tutti_compile(net->network, input,
        &(tutti_training) { .loss = TUTTI_LOSS_NONE, .batch = SAMPLES, .sequence = length, .seed = SEED });
    ck_assert_msg(net->trainer != NULL, "%s", tutti_message(NULL));
    struct plan_options options = { .mode = PLAN_INFER, .sizes = { SAMPLES, length } };
    options.objective.output_count = net->output_count;
    for (int i = 0; i < net->output_count; i++) options.objective.outputs[i] = net->tensors[i].id;
    GOOD(interpreted_new(&runtime->devices[0], net->network, &options, true, &made));
    made.interpreter.inference = true;
    made.interpreter.constants.seed_low = SEED;
    write_parameters(net, &made);
    for (int i = 0; i < net->input_count; i++) {
        int64_t count;
        double *to = interpreted_input(&made, net->inputs[i].name, &count);
        ck_assert_msg(to && (size_t)count == count_of(&net->inputs[i]), "%s has other sizes", net->inputs[i].name);
        for (int64_t e = 0; e < count; e++) to[e] = element_at(&net->inputs[i], (size_t)e);
    }
    GOOD(interpreter_run(&made.interpreter, made.plan->graph.node_count));
    for (int i = 0; i < net->output_count; i++)
        for (size_t e = 0; e < count_of(&net->outputs[i]); e++)
            ((float *)net->outputs[i].data)[e] = (float)made.interpreter.values[made.plan->outputs[i]][e];
    interpreted_free(&made);
}

/* Names arrays for the inputs and for the outputs, which the network has named, and computes them. */
static void run(struct net *net, bool interprets)
{
    const char *name;
    tutti_tensor tensor;
    tutti_feed feeds[TUTTI_ONNX_PORTS];
    tutti_fetch fetches[TUTTI_ONNX_PORTS];
    const int64_t length = has_steps(net->network) ? LENGTH : 0;
    for (int i = 0; tutti_network_input(net->network, i, &tensor) == TUTTI_OK; i++) {
        struct npz_array *array = &net->inputs[net->input_count++];
        *array = array_of(net->network, tensor, NULL);
        feeds[i] = (tutti_feed) { array->name, dtype_of(array->type), array->data, length };
    }
    for (int i = 0; tutti_network_output(net->network, i, &name, &tensor) == TUTTI_OK; i++) {
        struct npz_array *array = &net->outputs[net->output_count];
        *array = array_of(net->network, tensor, name);
        ck_assert_int_eq(array->type, NPZ_F32);
        net->tensors[net->output_count] = tensor;
        fetches[net->output_count++] = (tutti_fetch) { tensor, TUTTI_DTYPE_F32, array->data };
    }
    ck_assert_int_gt(net->output_count, 0);
    if (interprets && net->inputs[0].type == NPZ_F32)
        run_by_interpreter(net, length);
    else
        run_by_kernels(net, feeds, fetches, length);
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
    ck_assert_str_eq(got->name, wanted->name);
    ck_assert_int_eq(got->rank, wanted->rank);
    for (int i = 0; i < got->rank; i++)
        ck_assert_msg(got->sizes[i] == wanted->sizes[i], "%s: %s, axis %d", file, got->name, i);
    for (size_t i = 0; i < count_of(got); i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        largest = fmax(largest, isinf(b[i]) ? 0 : fabs((double)b[i]));
        const double error = a[i] == b[i] ? 0 : fabs((double)a[i] - (double)b[i]);
        worst = error <= worst ? worst : error; /* NaN counts */
    }
    ck_assert_msg(
        worst <= LIMIT * largest, "%s: %s is off by %g, with elements up to %g", file, got->name, worst, largest);
}

/* Whether a parameter or running statistic has this name and shape. */
static bool has_parameter(const tutti_network *network, const char *wanted, tutti_shape sizes)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(network, i, &name, &shape, NULL) == TUTTI_OK; i++)
        if (!strcmp(name, wanted))
            return shape.rank == sizes.rank &&
                !memcmp(shape.sizes, sizes.sizes, (size_t)shape.rank * sizeof *shape.sizes);
    return false;
}

static void compare_parameters(const char *file, const tutti_network *got, const tutti_network *wanted)
{
    const char *name;
    tutti_shape shape;
    for (int i = 0; tutti_parameter_info(wanted, i, &name, &shape, NULL) == TUTTI_OK; i++)
        ck_assert_msg(has_parameter(got, name, shape), "%s: %s is gone, or has another shape", file, name);
}

/* Sequences of the first input, which are read as so many steps. */
static tutti_onnx_options steps_of(const struct net *net)
{
    tutti_tensor input;
    tutti_onnx_options options = { .size = sizeof options };
    tutti_tensor_info info = { .size = sizeof info };
    if (tutti_network_input(net->network, 0, &input) != TUTTI_OK) return options;
    GOOD(tutti_network_tensor(net->network, input, &info));
    options.input = info.shape;
    for (int i = 0; i < info.shape.rank; i++)
        if (info.shape.sizes[i] == TUTTI_SEQUENCE) options.input.sizes[i] = LENGTH;
    return options;
}

/* Writes the network, reads it again, and compares. */
static void expect_same(tutti_network *network, const char *name, uint64_t external_bytes)
{
    struct net first = { .network = network }, again = { 0 };
    tutti_onnx made = { .size = sizeof made };
    const char *path = in_folder(name, ".onnx");
    const bool interprets = few && networks_done++ % EIGHTH != 0;
    GOOD(tutti_network_status(network));
    run(&first, interprets);
    GOOD(tutti_export_onnx(network, first.trainer, path, &(tutti_onnx_export_options) { 0, external_bytes }));
    if (getenv("TUTTI_EXPORTS")) {
        GOOD(npz_save(in_folder(name, ".inputs.npz"), first.inputs, first.input_count));
        GOOD(npz_save(in_folder(name, ".outputs.npz"), first.outputs, first.output_count));
    }
    const tutti_onnx_options steps = steps_of(&first);
    GOOD(tutti_import_onnx(runtime, path, &steps, &made));
    again.network = made.network;
    run(&again, interprets);
    compare_parameters(name, again.network, network);
    ck_assert_int_eq(again.output_count, first.output_count);
    for (int i = 0; i < first.output_count; i++) compare(name, &again.outputs[i], &first.outputs[i]);
    if (!getenv("TUTTI_EXPORTS")) remove(path);
    net_free(&again);
    net_free(&first);
}

/* ------------------------------------------------------------------------------------------------------- tests ---- */

static const char *const files[] = { "mlp", "mlp_external", "residual", "residual_folded", "digits", "merged", "angles",
    "logic", "logarithms", "types", "transformer", "transformer_new", "pointwise", "attributes", "binary", "reductions",
    "old", "movement", "shapes", "convolutions", "products", "windows", "windows_new", "scalars", "siamese" };
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
    bool large; /* with TUTTI_EXPORTS */
    bool slow;  /* without "few": a hundred MB and more, of operations that smaller networks have */
} nets[] = {
    { "linear", { 1, { 1 } } },
    { "mlp", { 3, { 1, 28, 28 } } },
    { "lenet", { 3, { 1, 28, 28 } } },
    { "resnet18", { 3, { 3, 40, 40 } } },
    { "mobilenet_v2", { 3, { 3, 40, 40 } } },
    { "efficientnet_b0", { 3, { 3, 40, 40 } } },
    { "convnext_tiny", { 3, { 3, 40, 40 } }, .slow = true },
    { "vit_b_16", { 3, { 3, 32, 48 } }, .slow = true },
    { "unet", { 3, { 3, 20, 36 } }, .slow = true },
    { "resnet50", { 3, { 3, 64, 64 } }, true },
    { "vgg16", { 3, { 3, 64, 64 } }, true },
};
enum { NETS = sizeof nets / sizeof *nets };

/* Heads, scales and tokens that begin as zeros would hide what is before them. */
static void vary_small_parameters(tutti_network *network)
{
    enum { MOST = 8192 };
    static float values[MOST];
    const char *name;
    tutti_shape shape;
    bool trained;
    for (int i = 0; tutti_parameter_info(network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t count = 1;
        for (int k = 0; k < shape.rank; k++) count *= shape.sizes[k];
        if (!trained || count > MOST) continue;
        for (int k = 0; k < count; k++) values[k] = (float)((k * 7919 + i * 31) % 257) / 256 - 0.25f;
        GOOD(tutti_set_initial(network, name, values, count));
    }
}

START_TEST(models_stay_the_same)
{
    char name[64];
    if ((nets[_i].large && !getenv("TUTTI_EXPORTS")) || (nets[_i].slow && few)) return;
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    const tutti_tensor x = tutti_input(network, "input", nets[_i].input);
    GOOD(tutti_output(network, "output", model_find(nets[_i].name)->build(network, x, 10)));
    vary_small_parameters(network);
    snprintf(name, sizeof name, "model_%s", nets[_i].name);
    expect_same(network, name, 0);
}
END_TEST

START_TEST(networks_stay_the_same)
{
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    expect_same(network, export_network(network, _i), 0);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- completeness ---- */

/* Operations that are never written to a file. Those that occur in the plan of a step only are not in networks that a
 * program makes. */
static const struct {
    const char *operation, *reason;
} unwritten[] = {
    { "activation", "nodes have the names of its functions" },
    { "batch_norm_inference", "a plan's" },
    { "bce_with_logits", "needs targets" },
    { "channel_sum", "a plan's" },
    { "attention", "a plan's" },
    { "cross_entropy", "needs targets" },
    { "ctc", "needs targets" },
    { "custom", "a program's own" },
    { "dft2", "a plan's" },
    { "embedding_stored", "a plan's" },
    { "floats", "a plan's" },
    { "fold_batch_norm", "a plan's" },
    { "huber", "needs targets" },
    { "l1", "needs targets" },
    { "loop", "a plan's" },
    { "loss_total", "a plan's" },
    { "mean_loss", "a training step's" },
    { "mean_squared_error", "needs targets" },
    { "nll", "needs targets" },
    { "reorder", "a plan's" },
    { "soft_cross_entropy", "needs targets" },
    { "spectral_product", "ONNX has no product of complex numbers" },
};

static bool has_reason(const char *operation)
{
    const char *gradient = strstr(operation, "_gradient");
    if (gradient && strcmp(operation, "conv2d_data_gradient") != 0) return true; /* of a training step */
    for (size_t i = 0; i < sizeof unwritten / sizeof *unwritten; i++)
        if (!strcmp(unwritten[i].operation, operation)) return true;
    return false;
}

static bool is_in(const tutti_network *network, const char *operation)
{
    for (int i = 0; i < tutti_network_nodes(network); i++) {
        tutti_node_info node = { .size = sizeof node };
        GOOD(tutti_network_node(network, i, &node));
        if (!strcmp(node.operation, operation)) return true;
    }
    return false;
}

/* Each operation can be written, and one of these networks has it; or a reason is given. */
START_TEST(every_operation_is_written)
{
    const int count = export_networks();
    tutti_network **networks = memory_new((size_t)count, sizeof *networks);
    ck_assert_ptr_nonnull(networks);
    for (int i = 0; i < count; i++) {
        networks[i] = tutti_network_new(runtime);
        ck_assert_ptr_nonnull(networks[i]);
        (void)export_network(networks[i], i);
    }
    for (int i = 0; operations[i]; i++) {
        const char *operation = operations[i]->name;
        bool made = false;
        if (has_reason(operation)) continue;
        for (int k = 0; k < count && !made; k++) made = is_in(networks[k], operation);
        struct export_row row;
        ck_assert_msg(export_find(operation, &row),
            "%s has no line in onnx/export/export_layers.c, and its schema no operator", operation);
        ck_assert_msg(made, "no network of tests/onnx/export_networks.c has %s", operation);
    }
    for (int i = 0; i < count; i++) tutti_network_free(networks[i]);
    free(networks);
}
END_TEST

START_TEST(large_arrays_lie_in_a_file)
{
    tutti_network *network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(network);
    const tutti_tensor x = tutti_input(network, "input", TUTTI_SHAPE(40));
    GOOD(tutti_output(network, "output", tutti_dense(network, tutti_dense(network, x, 50, NULL), 30, NULL)));
    expect_same(network, "sibling", 1000);
    if (!getenv("TUTTI_EXPORTS")) ck_assert_int_eq(remove(in_folder("sibling", ".onnx.data")), 0);
}
END_TEST

/* The recorded file has been run by check_exports.py. After a change, also of the version, replace it by the
 * bytes.onnx that TUTTI_EXPORTS leaves. */
START_TEST(bytes_stay_the_same)
{
    struct net net = { 0 };
    tutti_onnx made = { .size = sizeof made };
    unsigned char *wanted = NULL, *got = NULL;
    size_t wanted_size, got_size;
    GOOD(tutti_import_onnx(runtime, recorded("residual"), NULL, &made));
    net.network = made.network;
    run(&net, false);
    GOOD(tutti_export_onnx(net.network, net.trainer, in_folder("bytes", ".onnx"), NULL));
    GOOD(file_read(in_folder("bytes", ".onnx"), 1 << 20, &got, &got_size));
    GOOD(file_read(recorded("exported"), 1 << 20, &wanted, &wanted_size));
    ck_assert_uint_eq(got_size, wanted_size);
    ck_assert_mem_eq(got, wanted, wanted_size);
    free(got);
    free(wanted);
    if (!getenv("TUTTI_EXPORTS")) remove(in_folder("bytes", ".onnx"));
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
    run(&net, false);
    expect_refused(&net, TUTTI_FILE, in_folder("none/none", ".onnx"), "none");
    GOOD(tutti_output(net.network, "loss", loss));
    expect_refused(&net, TUTTI_UNSUPPORTED, in_folder("none", ".onnx"), "l1 (layer");
    net_free(&net);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ preparation ---- */

#define TABLE(columns) "{\"kind\":\"table\",\"classes\":[\"a\",\"b\"],\"prepared\":[" columns "]}"
#define COLUMN(kind, more) "{\"name\":\"c\",\"role\":\"input\",\"kind\":\"" kind "\"" more "}"
#define NUMBER(std) COLUMN("number", ",\"mean\":[1],\"std\":[" std "],\"median\":0,\"indicator\":true")
#define TEXTS COLUMN("category", ",\"categories\":[\"x\",\"y\"],\"indicator\":true")
#define TRUTHS COLUMN("boolean", ",\"format\":2,\"mean\":[0],\"std\":[1],\"median\":0,\"indicator\":false")

static const struct {
    const char *data;
    tutti_status status;
    const char *words;
} preparations[] = {
    { TABLE(NUMBER("2") "," TEXTS "," TRUTHS), TUTTI_OK, "" },
    { "{\"kind\":\"arrays\",\"mean\":[1,1,1,1,1,1,1],\"std\":[1,1,1,1,1,1,1]}", TUTTI_OK, "" },
    { "{\"kind\":\"arrays\",\"bytes\":true,\"target_mean\":[1,2],\"target_std\":[3,4]}", TUTTI_OK, "" },
    { "{\"kind\":\"line\"}", TUTTI_OK, "" },
    { NULL, TUTTI_INVALID, "not known" },
    { "{", TUTTI_FORMAT, "damaged" },
    { "[]", TUTTI_FORMAT, "damaged" },
    { "{\"kind\":\"table\"}", TUTTI_FORMAT, "damaged" },
    { TABLE("{}"), TUTTI_FORMAT, "damaged" },
    { TABLE(NUMBER("0") "," TEXTS "," TRUTHS), TUTTI_FORMAT, "damaged" },
    { TABLE(COLUMN("category", "")), TUTTI_FORMAT, "damaged" },
    { TABLE(COLUMN("number", "")), TUTTI_MISMATCH, "make 1 inputs, but the network has 7" },
    { TABLE(COLUMN("date", "")), TUTTI_UNSUPPORTED, "column 'c' has dates" },
    { TABLE(COLUMN("poem", "")), TUTTI_UNSUPPORTED, "column 'c' is of a kind" },
    { "{\"kind\":\"recordings\"}", TUTTI_FORMAT, "rate of the recordings" },
    { "{\"kind\":\"recordings\",\"rate\":8000,\"mean\":[1],\"std\":[1]}", TUTTI_MISMATCH, "1 means" },
    { "{\"kind\":\"recordings\",\"rate\":8000}", TUTTI_MISMATCH, "spectrograms of 1 x 64 x 5 or more" },
    { "{\"kind\":\"images\",\"mean\":[1],\"std\":[1]}", TUTTI_MISMATCH, "1 means" },
    { "{\"kind\":\"line\",\"classes\":[\"a\"]}", TUTTI_MISMATCH, "one for each class" },
    { "{\"kind\":\"line\",\"classes\":[\"a\",2]}", TUTTI_FORMAT, "names of the classes" },
};

/* A dense layer of seven numbers, which says two. */
static void make_small(struct net *net)
{
    net->network = tutti_network_new(runtime);
    ck_assert_ptr_nonnull(net->network);
    const tutti_tensor x = tutti_input(net->network, "input", TUTTI_SHAPE(7));
    GOOD(tutti_output(net->network, "output", tutti_dense(net->network, x, 2, NULL)));
    run(net, true);
}

/* The network that is read is the one that was written, whatever lies around it. */
START_TEST(preparation_is_cut_off_or_refused)
{
    struct net net = { 0 }, again = { 0 };
    tutti_onnx made = { .size = sizeof made };
    const char *path = in_folder("prepared", ".onnx");
    const tutti_onnx_export_options options = { .data = preparations[_i].data, .with_preparation = true };
    make_small(&net);
    ck_assert_int_eq(tutti_export_onnx(net.network, net.trainer, path, &options), preparations[_i].status);
    if (preparations[_i].status == TUTTI_OK) {
        GOOD(tutti_import_onnx(
            runtime, path, &(tutti_onnx_options) { .logits = true, .without_preparation = true }, &made));
        again.network = made.network;
        run(&again, true);
        compare("prepared", &again.outputs[0], &net.outputs[0]);
        char *text = tutti_onnx_metadata(path, "tutti.data");
        ck_assert_str_eq(text, options.data);
        free(text);
        ck_assert_ptr_null(tutti_onnx_metadata(path, "none"));
        net_free(&again);
        if (!getenv("TUTTI_EXPORTS")) remove(path);
    } else {
        ck_assert_msg(strstr(tutti_message(NULL), preparations[_i].words) != NULL, "%s", tutti_message(NULL));
        ck_assert_int_ne(access(path, F_OK), 0);
    }
    net_free(&net);
}
END_TEST

int main(int count, char **words)
{
    few = count > 1 && !strcmp(words[1], "few");
    Suite *suite = suite_create("export");
    TCase *tests = tcase_create("export");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, files_stay_the_same, 0, FILES);
    tcase_add_loop_test(tests, models_stay_the_same, 0, NETS);
    tcase_add_loop_test(tests, networks_stay_the_same, 0, export_networks());
    tcase_add_test(tests, every_operation_is_written);
    tcase_add_test(tests, large_arrays_lie_in_a_file);
    tcase_add_test(tests, bytes_stay_the_same);
    tcase_add_test(tests, refusals);
    TCase *prepared = tcase_create("preparation");
    tcase_add_checked_fixture(prepared, begin, end);
    tcase_add_loop_test(prepared, preparation_is_cut_off_or_refused, 0, sizeof preparations / sizeof *preparations);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, prepared);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
