/* The kernels over whole arenas, optimizers and gradients on their way, on a small network with odd sizes, against the
 * loops on the host, which tests/train holds against double precision. Prints "N passed, N failed".
 *
 *   arenas [once | least] [half]
 *
 * once: one step of each optimizer instead of STEPS, for oclgrind, which is slow. least: of fewer parameters, too.
 * half: each optimizer with groups or without, in turn; it is the same code around every rule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "replica/clip.h"
#include "replica/gradients.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "tests/layers/cases.h"
#include "tests/train/reference.h"

enum { TRAINED = 1104, TOTAL = TRAINED + 112 }; /* multiples of 16, of whole vectors */
enum { LEAST_TRAINED = 272 };                   /* a block and a part of one */
enum { STEPS = 3, LIMIT_ULP = 16 };

static struct parameter parameters[] = {
    { .name = "weight", .elements = TRAINED - 5, .offset = 0 },
    { .name = "mean", .elements = 19, .offset = TRAINED, .kind = PARAMETER_STATISTIC, .momentum = 0.1f },
    { .name = "variance", .elements = 33, .offset = TRAINED + 64, .kind = PARAMETER_STATISTIC, .momentum = 0.3f },
};
static tutti_network network = {
    .parameters = parameters, .parameter_count = 3, .trained_floats = TRAINED, .total_floats = TOTAL
};
/* The last block is not whole. */
enum { GROUPS = (TRAINED + PARAMETER_ALIGNMENT - 1) / PARAMETER_ALIGNMENT };
static struct optimizer_group groups[GROUPS] = { { 1, 0.1f }, { 0.25f, 0.1f }, { 0.25f, 0.1f }, { 3, 0 },
    { 0.5f, 1.5f } };
static struct device *device;
static int steps = STEPS;
static float given[2][TOTAL]; /* parameters and gradients */

/* What the launches of one list read and write. */
struct buffers {
    struct optimizer_buffers o;
    cl_mem wire;
};

static tutti_status upload(cl_mem *buffer, const void *data, size_t bytes)
{
    tutti_status status = buffer_new(device, bytes, buffer);
    return status == TUTTI_OK && data ? buffer_write(device, *buffer, 0, data, bytes) : status;
}

static void free_buffers(struct buffers *b)
{
    cl_mem *const all[] = { &b->o.parameters, &b->o.gradients, &b->o.states[0], &b->o.states[1], &b->o.states[2],
        &b->o.states[3], &b->o.norms, &b->o.constants, &b->o.losses, &b->o.statistics, &b->o.groups, &b->wire };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) buffer_free(all[i]);
}

static tutti_status new_buffers(struct buffers *b, int *statistics)
{
    tutti_status status = TUTTI_OK;
    struct statistic_row *rows = NULL;
    const float losses[2] = { 1.5f, 1 };
    TRY(optimizer_statistics(&(struct optimizer) { 0 }, &network, &rows, statistics));
    TRY(upload(&b->o.statistics, rows, (size_t)*statistics * sizeof *rows));
    TRY(upload(&b->o.parameters, given[0], sizeof given[0]));
    TRY(upload(&b->o.gradients, given[1], sizeof given[1]));
    for (int i = 0; i < OPTIMIZER_STATES; i++) TRY(upload(&b->o.states[i], NULL, sizeof given[0]));
    TRY(upload(&b->o.losses, losses, sizeof losses));
    TRY(upload(&b->o.groups, groups, sizeof groups));
    TRY(upload(&b->o.norms, NULL, CLIP_NORMS * sizeof(float)));
    TRY(upload(&b->o.constants, NULL, sizeof(struct step_constants)));
    TRY(upload(&b->wire, NULL, TOTAL * sizeof(uint16_t)));
done:
    free(rows);
    return status;
}

static tutti_status run(struct launch_list *list)
{
    const tutti_status status = launch_list_realise(list, NULL, NULL);
    return status == TUTTI_OK ? launch_list_enqueue(list, 0, list->count, NULL) : status;
}

static bool compare(const char *what, const float *got, const float *want, int count)
{
    for (int i = 0; i < count; i++) {
        if (fabsf(got[i] - want[i]) <= LIMIT_ULP * 0x1p-24f * (1 + fabsf(want[i]))) continue;
        printf("%s: number %d is %.9g, and must be %.9g\n", what, i, (double)got[i], (double)want[i]);
        return false;
    }
    return true;
}

/* The parameters and, after them, their EMA. */
static tutti_status on_the_host(const struct optimizer *optimizer, float *p)
{
    tutti_status status = TUTTI_OK;
    struct thread_pool *pool = NULL;
    float all[OPTIMIZER_STATES][TOTAL] = { 0 }, *states[] = { all[0], all[1], all[2], all[3] }, norm, clip;
    const int ema = optimizer_ema_state(optimizer);
    TRY(thread_pool_new(&pool, 1));
    memcpy(p, given[0], sizeof given[0]);
    for (int step = 0; step < steps; step++) {
        struct step_constants constants = { .micro_batches = 1 };
        optimizer_constants(optimizer, optimizer->learning_rate, step, &constants);
        constants.unscale = 0.25f;
        TRY(clip_norm_of(given[1], network.trained_floats, constants.unscale, pool, &norm));
        clip = clip_factor(optimizer, norm);
        const struct host_update rule = { optimizer, &network, &constants, optimizer->clip_norm > 0 ? &clip : NULL };
        optimizer_update(&rule, pool, p, given[1], states);
    }
    if (ema >= 0) memcpy(p + TOTAL, all[ema], sizeof all[ema]);
done:
    thread_pool_free(pool);
    return status;
}

static tutti_status on_the_device(const struct optimizer *optimizer, float *p)
{
    tutti_status status = TUTTI_OK;
    struct buffers b = { 0 };
    struct launch_list list;
    int statistics;
    const int ema = optimizer_ema_state(optimizer);
    launch_list_init(&list, device);
    TRY(new_buffers(&b, &statistics));
    optimizer_emit(optimizer, &network, &b.o, statistics, &list);
    for (int step = 0; step < steps; step++) {
        struct step_constants constants = { .micro_batches = 1 };
        optimizer_constants(optimizer, optimizer->learning_rate, step, &constants);
        constants.unscale = 0.25f;
        TRY(buffer_write(device, b.o.constants, 0, &constants, sizeof constants));
        TRY(step ? launch_list_enqueue(&list, 0, list.count, NULL) : run(&list));
    }
    TRY(buffer_read(device, b.o.parameters, 0, p, sizeof given[0]));
    if (ema >= 0) TRY(buffer_read(device, b.o.states[ema], 0, p + TOTAL, sizeof given[0]));
done:
    launch_list_free(&list);
    free_buffers(&b);
    return status;
}

static bool check_rule(const tutti_training *training, bool grouped)
{
    float want[2 * TOTAL] = { 0 }, got[2 * TOTAL] = { 0 };
    struct optimizer optimizer;
    tutti_status status = optimizer_init(&optimizer, training);
    if (grouped) optimizer.groups = groups;
    if (status == TUTTI_OK) status = on_the_host(&optimizer, want);
    if (status == TUTTI_OK) status = on_the_device(&optimizer, got);
    if (status != TUTTI_OK)
        return printf("%s: %s\n", tutti_optimizer_name(training->optimizer), tutti_message(NULL)), false;
    const char *name = tutti_optimizer_name(training->optimizer);
    const int total = (int)network.total_floats;
    return compare(name, got, want, total) && compare(name, got + TOTAL, want + TOTAL, total);
}

/* Sums of micro-batches, and a range of gradients rounded to bfloat16: 16 floats before and after it stay 0. */
static bool check_gradients(void)
{
    struct buffers b = { 0 };
    struct launch_list list;
    const int total = (int)network.total_floats;
    int statistics;
    float want[TOTAL], sum[TOTAL], rounded[TOTAL] = { 0 };
    uint16_t wire[TOTAL];
    launch_list_init(&list, device);
    tutti_status status = new_buffers(&b, &statistics);
    gradients_emit_bf16(b.o.gradients, b.wire, 16, total - 32, &list);
    gradients_emit_add(&network, b.o.parameters, b.o.gradients, &list);
    if (status == TUTTI_OK) status = run(&list);
    if (status == TUTTI_OK) status = buffer_read(device, b.o.parameters, 0, sum, sizeof sum);
    if (status == TUTTI_OK) status = buffer_read(device, b.wire, 0, wire, sizeof wire);
    launch_list_free(&list);
    free_buffers(&b);
    if (status != TUTTI_OK) return printf("gradients: %s\n", tutti_message(NULL)), false;
    for (int i = 0; i < TOTAL; i++) {
        const uint32_t bits = (uint32_t)wire[i] << 16;
        memcpy(&rounded[i], &bits, sizeof bits);
        want[i] = given[0][i] + given[1][i];
    }
    bool good = compare("sums of gradients", sum, want, total);
    for (int i = 0; i < total; i++) want[i] = i < 16 || i >= total - 16 ? 0 : test_bf16(given[1][i]);
    return compare("gradients as bfloat16", rounded, want, total) && good;
}

/* One number that is not finite is seen wherever it is, and then nothing is updated. */
static bool check_finite(void)
{
    const int total = (int)network.total_floats, places[] = { -1, 0, total * 3 / 7, total - 1 };
    const float bad[] = { 0, INFINITY, NAN, -INFINITY };
    bool good = true;
    for (int i = 0; i < 4 && good; i++) {
        struct buffers b = { 0 };
        struct launch_list list;
        struct optimizer optimizer;
        struct step_constants constants = { .micro_batches = 1 };
        int statistics;
        float after[TOTAL];
        launch_list_init(&list, device);
        tutti_status status = new_buffers(&b, &statistics);
        if (status == TUTTI_OK) status = optimizer_init(&optimizer, &(tutti_training) { .learning_rate = 0.1f });
        optimizer_constants(&optimizer, optimizer.learning_rate, 0, &constants);
        optimizer_emit_check(&network, b.o.gradients, b.o.constants, &list);
        optimizer_emit(&optimizer, &network, &b.o, statistics, &list);
        if (status == TUTTI_OK) status = buffer_write(device, b.o.constants, 0, &constants, sizeof constants);
        if (status == TUTTI_OK && places[i] >= 0)
            status = buffer_write(device, b.o.gradients, 4 * (size_t)places[i], &bad[i], 4);
        if (status == TUTTI_OK) status = run(&list);
        if (status == TUTTI_OK) status = buffer_read(device, b.o.parameters, 0, after, sizeof after);
        if (status == TUTTI_OK) status = buffer_read(device, b.o.constants, 0, &constants, sizeof constants);
        launch_list_free(&list);
        free_buffers(&b);
        const bool same = memcmp(after, given[0], sizeof after) == 0;
        good = status == TUTTI_OK && (places[i] >= 0) == same && (places[i] >= 0) == (constants.not_finite != 0);
        if (!good) printf("check of gradients, number %d is %g: %s\n", places[i], (double)bad[i], tutti_message(NULL));
    }
    return good;
}

static void use_least(void)
{
    const int64_t fewer = TRAINED - LEAST_TRAINED;
    parameters[0].elements -= fewer;
    for (int i = 1; i < 3; i++) parameters[i].offset -= fewer;
    network.trained_floats -= fewer;
    network.total_floats -= fewer;
}

/* A text that calls what clkernels/builtins.h does not declare is built anew from the driver's header at each start.
 * What was built is told, too: tests/races looks for it. */
static bool undeclared;

static void hear(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    undeclared |= strstr(line, "does not compile with Tutti's own declarations") != NULL;
    fprintf(stderr, "arenas: %s%s\n", level == TUTTI_LOG_DEBUG ? "[debug] " : "", line);
}

int main(int count, char **words)
{
    static const tutti_training clipped[] = {
        { .optimizer = TUTTI_SGD, .learning_rate = 0.1f, .clip_norm = 2, .ema_decay = 0.9f },
        { .optimizer = TUTTI_ADAM, .learning_rate = 0.01f, .epsilon = 0.1f, .clip_norm = 1e6f, .ema_decay = 0.5f },
    };
    enum { CLIPPED = sizeof clipped / sizeof *clipped, CASES = REFERENCE_TRAININGS + CLIPPED };
    const bool half = count > 2 && !strcmp(words[2], "half");
    int failed = 0, checks = 3;
    if (count > 1) steps = 1;
    if (count > 1 && !strcmp(words[1], "least")) use_least();
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .log_level = TUTTI_LOG_DEBUG, .log = hear });
    if (!runtime) return fprintf(stderr, "arenas: %s\n", tutti_message(NULL)), 1;
    device = &runtime->devices[0];
    for (int i = 0; i < TOTAL; i++)
        for (int kind = 0; kind < 2; kind++) given[kind][i] = random_normal(5, (uint32_t)kind, (uint64_t)i);
    for (int i = 0; i < 2 * CASES; i++) {
        const int rule = i / 2;
        if (half && i % 2 != rule % 2) continue;
        failed += !check_rule(rule < CLIPPED ? &clipped[rule] : &reference_trainings[rule - CLIPPED], i % 2);
        checks++;
    }
    failed += !check_gradients();
    failed += !check_finite();
    tutti_close(runtime);
    failed += undeclared;
    printf("%d passed, %d failed\n", checks - failed, failed);
    return failed != 0;
}
