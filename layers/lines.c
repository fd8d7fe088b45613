#include "layers/lines.h"

#include "base/memory.h"
#include "clkernels/arguments/lines.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum { GROUP = 64 };

struct lines lines_of(const struct value *value, int axis, const struct capabilities *device)
{
    const struct planes z = value_planes(value, axis);
    struct lines made = { .lines = z.n * z.pixels, .each = 1, .length = z.c, .inner = z.pixels };
    if (device->class == DEVICE_CPU)
        made.each = divide_up(elementwise_task_floats(device, made.lines * made.length), made.length);
    return made;
}

ARGUMENTS(lines, LINES_ARGUMENTS)

void lines_launch(struct launch *launch, const struct lines *lines, const struct capabilities *device)
{
    ARGUMENTS_SET(
        launch, lines, .lines = lines->lines, .each = lines->each, .length = lines->length, .inner = lines->inner);
    if (device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(lines->lines, lines->each), 1, 1);
    else
        items_launch(launch, device, GROUP, lines->lines, 0);
}

tutti_status lines_check(const char *operation, const struct value *x, int axis)
{
    const int64_t most = 1 << 24;
    if (axis < x->batched || axis >= x->shape.rank)
        return fail(TUTTI_INVALID, "%s: axis %d does not exist: the input has %d", operation, axis - x->batched,
            x->shape.rank - x->batched);
    if (x->shape.sizes[axis] > most)
        return fail(TUTTI_SHAPE, "%s: axis %d has %lld elements: floats hold the numbers of at most %lld", operation,
            axis - x->batched, (long long)x->shape.sizes[axis], (long long)most);
    return TUTTI_OK;
}

int64_t elements_chunk(const struct capabilities *device, int64_t elements)
{
    return device->class == DEVICE_CPU ? elementwise_task_floats(device, elements) : 1;
}

void elements_launch(struct launch *launch, const struct capabilities *device, int64_t elements)
{
    if (device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(elements, elements_chunk(device, elements)), 1, 1);
    else
        items_launch(launch, device, 4 * GROUP, elements, 0);
}
