/* Shows where the time of a step goes: runs the last plan again, with an event for each launch. */
#include "runtime/profile.h"

#include "base/memory.h"
#include "base/text.h"
#include "parallel/trainer.h"
#include "plan/commands.h"
#include "runtime/forked.h"
#include "runtime/memory.h"
#include "train/checks.h"
#include "tutti_inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

struct profile {
    char *trace;
    struct text text;
    struct peak peak;
    int64_t steps; /* over which replicas have added up their traffic */
};

/* What launches of one kind took together. */
struct total {
    const char *first, *second; /* of what kind they are */
    int launches;
    double seconds, floor, flops, bytes;
};

/* Two texts that say of what kind a launch is. */
typedef void kind_of(const struct plan *plan, const struct launch *launch, const char **first, const char **second);

static const char *implementation_of(const struct node *node)
{
    const struct implementation *const *list = node->operation->implementations;
    return list && node->implementation >= 0 ? list[node->implementation]->name : "";
}

static void kind_operation(
    const struct plan *plan, const struct launch *launch, const char **operation, const char **implementation)
{
    const struct node *node = launch->node < 0 ? NULL : &plan->graph.nodes[launch->node];
    *operation = node ? node->operation->name : "update";
    *implementation = node ? implementation_of(node) : "";
}

static void kind_kernel(const struct plan *plan, const struct launch *launch, const char **kernel, const char **file)
{
    (void)plan;
    *kernel = launch->kernel_name;
    *file = launch->source ? launch->source : "";
}

static void append_rates(struct text *text, const struct total *total)
{
    double time = total->seconds > 0 ? total->seconds : 1e-9;
    text_append(text, "%9.3f ms", 1e3 * total->seconds);
    if (total->flops > 0)
        text_append(text, " %8.1f GFLOP/s", total->flops / time / 1e9);
    else
        text_append(text, "%17s", "");
    if (total->bytes > 0)
        text_append(text, " %7.1f GB/s", total->bytes / time / 1e9);
    else
        text_append(text, "%13s", "");
    if (total->floor > 0) text_append(text, " %4.0f %%", 100 * total->floor / time);
    text_append(text, "\n");
}

static void add_launch(struct total *total, const struct launch *launch, const struct peak *peak)
{
    total->launches++;
    total->seconds += launch->fastest;
    total->flops += launch->flops;
    total->bytes += launch->bytes;
    total->floor += profile_floor(launch->flops, launch->bytes, peak);
}

static int slower_first(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static struct total *total_of(struct total *totals, size_t *count, const char *first, const char *second)
{
    size_t i = 0;
    while (i < *count && (strcmp(totals[i].first, first) || strcmp(totals[i].second, second))) i++;
    if (i == *count) totals[(*count)++] = (struct total) { .first = first, .second = second };
    return &totals[i];
}

static tutti_status append_totals(struct profile *profile, const struct plan *plan, const char *title, kind_of *kind)
{
    const struct launch_list *list = &plan->launches;
    size_t count = 0;
    struct total all = { 0 }, *totals = memory_new(list->count + 1, sizeof *totals);
    if (!totals) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        const char *first, *second;
        kind(plan, &list->launches[i], &first, &second);
        add_launch(total_of(totals, &count, first, second), &list->launches[i], &profile->peak);
        add_launch(&all, &list->launches[i], &profile->peak);
    }
    qsort(totals, count, sizeof *totals, slower_first);
    text_append(&profile->text, "\n%-58s %4d  ", title, all.launches);
    append_rates(&profile->text, &all);
    for (size_t i = 0; i < count; i++) {
        text_append(&profile->text, "%5.1f %%  %-26s %-24s %4d  ", 100 * totals[i].seconds / fmax(all.seconds, 1e-9),
            totals[i].first, totals[i].second, totals[i].launches);
        append_rates(&profile->text, &totals[i]);
    }
    free(totals);
    return TUTTI_OK;
}

static void append_launch(struct profile *profile, const struct plan *plan, const struct launch *launch)
{
    struct total total = { 0 };
    add_launch(&total, launch, &profile->peak);
    text_append(&profile->text, "%-26s %-24s %-30s ", layer_of(plan, launch->node),
        launch->node < 0 ? "" : plan->graph.nodes[launch->node].operation->name, launch->kernel_name);
    append_rates(&profile->text, &total);
}

/* Appends the commands, with the numbers of tutti_explain(). */
static void append_commands(struct profile *profile, const struct plan *plan)
{
    text_append(&profile->text, "\nby command: layer, operation, kernel; or what else is done\n");
    for (size_t i = 0; i < plan->command_count; i++) {
        const struct command *command = &plan->commands[i];
        if (command->kind == COMMAND_PREPARE) continue; /* not in each step */
        text_append(&profile->text, "%4zu  ", i);
        if (command->kind == COMMAND_KERNEL) {
            append_launch(profile, plan, &plan->launches.launches[command->number]);
        } else {
            command_print(plan, command, &profile->text);
            text_append(&profile->text, "\n");
        }
    }
}

static void append_direction(struct profile *profile, const char *direction, const struct traffic *traffic)
{
    const double megabytes = 1e-6 * traffic->bytes / fmax((double)profile->steps, 1);
    if (megabytes < 0.01) return; /* a step's constants always travel */
    text_append(&profile->text, "%s the device %.2f MB a step", direction, megabytes);
    if (traffic->seconds > 0) text_append(&profile->text, ", %.2f GB/s", 1e-9 * traffic->bytes / traffic->seconds);
    if (traffic->overlapped > 0)
        text_append(
            &profile->text, ", %.0f %% of that time while computing", 100 * traffic->overlapped / traffic->seconds);
    text_append(&profile->text, "\n");
}

static tutti_status write_trace(const struct profile *profile, const struct plan *plan)
{
    struct profile_label *labels = memory_new(plan->graph.node_count + 1, sizeof *labels);
    if (!labels) return TUTTI_NO_MEMORY;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        labels[n].layer = layer_of(plan, (int)n);
        labels[n].operation = plan->graph.nodes[n].operation->name;
        labels[n].implementation = implementation_of(&plan->graph.nodes[n]);
    }
    tutti_status status = profile_trace(&plan->launches, labels, &profile->peak, profile->trace);
    free(labels);
    return status;
}

/* A training plan overwrites the gradients of the last step, which tutti_get_gradient() reads. */
static tutti_status run_and_keep_gradients(struct replica *replica, struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    const cl_mem last = gradients_last(&replica->gradients);
    const bool keep = plan->options.mode == PLAN_TRAIN && last && last == gradients_buffer(&replica->gradients, false);
    const size_t bytes = (size_t)replica->setup->network->total_floats * sizeof(float);
    void *gradients = keep ? memory_new(bytes, 1) : NULL;
    if (keep && !gradients) return TUTTI_NO_MEMORY;
    if (keep) TRY(buffer_read(replica->device, last, 0, gradients, bytes));
    status = profile_fastest(&plan->launches, REPEATS);
    if (keep) {
        const tutti_status restored = buffer_write(replica->device, last, 0, gradients, bytes);
        if (status == TUTTI_OK) status = restored;
    }
done:
    free(gradients);
    return status;
}

static tutti_status run(struct replica *replica, void *argument)
{
    tutti_status status = TUTTI_OK;
    struct profile *profile = argument;
    const struct cached_plan *latest = plan_cache_latest(&replica->plans);
    if (!latest) return fail(TUTTI_INVALID, "no plan has run yet on this device: train or infer first");
    TRY(gradients_unmap(replica));
    TRY(run_and_keep_gradients(replica, latest->plan));
    TRY(peak_measure(replica->device, &profile->peak));
    text_append(&profile->text,
        "peak %.0f GFLOP/s, %.1f GB/s (measured); last column: shortest time possible at that peak / time\n",
        1e-9 * profile->peak.flops, 1e-9 * profile->peak.bytes);
    append_direction(profile, "to", &replica->report.sent);
    append_direction(profile, "from", &replica->report.received);
    TRY(append_totals(profile, latest->plan, "by operation, implementation", kind_operation));
    TRY(append_totals(profile, latest->plan, "by kernel, file", kind_kernel));
    append_commands(profile, latest->plan);
    if (profile->trace) TRY(write_trace(profile, latest->plan));
done:
    return status;
}

char *tutti_profile(tutti_trainer *trainer, int position, const char *trace)
{
    if (!trainer || position < 0 || position >= trainer->count || replica_is_lost(&trainer->replicas[position])) {
        fail(TUTTI_INVALID,
            "device %d cannot be profiled: the trainer is NULL, or the device does not exist or is lost", position);
        return NULL;
    }
    if (forked_check() != TUTTI_OK || trainer_check_views(trainer) != TUTTI_OK) return NULL;
    char *text = NULL;
    struct replica *replica = &trainer->replicas[position];
    struct profile *profile = memory_new(1, sizeof *profile);
    if (!profile) return NULL;
    trainer->last.outputs.valid = false;
    profile->steps = trainer->report.steps;
    profile->trace = trace ? memory_copy_text(trace) : NULL;
    if (trace && !profile->trace) goto done;
    worker_start(&replica->worker, run, profile);
    const tutti_status status = worker_wait(&replica->worker);
    if (worker_is_abandoned(&replica->worker)) return NULL; /* it may still be written to */
    if (status == TUTTI_OK) text = text_take(&profile->text);
    text_free(&profile->text);
done:
    free(profile->trace);
    free(profile);
    return text;
}

/* What tutti_launches() asks of a device, and the plan that answers. */
struct question {
    bool time;
    const struct plan *plan;
};

/* Returns the last plan that trains, else the last one. */
static const struct cached_plan *plan_to_show(struct plan_cache *cache)
{
    const struct cached_plan *latest = NULL;
    for (int i = 0; i < PLAN_CACHE_PLANS; i++) {
        const struct cached_plan *cached = &cache->plans[i];
        if (!cached->plan || cached->plan->options.mode != PLAN_TRAIN) continue;
        if (!latest || cached->used > latest->used) latest = cached;
    }
    return latest ? latest : plan_cache_latest(cache);
}

static tutti_status answer(struct replica *replica, void *argument)
{
    tutti_status status = TUTTI_OK;
    struct question *question = argument;
    const struct cached_plan *cached = plan_to_show(&replica->plans);
    if (!cached || (question->time && !cached->ran))
        return fail(TUTTI_INVALID, "no plan has run yet on this device: train or infer first");
    if (question->time) {
        TRY(gradients_unmap(replica));
        TRY(run_and_keep_gradients(replica, cached->plan));
    }
    question->plan = cached->plan;
done:
    return status;
}

static void report_launches(const struct question *question, void (*each)(void *, const tutti_launch *), void *user)
{
    const struct plan *plan = question->plan;
    for (size_t i = 0; i < plan->launches.count; i++) {
        const struct launch *launch = &plan->launches.launches[i];
        tutti_launch launched = { .layer = launch->node < 0 ? -1 : plan->graph.nodes[launch->node].layer,
            .kernel = launch->kernel_name,
            .seconds = question->time ? launch->fastest : 0,
            .flops = launch->flops,
            .bytes = launch->bytes };
        kind_operation(plan, launch, &launched.operation, &launched.implementation);
        each(user, &launched);
    }
}

tutti_status tutti_launches(
    tutti_trainer *trainer, int position, bool time, void (*each)(void *user, const tutti_launch *launch), void *user)
{
    if (!trainer || position < 0 || position >= trainer->count || replica_is_lost(&trainer->replicas[position]))
        return fail(TUTTI_INVALID, "device %d has no launches: it does not exist or is lost", position);
    if (is_forked()) return forked_check();
    if (time) {
        const tutti_status open = trainer_check_views(trainer);
        if (open != TUTTI_OK) return open;
        trainer->last.outputs.valid = false;
    }
    struct replica *replica = &trainer->replicas[position];
    struct question *question = memory_new(1, sizeof *question);
    if (!question) return TUTTI_NO_MEMORY;
    question->time = time;
    worker_start(&replica->worker, answer, question);
    const tutti_status status = worker_wait(&replica->worker);
    if (worker_is_abandoned(&replica->worker)) return status; /* it may still be written to */
    if (status == TUTTI_OK) report_launches(question, each, user);
    free(question);
    return status;
}
