/* Trains a network of models/, without its dropout, by given samples in a given order from given weights: accuracy.py
 * and curves.py compare the results with PyTorch's. Prints a line per step: the loss.
 *
 *   steps [--exact] [--precision fp32|bf16|tf32|fp16] MODEL CLASSES BATCH RATE MOMENTUM DECAY WEIGHTS DATA [GRADIENTS]
 *
 * DATA is a safetensors file: "inputs" F32 [samples][shape of one], "targets" I32, or F32 for a loss of numbers
 * [samples][shape of one], "order" I32: the samples of the first step, of the second, ... GRADIENTS is written: those
 * of the last step. */
#include "base/memory.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 8, MAX_PARAMETERS = 1024 };

static const char *const precisions[] = {
    [TUTTI_FP32] = "fp32", [TUTTI_BF16] = "bf16", [TUTTI_TF32] = "tf32", [TUTTI_FP16] = "fp16"
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

struct options {
    bool exact;
    tutti_precision precision;
};

struct run {
    struct safetensors *file;
    const struct safetensors_tensor *inputs, *targets, *order;
    size_t sample_bytes, target_bytes;
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
    int64_t batch;
    char *batch_inputs, *batch_targets;
};

static tutti_status open_data(struct run *run, const char *path, tutti_shape *shape)
{
    tutti_status status = safetensors_open(path, &run->file);
    if (status != TUTTI_OK) return status;
    run->inputs = safetensors_find(run->file, "inputs");
    run->targets = safetensors_find(run->file, "targets");
    run->order = safetensors_find(run->file, "order");
    if (!run->inputs || !run->targets || !run->order || run->inputs->type != SAFETENSORS_F32 || run->inputs->rank < 2 ||
        run->targets->rank < 1 || run->targets->sizes[0] != run->inputs->sizes[0] ||
        (run->targets->type != SAFETENSORS_I32 && run->targets->type != SAFETENSORS_F32) ||
        run->order->type != SAFETENSORS_I32 || run->inputs->sizes[0] < 1)
        return fail(TUTTI_FORMAT, "'%s' lacks inputs, targets or order", path);
    *shape = (tutti_shape) { .rank = run->inputs->rank - 1 };
    memcpy(shape->sizes, run->inputs->sizes + 1, (size_t)shape->rank * sizeof(shape->sizes[0]));
    run->sample_bytes = run->inputs->bytes / (size_t)run->inputs->sizes[0];
    run->batch_inputs = memory_new((size_t)run->batch, run->sample_bytes);
    run->target_bytes = run->targets->bytes / (size_t)run->inputs->sizes[0];
    run->batch_targets = memory_new((size_t)run->batch, run->target_bytes);
    return run->batch_inputs && run->batch_targets ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status train(struct run *run)
{
    tutti_metrics metrics;
    const tutti_dtype of_targets = run->targets->type == SAFETENSORS_F32 ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32;
    int64_t total = run->order->sizes[0], samples = run->inputs->sizes[0];
    for (int64_t first = 0; first < total; first += run->batch) {
        int64_t count = total - first < run->batch ? total - first : run->batch;
        for (int64_t i = 0; i < count; i++) {
            int32_t sample;
            memcpy(&sample, (const char *)run->order->data + (size_t)(first + i) * sizeof(sample), sizeof(sample));
            if (sample < 0 || sample >= samples) return fail(TUTTI_INVALID, "there is no sample %d", (int)sample);
            const char *input = (const char *)run->inputs->data + (size_t)sample * run->sample_bytes;
            const char *target = (const char *)run->targets->data + (size_t)sample * run->target_bytes;
            memcpy(run->batch_inputs + (size_t)i * run->sample_bytes, input, run->sample_bytes);
            memcpy(run->batch_targets + (size_t)i * run->target_bytes, target, run->target_bytes);
        }
        const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, run->batch_inputs },
            { "targets", of_targets, run->batch_targets } };
        tutti_status status = tutti_train_step(run->trainer, feeds, 2, count, &metrics);
        if (status != TUTTI_OK) return fail(status, "%s", tutti_message(run->runtime));
        printf("%.9g\n", metrics.loss);
    }
    return TUTTI_OK;
}

static tutti_status save_gradients(const struct run *run, const char *path)
{
    struct safetensors_tensor tensors[MAX_PARAMETERS] = { 0 };
    tutti_status status = TUTTI_OK;
    tutti_shape shape;
    int count = 0;
    bool trained;
    const char *name;
    for (int i = 0; tutti_parameter_info(run->network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        struct safetensors_tensor *tensor = &tensors[count];
        if (!trained) continue;
        if (count == MAX_PARAMETERS) FAIL(TUTTI_INTERNAL, "more than %d parameters", MAX_PARAMETERS);
        int64_t elements = 1;
        *tensor = (struct safetensors_tensor) { .name = name, .type = SAFETENSORS_F32, .rank = shape.rank };
        for (int d = 0; d < shape.rank; d++) elements *= tensor->sizes[d] = shape.sizes[d];
        float *values = memory_new((size_t)elements, sizeof(float));
        if (!values) FAIL(TUTTI_NO_MEMORY, "no memory for the gradient of %s", name);
        tensor->data = values;
        count++;
        if (tutti_get_gradient(run->trainer, name, values, elements) != TUTTI_OK)
            FAIL(TUTTI_INTERNAL, "%s", tutti_message(run->runtime));
    }
    status = safetensors_save(path, tensors, count, NULL, 0);
done:
    for (int i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].data);
    return status;
}

/* Adds a loss for an output with a class for each pixel. id 0: the output has none, and the model's own loss is
 * used. */
static tutti_tensor add_loss(const struct run *run, tutti_tensor output)
{
    tutti_shape shape = { 0 };
    (void)tutti_shape_of(run->network, output, &shape);
    if (shape.rank < 2) return (tutti_tensor) { 0 };
    const tutti_tensor targets =
        tutti_input_typed(run->network, "targets", TUTTI_DTYPE_I32, shape.sizes + 1, shape.rank - 1);
    return tutti_cross_entropy(run->network, output, targets, NULL);
}

static tutti_status prepare(struct run *run, char **arguments, const struct options *options)
{
    tutti_shape shape;
    const struct model *model = model_find(arguments[1]);
    if (!model) return fail(TUTTI_INVALID, "there is no model '%s'", arguments[1]);
    run->batch = strtoll(arguments[3], NULL, 10);
    if (run->batch < 1) return fail(TUTTI_INVALID, "'%s' is not a batch size", arguments[3]);
    tutti_status status = open_data(run, arguments[8], &shape);
    if (status != TUTTI_OK) return status;
    run->runtime = tutti_open(NULL);
    if (!run->runtime) return fail(TUTTI_DEVICE, "%s", tutti_message(NULL));
    run->network = tutti_network_new(run->runtime);
    tutti_tensor output = model->build(run->network, tutti_input(run->network, "x", shape), atoi(arguments[2]));
    const tutti_tensor loss = add_loss(run, output);
    run->trainer = tutti_compile(run->network, output,
        &(tutti_training) { .loss = model->loss,
            .losses = loss.id ? &loss : NULL,
            .loss_count = loss.id != 0,
            .batch = run->batch,
            .learning_rate = strtof(arguments[4], NULL),
            .momentum = strtof(arguments[5], NULL),
            .weight_decay = strtof(arguments[6], NULL),
            .exact = options->exact,
            .precision = options->precision });
    if (!run->trainer || tutti_load_weights(run->trainer, arguments[7]) != TUTTI_OK)
        return fail(TUTTI_INVALID, "%s", tutti_message(run->runtime));
    return TUTTI_OK;
}

static bool read_precision(const char *name, struct options *options)
{
    int i = 0;
    while (name && i < PRECISIONS && strcmp(name, precisions[i])) i++;
    options->precision = (tutti_precision)i;
    return name && i < PRECISIONS;
}

/* Reads the options before the other arguments. Returns their number of words, or -1. */
static int read_options(char **words, struct options *options)
{
    int read = 0;
    for (; words[read] && !strncmp(words[read], "--", 2); read++) {
        if (!strcmp(words[read], "--exact"))
            options->exact = true;
        else if (strcmp(words[read], "--precision") || !read_precision(words[++read], options))
            return -1;
    }
    return read;
}

int main(int argc, char **argv)
{
    struct run run = { 0 };
    struct options options = { 0 };
    const int read = read_options(argv + 1, &options);
    argc -= read;
    if (read < 0 || argc < ARGUMENTS + 1 || argc > ARGUMENTS + 2) {
        fprintf(stderr,
            "use: steps [--exact] [--precision fp32|bf16|tf32|fp16] MODEL CLASSES BATCH RATE MOMENTUM DECAY "
            "WEIGHTS DATA [GRADIENTS]\n");
        return 2;
    }
    argv += read;
    tutti_status status = prepare(&run, argv, &options);
    if (status == TUTTI_OK) status = train(&run);
    if (status == TUTTI_OK && argc > ARGUMENTS + 1) status = save_gradients(&run, argv[ARGUMENTS + 1]);
    if (status != TUTTI_OK) fprintf(stderr, "steps: %s\n", status_message());
    tutti_trainer_free(run.trainer);
    tutti_network_free(run.network);
    tutti_close(run.runtime);
    safetensors_close(run.file);
    free(run.batch_inputs);
    free(run.batch_targets);
    return status != TUTTI_OK;
}
