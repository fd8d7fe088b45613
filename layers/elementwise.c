#include "layers/elementwise.h"

#include "base/memory.h"

#include <string.h>

/* A task of a CPU-class device takes at least this many floats (about 2 us); and there are at most TASKS for each of
 * its units, so that all finish together. */
enum { TASK_FLOATS = 4096, TASKS = 8 };

const char *fits_cpu_class(const struct problem *problem)
{
    return problem->device->class == DEVICE_CPU ? NULL : "it needs a CPU-class device";
}

const char *fits_gpu_class(const struct problem *problem)
{
    return problem->device->class == DEVICE_GPU ? NULL : "it needs a GPU-class device";
}

bool in_place_first(const struct problem *problem, int input)
{
    (void)problem;
    return input == 0;
}

bool in_place_first_two(const struct problem *problem, int input)
{
    (void)problem;
    return input == 0 || input == 1;
}

tutti_status gradient_by_itself(struct graph *graph, const struct node *node, const struct node_gradients *g)
{
    int inputs[GRAPH_MAX_INPUTS];
    if (g->outputs[0] == NO_VALUE || !g->wanted[0]) return TUTTI_OK;
    memcpy(inputs, node->inputs, sizeof inputs);
    inputs[0] = g->outputs[0];
    g->inputs[0] = graph_append(graph, node->operation, &node->attributes, inputs, node->input_count, node->layer);
    return graph->status;
}

size_t group_size(const struct capabilities *device, size_t wanted)
{
    while (wanted > device->group_max && wanted > 1) wanted /= 2;
    return wanted;
}

void items_launch(
    struct launch *launch, const struct capabilities *device, size_t wanted, int64_t items, int64_t planes)
{
    const size_t group = group_size(device, wanted);
    launch_grid(
        launch, planes ? 2 : 1, size_round_up((size_t)items, group), planes ? (size_t)planes : 1, 1, group, 1, 1);
}

int64_t elementwise_task_floats(const struct capabilities *device, int64_t n)
{
    int64_t most = (int64_t)TASKS * (device->units > 2 ? device->units : 2);
    int64_t tasks = n / TASK_FLOATS < most ? n / TASK_FLOATS : most;
    if (tasks < 1) tasks = 1;
    return (int64_t)size_round_up((size_t)divide_up(n, tasks), 16);
}

void elementwise_clear_padding(struct launch_list *list, const struct value *value, cl_mem buffer)
{
    const int64_t width = list->device->can.vector_width;
    if (value->layout != LAYOUT_BLOCKED) return;
    const struct planes planes = value_planes(value, CHANNEL_AXIS);
    if (planes.c % width == 0) return;
    struct launch *launch = launch_add(
        list, "clear_padding_cpu", "clear_padding", "-DCLEARED=%s", value->type == TYPE_BF16 ? "ushort" : "float");
    launch_buffer(launch, buffer);
    LAUNCH_INTS(launch, divide_up(planes.c, width), planes.pixels, planes.c);
    launch_tasks(launch, (size_t)planes.pixels, (size_t)planes.n, 1);
    launch_work(launch, 0, 0);
}
