#include "plan/commands.h"

#include <stdlib.h>

#include "base/invariant.h"
#include "base/memory.h"
#include "plan/outputs.h"

/* A bucket or a piece is closed at this size: large enough that a transfer is not all latency, small enough to overlap
 * computing. Only the last bucket, which has the rest (of the first layers), and that of the statistics are smaller. */
#define BUCKET_FLOATS (1 << 20)

/* A range of an arena. `at`: the launch before which it is needed, or before which it is complete. */
struct range {
    int64_t first, count; /* floats */
    size_t at;
};

struct ranges {
    struct range *list;
    size_t count;
};

/* ------------------------------------------------------------------------------------------------- ranges ---- */

/* Sets, for each value, the number of the parameter that it is, perhaps under another shape; -1: none. */
static tutti_status parameters_of_values(const struct plan *plan, int **parameter)
{
    *parameter = memory_new(plan->graph.value_count + 1, sizeof **parameter);
    if (!*parameter) return TUTTI_NO_MEMORY;
    for (size_t v = 0; v < plan->graph.value_count; v++)
        (*parameter)[v] = plan->graph.values[v].role == ROLE_PARAMETER ? plan->graph.values[v].parameter : -1;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (node->operation->alias) (*parameter)[node->outputs[0]] = (*parameter)[node->inputs[0]];
    }
    return TUTTI_OK;
}

/* The first and the last launch that read a parameter. first: the end of the list where none does. */
struct use {
    size_t first, last;
};

static void note_use(struct use *uses, int parameter, size_t launch)
{
    if (parameter < 0) return;
    if (launch < uses[parameter].first) uses[parameter].first = launch;
    if (launch > uses[parameter].last) uses[parameter].last = launch;
}

static tutti_status find_uses(const struct plan *plan, struct use **uses)
{
    int *parameter = NULL;
    const tutti_status status = parameters_of_values(plan, &parameter);
    *uses = memory_new(plan->network->parameter_count + 1, sizeof **uses);
    for (size_t i = 0; *uses && i < plan->network->parameter_count; i++) (*uses)[i].first = plan->launches.count;
    for (size_t l = 0; status == TUTTI_OK && *uses && l < plan->launches.count; l++) {
        if (plan->launches.launches[l].node < 0) continue;
        const struct node *node = &plan->graph.nodes[plan->launches.launches[l].node];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NO_VALUE) note_use(*uses, parameter[node->inputs[i]], l);
        if (node_added(node) != NO_VALUE) note_use(*uses, parameter[node_added(node)], l);
    }
    free(parameter);
    return status != TUTTI_OK ? status : *uses ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Sets the last launch of each node. */
static tutti_status last_launches(const struct plan *plan, size_t **last)
{
    *last = memory_new(plan->graph.node_count + 1, sizeof **last);
    if (!*last) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < plan->launches.count; i++)
        if (plan->launches.launches[i].node >= 0) (*last)[plan->launches.launches[i].node] = i;
    return TUTTI_OK;
}

/* Sets the launch after which each parameter's gradient is complete; 0 for a gradient that stays zero because the
 * loss does not depend on the parameter. */
static void completions(const struct plan *plan, const size_t *last, size_t *after)
{
    for (size_t v = 0; v < plan->graph.value_count; v++) {
        const struct value *value = &plan->graph.values[v];
        if (value->gradient_of >= 0 && value->producer >= 0) after[value->gradient_of] = last[value->producer];
    }
}

static int in_order(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Whether the buckets together cover the arena, and each is complete after a launch that exists. */
static bool buckets_are_whole(const struct plan *plan, const struct ranges *buckets)
{
    int64_t floats = 0;
    for (size_t i = 0; i < buckets->count; i++) {
        floats += buckets->list[i].count;
        if (buckets->list[i].at > plan->launches.count) return false;
    }
    return floats == plan->network->total_floats;
}

/* Finds the buckets, ranges of gradients, in the order in which backward completes them. */
static tutti_status buckets_find(const struct plan *plan, struct ranges *buckets)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    struct use *uses = NULL;
    size_t *last = NULL, *after = memory_new(network->parameter_count + 1, sizeof *after);
    buckets->list = memory_new(network->parameter_count + 1, sizeof *buckets->list);
    if (!after || !buckets->list) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(last_launches(plan, &last));
    completions(plan, last, after);
    TRY(find_uses(plan, &uses));
    /* Backward completes the last parameters first, so each section of the arena is divided from its end down. */
    for (int trained = 0; trained < 2; trained++) {
        int64_t end = trained ? network->trained_floats : network->total_floats;
        struct range *open = NULL;
        for (size_t i = network->parameter_count; i-- > 0;) {
            const struct parameter *p = &network->parameters[i];
            if (p->kind != (trained ? PARAMETER_TRAINED : PARAMETER_STATISTIC)) continue;
            if (!open || open->count >= BUCKET_FLOATS) open = &buckets->list[buckets->count++];
            open->first = p->offset;
            open->count += end - p->offset;
            end = p->offset;
            if (after[i] >= open->at) open->at = after[i] + 1;
            if (uses[i].last >= open->at) open->at = uses[i].last + 1;
        }
    }
    qsort(buckets->list, buckets->count, sizeof *buckets->list, in_order);
    INVARIANT(buckets_are_whole(plan, buckets));
done:
    free(uses);
    free(last);
    free(after);
    return status;
}

/* Finds the pieces, ranges of parameters, in the order of the arena. */
static tutti_status pieces_find(const struct plan *plan, struct ranges *pieces)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = plan->network;
    struct use *uses = NULL;
    pieces->list = memory_new(network->parameter_count + 1, sizeof *pieces->list);
    if (!pieces->list) return TUTTI_NO_MEMORY;
    TRY(find_uses(plan, &uses));
    for (int trained = 1; trained >= 0; trained--) {
        const int64_t end = trained ? network->trained_floats : network->total_floats;
        struct range *open = NULL;
        size_t latest = 0; /* latest first use in the open range: what the same node also reads travels with it */
        for (size_t i = 0; i < network->parameter_count; i++) {
            const struct parameter *p = &network->parameters[i];
            if (p->kind != (trained ? PARAMETER_TRAINED : PARAMETER_STATISTIC)) continue;
            const size_t use = uses[i].first;
            if (!open || (p->offset - open->first >= BUCKET_FLOATS && use > latest)) {
                if (open) open->count = p->offset - open->first;
                open = &pieces->list[pieces->count++];
                *open = (struct range) { .first = p->offset, .at = use };
            }
            open->count = end - open->first;
            if (use < open->at) open->at = use;
            if (use > latest) latest = use;
        }
    }
    for (size_t i = pieces->count; i-- > 1;) /* they travel in this order: none waits for a later one */
        if (pieces->list[i].at < pieces->list[i - 1].at) pieces->list[i - 1].at = pieces->list[i].at;
done:
    free(uses);
    return status;
}

/* --------------------------------------------------------------------------------------------------- list ---- */

static struct command *append(struct plan *plan, enum command_kind kind, size_t number)
{
    struct command *command = &plan->commands[plan->command_count++];
    *command = (struct command) { .kind = kind, .number = number };
    return command;
}

/* Whether the value has memory; values that nobody reads have none. */
static bool is_stored(const struct plan *plan, int value)
{
    return value != NO_VALUE && (!plan->memory.buffers || plan->memory.buffers[value]);
}

static void append_copies_in(struct plan *plan)
{
    for (int i = 0; i < plan->feed_count; i++)
        if (is_stored(plan, plan->feeds[i])) append(plan, COMMAND_FEED, (size_t)i);
    if (is_stored(plan, plan->constants)) append(plan, COMMAND_CONSTANTS, 0);
    append(plan, COMMAND_COPIES_DONE, 0);
}

static void append_copies_out(struct plan *plan)
{
    const int outputs = plan_read_outputs(&plan->options);
    if (plan->metrics != NO_VALUE) append(plan, COMMAND_METRICS, 0);
    for (int i = 0; i < outputs; i++) append(plan, COMMAND_OUTPUT, (size_t)i);
    for (int i = 0; i < plan_input_gradients(&plan->options); i++)
        append(plan, COMMAND_OUTPUT, (size_t)(plan->options.objective.output_count + i));
}

/* Appends the ranges that belong before launch `at`, from *next on. */
static void append_ranges(
    struct plan *plan, enum command_kind kind, const struct ranges *ranges, size_t *next, size_t at, size_t *number)
{
    for (; *next < ranges->count && ranges->list[*next].at == at; ++*next) {
        const struct range *range = &ranges->list[*next];
        if (range->count == 0) continue;
        struct command *command = append(plan, kind, (*number)++);
        command->first = range->first;
        command->count = range->count;
    }
}

static void fill(struct plan *plan, const struct ranges *buckets, const struct ranges *pieces)
{
    size_t bucket = 0, piece = 0, sync = 0, bucket_number = 0, piece_number = 0;
    for (size_t i = 0; i < plan->prepare.count; i++) append(plan, COMMAND_PREPARE, i);
    append_copies_in(plan);
    for (size_t at = 0; at <= plan->launches.count; at++) {
        append_ranges(plan, COMMAND_BUCKET, buckets, &bucket, at,
            &bucket_number); /* first: it may leave while devices synchronise */
        for (; sync < plan->launches.sync_point_count && plan->launches.sync_points[sync].before == at; sync++)
            append(plan, COMMAND_SYNC, sync);
        append_ranges(plan, COMMAND_PIECE, pieces, &piece, at, &piece_number);
        if (at < plan->launches.count) append(plan, COMMAND_KERNEL, at);
    }
    INVARIANT(bucket == buckets->count && piece == pieces->count && sync == plan->launches.sync_point_count);
    append_copies_out(plan);
}

tutti_status commands_make(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct ranges buckets = { 0 }, pieces = { 0 };
    if (plan->options.mode == PLAN_TRAIN) TRY(buckets_find(plan, &buckets));
    if (plan->options.mode == PLAN_TRAIN) TRY(pieces_find(plan, &pieces));
    const size_t copies = PLAN_MAX_FEEDS + PLAN_MAX_OUTPUTS + 3; /* CONSTANTS, COPIES_DONE, METRICS */
    const size_t launches = plan->prepare.count + plan->launches.count;
    plan->commands = memory_new(
        copies + launches + plan->launches.sync_point_count + buckets.count + pieces.count, sizeof *plan->commands);
    if (plan->commands)
        fill(plan, &buckets, &pieces);
    else
        status = TUTTI_NO_MEMORY;
done:
    free(buckets.list);
    free(pieces.list);
    return status;
}

const struct command *command_next(const struct plan *plan, enum command_kind kind, size_t *position)
{
    while (*position < plan->command_count) {
        const struct command *command = &plan->commands[(*position)++];
        if (command->kind == kind) return command;
    }
    return NULL;
}
