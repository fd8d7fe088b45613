/* The implementations of dft, best first. */
#include "layers/dft/dft_kernels.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "layers/dft/arguments/dft.h"
#include "layers/dft/dft_radix.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

enum { MOST_RADIX = 31 }; /* of a pass; lengths with larger factors take Bluestein's algorithm */

static int largest_factor(int length)
{
    int largest = 1;
    for (int radix; length > 1; length /= radix) {
        radix = dft_radix(length);
        if (radix > largest) largest = radix;
    }
    return largest;
}

/* Returns the least size from `least` on that has the factors 2, 3 and 5 alone. */
static int size_with_small_factors(int least)
{
    while (largest_factor(least) > 8 || least % 7 == 0) least++;
    return least;
}

bool dft_has_passes(int length)
{
    return largest_factor(length) <= MOST_RADIX;
}

struct dft_plan dft_plan_of(const struct problem *problem)
{
    const struct dft_sizes sizes = dft_sizes_of(problem);
    struct dft_plan plan = { .sizes = sizes, .transforms = sizes.outer * sizes.inner, .size = sizes.length };
    plan.chirp = !dft_has_passes(sizes.length);
    if (plan.chirp) plan.size = size_with_small_factors(2 * sizes.length - 1);
    for (int rest = plan.size; rest > 1; rest /= dft_radix(rest)) plan.passes++;
    return plan;
}

const char *dft_build_options(const struct problem *problem, bool chirp, char options[DFT_OPTIONS])
{
    const struct dft_attributes *a = dft_attributes(problem->node);
    options[0] = '\0';
    number_append(
        options, DFT_OPTIONS, "-DFORM=%d -DINVERSE=%d -DDOUBLED=%d -DCHIRP=%d", a->form, a->inverse, a->doubled, chirp);
    return options;
}

void dft_work(const struct problem *problem, struct launch *launch)
{
    const double in = (double)value_elements(problem->inputs[0]), out = (double)value_elements(problem->outputs[0]);
    launch_work(launch, operation_dft.flops(problem), 4 * (in + out));
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

ARGUMENTS(pass, DFT_PASS_ARGUMENTS)

/* Offsets in a buffer, in float2: of the transforms' elements, and of free space of the same size. */
struct halves {
    cl_mem buffer;
    int64_t at, other;
};

/* Appends the passes of transforms of `elements` in all. An odd number of passes leaves the results in the other
 * half. */
static void emit_passes(const struct dft_plan *plan, struct halves *halves, int64_t elements, cl_mem table,
    const char *options, struct launch_list *list)
{
    int stride = 1;
    for (int rest = plan->size; rest > 1;) {
        const int radix = dft_radix(rest);
        struct launch *launch = launch_add(list, "dft_plain", "dft_pass", "%s", options);
        ARGUMENTS_SET(launch, pass, .a = halves->buffer, .a_from = halves->at, .b = halves->buffer,
            .b_from = halves->other, .table = table, .size = plan->size, .radix = radix, .stride = stride,
            .elements = elements);
        items_launch(launch, &list->device->can, 64, elements, 0);
        launch_work(launch, 0, 16 * (double)elements);
        const int64_t at = halves->at;
        halves->at = halves->other;
        halves->other = at;
        stride *= radix;
        rest /= radix;
    }
}

int64_t dft_filter_at(const struct dft_plan *plan)
{
    return (int64_t)plan->size + plan->sizes.length + (plan->passes % 2 ? plan->size : 0);
}

static size_t table_bytes(const struct dft_plan *plan)
{
    const size_t size = (size_t)plan->size, after = plan->chirp ? (size_t)plan->sizes.length + 2 * size : 0;
    return (size + after) * 2 * sizeof(float);
}

static void emit_table(const struct dft_plan *plan, cl_mem table, struct launch_list *list)
{
    static const char options[] = "-DFORM=0 -DINVERSE=0 -DDOUBLED=0 -DCHIRP=1";
    struct launch *launch = launch_add(list, "dft_plain", "dft_table", "%s", options);
    launch_buffer(launch, table);
    LAUNCH_INTS(launch, plan->size, plan->chirp ? plan->sizes.length : 0);
    items_launch(launch, &list->device->can, 64, plan->size, 0);
    launch_work(launch, 0, (double)table_bytes(plan));
    if (!plan->chirp) return;
    const int64_t after = (int64_t)plan->size + plan->sizes.length;
    struct halves halves = { table, after, after + plan->size };
    emit_passes(plan, &halves, plan->size, table, options, list);
}

size_t dft_prepared(const struct problem *problem)
{
    const struct dft_plan plan = dft_plan_of(problem);
    return table_bytes(&plan);
}

void dft_emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct dft_plan plan = dft_plan_of(problem);
    emit_table(&plan, operands->prepared, list);
}

/* ------------------------------------------------------------------------------------------------------- few ---- */

struct dft_plan dft_plan_of_few(const struct problem *problem)
{
    struct dft_plan plan = dft_plan_of(problem);
    plan.chirp = false;
    plan.size = plan.sizes.length;
    return plan;
}

/* Compares costs in vector instructions for each element, roughly. */
bool dft_is_few(const struct problem *problem)
{
    const struct dft_plan plan = dft_plan_of(problem);
    double passes = 8;
    for (int rest = plan.size; rest > 1; rest /= dft_radix(rest))
        passes += dft_radix(rest) > 8 || dft_radix(rest) == 7 ? 4 * dft_radix(rest) : 6;
    if (plan.chirp) passes *= 2;
    return 3.0 * plan.sizes.in * plan.sizes.out <= passes * plan.size;
}

size_t dft_prepared_few(const struct problem *problem)
{
    const struct dft_plan plan = dft_plan_of_few(problem);
    return table_bytes(&plan);
}

void dft_emit_prepare_few(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct dft_plan plan = dft_plan_of_few(problem);
    emit_table(&plan, operands->prepared, list);
}

/* ----------------------------------------------------------------------------------------------------- plain ---- */

enum { PLAIN_ELEMENTS = 1 << 22 }; /* of the transforms that are computed at a time */

ARGUMENTS(read, DFT_READ_ARGUMENTS)
ARGUMENTS(write, DFT_WRITE_ARGUMENTS)

/* Transforms that are computed at a time. */
static int64_t plain_count(const struct dft_plan *plan)
{
    const int64_t most = PLAIN_ELEMENTS / plan->size > 1 ? PLAIN_ELEMENTS / plan->size : 1;
    return plan->transforms < most ? plan->transforms : most;
}

static size_t workspace_plain(const struct problem *problem)
{
    const struct dft_plan plan = dft_plan_of(problem);
    return (size_t)plain_count(&plan) * (size_t)plan.size * 4 * sizeof(float);
}

static void emit_filter(const struct dft_plan *plan, const struct halves *halves, int64_t elements,
    const struct operands *operands, const char *options, struct launch_list *list)
{
    struct launch *launch = launch_add(list, "dft_plain", "dft_filter", "%s", options);
    LAUNCH_BUFFERS(launch, halves->buffer, operands->prepared);
    launch_long(launch, halves->at);
    launch_long(launch, dft_filter_at(plan));
    launch_int(launch, plan->size);
    launch_long(launch, elements);
    items_launch(launch, &list->device->can, 64, elements, 0);
    launch_work(launch, 0, 16 * (double)elements);
}

static void emit_plain(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    char options[DFT_OPTIONS];
    const struct dft_attributes *a = dft_attributes(problem->node);
    const struct dft_plan plan = dft_plan_of(problem);
    const int64_t most = plain_count(&plan), half = most * plan.size;
    dft_build_options(problem, plan.chirp, options);
    for (int64_t first = 0; first < plan.transforms; first += most) {
        const int64_t rest = plan.transforms - first, count = rest < most ? rest : most, elements = count * plan.size;
        struct halves halves = { operands->workspace, 0, half };
        struct launch *launch = launch_add(list, "dft_plain", "dft_read", "%s", options);
        ARGUMENTS_SET(launch, read, .x = operands->inputs[0], .a = operands->workspace,
            DFT_SIZES_VALUES(&plan, a, operands->prepared), .first = first, .count = count);
        items_launch(launch, &list->device->can, 64, elements, 0);
        dft_work(problem, launch);
        emit_passes(&plan, &halves, elements, operands->prepared, options, list);
        if (plan.chirp) {
            emit_filter(&plan, &halves, elements, operands, options, list);
            emit_passes(&plan, &halves, elements, operands->prepared, options, list);
        }
        launch = launch_add(list, "dft_plain", "dft_write", "%s", options);
        ARGUMENTS_SET(launch, write, .a = operands->workspace, .a_from = halves.at, .y = operands->outputs[0],
            DFT_SIZES_VALUES(&plan, a, operands->prepared), .first = first, .count = count);
        items_launch(launch, &list->device->can, 64, count * plan.sizes.out, 0);
        launch_work(launch, 0, 16 * (double)(count * plan.sizes.out));
    }
}

const struct implementation dft_plain = {
    .name = "plain",
    .workspace = workspace_plain,
    .prepared = dft_prepared,
    .emit_prepare = dft_emit_prepare,
    .emit = emit_plain,
};
const struct implementation *const dft_implementations[] = { &dft_few, &dft_columns, &dft_few_groups, &dft_groups,
    &dft_library, &dft_plain, NULL };
