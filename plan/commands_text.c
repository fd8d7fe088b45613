/* The commands of a plan as text. */
#include "plan/commands.h"

#include <stdio.h>
#include <string.h>

const char *layer_of(const struct plan *plan, int node)
{
    const int layer = node < 0 ? -1 : plan->graph.nodes[node].layer;
    return layer < 0 ? "" : plan->network->layers[layer].name;
}

enum { OPTIONS_SHOWN = 60 };

/* Prints the definitions without "-D", as many as fit. */
static void print_options(const char *options, struct text *text)
{
    size_t shown = 0, length;
    for (const char *word = options; *word; word += length + (word[length] == ' ')) {
        length = strcspn(word, " ");
        if (strncmp(word, "-D", 2)) continue;
        if (shown + length > OPTIONS_SHOWN) {
            text_append(text, " ...");
            return;
        }
        text_append(text, " %.*s", (int)length - 2, word + 2);
        shown += length;
    }
}

static void print_launch(const struct plan *plan, const struct launch *launch, struct text *text)
{
    char grid[64] = "";
    if (!launch->call) /* a library chooses its grid itself */
        snprintf(grid, sizeof grid, "%zux%zux%zu", launch->global[0], launch->global[1], launch->global[2]);
    text_append(text, "%-30s %-16s %-20s", launch->kernel_name, grid, layer_of(plan, launch->node));
    if (launch->options) print_options(launch->options, text);
}

static void print_kernel(const struct plan *plan, const struct command *command, struct text *text)
{
    print_launch(plan, &plan->launches.launches[command->number], text);
}

static void print_prepare(const struct plan *plan, const struct command *command, struct text *text)
{
    print_launch(plan, &plan->prepare.launches[command->number], text);
}

static void print_bytes(size_t bytes, struct text *text)
{
    if (bytes < 1024)
        text_append(text, "%zu bytes", bytes);
    else if (bytes < 1 << 20)
        text_append(text, "%.1f KiB", (double)bytes / 0x1p10);
    else
        text_append(text, "%.1f MiB", (double)bytes / 0x1p20);
}

static void print_parameters(const struct plan *plan, const struct command *command, struct text *text)
{
    const struct parameter *first = NULL, *last = NULL;
    for (size_t i = 0; i < plan->network->parameter_count; i++) {
        const struct parameter *p = &plan->network->parameters[i];
        if (parameter_is_fixed(p) || p->offset < command->first || p->offset >= command->first + command->count)
            continue;
        if (!first) first = p;
        last = p;
    }
    if (first) text_append(text, first == last ? "%s" : "%s to %s", first->name, last->name);
}

static void print_piece(const struct plan *plan, const struct command *command, struct text *text)
{
    text_append(text, "parameters ");
    print_parameters(plan, command, text);
    text_append(text, ": ");
    print_bytes((size_t)command->count * sizeof(float), text);
}

static void print_bucket(const struct plan *plan, const struct command *command, struct text *text)
{
    text_append(text, "%zu: ", command->number);
    print_bytes((size_t)command->count * sizeof(float), text);
    text_append(text, " of gradients, ");
    print_parameters(plan, command, text);
}

static void print_sync(const struct plan *plan, const struct command *command, struct text *text)
{
    const struct sync_point *point = &plan->launches.sync_points[command->number];
    text_append(text, "%s of %lld channels over all devices", point->kind == SYNC_SUMS ? "sums" : "moments",
        (long long)point->channels);
}

static void print_copy(const struct plan *plan, int value, const char *where, struct text *text)
{
    text_append(text, " %s the device: ", where);
    print_bytes(value_bytes(graph_at(&plan->graph, value), plan->device->can.vector_width), text);
}

static void print_feed(const struct plan *plan, const struct command *command, struct text *text)
{
    const char *name = graph_at(&plan->graph, plan->feeds[command->number])->name;
    text_append(text, "feed %s", name ? name : "without a name");
    print_copy(plan, plan->feeds[command->number], "to", text);
}

static void print_constants(const struct plan *plan, const struct command *command, struct text *text)
{
    (void)command;
    text_append(text, "constants of the step");
    print_copy(plan, plan->constants, "to", text);
}

static void print_copies_done(const struct plan *plan, const struct command *command, struct text *text)
{
    (void)plan;
    (void)command;
    text_append(text, "samples and constants are on the device");
}

static void print_metrics(const struct plan *plan, const struct command *command, struct text *text)
{
    (void)command;
    text_append(text, "metrics");
    print_copy(plan, plan->metrics, "on", text);
}

static void print_output(const struct plan *plan, const struct command *command, struct text *text)
{
    text_append(text, "output %zu", command->number);
    print_copy(plan, plan->outputs[command->number], "from", text);
}

static const struct {
    const char *name;
    void (*print)(const struct plan *plan, const struct command *command, struct text *text);
} kinds[COMMAND_KINDS] = {
    [COMMAND_PREPARE] = { "prepare", print_prepare },
    [COMMAND_FEED] = { "copy", print_feed },
    [COMMAND_CONSTANTS] = { "copy", print_constants },
    [COMMAND_COPIES_DONE] = { "marker", print_copies_done },
    [COMMAND_KERNEL] = { "kernel", print_kernel },
    [COMMAND_PIECE] = { "piece", print_piece },
    [COMMAND_SYNC] = { "sync", print_sync },
    [COMMAND_BUCKET] = { "bucket", print_bucket },
    [COMMAND_METRICS] = { "copy", print_metrics },
    [COMMAND_OUTPUT] = { "copy", print_output },
};

void command_print(const struct plan *plan, const struct command *command, struct text *text)
{
    text_append(text, "%-8s ", kinds[command->kind].name);
    kinds[command->kind].print(plan, command, text);
}

void commands_print(const struct plan *plan, struct text *text)
{
    text_append(text, "-- commands\n");
    for (size_t i = 0; i < plan->command_count; i++) {
        text_append(text, "%4zu ", i);
        command_print(plan, &plan->commands[i], text);
        text_append(text, "\n");
    }
}
