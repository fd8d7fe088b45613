/* Rules choose kernels well on the machines that they were made on. On others a measurement does: each implementation
 * that takes a problem runs on it by itself, and the fastest is kept. */
#include "plan/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/threads.h"
#include "plan/passes.h"
#include "plan/trial.h"
#include "runtime/check.h"

/* Runs of a candidate: at least, at most, and the seconds after which no further one begins. */
enum { LEAST_RUNS = 3, MOST_RUNS = 20 };
#define ENOUGH_SECONDS 0.1
/* A candidate whose first run is so much slower than the best has lost. */
#define HOPELESS 3.0
#define MOST_CANDIDATES 8

/* ---------------------------------------------------------------------------------------------------- names ---- */

static void append_sizes(char *name, const char *before, const int64_t *sizes, int count)
{
    size_t used = strlen(name);
    for (int i = 0; i < count && used < PROBLEM_NAME; i++)
        used += (size_t)snprintf(name + used, PROBLEM_NAME - used, "%s%lld", i ? "x" : before, (long long)sizes[i]);
}

void tune_problem_name(const struct problem *problem, char name[PROBLEM_NAME])
{
    const struct attributes *a = &problem->node->attributes;
    snprintf(name, PROBLEM_NAME, "%s%s%s", problem->exact ? "exact/" : "", problem->bf16 ? "bf16/" : "",
        problem->node->operation->name);
    for (int i = 0; i < 2; i++)
        if (problem->inputs[i])
            append_sizes(name, "/", problem->inputs[i]->shape.sizes, problem->inputs[i]->shape.rank);
    if (problem->outputs[0]) append_sizes(name, "/", problem->outputs[0]->shape.sizes, problem->outputs[0]->shape.rank);
    if (!a->stride[0]) return; /* not of windows */
    append_sizes(name, "/k", a->kernel, 2);
    append_sizes(name, "/s", a->stride, 2);
    append_sizes(name, "/p", a->padding, 2);
    append_sizes(name, "/d", a->dilation, 2);
    append_sizes(name, "/g", &a->groups, 1);
}

/* ----------------------------------------------------------------------------------------------- candidates ---- */

struct candidate {
    const struct implementation *implementation;
    double seconds;
};

/* Those that take the problem and want its values in the layouts that the rule's choice wants: another layout would
 * cost its neighbours something that this measurement does not see. */
static bool same_layouts(const struct problem *problem, const struct implementation *a, const struct implementation *b)
{
    enum value_layout inputs[2][GRAPH_MAX_INPUTS] = { 0 }, outputs[2][GRAPH_MAX_OUTPUTS] = { 0 };
    if (a->any_layout != b->any_layout) return false;
    if (a->layouts) a->layouts(problem, inputs[0], outputs[0]);
    if (b->layouts) b->layouts(problem, inputs[1], outputs[1]);
    return !memcmp(inputs[0], inputs[1], sizeof inputs[0]) && !memcmp(outputs[0], outputs[1], sizeof outputs[0]);
}

static int candidates_of(const struct plan *plan, const struct problem *problem, struct candidate *candidates)
{
    int count = 0;
    const struct implementation *const *i = problem->node->operation->implementations;
    /* The last one is the plain kernel: slow everywhere, and the measure of the others' results. */
    for (; i && i[0] && i[1] && count < MOST_CANDIDATES; i++)
        if (!implementation_refusal(plan, problem, *i) &&
            (count == 0 || same_layouts(problem, candidates[0].implementation, *i)))
            candidates[count++].implementation = *i;
    return count;
}

/* The fastest run, in seconds. */
static tutti_status measure(
    struct device *device, const struct problem *problem, struct candidate *candidate, double best)
{
    tutti_status status = TUTTI_OK;
    struct trial trial;
    double begin = clock_seconds();
    TRY(trial_make(device, problem, candidate->implementation, &trial));
    TRY(trial_run(&trial)); /* the driver may compile; pages are touched */
    candidate->seconds = 0;
    for (int run = 0; run < MOST_RUNS; run++) {
        double start = clock_seconds();
        TRY(trial_run(&trial));
        double seconds = clock_seconds() - start;
        if (run == 0) begin = start;
        if (run == 0 || seconds < candidate->seconds) candidate->seconds = seconds;
        if (best > 0 && candidate->seconds > HOPELESS * best) break;
        if (run + 1 >= LEAST_RUNS && clock_seconds() - begin > ENOUGH_SECONDS) break;
    }
done:
    trial_free(&trial);
    return status;
}

static void keep(struct device *device, const char *name, struct candidate *candidates, int count)
{
    struct text text = { 0 };
    for (int i = 1; i < count; i++) /* the fastest first; few */
        for (int j = i; j > 0 && candidates[j].seconds < candidates[j - 1].seconds; j--) {
            struct candidate slower = candidates[j - 1];
            candidates[j - 1] = candidates[j];
            candidates[j] = slower;
        }
    for (int i = 0; i < count; i++)
        text_append(&text, "%s%s %.3f", i ? " " : "", candidates[i].implementation->name, 1e3 * candidates[i].seconds);
    if (!text.failed) {
        log_info(&device->runtime->log, "measured %s: %s ms", name, text.data);
        fastest_keep(device, name, text.data);
    }
    text_free(&text);
}

static bool is_lack_of_memory(tutti_status status)
{
    return status == TUTTI_DEVICE_MEMORY || status == TUTTI_NO_MEMORY;
}

static tutti_status tune_node(struct plan *plan, const struct node *given)
{
    struct node node = *given;
    struct problem problem;
    struct candidate candidates[MOST_CANDIDATES];
    char name[PROBLEM_NAME];
    double best = 0;
    trial_problem(plan, &node, &problem);
    int count = candidates_of(plan, &problem, candidates);
    tune_problem_name(&problem, name);
    if (count < 2 || fastest_of(plan->device, name)) return TUTTI_OK;
    for (int i = 0; i < count; i++) {
        tutti_status status = measure(plan->device, &problem, &candidates[i], best);
        if (is_lack_of_memory(status)) return TUTTI_OK;
        if (status != TUTTI_OK) return status;
        if (best == 0 || candidates[i].seconds < best) best = candidates[i].seconds;
    }
    keep(plan->device, name, candidates, count);
    return TUTTI_OK;
}

tutti_status plan_tune(struct device *device, const tutti_network *network, const struct plan_options *options)
{
    tutti_status status = TUTTI_OK;
    struct plan *plan = plan_start(device, network, options);
    if (!plan) return TUTTI_NO_MEMORY;
    TRY(plan_run_passes(plan));
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        if (options->progress) options->progress(options->user, (int)n, (int)plan->graph.node_count);
        if (!plan->graph.nodes[n].operation->alias) TRY(tune_node(plan, &plan->graph.nodes[n]));
    }
done:
    plan_free(plan);
    return status;
}
