/* One network of an ONNX file: its first output, and a training step against given targets. zoo.py compares both with
 * onnxruntime and PyTorch.
 *
 *   zoo FILE.onnx DATA RESULT SECONDS
 *
 * DATA is a safetensors file: "x" F32, the input of all samples, and "target" F32, of the first output's shape; the
 * loss is the mean square error. RESULT is written: "y", "loss" and the gradient of each parameter by its name. Prints
 * the shortest time of a step within SECONDS, in seconds. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "formats/safetensors.h"
#include "tutti_onnx.h"

#include <stdio.h>
#include <stdlib.h>

struct run {
    tutti_runtime *runtime;
    tutti_onnx model;
    tutti_trainer *trainer;
    struct safetensors *file;
    tutti_feed feeds[2]; /* x, target */
    int64_t samples;
    struct safetensors_tensor *results; /* their data belong to this */
    int result_count;
};

static tutti_status from_tutti(const struct run *run, tutti_status status)
{
    return status == TUTTI_OK ? status : fail(status, "%s", tutti_message(run->runtime));
}

static tutti_status open_run(struct run *run, char **arguments)
{
    const char *names[] = { "x", "target" };
    tutti_status status = safetensors_open(arguments[2], &run->file);
    for (int i = 0; i < 2 && status == TUTTI_OK; i++) {
        const struct safetensors_tensor *tensor = safetensors_find(run->file, names[i]);
        if (!tensor || tensor->type != SAFETENSORS_F32 || tensor->rank < 1)
            return fail(TUTTI_FORMAT, "'%s' lacks '%s' of F32", arguments[2], names[i]);
        run->feeds[i] = (tutti_feed) { i ? "targets" : names[i], TUTTI_DTYPE_F32, tensor->data };
        run->samples = tensor->sizes[0];
    }
    if (status != TUTTI_OK) return status;
    run->runtime = tutti_open(NULL);
    if (!run->runtime) return from_tutti(run, TUTTI_DEVICE);
    status = from_tutti(run, tutti_import_onnx(run->runtime, arguments[1], NULL, &run->model));
    if (status != TUTTI_OK) return status;
    run->trainer = tutti_compile(
        run->model.network, run->model.outputs[0], &(tutti_training) { .loss = TUTTI_MSE, .batch = run->samples });
    return run->trainer ? TUTTI_OK : from_tutti(run, TUTTI_INVALID);
}

/* Makes room for an array with these sizes in the results. NULL without memory. */
static float *add_result(struct run *run, const char *name, const tutti_shape *shape, int64_t samples)
{
    struct safetensors_tensor *tensor = &run->results[run->result_count];
    size_t count = samples ? (size_t)samples : 1;
    *tensor = (struct safetensors_tensor) { .name = name, .type = SAFETENSORS_F32 };
    if (samples) tensor->sizes[tensor->rank++] = samples;
    for (int i = 0; i < shape->rank; i++) {
        tensor->sizes[tensor->rank++] = shape->sizes[i];
        if (!size_multiply(count, (size_t)shape->sizes[i], &count)) return NULL;
    }
    float *data = memory_new(count, sizeof *data);
    tensor->data = data;
    run->result_count += data != NULL;
    return data;
}

static tutti_status infer(struct run *run)
{
    tutti_shape shape;
    tutti_status status = from_tutti(run, tutti_shape_of(run->model.network, run->model.outputs[0], &shape));
    if (status != TUTTI_OK) return status;
    float *y = add_result(run, "y", &shape, run->samples);
    if (!y) return TUTTI_NO_MEMORY;
    const tutti_fetch fetch = { run->model.outputs[0], TUTTI_DTYPE_F32, y };
    return from_tutti(run, tutti_infer(run->trainer, run->feeds, 1, run->samples, &fetch, 1));
}

/* The first step's loss and gradients; later ones are timed. A learning rate of 0 keeps the parameters. */
static tutti_status train(struct run *run, double seconds)
{
    tutti_metrics metrics;
    const char *name;
    bool trained;
    tutti_shape shape;
    double best = 1e30;
    tutti_status status = from_tutti(run, tutti_train_step(run->trainer, run->feeds, 2, run->samples, &metrics));
    if (status != TUTTI_OK) return status;
    float *loss = add_result(run, "loss", &TUTTI_SHAPE(1), 0);
    if (!loss) return TUTTI_NO_MEMORY;
    *loss = (float)metrics.loss;
    for (int i = 0; tutti_parameter_info(run->model.network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        if (!trained) continue;
        int64_t count = 1;
        for (int k = 0; k < shape.rank; k++) count *= shape.sizes[k];
        float *gradient = add_result(run, name, &shape, 0);
        if (!gradient) return TUTTI_NO_MEMORY;
        status = from_tutti(run, tutti_get_gradient(run->trainer, name, gradient, count));
        if (status != TUTTI_OK) return status;
    }
    for (const double begin = clock_seconds(); clock_seconds() - begin < seconds;) {
        const double start = clock_seconds();
        status = from_tutti(run, tutti_train_step(run->trainer, run->feeds, 2, run->samples, &metrics));
        if (status != TUTTI_OK) return status;
        if (clock_seconds() - start < best) best = clock_seconds() - start;
    }
    printf("%.6g\n", best);
    return TUTTI_OK;
}

static int count_parameters(const struct run *run)
{
    int count = 0;
    while (tutti_parameter_info(run->model.network, count, NULL, NULL, NULL) == TUTTI_OK) count++;
    return count;
}

int main(int argc, char **argv)
{
    struct run run = { .model = { .size = sizeof run.model } };
    if (argc != 5) {
        fprintf(stderr, "use: zoo FILE.onnx DATA RESULT SECONDS\n");
        return 2;
    }
    tutti_status status = open_run(&run, argv);
    if (status == TUTTI_OK) {
        run.results = memory_new((size_t)count_parameters(&run) + 2, sizeof *run.results);
        status = run.results ? infer(&run) : TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK) status = train(&run, strtod(argv[4], NULL));
    if (status == TUTTI_OK) status = safetensors_save(argv[3], run.results, run.result_count, NULL, 0);
    if (status != TUTTI_OK) fprintf(stderr, "%s\n", status_message());
    for (int i = 0; i < run.result_count; i++) free((void *)(uintptr_t)run.results[i].data);
    free(run.results);
    tutti_trainer_free(run.trainer);
    tutti_network_free(run.model.network);
    tutti_close(run.runtime);
    safetensors_close(run.file);
    return status != TUTTI_OK;
}
