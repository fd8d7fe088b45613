/* Reads the files that make.py wrote: outputs are those of onnxruntime, losses and gradients those of PyTorch.
 *
 *   test_onnx [few | FILE...]
 *
 * Without arguments, kernels compute all files; with the names of files, the outputs of these. few: the interpreter
 * computes outputs, losses and gradients, with the nodes that are fused for the device's class, and kernels compute one
 * file in EIGHTH. */
#include <check.h>
#undef fail /* base/status.h has its own */

#include "base/memory.h"
#include "formats/safetensors.h"
#include "graph/network.h"
#include "runtime/device.h"
#include "tests/interpreted.h"
#include "tests/onnx/conform.h"
#include "tests/onnx/files.h"
#include "tutti_onnx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 300, EIGHTH = 8 };
/* Tolerance relative to the largest element: sums have another order. */
#define LIMIT 2e-5

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

struct session {
    tutti_runtime *runtime;
    tutti_onnx model;
    tutti_trainer *trainer;
    struct safetensors *recorded;
    tutti_feed feeds[TUTTI_ONNX_PORTS];
    int feed_count;
    int64_t samples;
    struct interpreted made; /* by the interpreter; `trainer` by kernels */
};

static bool few;

/* Feeds each input with the array recorded as input.NAME. */
static void add_feeds(struct session *s)
{
    for (int i = 0; i < safetensors_count(s->recorded); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(s->recorded, i);
        if (strncmp(tensor->name, "input.", 6)) continue;
        s->samples = tensor->sizes[0];
        s->feeds[s->feed_count++] = (tutti_feed) { tensor->name + 6,
            tensor->type == SAFETENSORS_I64 ? TUTTI_DTYPE_I64 : TUTTI_DTYPE_F32, tensor->data };
    }
}

/* Sizes that files leave open, by the axes of what is recorded: "x.1". */
static int find_sizes(const struct session *s, tutti_onnx_size *sizes, char names[][NAME], int most)
{
    int count = 0;
    for (int i = 0; i < s->feed_count; i++) {
        char name[NAME];
        snprintf(name, NAME, "input.%s", s->feeds[i].name);
        const struct safetensors_tensor *tensor = safetensors_find(s->recorded, name);
        for (int k = 1; k < tensor->rank && count < most; k++, count++) {
            snprintf(names[count], NAME, "%s.%d", s->feeds[i].name, k);
            sizes[count] = (tutti_onnx_size) { names[count], tensor->sizes[k] };
        }
    }
    return count;
}

/* NAME+N: the outputs of the file NAME at another size. */
static void session_open(struct session *s, const char *name)
{
    enum { MOST = 64 };
    char path[NAME], names[MOST][NAME];
    tutti_onnx_size sizes[MOST];
    *s = (struct session) { .runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" }) };
    ck_assert_ptr_nonnull(s->runtime);
    file_path(path, NAME, name, strlen(name), ".safetensors");
    GOOD(safetensors_open(path, &s->recorded));
    add_feeds(s);
    file_path(path, NAME, name, strcspn(name, "+"), ".onnx");
    const tutti_onnx_options options = { .sizes = sizes, .size_count = find_sizes(s, sizes, names, MOST) };
    GOOD(tutti_import_onnx(s->runtime, path, &options, &s->model));
}

static void session_close(struct session *s)
{
    safetensors_close(s->recorded);
    interpreted_free(&s->made);
    tutti_trainer_free(s->trainer);
    tutti_network_free(s->model.network);
    tutti_close(s->runtime);
}

/* The first samples of an array. */
static void write_input(const struct session *s, const char *name, const struct safetensors_tensor *from)
{
    int64_t count;
    double *to = interpreted_input(&s->made, name, &count);
    ck_assert_msg(to && count <= array_elements(from), "%s has other sizes", name);
    for (int64_t i = 0; i < count; i++) to[i] = array_at(from, i);
}

/* Numbers that are quantised depend on the rounding of floats. */
static bool is_interpreted(const char *name, int number)
{
    return few && number % EIGHTH != 0 && strncmp(name, "quantised", 9) != 0;
}

/* Computes the network in double precision, with the nodes that are fused for the class of the device. */
static void interpret(struct session *s, enum plan_mode mode, int64_t samples, const struct objective *objective)
{
    const struct plan_options options = { .mode = mode, .sizes.samples = samples, .objective = *objective };
    GOOD(network_layout(s->model.network));
    GOOD(interpreted_new(&s->runtime->devices[0], s->model.network, &options, true, &s->made));
    s->made.interpreter.constants.gradient_weight = 1.0f / (float)samples;
    s->made.interpreter.inference = mode == PLAN_INFER;
    interpreted_start(&s->made);
    for (int i = 0; i < safetensors_count(s->recorded); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(s->recorded, i);
        if (!strncmp(tensor->name, "input.", 6)) write_input(s, tensor->name + 6, tensor);
        if (mode == PLAN_TRAIN && !strcmp(tensor->name, "labels")) write_input(s, "targets", tensor);
    }
    GOOD(interpreter_run(&s->made.interpreter, s->made.plan->graph.node_count));
}

static void compare(const char *file, const char *name, const float *got, const struct safetensors_tensor *wanted)
{
    double largest = 0.01, worst = 0;
    for (int64_t i = 0; i < array_elements(wanted); i++) {
        const double one = array_at(wanted, i);
        largest = fmax(largest, fabs(one));
        const double error = fabs(one - (double)got[i]);
        worst = error <= worst ? worst : error; /* NaN counts */
    }
    ck_assert_msg(worst <= LIMIT * largest, "%s: %s is off by %g, with elements up to %g", file, name, worst, largest);
}

/* The recorded output with the name of the network's. */
static const struct safetensors_tensor *recorded_output(const struct session *s, int position)
{
    const char *output = NULL;
    char name[NAME];
    if (tutti_network_output(s->model.network, position, &output, NULL) != TUTTI_OK) return NULL;
    snprintf(name, NAME, "output.%s", output);
    return safetensors_find(s->recorded, name);
}

static void check_shape(const struct session *s, int position, const struct safetensors_tensor *wanted)
{
    tutti_shape shape;
    GOOD(tutti_shape_of(s->model.network, s->model.outputs[position], &shape));
    ck_assert_msg(shape.rank + 1 == wanted->rank, "%s has %d axes", wanted->name, shape.rank);
    for (int i = 0; i < shape.rank; i++)
        ck_assert_msg(shape.sizes[i] == wanted->sizes[i + 1], "%s, axis %d: %lld", wanted->name, i + 1,
            (long long)shape.sizes[i]);
}

/* make.py records integers and truths as the file has them, and all floats as float32. */
static void check_type(const struct session *s, int position, const struct safetensors_tensor *wanted)
{
    const tutti_dtype dtype = wanted->type == SAFETENSORS_BOOL ? TUTTI_DTYPE_BOOL
        : wanted->type == SAFETENSORS_U8                       ? TUTTI_DTYPE_U8
        : wanted->type == SAFETENSORS_I64                      ? TUTTI_DTYPE_I64
        : wanted->type == SAFETENSORS_I32                      ? TUTTI_DTYPE_I32
                                                               : TUTTI_DTYPE_F32;
    ck_assert_msg(
        s->model.output_dtypes[position] == dtype, "%s is of type %d", wanted->name, s->model.output_dtypes[position]);
}

static const char *const names[] = { "mlp", "mlp_external", "residual", "residual_folded", "digits", "lenet", "merged",
    "angles", "logic", "logarithms", "types", "transformer", "transformer_new", "windows", "windows_new", "pointwise",
    "attributes", "binary", "reductions", "old", "movement", "shapes", "convolutions", "products", "indices", "lines",
    "sequences", "volumes", "sizes", "parts", "functions", "functions_script", "quantised", "quantised_operators",
    "quantised_blocks", "counted", "counted_new", "unpooled", "unpool_1d", "unpool_2d", "unpool_3d", "lengths+6",
    "lengths+9", "lengths_new+6", "lengths_new+9", "scalars", "casts", "known", "resized", "branches", "linear",
    "softmaxes", "weights", "batches", "batches_fixed", "copies", "copies_new", "ties", "ties_new", "siamese",
    "siamese_new", "buffers", "states", "attentions", "relative_new", "lstm_quantised", "lstm_quantised_gates",
    "tables", "sklearn_logistic", "sklearn_mlp", "oldest", "gathered", "products_added", "products_fixed",
    "norms_fixed", "masked", "from_end", "turned", "folded_lstm", "folded_twice", "folded_scaled", "folded_recurrent",
    "folded_fresh", "folded_added", "folded_decoder", "folded_turned", "folded_norms", "folded_copies", "folded_tokens",
    "folded_cells", "folded_start", "folded_heads", "folded_zeros", "numbers", "numbers_new" };

static void infer_by_kernels(struct session *s, const tutti_fetch *fetches)
{
    s->trainer = tutti_compile(s->model.network, s->model.outputs[0],
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = 8,
            .outputs = s->model.outputs + 1,
            .output_count = s->model.output_count - 1 });
    ck_assert_msg(s->trainer != NULL, "%s", tutti_message(NULL));
    GOOD(tutti_infer(s->trainer, s->feeds, s->feed_count, s->samples, fetches, s->model.output_count));
}

static void infer_by_interpreter(struct session *s, const tutti_fetch *fetches)
{
    struct objective objective = { .output_count = s->model.output_count };
    for (int i = 0; i < s->model.output_count; i++) objective.outputs[i] = s->model.outputs[i].id;
    interpret(s, PLAN_INFER, s->samples, &objective);
    for (int i = 0; i < s->model.output_count; i++) {
        const int64_t count = array_elements(recorded_output(s, i));
        const double *from = s->made.interpreter.values[s->made.plan->outputs[i]];
        for (int64_t e = 0; e < count; e++) ((float *)fetches[i].data)[e] = (float)from[e];
    }
}

START_TEST(outputs_are_onnxruntimes)
{
    struct session s;
    tutti_fetch fetches[TUTTI_ONNX_PORTS];
    session_open(&s, names[_i]);
    for (int i = 0; i < s.model.output_count; i++) {
        const struct safetensors_tensor *wanted = recorded_output(&s, i);
        ck_assert_ptr_nonnull(wanted);
        check_shape(&s, i, wanted);
        check_type(&s, i, wanted);
        fetches[i] = (tutti_fetch) { s.model.outputs[i], TUTTI_DTYPE_F32,
            malloc((size_t)array_elements(wanted) * sizeof(float)) };
        ck_assert_ptr_nonnull(fetches[i].data);
    }
    if (is_interpreted(names[_i], _i))
        infer_by_interpreter(&s, fetches);
    else
        infer_by_kernels(&s, fetches);
    for (int i = 0; i < s.model.output_count; i++) {
        const struct safetensors_tensor *wanted = recorded_output(&s, i);
        compare(names[_i], wanted->name, fetches[i].data, wanted);
        free(fetches[i].data);
    }
    session_close(&s);
}
END_TEST

/* A parameter that nothing reads has no gradient. */
static void copy_gradient(const struct session *s, const char *name, float *gradient, int64_t count)
{
    const int parameter = interpreted_find(&s->made, name);
    ck_assert_msg(parameter >= 0, "there is no parameter %s", name);
    const double *from = interpreted_gradient(&s->made, parameter);
    for (int64_t i = 0; i < count; i++) gradient[i] = from ? (float)from[i] : 0;
}

static void check_gradient(const struct session *s, const char *file, const struct safetensors_tensor *wanted)
{
    const int64_t count = (int64_t)(wanted->bytes / sizeof(float));
    float *gradient = malloc(wanted->bytes);
    ck_assert_ptr_nonnull(gradient);
    if (s->trainer)
        GOOD(tutti_get_gradient(s->trainer, wanted->name + 9, gradient, count));
    else
        copy_gradient(s, wanted->name + 9, gradient, count);
    compare(file, wanted->name, gradient, wanted);
    free(gradient);
}

static const char *const trained[] = { "mlp", "mlp_external", "residual", "transformer", "transformer_new", "quantised",
    "counted", "counted_new", "unpooled", "copies", "copies_new", "ties", "ties_new", "siamese", "siamese_new",
    "buffers", "states", "attentions", "relative_new", "from_end", "folded_lstm", "folded_twice", "folded_scaled",
    "folded_recurrent", "folded_fresh", "folded_added", "folded_decoder", "folded_turned", "folded_norms",
    "folded_copies", "folded_tokens", "folded_cells", "folded_start", "folded_heads", "folded_zeros", "numbers",
    "numbers_new" };

static double train_by_kernels(struct session *s, const struct safetensors_tensor *labels)
{
    tutti_metrics metrics;
    s->trainer = tutti_compile(s->model.network, s->model.outputs[0], &(tutti_training) { .batch = labels->sizes[0] });
    ck_assert_msg(s->trainer != NULL, "%s", tutti_message(NULL));
    s->feeds[1] = (tutti_feed) { "targets", TUTTI_DTYPE_I32, labels->data };
    GOOD(tutti_train_step(s->trainer, s->feeds, 2, labels->sizes[0], &metrics));
    return metrics.loss;
}

static double train_by_interpreter(struct session *s, int64_t samples)
{
    const struct objective objective = objective_of(s->model.outputs[0], TUTTI_CROSS_ENTROPY);
    interpret(s, PLAN_TRAIN, samples, &objective);
    return s->made.interpreter.values[s->made.plan->metrics][0] / (double)samples;
}

START_TEST(gradients_are_pytorchs)
{
    struct session s;
    float loss;
    session_open(&s, trained[_i]);
    const struct safetensors_tensor *labels = safetensors_find(s.recorded, "labels");
    const struct safetensors_tensor *wanted = safetensors_find(s.recorded, "loss");
    ck_assert(labels && wanted);
    memcpy(&loss, wanted->data, sizeof loss);
    const double got =
        is_interpreted(trained[_i], _i) ? train_by_interpreter(&s, labels->sizes[0]) : train_by_kernels(&s, labels);
    ck_assert_msg(fabs(got - (double)loss) < 1e-5, "%s: the loss is %g, not %g", trained[_i], got, (double)loss);
    for (int i = 0; i < safetensors_count(s.recorded); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(s.recorded, i);
        if (!strncmp(tensor->name, "gradient.", 9)) check_gradient(&s, trained[_i], tensor);
    }
    session_close(&s);
}
END_TEST

static void check_parameter(const struct session *s, const char *file, const struct safetensors_tensor *wanted)
{
    float *values = malloc(wanted->bytes);
    ck_assert_ptr_nonnull(values);
    GOOD(tutti_get_parameter(s->trainer, wanted->name + strlen("after."), values, array_elements(wanted)));
    compare(file, wanted->name, values, wanted);
    free(values);
}

static const char *const stepped[] = { "siamese", "siamese_new" };

/* Parameters and running statistics after three steps: each use of a batch normalisation updates its statistics. */
START_TEST(steps_are_pytorchs)
{
    struct session s;
    int count = 0;
    session_open(&s, stepped[_i]);
    const struct safetensors_tensor *labels = safetensors_find(s.recorded, "labels");
    ck_assert_ptr_nonnull(labels);
    s.trainer = tutti_compile(s.model.network, s.model.outputs[0],
        &(tutti_training) { .batch = labels->sizes[0], .optimizer = TUTTI_SGD, .learning_rate = 0.1f });
    ck_assert_msg(s.trainer != NULL, "%s", tutti_message(NULL));
    s.feeds[1] = (tutti_feed) { "targets", TUTTI_DTYPE_I32, labels->data };
    for (int i = 0; i < 3; i++) GOOD(tutti_train_step(s.trainer, s.feeds, 2, labels->sizes[0], NULL));
    for (int i = 0; i < safetensors_count(s.recorded); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(s.recorded, i);
        if (strncmp(tensor->name, "after.", 6)) continue;
        check_parameter(&s, stepped[_i], tensor);
        count++;
    }
    for (int i = 0; tutti_parameter_info(s.model.network, i, NULL, NULL, NULL) == TUTTI_OK; i++) count--;
    ck_assert_int_eq(count, 0);
    session_close(&s);
}
END_TEST

/* Files in which exporters merged, copied or computed parameters: the network has those of the module, and no other. */
static const char *const counted[] = { "copies", "copies_new", "ties", "ties_new", "transformer", "transformer_new",
    "siamese", "siamese_new", "buffers", "states", "attentions", "relative_new", "folded_lstm", "folded_twice",
    "folded_scaled", "folded_recurrent", "folded_fresh", "folded_added", "folded_decoder", "folded_turned",
    "folded_norms", "folded_copies", "folded_tokens", "folded_cells", "folded_start", "folded_heads", "folded_zeros",
    "numbers", "numbers_new" };

START_TEST(parameters_are_pytorchs)
{
    struct session s;
    int wanted = 0, count = 0;
    const char *name;
    bool trains;
    session_open(&s, counted[_i]);
    for (int i = 0; i < safetensors_count(s.recorded); i++)
        wanted += !strncmp(safetensors_at(s.recorded, i)->name, "gradient.", 9);
    for (int i = 0; tutti_parameter_info(s.model.network, i, &name, NULL, &trains) == TUTTI_OK; i++) count += trains;
    ck_assert_int_gt(wanted, 0);
    ck_assert_int_eq(count, wanted);
    session_close(&s);
}
END_TEST

/* Two layers read w0, of ones, and w1, of zeros, and w2, whose elements differ. */
START_TEST(merged_initialisers_are_apart)
{
    static const char *const wanted[] = { "w0", "w1", "w2", "w0#2", "w1#2" };
    struct session s;
    const char *name;
    int count = 0;
    session_open(&s, "merged");
    for (; tutti_parameter_info(s.model.network, count, &name, NULL, NULL) == TUTTI_OK; count++)
        ck_assert(count < 5 && !strcmp(name, wanted[count]));
    ck_assert_int_eq(count, 5);
    session_close(&s);
}
END_TEST

/* Parameters whose names or shapes the exporter changed. */
static const struct {
    const char *file, *name;
    int64_t rows, columns; /* 0: it has one axis */
} restored[] = {
    { "transformer", "qkv.weight", 24, 8 }, /* stored transposed as onnx::MatMul_144; found by the bias */
    { "transformer_new", "down.weight", 8, 16 },
    { "transformer_new", "norm2.bias", 8, 0 }, /* merged with norm1.bias; found by the scope */
    { "windows", "norm.bias", 8, 0 },          /* merged; found by an Identity */
    { "windows_new", "attention.in_proj_weight", 24, 8 },
    { "folded_added", "layer.weight", 4, 5 }, /* of a Gemm, whose bias of zeros is not in the file */
    { "folded_added", "layer.bias", 4, 0 },
    { "folded_decoder", "layer.multihead_attn.in_proj_bias", 12, 0 },
    { "folded_lstm", "layer.weight_ih_l0", 12, 4 },
    { "folded_start", "second.weight_hh_l1_reverse", 8, 2 },
    { "numbers", "slope.weight", 1, 0 }, /* of one number, and train */
    { "numbers_new", "scale", 1, 0 },
};

START_TEST(names_are_pytorchs)
{
    struct session s;
    tutti_shape shape;
    const char *name;
    bool found = false;
    session_open(&s, restored[_i].file);
    for (int i = 0; tutti_parameter_info(s.model.network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        ck_assert_msg(strncmp(name, "val_115", 7), "a copy is a parameter");
        if (strcmp(name, restored[_i].name)) continue;
        found = true;
        ck_assert_int_eq(shape.sizes[0], restored[_i].rows);
        ck_assert_int_eq(shape.rank == 2 ? shape.sizes[1] : 0, restored[_i].columns);
    }
    ck_assert_msg(found, "%s has no parameter %s", restored[_i].file, restored[_i].name);
    session_close(&s);
}
END_TEST

/* Weights that an Identity copies, and that are reshaped and normalised before they are used, train. */
START_TEST(computed_weights_train)
{
    struct session s;
    tutti_shape shape;
    int found = 0;
    session_open(&s, "weights");
    for (int i = 0; tutti_parameter_info(s.model.network, i, NULL, &shape, NULL) == TUTTI_OK; i++)
        found += shape.rank == 3 && shape.sizes[1] == 5 && shape.sizes[2] == 36;
    ck_assert_int_eq(found, 2);
    session_close(&s);
}
END_TEST

/* Lines on parameters that a file does not tell from others. */
static const struct {
    const char *file, *line;
} told[] = {
    { "buffers", "constant: 5 initialisers that are compared" },
    { "buffers",
        "trains: 1 initialiser of which the file does not tell whether they are parameters or buffers: positions" },
    { "relative_new", "warning: the exporter looked up squeeze in table.weight: elements that are equal train as one" },
    { "folded_lstm", "val_41 is layer.weight_ih_l0 in ONNX's order of gates" },
    { "folded_tokens", "expand is token, repeated: it is one parameter" },
    { "folded_cells", "linear_1 is cell.bias_hh, repeated: it is one parameter" },
    { "folded_zeros",
        "warning: the exporter folded the parameter token into expand, which has elements several times" },
    { "folded_turned", "transpose holds w in an order that the file does not tell" },
    { "folded_twice", "warning: the exporter computed mul from w, of which w has elements, too: mul does not train" },
    { "folded_scaled", "warning: the exporter computed mul from w: mul trains in its place" },
    { "folded_recurrent", "linear_1 is layer.bias_hh_l0 in another form: both are one parameter" },
    { "folded_fresh", "the exporter left out head.bias, which is 0: it trains from 0" },
    { "sklearn_logistic", "labels of label are numbers from 0 on, for: apple, lime, plum" },
    { "sklearn_mlp", "labels of classes are numbers from 0 on, for: apple, lime, plum" },
    { "masked", "trains: 1 initialiser of which the file does not tell whether they are parameters or buffers: w1" },
    { "batches_fixed", "warning: w2 has 3 equal parts along axis 1, the batch: they are one, which all samples share" },
    { "merged", "warning: several nodes read 1 initialiser: the file does not tell tied parameters" },
};

/* Files for one number of samples, in which samples cannot be computed apart from each other: parameters with a row for
 * each of them, all equal; and what is another index, row, matrix or random number for each. */
static const struct {
    const char *file, *words;
} refused[] = {
    { "rows_new", "'rows', is a parameter with 3 parts along axis 0, the batch" },
    { "rows", "'rows', is a parameter with 3 parts along axis 0, the batch" },
    { "rows_turned", "is a parameter with 3 parts along axis 0, the batch" },
    { "rows_state", "'rows', is a parameter with 3 parts along axis 1, the batch" },
    { "grown_shared", "its indices grow with the sample, and the batch is one of its batch_dims" },
    { "rows_added", "only its input 2 depends on the samples, and the product of the others has size 3 along axis 0" },
    { "numbers_added", "the batch is another axis of input 2" },
    { "matrices_of_samples", "has elements of its own for each of the 3 samples" },
    { "masked_heads", "the batch is another axis of its mask" },
    { "dropped_state", "has elements of its own for each of the 3 samples" },
};

START_TEST(samples_that_are_not_apart_are_refused)
{
    char path[NAME];
    tutti_onnx made = { 0 };
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, refused[_i].file, strlen(refused[_i].file), ".onnx");
    ck_assert_int_eq(tutti_import_onnx(runtime, path, NULL, &made), TUTTI_UNSUPPORTED);
    ck_assert_msg(strstr(tutti_message(runtime), refused[_i].words) != NULL, "%s", tutti_message(runtime));
    tutti_close(runtime);
}
END_TEST

static void find_line(void *user, const char *line)
{
    int *found = user;
    *found += !strncmp(line, told[*found >> 8].line, strlen(told[*found >> 8].line));
}

START_TEST(decisions_are_reported)
{
    char path[NAME];
    int found = _i << 8;
    tutti_onnx made = { 0 };
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, told[_i].file, strlen(told[_i].file), ".onnx");
    GOOD(tutti_import_onnx(runtime, path, &(tutti_onnx_options) { .note = find_line, .user = &found }, &made));
    ck_assert_int_eq(found & 255, 1);
    tutti_network_free(made.network);
    tutti_close(runtime);
}
END_TEST

START_TEST(constants_train_if_asked)
{
    char path[NAME];
    bool trains;
    int count = 0;
    tutti_onnx made = { 0 };
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, "buffers", 7, ".onnx");
    GOOD(tutti_import_onnx(runtime, path, &(tutti_onnx_options) { .train_constants = true }, &made));
    for (int i = 0; tutti_parameter_info(made.network, i, NULL, NULL, &trains) == TUTTI_OK; i++) count += trains;
    ck_assert_int_eq(count, 8);
    tutti_network_free(made.network);
    tutti_close(runtime);
}
END_TEST

static void count_warnings(void *user, const char *line)
{
    *(int *)user += !strncmp(line, "warning: 1 batch normalisation", 30);
}

START_TEST(training_mode_is_told)
{
    char path[NAME];
    int warnings = 0;
    tutti_onnx made = { 0 };
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, "training", 8, ".onnx");
    GOOD(tutti_import_onnx(runtime, path, &(tutti_onnx_options) { .note = count_warnings, .user = &warnings }, &made));
    ck_assert_int_eq(warnings, 1);
    tutti_network_free(made.network);
    tutti_close(runtime);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ random numbers ----
 */

enum { DRAWN = 300, WIDTH = 50, DRAWS = 6 };

/* All outputs for DRAWN samples of zeros, `batch` at a time. */
static int draw(const char *file, uint64_t seed, int64_t batch, float (*y)[DRAWN][WIDTH])
{
    static const float x[DRAWN][WIDTH];
    char path[NAME];
    tutti_onnx model = { 0 };
    tutti_fetch fetches[DRAWS];
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, file, strlen(file), ".onnx");
    GOOD(tutti_import_onnx(runtime, path, NULL, &model));
    for (int i = 0; i < model.output_count; i++) fetches[i] = (tutti_fetch) { model.outputs[i], TUTTI_DTYPE_F32, y[i] };
    tutti_trainer *trainer = tutti_compile(model.network, model.outputs[0],
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = batch,
            .seed = seed,
            .outputs = model.outputs + 1,
            .output_count = model.output_count - 1 });
    ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
    GOOD(tutti_infer(trainer, &(tutti_feed) { "x", TUTTI_DTYPE_F32, x }, 1, DRAWN, fetches, model.output_count));
    tutti_trainer_free(trainer);
    tutti_network_free(model.network);
    tutti_close(runtime);
    return model.output_count;
}

/* Within five deviations of the estimate. */
static void check_mean(float y[DRAWN][WIDTH], int width, double power, double wanted, double deviation)
{
    double sum = 0;
    for (int i = 0; i < DRAWN; i++)
        for (int k = 0; k < width; k++) sum += pow((double)y[i][k], power);
    const double mean = sum / DRAWN / width;
    ck_assert_msg(fabs(mean - wanted) < 5 * deviation / sqrt(DRAWN * width), "mean of power %g is %g, not %g", power,
        mean, wanted);
}

/* Uniform in [-1, 3), normal (2, 0.5), 1 in a quarter of all; the same for all samples; one for each. */
START_TEST(random_numbers_are_distributed)
{
    static float y[DRAWS][DRAWN][WIDTH], again[DRAWS][DRAWN][WIDTH];
    ck_assert_int_eq(draw("random", 3, 64, y), 5);
    check_mean(y[0], WIDTH, 1, 1, sqrt(4.0 / 3));
    check_mean(y[0], WIDTH, 2, 7.0 / 3, 3);
    check_mean(y[1], WIDTH, 1, 2, 0.5);
    check_mean(y[1], WIDTH, 2, 4.25, 2.1);
    check_mean(y[2], WIDTH, 1, 0.25, 0.45);
    check_mean(y[2], WIDTH, 2, 0.25, 0.45); /* 0 and 1 alone */
    check_mean(y[4], 1, 1, 0.5, sqrt(1.0 / 12));
    for (int i = 0; i < DRAWN; i++)
        for (int k = 0; k < WIDTH; k++) {
            ck_assert(y[0][i][k] >= -1 && y[0][i][k] < 3);
            ck_assert(y[3][i][k] == y[3][0][k] && y[4][i][k] == y[4][i][0]);
            ck_assert(i == 0 || k == 0 || (y[0][i][k] != y[0][i - 1][k] && y[3][i][k] != y[3][i][k - 1]));
        }
    (void)draw("random", 3, 37, again); /* the position in all samples counts */
    ck_assert(!memcmp(y, again, sizeof y));
    (void)draw("random", 4, 64, again);
    ck_assert(y[0][0][0] != again[0][0][0] && y[3][0][0] != again[3][0][0]);
}
END_TEST

/* What a file for four samples draws for them becomes numbers of each sample. */
START_TEST(random_numbers_of_fixed_batch)
{
    static float y[DRAWS][DRAWN][WIDTH];
    ck_assert_int_eq(draw("random_fixed", 3, 64, y), 6);
    check_mean(y[5], 1, 1, 0.5, sqrt(1.0 / 12));
    for (int i = 0; i < DRAWN; i++)
        for (int k = 0; k < WIDTH; k++) ck_assert(y[3][i][k] == y[3][0][k] && y[5][i][k] == y[5][i][0]);
}
END_TEST

/* Stochastic depth: a step in micro-batches is the step of the whole batch, and the branch learns to give -x. */
START_TEST(stochastic_depth_trains)
{
    enum { SAMPLES = 24, FEATURES = 6, STEPS = 40 };
    char path[NAME];
    static float x[SAMPLES * FEATURES], targets[SAMPLES * FEATURES];
    double losses[2][STEPS], late = 0;
    tutti_metrics metrics;
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_ptr_nonnull(runtime);
    file_path(path, NAME, "stochastic", 10, ".onnx");
    for (int i = 0; i < SAMPLES * FEATURES; i++) x[i] = (float)(i * 37 % 64 - 32) / 32;
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, x }, { "targets", TUTTI_DTYPE_F32, targets } };
    for (int divided = 0; divided < 2; divided++) {
        tutti_onnx model = { 0 };
        GOOD(tutti_import_onnx(runtime, path, NULL, &model));
        const tutti_training training = {
            .loss = TUTTI_MSE, .batch = SAMPLES, .micro_batch = divided ? 7 : 0, .learning_rate = 0.3f
        };
        tutti_trainer *trainer = tutti_compile(model.network, model.outputs[0], &training);
        ck_assert_msg(trainer != NULL, "%s", tutti_message(NULL));
        for (int i = 0; i < STEPS; i++) {
            GOOD(tutti_train_step(trainer, feeds, 2, SAMPLES, &metrics));
            losses[divided][i] = metrics.loss;
        }
        tutti_trainer_free(trainer);
        tutti_network_free(model.network);
    }
    tutti_close(runtime);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_msg(fabs(losses[0][i] - losses[1][i]) < 1e-5 * losses[0][0], "step %d: %g, in parts %g", i,
            losses[0][i], losses[1][i]);
        late += i < STEPS - 10 ? 0 : losses[0][i] / 10;
    }
    ck_assert_msg(late < 0.6 * losses[0][0], "the loss is %g, and was %g", late, losses[0][0]);
}
END_TEST

int main(int count, char **words)
{
    few = count == 2 && !strcmp(words[1], "few");
    if (few) count = 1;
    Suite *suite = suite_create("onnx");
    TCase *cases = tcase_create("files"), *all = tcase_create("all");
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        bool chosen = count < 2;
        for (int k = 1; k < count; k++) chosen |= !strcmp(words[k], names[i]);
        if (chosen) tcase_add_loop_test(cases, outputs_are_onnxruntimes, i, i + 1);
    }
    tcase_add_loop_test(all, gradients_are_pytorchs, 0, sizeof trained / sizeof *trained);
    tcase_add_loop_test(all, steps_are_pytorchs, 0, sizeof stepped / sizeof *stepped);
    tcase_add_loop_test(all, parameters_are_pytorchs, 0, sizeof counted / sizeof *counted);
    tcase_add_loop_test(all, names_are_pytorchs, 0, sizeof restored / sizeof *restored);
    tcase_add_test(all, random_numbers_are_distributed);
    tcase_add_test(all, random_numbers_of_fixed_batch);
    tcase_add_test(all, stochastic_depth_trains);
    tcase_add_test(all, training_mode_is_told);
    tcase_add_loop_test(all, samples_that_are_not_apart_are_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_loop_test(all, decisions_are_reported, 0, sizeof told / sizeof *told);
    tcase_add_test(all, constants_train_if_asked);
    tcase_add_test(all, computed_weights_train);
    tcase_add_test(all, merged_initialisers_are_apart);
    suite_add_tcase(suite, cases);
    if (count < 2) suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
