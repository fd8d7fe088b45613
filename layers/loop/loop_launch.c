/* Divides a loop over the work-items of a device, and appends its launches. */
#include "layers/loop/loop.h"

#include "base/memory.h"
#include "layers/elementwise.h"

/* Whether `axis` and the next one can be merged: in all operands, the one continues the other. */
static bool can_merge(const struct loop *loop, int axis)
{
    if (loop_reduces(loop, axis) != loop_reduces(loop, axis + 1)) return false;
    for (int i = 0; i <= loop->operand_count; i++) {
        const struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        if (operand_is_guarded(o, axis) || operand_is_guarded(o, axis + 1)) return false;
        if (o->strides[axis] != o->strides[axis + 1] * loop->sizes[axis + 1]) return false;
    }
    return true;
}

/* Returns a set of axes after one of them is dropped: later axes move down. */
static unsigned without(unsigned axes, int axis)
{
    return (axes & ((1u << axis) - 1)) | (axes >> (axis + 1) << axis);
}

/* Drops an axis from the sizes, the strides and the guards. */
static void drop_axis(struct loop *loop, int axis)
{
    loop->reduced = without(loop->reduced, axis);
    loop->rank--;
    for (int k = axis; k < loop->rank; k++) loop->sizes[k] = loop->sizes[k + 1];
    for (int i = 0; i <= loop->operand_count; i++) {
        struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        o->guarded = without(o->guarded, axis);
        for (int k = axis; k < loop->rank; k++) {
            o->strides[k] = o->strides[k + 1];
            o->low[k] = o->low[k + 1];
            o->high[k] = o->high[k + 1];
        }
    }
}

static bool is_guarded(const struct loop *loop, int axis)
{
    bool guarded = false;
    for (int i = 0; i < loop->operand_count; i++) guarded |= operand_is_guarded(&loop->operands[i], axis);
    return guarded;
}

void loop_simplify(struct loop *loop)
{
    for (int axis = loop->rank - 1; axis >= 0; axis--)
        if (loop->sizes[axis] == 1 && loop->rank > 1 && !is_guarded(loop, axis)) drop_axis(loop, axis);
    for (int axis = loop->rank - 2; axis >= 0; axis--) {
        if (!can_merge(loop, axis)) continue;
        loop->sizes[axis + 1] *= loop->sizes[axis];
        drop_axis(loop, axis);
    }
    if (loop->rank == 1 && loop->sizes[0] == 1 && loop->reduction) loop->reduced = 1;
}

/* How a loop is divided. Each axis is either kept or reduced. Kernels of the CPU class use vectors along the
 * innermost axis, of whichever kind it is. */
struct division {
    int64_t kept, reduced;      /* elements of all axes of a kind */
    int64_t rows, width, count; /* kept elements without the innermost axis; that axis; reduced elements without it */
    bool inner_reduced;
    int64_t parts;           /* of the reduced axes; if there are several, a second launch reduces their results */
    int64_t each, piece;     /* CPU class: rows and elements of the innermost axis of a task */
    size_t group, each_item; /* GPU class: results of a work-item */
};

enum { GROUP = 64 };

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}
static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* CPU class: divides rows into pieces, then the rows, then the reduced axes, until there are enough tasks. */
static void divide_for_cpu(struct division *d, const struct capabilities *device)
{
    const int64_t n = d->kept * d->reduced, unit = (int64_t)LOOP_VECTORS * device->vector_width;
    const int64_t task = elementwise_task_floats(device, n), tasks = divide_up(n, task);
    if (d->inner_reduced) {
        d->piece = d->width;
        d->each = at_least(task / (d->reduced ? d->reduced : 1), 1);
    } else {
        const int64_t of_kept = at_least(task / d->reduced, 1);
        d->piece = at_most(d->width, (int64_t)size_round_up((size_t)of_kept, (size_t)unit));
        d->each = at_least(of_kept / d->piece, 1);
    }
    d->each = at_most(d->each, d->rows);
    const int64_t have = divide_up(d->rows, d->each) * divide_up(d->width, d->piece);
    if (d->reduced > 1 && !(d->inner_reduced && d->count < 2))
        d->parts = at_least(at_most(tasks / have, d->count / 8), 1);
}

/* GPU class: a work-group per result if the innermost axis is reduced, else a work-item per result, or for four of
 * them. Where nothing is reduced the groups are large: a GPU begins about one group in each cycle. */
static void divide_for_gpu(struct division *d, const struct loop *loop, const struct capabilities *device)
{
    enum { ENOUGH_ITEMS = 16384, LEAST = 32 };
    const bool large = !loop->reduction || (d->inner_reduced && d->reduced > 4 * GROUP);
    d->group = group_size(device, large ? 4 * GROUP : GROUP);
    d->each_item = loop_has_fours(loop) ? 4 : 1;
    const int64_t items = d->kept * (d->inner_reduced ? (int64_t)d->group : 1);
    const int64_t least = LEAST * (d->inner_reduced ? (int64_t)d->group : 1);
    if (d->reduced > 1) d->parts = at_least(at_most(ENOUGH_ITEMS / items, d->reduced / least), 1);
}

/* The loop must have been simplified. */
static struct division divide(const struct loop *loop, const struct capabilities *device)
{
    struct division d = { .kept = 1, .reduced = 1, .parts = 1, .width = loop->sizes[loop->rank - 1] };
    for (int axis = 0; axis < loop->rank; axis++)
        *(loop_reduces(loop, axis) ? &d.reduced : &d.kept) *= loop->sizes[axis];
    d.inner_reduced = loop_reduces(loop, loop->rank - 1);
    d.rows = d.inner_reduced ? d.kept : d.kept / d.width;
    d.count = d.inner_reduced ? d.reduced / d.width : d.reduced;
    if (device->class == DEVICE_CPU)
        divide_for_cpu(&d, device);
    else
        divide_for_gpu(&d, loop, device);
    return d;
}

size_t loop_workspace(const struct loop *given, const struct capabilities *device)
{
    struct loop loop = *given;
    loop_simplify(&loop);
    const struct division d = divide(&loop, device);
    return d.parts > 1 ? (size_t)d.parts * (size_t)d.kept * sizeof(float) : 0;
}

/* Makes the operand a dense tensor of the kept axes. */
static void set_kept_strides(const struct loop *loop, struct loop_operand *operand)
{
    int64_t stride = 1;
    for (int i = loop->rank - 1; i >= 0; i--) {
        operand->strides[i] = loop_reduces(loop, i) ? 0 : stride;
        if (!loop_reduces(loop, i)) stride *= loop->sizes[i];
    }
}

/* The second launch: reduces the results of the parts, over the axes (parts, kept axes). */
static struct loop finish_of(const struct loop *loop, const struct division *d, cl_mem workspace)
{
    struct loop finish = { .rank = 1,
        .sizes = { d->parts },
        .operand_count = 1,
        .operands = { { .buffer = workspace } },
        .out = { .buffer = loop->out.buffer, .type = loop->out.type, .offset = loop->out.offset },
        .reduction = loop->reduction,
        .reduced = 1,
        .scale = loop->scale };
    finish.operands[0].strides[0] = d->kept;
    for (int i = 0; i < loop->rank; i++) {
        if (loop_reduces(loop, i)) continue;
        finish.sizes[finish.rank] = loop->sizes[i];
        finish.out.strides[finish.rank++] = loop->out.strides[i];
    }
    int64_t stride = 1;
    for (int i = finish.rank - 1; i > 0; i--) {
        finish.operands[0].strides[i] = stride;
        stride *= finish.sizes[i];
    }
    return finish;
}

/* Whether all positions fit into 32 bits. */
static bool is_short(const struct loop *loop)
{
    int64_t most = 1;
    for (int i = 0; i < loop->rank; i++) most *= loop->sizes[i];
    for (int i = 0; i <= loop->operand_count; i++) {
        const struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        int64_t end = o->offset + 1 + o->index_size * o->index_stride;
        for (int k = 0; k < loop->rank; k++) end += at_least(o->strides[k], 0) * (loop->sizes[k] - 1);
        most = at_least(most, end);
    }
    return most < (int64_t)1 << 30;
}

static void add_buffer(struct loop_arguments *a, const char *name, const struct loop_operand *operand, bool written)
{
    a->list[a->count++] = (struct loop_argument) { written ? LOOP_WRITTEN : LOOP_READ, name, .operand = operand };
}

static void add_long(struct loop_arguments *a, const char *name, int64_t value)
{
    a->list[a->count++] = (struct loop_argument) { LOOP_LONG, name, .integer = value };
}

static void add_float(struct loop_arguments *a, const char *name, double value)
{
    a->list[a->count++] = (struct loop_argument) { LOOP_FLOAT, name, .real = value };
}

static struct loop_arguments arguments_of(
    const struct loop *loop, const struct division *d, const struct capabilities *device)
{
    static const char *const names[LOOP_OPERANDS] = { "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7" };
    const bool cpu = device->class == DEVICE_CPU;
    struct loop_arguments made = { .count = 0 };
    for (int i = 0; i < loop->operand_count; i++) add_buffer(&made, names[i], &loop->operands[i], false);
    add_buffer(&made, "out", &loop->out, true);
    if (cpu) {
        add_long(&made, "rows", d->rows);
        add_long(&made, "each", d->each);
        add_long(&made, "width", d->width);
        add_long(&made, "piece", d->piece);
    } else {
        add_long(&made, "n", d->kept);
    }
    add_long(&made, "count", cpu ? d->count : d->reduced);
    add_long(&made, "part", divide_up(cpu ? d->count : d->reduced, d->parts));
    if (cpu) add_long(&made, "made", d->kept);
    add_float(&made, "scale", d->parts > 1 || !loop->reduction ? 1 : loop->scale);
    return made;
}

static void set_arguments(struct launch *launch, const struct loop_arguments *arguments)
{
    for (int i = 0; i < arguments->count; i++) {
        const struct loop_argument *a = &arguments->list[i];
        struct launch_argument *set = a->operand ? launch_buffer(launch, a->operand->buffer)
            : a->kind == LOOP_FLOAT              ? launch_float(launch, a->real)
                                                 : launch_long(launch, a->integer);
        launch_name(set, a->name);
    }
}

static void set_sizes(struct launch *launch, const struct division *d, const struct capabilities *device)
{
    if (device->class == DEVICE_CPU) {
        launch_tasks(
            launch, (size_t)divide_up(d->width, d->piece), (size_t)divide_up(d->rows, d->each), (size_t)d->parts);
        return;
    }
    const size_t items =
        d->inner_reduced ? (size_t)d->kept * d->group : size_round_up((size_t)d->kept / d->each_item, d->group);
    launch_grid(launch, 2, items, (size_t)d->parts, 1, d->group, 1, 1);
}

/* Least number of bytes read and written. */
static double bytes_of(const struct loop *loop)
{
    double bytes = 0;
    for (int i = 0; i <= loop->operand_count; i++) {
        const struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        double elements = 1;
        for (int k = 0; k < loop->rank; k++) elements *= o->strides[k] ? (double)loop->sizes[k] : 1;
        bytes += elements * (double)value_type_bytes(o->type);
    }
    return bytes;
}

/* Appends the launch of a loop that is divided as `d` says. */
static void emit_divided(struct loop *loop, const struct division *d, struct launch_list *list)
{
    const struct capabilities *device = &list->device->can;
    const struct loop_arguments arguments = arguments_of(loop, d, device);
    const char *source = loop_source(loop, &arguments, device);
    if (!source) {
        if (list->status == TUTTI_OK) list->status = TUTTI_NO_MEMORY;
        return;
    }
    const bool stream = loop->rank == 1 && !loop->reduction && loop->out.offset == 0 &&
        (size_t)d->kept * value_type_bytes(loop->out.type) > STREAM_BYTES;
    struct launch *launch = launch_add(list, source, "run", "-cl-single-precision-constant -DINDEX=%s%s -DGROUP=%zu",
        is_short(loop) ? "uint" : "long", stream ? " -DSTREAM" : "", d->group ? d->group : 1);
    set_arguments(launch, &arguments);
    set_sizes(launch, d, device);
    launch_work(launch, (double)loop->expression_count * (double)d->kept * (double)d->reduced, bytes_of(loop));
}

void loop_emit(struct loop *loop, cl_mem workspace, struct launch_list *list)
{
    const struct capabilities *device = &list->device->can;
    loop_simplify(loop);
    const struct division d = divide(loop, device);
    struct loop finish = finish_of(loop, &d, workspace);
    if (d.parts > 1) {
        loop->out = (struct loop_operand) { .buffer = workspace };
        set_kept_strides(loop, &loop->out);
    }
    emit_divided(loop, &d, list);
    if (d.parts == 1) return;
    loop_simplify(&finish);
    struct division whole = divide(&finish, device);
    whole.parts = 1; /* no workspace is left, and parts are few */
    emit_divided(&finish, &whole, list);
}
