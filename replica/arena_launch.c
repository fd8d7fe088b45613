#include "replica/arena_launch.h"

#include "base/memory.h"
#include "runtime/device.h"

/* CPU class: tasks of equal size, at most ARENA_RANGE floats each. GPU class: groups of 256 items, or fewer if that is
 * the device's limit, with four neighbouring floats each. */
enum { GPU_GROUP = 256, GPU_FLOATS = 4, TASKS_PER_UNIT = 8, CACHE_LINE = 16 };

int64_t arena_floats_of_item(const struct device *device, int64_t floats)
{
    if (device->can.class != DEVICE_CPU) return GPU_FLOATS;
    const int64_t round = (device->can.units > 0 ? device->can.units : 1) * TASKS_PER_UNIT;
    const int64_t tasks = divide_up(divide_up(floats, ARENA_RANGE), round) * round;
    return divide_up(divide_up(floats, tasks), CACHE_LINE) * CACHE_LINE;
}

size_t arena_group_size(const struct device *device)
{
    return device->can.group_max < GPU_GROUP ? device->can.group_max : GPU_GROUP;
}

struct launch *arena_launch(struct launch_list *list, const char *source, const char *kernel, const char *options)
{
    const size_t group = arena_group_size(list->device);
    if (list->device->can.class == DEVICE_CPU || group == GPU_GROUP)
        return launch_add(list, source, kernel, "%s", options);
    return launch_add(list, source, kernel, *options ? "-DGROUP=%zu %s" : "-DGROUP=%zu%s", group, options);
}

void arena_launch_grid(struct launch *launch, const struct device *device, int64_t floats)
{
    const size_t items = (size_t)divide_up(floats, arena_floats_of_item(device, floats)),
                 group = arena_group_size(device);
    if (device->can.class == DEVICE_CPU)
        launch_tasks(launch, items, 1, 1);
    else
        launch_grid(launch, 1, size_round_up(items, group), 1, 1, group, 1, 1);
}

void arena_launch_range(struct launch *launch, const struct device *device, int64_t floats)
{
    launch_int(launch, arena_floats_of_item(device, floats));
    arena_launch_grid(launch, device, floats);
}
