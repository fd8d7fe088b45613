/* Rules choose kernels well on the machines that they were made on. On other machines measurements do: each
 * implementation that takes a problem runs on it by itself, in turns with the present choice. One that is faster by
 * more than chance is kept. */
#include "plan/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/options.h"
#include "base/text.h"
#include "plan/node.h"
#include "plan/pipeline.h"
#include "plan/trial.h"
#include "runtime/forked.h"
#include "runtime/tuning.h"
#include "tutti_advanced.h"

/* Least and most turns, and the seconds after which no further turn begins. */
enum { LEAST_TURNS = 5, MOST_TURNS = 40 };
#define ENOUGH_SECONDS 0.3
/* A kernel is repeated in its turn until the turn takes this long, so that the clock and a wake-up do not matter. */
#define TURN_SECONDS 2e-3
enum { MOST_REPEATS = 200 };
/* A candidate whose first run takes this many times as long as the present choice is dropped. */
#define HOPELESS 3.0
/* The least relative gain that counts, however quiet the machine is. */
#define LEAST_GAIN 0.03

struct candidate {
    size_t node; /* the first of the plan with this problem */
    const struct implementation *implementation;
    char *problem;
    const char *refusal; /* NULL: it can be tried */
    int uses;
    bool present; /* the plan's choice: the first of its problem */
    double least; /* seconds, once it was measured */
};

struct tutti_tuner {
    struct plan *plan;
    struct candidate *candidates;
    size_t count, capacity;
    /* The results of the plain kernel for one problem, which are kept for its next candidate. */
    struct trial reference;
    const char *referred; /* that problem; NULL: none */
};

/* ----------------------------------------------------------------------------------------------- candidates ---- */

/* Whether both want the same layouts. Another layout would cost the neighbours time that a measurement of one node
 * does not see. */
static bool same_layouts(const struct problem *problem, const struct implementation *a, const struct implementation *b)
{
    enum value_layout inputs[2][GRAPH_MAX_INPUTS] = { 0 }, outputs[2][GRAPH_MAX_OUTPUTS] = { 0 };
    if (a->any_layout != b->any_layout) return false;
    if (a->layouts) a->layouts(problem, inputs[0], outputs[0]);
    if (b->layouts) b->layouts(problem, inputs[1], outputs[1]);
    return !memcmp(inputs[0], inputs[1], sizeof inputs[0]) && !memcmp(outputs[0], outputs[1], sizeof outputs[0]);
}

static const char *refusal(const struct plan *plan, const struct problem *problem,
    const struct implementation *const *implementation, const struct implementation *present)
{
    const char *reason = implementation_refusal(plan, problem, *implementation);
    if (reason) return reason;
    if (!implementation[1]) return "it is the plain kernel, with which results are compared";
    return same_layouts(problem, present, *implementation) ? NULL : "it needs other layouts of its inputs or outputs";
}

static tutti_status add(struct tutti_tuner *tuner, const struct candidate *candidate, const char *name)
{
    void *array = tuner->candidates;
    tutti_status status = memory_grow(&array, &tuner->capacity, tuner->count + 1, sizeof *tuner->candidates);
    if (status != TUTTI_OK) return status;
    tuner->candidates = array;
    tuner->candidates[tuner->count] = *candidate;
    tuner->candidates[tuner->count].problem = memory_copy_text(name);
    return tuner->candidates[tuner->count].problem ? (tuner->count++, TUTTI_OK) : TUTTI_NO_MEMORY;
}

/* Whether a trial can make up the node's inputs: made-up indexes could point anywhere. */
static bool can_be_tried(const struct problem *problem)
{
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i] && value_type_bytes(problem->inputs[i]->type) == 1 &&
            problem->inputs[i]->type != TYPE_INT8)
            return false;
    return true;
}

static bool seen(struct tutti_tuner *tuner, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < tuner->count; i++)
        if (!strcmp(tuner->candidates[i].problem, name)) {
            tuner->candidates[i].uses++;
            found = true;
        }
    return found;
}

/* Adds the present choice and then the other candidates; nothing where there is no other to be tried. */
static tutti_status add_node(struct tutti_tuner *tuner, size_t n)
{
    tutti_status status = TUTTI_OK;
    const struct plan *plan = tuner->plan;
    struct node node = plan->graph.nodes[n];
    const struct implementation *const *list = node.operation->implementations;
    struct problem problem;
    char name[PROBLEM_NAME];
    if (node.operation->alias) return TUTTI_OK;
    const struct implementation *present = list[node.implementation];
    trial_problem(plan, &node, &problem);
    problem_name(&problem, name);
    if (!can_be_tried(&problem) || seen(tuner, name)) return TUTTI_OK;
    int others = 0;
    for (const struct implementation *const *i = list; *i; i++)
        others += *i != present && !refusal(plan, &problem, i, present);
    if (others == 0) return TUTTI_OK;
    struct candidate candidate = { .node = n, .implementation = present, .uses = 1, .present = true };
    TRY(add(tuner, &candidate, name));
    candidate.present = false;
    for (const struct implementation *const *i = list; *i; i++) {
        if (*i == present) continue;
        candidate.implementation = *i;
        candidate.refusal = refusal(plan, &problem, i, present);
        TRY(add(tuner, &candidate, name));
    }
done:
    return status;
}

static tutti_status tuner_open(
    struct device *device, const tutti_network *network, const struct plan_options *options, struct tutti_tuner **made)
{
    tutti_status status = TUTTI_OK;
    struct tutti_tuner *tuner = *made = memory_new(1, sizeof *tuner);
    if (!tuner) return TUTTI_NO_MEMORY;
    tuner->plan = plan_start(device, network, options);
    if (!tuner->plan) return TUTTI_NO_MEMORY;
    TRY(plan_run_passes(tuner->plan));
    for (size_t n = 0; n < tuner->plan->graph.node_count; n++) TRY(add_node(tuner, n));
done:
    return status;
}

static void free_reference(struct tutti_tuner *tuner)
{
    if (tuner->referred) trial_free(&tuner->reference);
    tuner->referred = NULL;
}

void tutti_tuner_free(tutti_tuner *tuner)
{
    if (!tuner || is_forked()) return;
    free_reference(tuner);
    for (size_t i = 0; i < tuner->count; i++) free(tuner->candidates[i].problem);
    free(tuner->candidates);
    plan_free(tuner->plan);
    free(tuner);
}

/* --------------------------------------------------------------------------------------------------- measure ---- */

static tutti_status make(struct tutti_tuner *tuner, const struct candidate *candidate,
    const struct implementation *implementation, struct trial *trial)
{
    struct node node = tuner->plan->graph.nodes[candidate->node];
    struct problem problem;
    trial_problem(tuner->plan, &node, &problem);
    tutti_status status = trial_make(tuner->plan->device, &problem, implementation, trial);
    trial->problem.node = &tuner->plan->graph.nodes[candidate->node]; /* its own copy ends here */
    return status == TUTTI_OK ? trial_run(trial) : status;            /* the driver may compile; pages are touched */
}

/* Returns the first candidate of the same problem: the present choice. */
static const struct candidate *present_of(const struct candidate *candidate)
{
    while (!candidate->present) candidate--;
    return candidate;
}

static tutti_status run_turn(struct trial *trial, int repeats, double *seconds)
{
    const double start = clock_seconds();
    const tutti_status status = trial_repeat(trial, repeats);
    *seconds = (clock_seconds() - start) / repeats;
    return status;
}

/* Present, candidate, present again: the difference between the present choice's own times is chance. */
enum { PRESENT, CANDIDATE, AGAIN, TURNS };

static void judge(double times[TURNS][MOST_TURNS], int turns, tutti_trial *result)
{
    double least[TURNS], median[TURNS];
    for (int t = 0; t < TURNS; t++) {
        qsort(times[t], (size_t)turns, sizeof(double), number_compare);
        least[t] = times[t][0];
        median[t] = times[t][turns / 2];
    }
    *result = (tutti_trial) { .least = least[CANDIDATE], .median = median[CANDIDATE] };
    result->present_least = least[PRESENT] < least[AGAIN] ? least[PRESENT] : least[AGAIN];
    result->present_median = median[PRESENT] < median[AGAIN] ? median[PRESENT] : median[AGAIN];
    const double by_least = 1 - result->least / result->present_least;
    const double by_median = 1 - result->median / result->present_median;
    const double apart_least = 1 - result->present_least / (least[PRESENT] + least[AGAIN] - result->present_least);
    const double apart_median = 1 - result->present_median / (median[PRESENT] + median[AGAIN] - result->present_median);
    result->noise = apart_least > apart_median ? apart_least : apart_median;
    if (result->noise < LEAST_GAIN) result->noise = LEAST_GAIN;
    result->gain = by_least < by_median ? by_least : by_median;
}

static tutti_status time_in_turns(struct trial *present, struct trial *candidate, tutti_trial *result)
{
    tutti_status status = TUTTI_OK;
    double times[TURNS][MOST_TURNS], first[TURNS];
    struct trial *const who[TURNS] = { present, candidate, present };
    int turns = 0, repeats = 1;
    for (int t = 0; t < AGAIN; t++) TRY(run_turn(who[t], 1, &first[t]));
    if (first[CANDIDATE] > HOPELESS * first[PRESENT]) {
        *result = (tutti_trial) { first[CANDIDATE], first[CANDIDATE], first[PRESENT], first[PRESENT], LEAST_GAIN,
            1 - first[CANDIDATE] / first[PRESENT] };
        goto done;
    }
    while (repeats < MOST_REPEATS && repeats * first[PRESENT] < TURN_SECONDS) repeats++;
    const double begin = clock_seconds();
    for (; turns < MOST_TURNS && (turns < LEAST_TURNS || clock_seconds() < begin + ENOUGH_SECONDS); turns++)
        for (int t = 0; t < TURNS; t++) TRY(run_turn(who[t], repeats, &times[t][turns]));
    judge(times, turns, result);
done:
    return status;
}

static tutti_status measure(struct tutti_tuner *tuner, const struct candidate *candidate, tutti_trial *result)
{
    tutti_status status = TUTTI_OK;
    struct trial present = { 0 }, trial = { 0 };
    TRY(make(tuner, candidate, candidate->implementation, &trial));
    if (tuner->referred == present_of(candidate)->problem) TRY(trial_compare(&trial, &tuner->reference));
    TRY(make(tuner, candidate, present_of(candidate)->implementation, &present));
    TRY(time_in_turns(&present, &trial, result));
done:
    trial_free(&trial);
    trial_free(&present);
    return status;
}

static const struct implementation *plain_of(const struct operation *operation)
{
    const struct implementation *const *last = operation->implementations;
    while (last[1]) last++;
    return *last;
}

/* Computes the reference results for the candidate's problem, unless they are there. */
static tutti_status refer(struct tutti_tuner *tuner, const struct candidate *candidate)
{
    tutti_status status = TUTTI_OK;
    const struct candidate *present = present_of(candidate);
    if (tuner->referred == present->problem) return TUTTI_OK;
    free_reference(tuner);
    status = make(tuner, candidate, plain_of(tuner->plan->graph.nodes[present->node].operation), &tuner->reference);
    if (status == TUTTI_OK) {
        trial_keep_outputs(&tuner->reference);
        tuner->referred = present->problem;
    } else {
        trial_free(&tuner->reference);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------- the whole network ---- */

/* Keeps the result in the tuning table: the best implementation, then the others, each with its time. */
static void keep(struct device *device, const struct candidate *all, size_t count, const struct candidate *best)
{
    struct text text = { 0 };
    text_append(&text, "%s %.3f", best->implementation->name, 1e3 * best->least);
    for (size_t i = 0; i < count; i++)
        if (&all[i] != best && all[i].least > 0)
            text_append(&text, " %s %.3f", all[i].implementation->name, 1e3 * all[i].least);
    if (!text.failed) {
        log_info(&device->runtime->log, "measured %s, in ms: %s", all[0].problem, text.data);
        tuning_keep(device, all[0].problem, text.data);
    }
    text_free(&text);
}

/* Measures the candidates of one problem; the first is the present choice. */
static tutti_status tune_problem(struct tutti_tuner *tuner, struct candidate *all, size_t count)
{
    const struct candidate *best = &all[0];
    double gain = 0;
    for (size_t i = 1; i < count; i++) {
        tutti_trial trial;
        if (all[i].refusal) continue;
        const tutti_status status = measure(tuner, &all[i], &trial);
        if (status == TUTTI_DEVICE_MEMORY || status == TUTTI_NO_MEMORY) return TUTTI_OK;
        if (status != TUTTI_OK) return status;
        all[0].least = trial.present_least;
        all[i].least = trial.least;
        if (trial.gain <= trial.noise || trial.gain <= gain) continue;
        best = &all[i];
        gain = trial.gain;
    }
    keep(tuner->plan->device, all, count, best);
    return TUTTI_OK;
}

tutti_status plan_tune(struct device *device, const tutti_network *network, const struct plan_options *options)
{
    tutti_status status = TUTTI_OK;
    struct tutti_tuner *tuner = NULL;
    TRY(tuner_open(device, network, options, &tuner));
    for (size_t first = 0, next = 0; first < tuner->count; first = next) {
        for (next = first + 1; next < tuner->count && !tuner->candidates[next].present;) next++;
        if (options->progress) options->progress(options->user, (int)first, (int)tuner->count);
        struct candidate *all = &tuner->candidates[first];
        if (!tuning_is_measured(device, all->problem)) TRY(tune_problem(tuner, all, next - first));
    }
done:
    tutti_tuner_free(tuner);
    return status;
}

/* --------------------------------------------------------------------------------------------- one candidate ---- */

static struct objective objective_for(tutti_tensor output, const tutti_training *training)
{
    if (!training->losses) return objective_of(output, training->loss);
    struct objective objective = objective_of(output, TUTTI_LOSS_NONE);
    for (int i = 0; i < training->loss_count && i < PLAN_MAX_LOSSES; i++) {
        objective.losses[i] = training->losses[i].id;
        objective.weights[i] = training->loss_weights ? training->loss_weights[i] : 1;
        objective.loss_count = i + 1;
    }
    return objective;
}

tutti_tuner *tutti_tuner_new(tutti_network *network, tutti_tensor output, const tutti_training *given, int device)
{
    struct tutti_tuner *tuner = NULL;
    tutti_training read;
    const tutti_training *training = &read;
    if (!network || !given) {
        if (!network && *status_message()) return NULL; /* keeps the message, which says why there is no network */
        (void)fail(TUTTI_INVALID, "tutti_tuner_new() got a network or a training that is NULL: pass both");
        return NULL;
    }
    if (OPTIONS_READ(&read, given, tutti_training) != TUTTI_OK) return NULL;
    const struct tutti_runtime *runtime = network->runtime;
    const bool trains = training->losses || training->loss != TUTTI_LOSS_NONE;
    const struct plan_options options = { .mode = trains ? PLAN_TRAIN : PLAN_INFER,
        .sizes = { training->batch ? training->batch : 32, training->sequence },
        .objective = objective_for(output, training),
        .exact = training->exact,
        .precision = training->precision };
    tutti_status status = network->status;
    if (status == TUTTI_OK) status = forked_check();
    if (status == TUTTI_OK && (device < 0 || device >= runtime->count))
        status = fail(
            TUTTI_NO_DEVICE, "no device is open at position %d: %d are open, counted from 0", device, runtime->count);
    if (status == TUTTI_OK) status = tuner_open(&runtime->devices[device], network, &options, &tuner);
    if (status == TUTTI_OK) return tuner;
    tutti_tuner_free(tuner);
    return NULL;
}

static tutti_status check_index(const tutti_tuner *tuner, int index)
{
    if (index >= 0 && (size_t)index < tuner->count) return forked_check();
    return fail(TUTTI_INVALID, "candidate %d does not exist: the index is past the last one or negative", index);
}

tutti_status tutti_tuner_candidate(const tutti_tuner *tuner, int index, tutti_candidate *candidate)
{
    const tutti_status status = check_index(tuner, index);
    if (status != TUTTI_OK) return status;
    const struct candidate *c = &tuner->candidates[index];
    const struct node *node = &tuner->plan->graph.nodes[c->node];
    const tutti_candidate known = { .problem = c->problem,
        .layer = node->layer >= 0 ? tuner->plan->network->layers[node->layer].name : "",
        .kernel = c->implementation->name,
        .refusal = c->refusal,
        .uses = c->uses,
        .present = c->present };
    return RESULT_WRITE(candidate, &known, tutti_candidate);
}

tutti_status tutti_tuner_refer(tutti_tuner *tuner, int index)
{
    const tutti_status status = check_index(tuner, index);
    return status == TUTTI_OK ? refer(tuner, &tuner->candidates[index]) : status;
}

tutti_status tutti_tuner_try(tutti_tuner *tuner, int index, tutti_trial *trial)
{
    const tutti_status status = check_index(tuner, index);
    if (status != TUTTI_OK) return status;
    const struct candidate *candidate = &tuner->candidates[index];
    if (candidate->present || candidate->refusal)
        return fail(TUTTI_INVALID, "candidate %d, '%s', cannot be tried: %s", index, candidate->implementation->name,
            candidate->present ? "it is the kernel used now" : candidate->refusal);
    return measure(tuner, candidate, trial);
}
