/* Runs a network for texts on given weights, for published.py:
 *
 *     compare MODEL CONFIG WEIGHTS IDS TYPES SAMPLES LENGTH CLASSES tokens|texts FOLDER
 *
 * IDS and TYPES are files of int32 [SAMPLES][LENGTH]; TYPES may be -. CLASSES 0: the vocabulary. `tokens`: each token
 * has a class. Writes FOLDER/outputs and, by labels 0, 1, ... of the texts or tokens, FOLDER/gradients: float32, the
 * parameters in the order of FOLDER/names. Fails if not each parameter has its tensor in WEIGHTS. */
#include "models/models.h"
#include "tutti_finetune.h"
#include "tutti_layers.h"
#include "tutti_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const char *folder;
    int64_t samples, length;
    int classes;
    bool tokens;
    struct model_config config;
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_tensor ids, types, output, loss;
    tutti_trainer *trainer;
    int missing;
};

static void stop(const char *what)
{
    fprintf(stderr, "compare: %s: %s\n", what, tutti_message(NULL));
    exit(1);
}

static void *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) stop(path);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = calloc(*bytes + 1, 1);
    if (!data || fread(data, 1, *bytes, file) != *bytes) stop(path);
    fclose(file);
    return data;
}

static FILE *create(const struct run *run, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", run->folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) stop(path);
    return file;
}

static void read_config(struct run *run, const struct model *model, const char *path)
{
    size_t bytes;
    char message[256], *json = read_file(path, &bytes);
    if (!model_config_read(json, model->config, &run->config, message, sizeof(message))) {
        fprintf(stderr, "compare: %s: %s\n", path, message);
        exit(1);
    }
    free(json);
}

static void build(struct run *run, const struct model *model, bool pairs)
{
    const int64_t length = TUTTI_SEQUENCE;
    if (run->classes == 0) run->classes = (int)run->config.vocabulary;
    run->network = tutti_network_new(run->runtime);
    run->ids = tutti_input_typed(run->network, "ids", TUTTI_DTYPE_I32, &length, 1);
    if (pairs) run->types = tutti_input_typed(run->network, "types", TUTTI_DTYPE_I32, &length, 1);
    const struct model_facts facts = { .config = &run->config,
        .length = run->length,
        .tokens_are_classes = run->tokens,
        .types = pairs ? &run->types : NULL };
    run->output = model->build_for(run->network, run->ids, run->classes, &facts);
    const tutti_tensor labels = tutti_input_typed(run->network, "labels", TUTTI_DTYPE_I32, &length, run->tokens);
    run->loss = tutti_cross_entropy(
        run->network, run->output, labels, &(tutti_loss_options) { .class_axis = run->tokens ? -1 : 0 });
    if (tutti_network_status(run->network) != TUTTI_OK) stop("build");
}

static void on_match(
    void *user, tutti_match match, const char *name, const tutti_shape *in_file, const tutti_shape *in_network)
{
    (void)in_file, (void)in_network;
    if (match == TUTTI_MATCH_LOADED) return;
    fprintf(stderr, "%s: %s\n", match == TUTTI_MATCH_UNUSED ? "not used" : "missing, or of another shape", name);
    ((struct run *)user)->missing += match != TUTTI_MATCH_UNUSED;
}

static void open_trainer(struct run *run, const char *weights)
{
    tutti_training training = {
        .batch = run->samples, .losses = &run->loss, .loss_count = 1, .sequence = run->length, .learning_rate = 0.1f
    };
    run->trainer = tutti_compile(run->network, run->output, &training);
    if (!run->trainer) stop("compile");
    const tutti_match_options options = { .report = on_match, .user = run };
    if (tutti_load_matching(run->trainer, weights, &options, NULL) != TUTTI_OK || run->missing) stop(weights);
}

static int64_t elements(const struct run *run)
{
    return run->samples * run->classes * (run->tokens ? run->length : 1);
}

static void infer(struct run *run, const tutti_feed *feeds, int count)
{
    float *outputs = calloc((size_t)elements(run), sizeof *outputs);
    const tutti_fetch fetch = { run->output, TUTTI_DTYPE_F32, outputs };
    if (!outputs || tutti_infer(run->trainer, feeds, count, run->samples, &fetch, 1) != TUTTI_OK) stop("infer");
    FILE *file = create(run, "outputs");
    fwrite(outputs, sizeof *outputs, (size_t)elements(run), file);
    fclose(file);
    free(outputs);
}

static int64_t size_of(const tutti_shape *shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape->rank; i++) size *= shape->sizes[i];
    return size;
}

static void write_gradients(const struct run *run)
{
    const char *name;
    tutti_shape shape;
    FILE *names = create(run, "names"), *file = create(run, "gradients");
    for (int i = 0; tutti_parameter_info(run->network, i, &name, &shape, NULL) == TUTTI_OK; i++) {
        float *values = calloc((size_t)size_of(&shape), sizeof *values);
        if (!values || tutti_get_gradient(run->trainer, name, values, size_of(&shape)) != TUTTI_OK) stop(name);
        fprintf(names, "%s\n", name);
        fwrite(values, sizeof *values, (size_t)size_of(&shape), file);
        free(values);
    }
    fclose(names);
    fclose(file);
}

/* Padding has no label. */
static int32_t *make_labels(const struct run *run, const int32_t *ids)
{
    const int64_t count = run->samples * (run->tokens ? run->length : 1);
    int32_t *labels = calloc((size_t)count, sizeof *labels);
    for (int64_t i = 0; labels && i < count; i++)
        labels[i] = !run->tokens || ids[i] >= 0 ? (int32_t)(i % run->classes) : -1;
    return labels;
}

int main(int argc, char **argv)
{
    size_t bytes;
    if (argc != 11) return fprintf(stderr, "see the beginning of compare.c\n"), 2;
    const struct model *model = model_find(argv[1]);
    const bool pairs = strcmp(argv[5], "-") != 0;
    struct run run = { .folder = argv[10],
        .tokens = !strcmp(argv[9], "tokens"),
        .samples = atoll(argv[6]),
        .length = atoll(argv[7]),
        .classes = atoi(argv[8]) };
    if (!model || !model->config || !(run.runtime = tutti_open(NULL))) stop(argv[1]);
    read_config(&run, model, argv[2]);
    build(&run, model, pairs);
    open_trainer(&run, argv[3]);
    int32_t *ids = read_file(argv[4], &bytes), *types = pairs ? read_file(argv[5], &bytes) : NULL;
    int32_t *labels = make_labels(&run, ids);
    const tutti_feed feeds[] = { { "ids", TUTTI_DTYPE_I32, ids, run.length },
        { "labels", TUTTI_DTYPE_I32, labels, run.length }, { "types", TUTTI_DTYPE_I32, types, run.length } };
    infer(&run, (const tutti_feed[]) { feeds[0], feeds[2] }, 1 + pairs);
    if (tutti_backward(run.trainer, feeds, 2 + pairs, run.samples, NULL) != TUTTI_OK) stop("backward");
    write_gradients(&run);
    tutti_trainer_free(run.trainer);
    tutti_network_free(run.network);
    tutti_close(run.runtime);
    free(ids);
    free(types);
    free(labels);
    return 0;
}
