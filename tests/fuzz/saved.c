/* What a training leaves, as later commands read it. The first byte says which: d, what weights say of their data; c,
 * the state of a checkpoint; others, a report's page or a table of --log. */
#include "tests/fuzz/target.h"
#include "tools/report/run_file.h"
#include "tools/user_data.h"
#include "train/checkpoint.h"
#include "tutti_finetune.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 512, ELEMENTS = 64 };

static char name[PATH], weights[PATH + 16], state[PATH + 32], table[PATH + 16];

/* The weights of the checkpoint, which every state that is read has to belong to. */
static struct parameter parameters[] = {
    { .name = "a", .shape = { 1, { 2 } }, .elements = 2, .offset = 0 },
    { .name = "b", .shape = { 1, { 1 } }, .elements = 1, .offset = ELEMENTS, .kind = PARAMETER_STATISTIC },
};
static const struct optimizer adam = { .kind = TUTTI_ADAM, .learning_rate = 0.1f, .ema_decay = 0.5f };

struct training {
    float weights[2 * ELEMENTS], states[3][ELEMENTS];
    struct checkpoint checkpoint;
};

static void make_training(struct training *training)
{
    memset(training, 0, sizeof *training);
    training->checkpoint = (struct checkpoint) { .parameters = parameters,
        .count = 2,
        .weights = { training->weights, NULL },
        .states = { training->states[0], training->states[1], training->states[2] },
        .optimizer = &adam };
}

static void remove_files(void)
{
    unlink(weights);
    unlink(state);
    unlink(table);
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    struct training training;
    (void)count;
    (void)words;
    input_open();
    const char *input = input_path(NULL, 0);
    snprintf(name, sizeof name, "%.*s/x", (int)(strrchr(input, '/') - input), input);
    snprintf(weights, sizeof weights, "%s.safetensors", name);
    snprintf(state, sizeof state, "%s.state.safetensors", name);
    snprintf(table, sizeof table, "%s.csv", name);
    make_training(&training);
    if (atexit(remove_files) != 0 || checkpoint_save(&training.checkpoint, name) != TUTTI_OK) abort();
    if (unlink(state) != 0 || link(input, state) != 0) abort();
    FILE *file = fopen(table, "w");
    if (!file || fputs("a,b,y\n1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n", file) < 0 || fclose(file) != 0) abort();
    return 0;
}

/* A file of weights that says this of its data; false: the text cannot be in one. */
static const char *write_weights(const uint8_t *text, size_t size)
{
    json_t *header = json_pack("{s{ss%}}", "__metadata__", "data", (const char *)text, size);
    char *json = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (!json) return NULL;
    const size_t length = strlen(json);
    uint8_t *bytes = malloc(8 + length);
    if (!bytes) abort();
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, json, length);
    const char *path = input_path(bytes, 8 + length);
    free(bytes);
    free(json);
    return path;
}

/* As eval and infer use it, on a table. */
static tutti_status read_saved(const uint8_t *text, size_t size)
{
    struct user_data_options options = { .data.threads = 1, .quiet = true };
    struct user_data_saved *saved = NULL;
    tutti_data *data = NULL;
    tutti_data_info info;
    const char *path = write_weights(text, size);
    if (!path) return TUTTI_OK;
    tutti_status status = user_data_saved_read(path, &saved);
    if (status != TUTTI_OK) return status;
    user_data_saved_apply(saved, &options);
    status = user_data_open(table, &options, &data, &info);
    if (status == TUTTI_OK) status = user_data_saved_check(saved, weights, &info);
    tutti_data_free(data);
    user_data_saved_free(saved);
    return status;
}

static tutti_status read_state(const uint8_t *bytes, size_t size)
{
    struct training training;
    tutti_checkpoint_info info = { .size = sizeof info };
    (void)input_path(bytes, size);
    make_training(&training);
    const struct position *position = &training.checkpoint.position;
    const tutti_status status = checkpoint_load(&training.checkpoint, name);
    if (status != TUTTI_OK) {
        if (position->steps != 0 || training.states[0][0] != 0) abort(); /* nothing is changed */
        return status;
    }
    if (tutti_checkpoint_read(name, &info) != TUTTI_OK || info.steps != position->steps) abort();
    if (position->steps < 0 || position->epoch < 0 || position->samples < 0) abort();
    if (position->samples > position->epoch_samples) abort();
    return TUTTI_OK;
}

static tutti_status read_run(const uint8_t *bytes, size_t size)
{
    struct run run;
    const tutti_status status = run_read(&run, input_path(bytes, size));
    for (size_t i = 0; status == TUTTI_OK && i < run.count; i++)
        if (!isfinite(run.values[RUN_EPOCH][i])) abort();
    run_free(&run);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const tutti_status status = data[0] == 'd' ? read_saved(data + 1, size - 1)
        : data[0] == 'c'                       ? read_state(data + 1, size - 1)
                                               : read_run(data + 1, size - 1);
    if (status != TUTTI_OK) check_message();
    return 0;
}
