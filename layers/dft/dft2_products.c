/* dft2 on CPU-class devices with few frequencies: dft2_products_cpu.cl. */
#include "base/memory.h"
#include "layers/dft/arguments/dft2.h"
#include "layers/dft/dft2.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum {
    TASKS = 4,               /* for each unit */
    MOST_SCRATCH = 16 << 20, /* bytes of one */
    MOST_PRODUCTS = 64,      /* of an element, in each direction: passes then cost less */
};

/* A table: for each tile of results, `loops` times `tile` numbers. */
struct table {
    int64_t length, loops, count, tile, tiles, at;
};

struct design {
    struct table columns, rows;
    int64_t groups, each, tasks, scratch; /* groups of V images; of a task; tasks; floats of one's scratch */
};

/* As few tiles as possible, of one size. */
static struct table table_of(int64_t length, int64_t loops, int64_t count, int64_t most, int64_t at)
{
    const int64_t tile = divide_up(count, divide_up(count, most));
    return (struct table) { length, loops, count, tile, divide_up(count, tile), at };
}

static int64_t elements_of(const struct table *table)
{
    return table->tiles * table->loops * table->tile;
}

static int64_t half(int64_t length)
{
    return length / 2 + 1;
}

static struct design design_of(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const int64_t width = problem->device->vector_width,
                  units = problem->device->units > 0 ? problem->device->units : 1;
    const int64_t half_rows = dft2_half_rows(a), longest = a->height > a->width ? a->height : a->width;
    const int64_t wide = width >= 16 ? 12 : 6; /* results whose two sums fit into registers */
    struct design d = { .groups = divide_up(dft2_images(problem), width) };
    d.columns = a->inverse ? table_of(a->width, a->columns, half(a->width), wide, longest)
                           : table_of(a->width, half(a->width), a->columns, wide, longest);
    const int64_t after = longest + elements_of(&d.columns);
    d.rows = a->inverse ? table_of(a->height, half_rows, half(a->height), wide / 2, after)
                        : table_of(a->height, half(a->height), half_rows, wide / 2, after);
    const int64_t spectrum = 2 * a->rows * a->columns, row = a->width + 2 * half(a->width);
    d.each = divide_up(d.groups, TASKS * units);
    d.tasks = divide_up(d.groups, d.each);
    d.scratch = width *
        (2 * a->height * a->columns + 4 * (half(a->height) > half_rows ? half(a->height) : half_rows) +
            (spectrum > row ? spectrum : row));
    return d;
}

static const char *fits(const struct problem *problem)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (a->columns * (a->width + 2 * dft2_half_rows(a)) > MOST_PRODUCTS * a->width)
        return "passes cost less for so many frequencies";
    const struct design d = design_of(problem);
    if ((size_t)d.scratch > MOST_SCRATCH / sizeof(float)) return "a task's spectra need more than 16 MiB";
    return NULL;
}

/* Blocks of V channels are what the kernel computes, if there are whole ones; but an image that is plain stays so. */
static bool can_be_blocked(const struct problem *problem, const struct value *image)
{
    return value_has_layouts(image) && image->batched && image->shape.rank == 4 &&
        image->shape.sizes[CHANNEL_AXIS] % problem->device->vector_width == 0;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    if (!dft2_attributes(problem->node)->inverse) {
        const struct value *x = problem->inputs[0];
        if (x->layout == LAYOUT_BLOCKED && can_be_blocked(problem, x)) inputs[0] = LAYOUT_BLOCKED;
    } else if (can_be_blocked(problem, problem->outputs[0])) {
        outputs[0] = LAYOUT_BLOCKED;
    }
}

static size_t workspace(const struct problem *problem)
{
    const struct design d = design_of(problem);
    return (size_t)(d.tasks * d.scratch) * sizeof(float);
}

static size_t prepared(const struct problem *problem)
{
    const struct design d = design_of(problem);
    return (size_t)(d.rows.at + elements_of(&d.rows)) * 2 * sizeof(float);
}

ARGUMENTS(products, DFT2_ARGUMENTS)
ARGUMENTS(table, DFT2_TABLE_ARGUMENTS)

static struct launch *add(
    const struct problem *problem, const struct design *d, const char *kernel, bool blocked, struct launch_list *list)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    return launch_add(list, "dft2_products_cpu", kernel,
        "-DINVERSE=%d -DDOUBLED=%d -DBLOCKED=%d -DTILE_COLUMNS=%d -DTILE_ROWS=%d", a->inverse, a->doubled, blocked,
        (int)d->columns.tile, (int)d->rows.tile);
}

static bool is_blocked(const struct problem *problem)
{
    const bool inverse = dft2_attributes(problem->node)->inverse;
    return (inverse ? problem->outputs[0] : problem->inputs[0])->layout == LAYOUT_BLOCKED;
}

/* The angles of the length at the beginning of the buffer, then the table. */
static void emit_table(const struct problem *problem, const struct design *d, const struct table *table, cl_mem buffer,
    struct launch_list *list)
{
    struct launch *launch =
        launch_add(list, "dft_plain", "dft_table", "%s", "-DFORM=0 -DINVERSE=0 -DDOUBLED=0 -DCHIRP=1");
    launch_buffer(launch, buffer);
    LAUNCH_INTS(launch, table->length, 0);
    items_launch(launch, &list->device->can, 64, table->length, 0);
    launch_work(launch, 0, 8 * (double)table->length);
    launch = add(problem, d, "dft2_table", is_blocked(problem), list);
    ARGUMENTS_SET(launch, table, .table = buffer, .at = table->at, .length = table->length, .loops = table->loops,
        .tile = table->tile);
    launch_tasks(launch, (size_t)table->tiles, 1, 1);
    launch_work(launch, 0, 8 * (double)elements_of(table));
}

static void emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct design d = design_of(problem);
    emit_table(problem, &d, &d.columns, operands->prepared, list);
    emit_table(problem, &d, &d.rows, operands->prepared, list);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct dft2_attributes *a = dft2_attributes(problem->node);
    const struct design d = design_of(problem);
    struct launch *launch = add(problem, &d, "dft2_products", is_blocked(problem), list);
    ARGUMENTS_SET(launch, products, .x = operands->inputs[0], .y = operands->outputs[0], .scratch = operands->workspace,
        .table = operands->prepared, .columns_at = d.columns.at, .rows_at = d.rows.at, .images = dft2_images(problem),
        .height = a->height, .width = a->width, .rows = a->rows, .columns = a->columns, .first = a->first,
        .half_rows = dft2_half_rows(a), .scale = (double)a->scale, .each = d.each, .scratch_floats = d.scratch);
    launch_tasks(launch, (size_t)d.tasks, 1, 1);
    launch_work(launch, problem->node->operation->flops(problem),
        4 * (double)(value_elements(problem->inputs[0]) + value_elements(problem->outputs[0])));
}

const struct implementation dft2_products = {
    .name = "products",
    .fits = fits,
    .layouts = layouts,
    .workspace = workspace,
    .prepared = prepared,
    .emit_prepare = emit_prepare,
    .emit = emit,
};
