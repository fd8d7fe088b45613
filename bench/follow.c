/* Another process loads one device half-way through a training: how many steps do automatic shares take to follow?
 *
 *   follow MODEL BATCH INDEX CORE    INDEX: the position of the device that runs on CORE
 *
 * Trains on random samples on the devices of TUTTI_DEVICES until shares have settled, pins a loading process to the
 * core, and takes it away again. Prints the shares; fails unless the device has lost a fifth of its part within twenty
 * steps, and got it back. With two vendors, a core each: POCL_AFFINITY=1 pins POCL's device to core 0. */
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "models/models.h"
#include "tutti_inspect.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TO_SETTLE = 5000, STEPS = 60, WITHIN = 20 };

struct run {
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
    int64_t batch;
    float *inputs;
    int32_t *targets;
    int position, core;
};

static tutti_status prepare(struct run *run, const struct model *model)
{
    size_t elements = (size_t)run->batch;
    for (int i = 0; i < model->input.rank; i++) elements *= (size_t)model->input.sizes[i];
    run->inputs = memory_new(elements, sizeof(float));
    run->targets = memory_new((size_t)run->batch, sizeof(int32_t)); /* all of class 0: only times count */
    if (!run->inputs || !run->targets) return TUTTI_NO_MEMORY;
    random_normals(1, 1, 0, elements, run->inputs);
    run->runtime = tutti_open(NULL);
    if (!run->runtime) return fail(TUTTI_DEVICE, "%s", tutti_message(NULL));
    run->network = tutti_network_new(run->runtime);
    const tutti_tensor output =
        model->build(run->network, tutti_input(run->network, "x", model->input), model->classes);
    run->trainer = tutti_compile(
        run->network, output, &(tutti_training) { .loss = model->loss, .batch = run->batch, .learning_rate = 1e-6f });
    return run->trainer ? TUTTI_OK : fail(TUTTI_INVALID, "%s", tutti_message(run->runtime));
}

static tutti_status step(struct run *run, int64_t *share)
{
    tutti_device_report report;
    tutti_metrics metrics;
    const tutti_feed feeds[] = { { "x", TUTTI_DTYPE_F32, run->inputs }, { "targets", TUTTI_DTYPE_I32, run->targets } };
    tutti_status status = tutti_train_step(run->trainer, feeds, 2, run->batch, &metrics);
    if (status == TUTTI_OK) status = tutti_report(run->trainer, run->position, &report);
    if (status != TUTTI_OK) return fail(status, "%s", tutti_message(run->runtime));
    *share = report.share;
    return TUTTI_OK;
}

static pid_t load(int core)
{
    cpu_set_t cores;
    const pid_t child = fork();
    if (child != 0) return child;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) _exit(1);
    for (volatile unsigned i = 0;; i++) { }
}

/* Steps until the share is below (or above) the limit; all are made. */
static tutti_status watch(struct run *run, const char *what, bool below, int64_t limit, int *steps)
{
    tutti_status status = TUTTI_OK;
    int64_t share = 0;
    *steps = -1;
    for (int i = 1; i <= STEPS; i++) {
        TRY(step(run, &share));
        if (*steps < 0 && (below ? share <= limit : share >= limit)) *steps = i;
    }
    printf("%s: share %lld after %d steps, past %lld in step %d\n", what, (long long)share, STEPS, (long long)limit,
        *steps);
done:
    return status;
}

static tutti_status measure(struct run *run, bool *followed)
{
    tutti_status status = TUTTI_OK;
    int64_t share = 0;
    int down = -1, up = -1;
    tutti_device_times times = { .size = sizeof(times) };
    for (int i = 0; i < MOST_TO_SETTLE && !times.settled; i++) {
        TRY(step(run, &share));
        TRY(tutti_report_times(run->trainer, 0, &times));
    }
    printf("settled: share %lld of %lld\n", (long long)share, (long long)run->batch);
    const int64_t limit = share - share / 5;
    const pid_t loader = load(run->core);
    if (loader < 0) FAIL(TUTTI_INTERNAL, "cannot start the loading process");
    status = watch(run, "loaded", true, limit, &down);
    kill(loader, SIGKILL);
    waitpid(loader, NULL, 0);
    if (status == TUTTI_OK) status = watch(run, "free again", false, limit + 1, &up);
    *followed = down > 0 && down <= WITHIN && up > 0 && up <= WITHIN;
done:
    return status;
}

int main(int argc, char **argv)
{
    struct run run = { 0 };
    bool followed = false;
    const struct model *model = argc == 5 ? model_find(argv[1]) : NULL;
    run.batch = argc == 5 ? strtoll(argv[2], NULL, 10) : 0;
    if (!model || run.batch < 1) {
        fprintf(stderr, "use: follow MODEL BATCH INDEX CORE\n");
        return 2;
    }
    run.position = atoi(argv[3]);
    run.core = atoi(argv[4]);
    tutti_status status = prepare(&run, model);
    if (status == TUTTI_OK) status = measure(&run, &followed);
    if (status != TUTTI_OK)
        fprintf(stderr, "follow: %s\n", status_message());
    else
        printf("shares %s within %d steps\n", followed ? "followed" : "did not follow", WITHIN);
    tutti_trainer_free(run.trainer);
    tutti_network_free(run.network);
    tutti_close(run.runtime);
    free(run.inputs);
    free(run.targets);
    return status != TUTTI_OK || !followed;
}
