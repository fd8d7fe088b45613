/* What the cases of a run launch: choose.py picks the few of the cases that together launch everything. */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "tests/layers/expect.h"

static FILE *record;

bool record_open(const char *path)
{
    record = fopen(path, "w");
    return record != NULL;
}

bool record_close(void)
{
    const bool good = !record || (!ferror(record) & !fclose(record));
    record = NULL;
    return good;
}

void record_run(const struct device *device, const char *line, const char *force)
{
    if (!record) return;
    fprintf(record, "run\t%s\t", line);
    if (device->can.class == DEVICE_GPU)
        fprintf(record, "gpu");
    else
        fprintf(record, "%d", device->can.vector_width);
    fprintf(record, "\t%s\n", force ? force : "");
}

static void record_launches(const struct plan *plan, const struct launch_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct launch *launch = &list->launches[i];
        const struct node *node = launch->node < 0 ? NULL : &plan->graph.nodes[launch->node];
        if (launch->call) continue; /* a library's */
        /* All texts that are made from one are one kernel here: the operation tells what it computes. */
        const int source = (int)strcspn(launch->source, "-");
        fprintf(record, "launch\t%s\t%s\t%.*s\t%s\t%s\t%zu\t%d\n", node ? node->operation->name : "",
            node && node->implementation >= 0 ? node->operation->implementations[node->implementation]->name : "",
            source, launch->source, launch->kernel_name, launch->options,
            launch->local[0] * launch->local[1] * launch->local[2], launch_is_large(launch));
    }
}

void record_plan(const struct plan *plan)
{
    if (!record) return;
    record_launches(plan, &plan->prepare);
    record_launches(plan, &plan->launches);
}
