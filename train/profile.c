/* Where the time of a step goes: the plan that ran last once more, with an event for each launch. */
#include "runtime/profile.h"

#include "base/memory.h"
#include "base/text.h"
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

struct profile {
    const char *trace;
    struct text text;
};

/* What one operation, on one implementation, took over all its launches. */
struct total {
    const char *operation, *implementation;
    int launches;
    double seconds, flops, bytes;
};

static void append_rates(struct text *text, double seconds, double flops, double bytes)
{
    double time = seconds > 0 ? seconds : 1e-9;
    text_append(text, "%9.3f ms", 1e3 * seconds);
    if (flops > 0)
        text_append(text, " %8.1f GFLOP/s", flops / time / 1e9);
    else
        text_append(text, "%17s", "");
    if (bytes > 0)
        text_append(text, " %7.1f GB/s", bytes / time / 1e9);
    else
        text_append(text, "%13s", "");
}

/* The fastest of several runs, launch by launch: the machine's other work only ever adds. */
static tutti_status measure(struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    double *fastest = memory_new(list->count + 1, sizeof *fastest);
    if (!fastest) return TUTTI_NO_MEMORY;
    for (int run = 0; run < REPEATS; run++) {
        TRY(profile_run(list));
        for (size_t i = 0; i < list->count; i++)
            if (run == 0 || list->launches[i].seconds < fastest[i]) fastest[i] = list->launches[i].seconds;
    }
    for (size_t i = 0; i < list->count; i++) list->launches[i].seconds = fastest[i];
done:
    free(fastest);
    return status;
}

static int slower_first(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void add_launch(struct total *totals, size_t *count, const struct plan *plan, const struct launch *launch)
{
    const struct node *node = launch->node < 0 ? NULL : &plan->graph.nodes[launch->node];
    const char *operation = node ? node->operation->name : "update";
    const char *implementation = node ? node->operation->implementations[node->implementation]->name : "";
    size_t i = 0;
    while (i < *count && (totals[i].operation != operation || totals[i].implementation != implementation)) i++;
    if (i == *count) totals[(*count)++] = (struct total) { .operation = operation, .implementation = implementation };
    totals[i].launches++;
    totals[i].seconds += launch->seconds;
    totals[i].flops += launch->flops;
    totals[i].bytes += launch->bytes;
}

static tutti_status append_totals(struct text *text, const struct plan *plan)
{
    const struct launch_list *list = &plan->step;
    size_t count = 0;
    double seconds = 0;
    struct total *totals = memory_new(list->count + 1, sizeof *totals);
    if (!totals) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        add_launch(totals, &count, plan, &list->launches[i]);
        seconds += list->launches[i].seconds;
    }
    qsort(totals, count, sizeof *totals, slower_first);
    text_append(text, "%zu launches, %.3f ms\n", list->count, 1e3 * seconds);
    for (size_t i = 0; i < count; i++) {
        text_append(text, "%5.1f %%  %-24s %-14s %4d  ", 100 * totals[i].seconds / (seconds > 0 ? seconds : 1),
            totals[i].operation, totals[i].implementation, totals[i].launches);
        append_rates(text, totals[i].seconds, totals[i].flops, totals[i].bytes);
        text_append(text, "\n");
    }
    free(totals);
    return TUTTI_OK;
}

static const char *layer_of(const struct plan *plan, int node)
{
    int layer = node < 0 ? -1 : plan->graph.nodes[node].layer;
    return layer < 0 ? "" : plan->network->layers[layer].name;
}

static void append_launches(struct text *text, const struct plan *plan)
{
    text_append(text, "\n");
    for (size_t i = 0; i < plan->step.count; i++) {
        const struct launch *launch = &plan->step.launches[i];
        text_append(text, "%4zu  %-26s %-24s %-30s", i, layer_of(plan, launch->node),
            launch->node < 0 ? "" : plan->graph.nodes[launch->node].operation->name, launch->kernel_name);
        append_rates(text, launch->seconds, launch->flops, launch->bytes);
        text_append(text, "\n");
    }
}

static tutti_status write_trace(struct plan *plan, const char *path)
{
    const char **names = memory_new(plan->graph.node_count + 1, sizeof *names);
    if (!names) return TUTTI_NO_MEMORY;
    for (size_t n = 0; n < plan->graph.node_count; n++) names[n] = layer_of(plan, (int)n);
    tutti_status status = profile_run(&plan->step);
    if (status == TUTTI_OK) status = profile_trace(&plan->step, names, path);
    free(names);
    return status;
}

static tutti_status run(struct replica *replica, void *argument)
{
    tutti_status status = TUTTI_OK;
    struct profile *profile = argument;
    const struct cached_plan *latest = NULL;
    for (int i = 0; i < REPLICA_PLANS; i++)
        if (replica->plans[i].plan && (!latest || replica->plans[i].used > latest->used)) latest = &replica->plans[i];
    if (!latest) return fail(TUTTI_INVALID, "nothing has run yet that could be profiled: train or infer first");
    TRY(measure(&latest->plan->step));
    TRY(append_totals(&profile->text, latest->plan));
    append_launches(&profile->text, latest->plan);
    if (profile->trace) TRY(write_trace(latest->plan, profile->trace));
done:
    return status;
}

char *tutti_profile(tutti_trainer *trainer, int position, const char *trace)
{
    if (!trainer || position < 0 || position >= trainer->count || trainer->replicas[position].lost) {
        fail(TUTTI_INVALID, "there is no device %d to profile", position);
        return NULL;
    }
    struct profile profile = { .trace = trace };
    replica_start(&trainer->replicas[position], run, &profile);
    if (replica_wait(&trainer->replicas[position]) != TUTTI_OK) {
        text_free(&profile.text);
        return NULL;
    }
    return text_take(&profile.text);
}
