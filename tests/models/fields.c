/* Runs fno2d on given weights, for fields.py:
 *
 *     fields CONFIG SAMPLES CHANNELS HEIGHT WIDTH OUTPUTS FOLDER
 *
 * FOLDER has weights.safetensors, x [SAMPLES][CHANNELS][HEIGHT][WIDTH] and y, float32. Writes FOLDER/outputs and, by
 * the mean squared error, FOLDER/gradients: float32, the parameters in the order of FOLDER/names. */
#include "models/fno.h"
#include "tutti_finetune.h"
#include "tutti_steps.h"

#include <stdio.h>
#include <stdlib.h>

static const char *folder;

static void stop(const char *what)
{
    fprintf(stderr, "fields: %s: %s\n", what, tutti_message(NULL));
    exit(1);
}

static FILE *open_file(const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (!file) stop(path);
    return file;
}

static float *floats(const char *name, int64_t count)
{
    float *values = calloc((size_t)count, sizeof *values);
    FILE *file = name ? open_file(name, "rb") : NULL;
    if (!values || (file && fread(values, sizeof *values, (size_t)count, file) != (size_t)count)) stop(name);
    if (file) fclose(file);
    return values;
}

static void write_gradients(const tutti_network *network, tutti_trainer *trainer)
{
    const char *name;
    tutti_shape shape;
    FILE *names = open_file("names", "w"), *file = open_file("gradients", "wb");
    for (int i = 0; tutti_parameter_info(network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        int64_t count = 1;
        for (int k = 0; k < shape.rank; k++) count *= shape.sizes[k];
        float *values = floats(NULL, count);
        if (tutti_get_gradient(trainer, name, values, count) != TUTTI_OK) stop(name);
        fprintf(names, "%s\n", name);
        fwrite(values, sizeof *values, (size_t)count, file);
        free(values);
    }
    fclose(names);
    fclose(file);
}

static struct model_config read_config(const char *path)
{
    char json[4096] = "", message[256];
    struct model_config config;
    FILE *file = fopen(path, "r");
    if (!file || fread(json, 1, sizeof json - 1, file) == 0) stop(path);
    fclose(file);
    if (model_config_read(json, &fno2d_config, &config, message, sizeof message)) return config;
    fprintf(stderr, "fields: %s: %s\n", path, message);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 8) return fprintf(stderr, "see the beginning of fields.c\n"), 2;
    folder = argv[7];
    const struct model_config config = read_config(argv[1]);
    const struct model_facts facts = { .config = &config };
    const int64_t samples = atoll(argv[2]), channels = atoll(argv[3]), pixels = atoll(argv[4]) * atoll(argv[5]);
    const int outputs = atoi(argv[6]);
    tutti_runtime *runtime = tutti_open(NULL);
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(channels, atoll(argv[4]), atoll(argv[5])));
    const tutti_tensor y = model_fno2d_for(network, x, outputs, &facts);
    tutti_training training = { .batch = samples, .loss = TUTTI_MSE, .learning_rate = 0.1f };
    tutti_trainer *trainer = tutti_compile(network, y, &training);
    char path[4096];
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    if (!trainer || tutti_load_weights(trainer, path) != TUTTI_OK) stop(path);
    float *inputs = floats("x", samples * channels * pixels), *targets = floats("y", samples * outputs * pixels),
          *results = floats(NULL, samples * outputs * pixels);
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, inputs }, { "targets", TUTTI_DTYPE_F32, targets } };
    const tutti_fetch fetch = { y, TUTTI_DTYPE_F32, results };
    if (tutti_infer(trainer, feeds, 1, samples, &fetch, 1) != TUTTI_OK) stop("infer");
    FILE *file = open_file("outputs", "wb");
    fwrite(results, sizeof *results, (size_t)(samples * outputs * pixels), file);
    fclose(file);
    if (tutti_backward(trainer, feeds, 2, samples, NULL) != TUTTI_OK) stop("backward");
    write_gradients(network, trainer);
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    tutti_close(runtime);
    free(inputs);
    free(targets);
    free(results);
    return 0;
}
