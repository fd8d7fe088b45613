#include "layers/loop.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "layers/elementwise.h"
#include "runtime/source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void loop_begin(struct loop *loop, const struct value *over)
{
    *loop = (struct loop) { .rank = over->shape.rank, .scale = 1 };
    memcpy(loop->sizes, over->shape.sizes, sizeof loop->sizes);
    loop->out = loop_operand(over, &over->shape, over->batched);
}

struct loop_operand loop_operand(const struct value *value, const tutti_shape *shape, bool batched)
{
    struct loop_operand operand = { .type = TYPE_F32 };
    int64_t stride = 1;
    for (int i = value->shape.rank - 1; i >= 0; i--) {
        const bool batch = value->batched && i == 0;
        const int axis = batch && batched ? 0 : shape->rank - value->shape.rank + i;
        operand.strides[axis] = value->shape.sizes[i] == 1 ? 0 : stride;
        stride *= value->shape.sizes[i];
    }
    return operand;
}

int loop_add_operand(struct loop *loop, const struct problem *problem, int input)
{
    const tutti_shape shape = { .rank = loop->rank };
    loop->operands[loop->operand_count] = loop_operand(problem->inputs[input], &shape, problem->outputs[0]->batched);
    loop->operands[loop->operand_count].input = input;
    return loop->operand_count++;
}

struct loop_step *loop_add_step(struct loop *loop, const struct expression *expression, float low, float high)
{
    struct loop_step *step = &loop->steps[loop->step_count++];
    *step = (struct loop_step) { .expression = expression, .low = low, .high = high };
    for (int i = 0; i < POINTWISE_VARIABLES; i++) step->variables[i] = LOOP_UNUSED;
    return step;
}

int loop_result(const struct loop *loop)
{
    return loop->step_count ? LOOP_STEP + loop->step_count - 1 : 0;
}

void loop_add_epilogue(struct loop *loop, const struct epilogue *epilogue)
{
    if (epilogue->add != NO_VALUE) {
        const int last = loop_result(loop);
        struct loop_step *step = loop_add_step(loop, &operation_add.pointwise->y, 0, 0);
        step->variables[VARIABLE_A] = last;
        step->variables[VARIABLE_B] = loop->operand_count;
        loop->operands[loop->operand_count] = loop->out;
        loop->operands[loop->operand_count++].input = LOOP_ADDED;
    }
    if (epilogue->activation) {
        const int last = loop_result(loop);
        loop_add_step(loop, &activations[epilogue->activation].y, epilogue->low, epilogue->high)
            ->variables[VARIABLE_A] = last;
    }
}

bool loop_of(const struct problem *problem, struct loop *loop)
{
    if (!problem->node->operation->loop) return false;
    problem->node->operation->loop(problem, loop);
    if (!loop->join) loop_add_epilogue(loop, &problem->node->epilogue);
    return true;
}

/* ---------------------------------------------------------------------------------------------------- design ---- */

static bool is_joined(const struct loop *loop, int axis)
{
    return loop->joined >> axis & 1;
}

/* Whether `axis` and the next one are one axis of all operands. */
static bool can_merge(const struct loop *loop, int axis)
{
    if (is_joined(loop, axis) != is_joined(loop, axis + 1)) return false;
    for (int i = 0; i <= loop->operand_count; i++) {
        const struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        if (o->strides[axis] != o->strides[axis + 1] * loop->sizes[axis + 1]) return false;
    }
    return true;
}

/* Drops an axis, whose strides go with it. */
static void drop_axis(struct loop *loop, int axis)
{
    const unsigned below = loop->joined & ((1u << axis) - 1);
    loop->joined = below | (loop->joined >> (axis + 1) << axis);
    loop->rank--;
    for (int k = axis; k < loop->rank; k++) loop->sizes[k] = loop->sizes[k + 1];
    for (int i = 0; i <= loop->operand_count; i++) {
        struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        for (int k = axis; k < loop->rank; k++) o->strides[k] = o->strides[k + 1];
    }
}

/* As few axes as say the same; at least one. */
static void simplify(struct loop *loop)
{
    for (int axis = loop->rank - 1; axis >= 0; axis--)
        if (loop->sizes[axis] == 1 && loop->rank > 1) drop_axis(loop, axis);
    for (int axis = loop->rank - 2; axis >= 0; axis--) {
        if (!can_merge(loop, axis)) continue;
        loop->sizes[axis + 1] *= loop->sizes[axis];
        drop_axis(loop, axis);
    }
    if (loop->rank == 1 && loop->sizes[0] == 1 && loop->join) loop->joined = 1;
}

/* How a loop is divided. Its axes are those that are kept and those that are joined, each in their order; the innermost
 * axis of all is the one along which CPU-class devices have vectors. */
struct division {
    int64_t kept, joined;       /* elements of all axes of a kind */
    int64_t rows, width, count; /* kept elements without the innermost axis; that axis; joined elements without it */
    bool inner_joined;
    int64_t parts;       /* of the joined axes, which a second launch joins */
    int64_t each, piece; /* CPU class: rows and elements of the innermost axis of a task */
    size_t group;        /* GPU class */
};

enum { GROUP = 64, VECTORS = 4 };

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}
static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* A CPU's tasks: pieces of rows, then rows, then parts of what is joined, until there are enough of them. */
static void divide_for_cpu(struct division *d, const struct capabilities *device)
{
    const int64_t n = d->kept * d->joined, unit = (int64_t)VECTORS * device->vector_width;
    const int64_t task = elementwise_task_floats(device, n), tasks = divide_up(n, task);
    if (d->inner_joined) {
        d->piece = d->width;
        d->each = at_least(task / (d->joined ? d->joined : 1), 1);
    } else {
        const int64_t of_kept = at_least(task / d->joined, 1);
        d->piece = at_most(d->width, (int64_t)size_round_up((size_t)of_kept, (size_t)unit));
        d->each = at_least(of_kept / d->piece, 1);
    }
    d->each = at_most(d->each, d->rows);
    const int64_t have = divide_up(d->rows, d->each) * divide_up(d->width, d->piece);
    if (d->joined > 1 && !(d->inner_joined && d->count < 2))
        d->parts = at_least(at_most(tasks / have, d->count / 8), 1);
}

/* A GPU's: a group for each number that is made where neighbours are joined, else a work-item. */
static void divide_for_gpu(struct division *d, const struct capabilities *device)
{
    enum { ENOUGH_ITEMS = 16384, LEAST = 32 };
    d->group = group_size(device, d->inner_joined && d->joined > 4 * GROUP ? 4 * GROUP : GROUP);
    const int64_t items = d->kept * (d->inner_joined ? (int64_t)d->group : 1);
    const int64_t least = LEAST * (d->inner_joined ? (int64_t)d->group : 1);
    if (d->joined > 1) d->parts = at_least(at_most(ENOUGH_ITEMS / items, d->joined / least), 1);
}

/* Of a loop that was simplified. */
static struct division divide(const struct loop *loop, const struct capabilities *device)
{
    struct division d = { .kept = 1, .joined = 1, .parts = 1, .width = loop->sizes[loop->rank - 1] };
    for (int axis = 0; axis < loop->rank; axis++) *(is_joined(loop, axis) ? &d.joined : &d.kept) *= loop->sizes[axis];
    d.inner_joined = is_joined(loop, loop->rank - 1);
    d.rows = d.inner_joined ? d.kept : d.kept / d.width;
    d.count = d.inner_joined ? d.joined / d.width : d.joined;
    if (device->class == DEVICE_CPU)
        divide_for_cpu(&d, device);
    else
        divide_for_gpu(&d, device);
    return d;
}

size_t loop_workspace(const struct loop *given, const struct capabilities *device)
{
    struct loop loop = *given;
    simplify(&loop);
    const struct division d = divide(&loop, device);
    return d.parts > 1 ? (size_t)d.parts * (size_t)d.kept * sizeof(float) : 0;
}

/* ------------------------------------------------------------------------------------------------------ text ---- */

static const char *type_name(enum value_type type)
{
    return type == TYPE_BF16 ? "bf16" : "float";
}

static void print_number(struct text *text, const char *name, float value)
{
    char number[48];
    if (isinf(value))
        snprintf(number, sizeof number, "%sINFINITY", value < 0 ? "-" : "");
    else
        number_print(number, sizeof number, "%.9ef", (double)value);
    text_append(text, "    const float %s = %s;\n", name, number);
}

/* "T vector_element(T v0, T v1)": an element of what the operands have there. */
static void print_element(struct text *text, const struct loop *loop, const char *math, const char *type)
{
    static const char *const names[POINTWISE_VARIABLES] = { "g", "a", "b", "c", "y" };
    text_append(text, "#define MATH %s\n#define T %s\nINLINE T %s_element(", math, type, math);
    for (int i = 0; i < loop->operand_count; i++) text_append(text, "%sT v%d", i ? ", " : "", i);
    text_append(text, ")\n{\n");
    for (int s = 0; s < loop->step_count; s++) {
        const struct loop_step *step = &loop->steps[s];
        text_append(text, "    T v%d;\n    {\n", LOOP_STEP + s);
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (step->variables[i] != LOOP_UNUSED)
                text_append(text, "    const T %s = v%d;\n", names[i], step->variables[i]);
        print_number(text, "low", step->low);
        print_number(text, "high", step->high);
        text_append(text, "    v%d = %s;\n    }\n", LOOP_STEP + s, step->expression->text);
    }
    text_append(
        text, "    return v%d;\n}\n#undef MATH\n#undef T\n", loop->step_count ? LOOP_STEP + loop->step_count - 1 : 0);
}

/* Declares x<axis> for the axes of a kind, outer ones first, from the position `from` among their elements. `skip`: the
 * innermost axis of all is not counted. */
static void print_coordinates(struct text *text, const struct loop *loop, bool joined, bool skip, const char *from)
{
    const int last = skip ? loop->rank - 2 : loop->rank - 1;
    int outermost = 0;
    while (outermost <= last && is_joined(loop, outermost) != joined) outermost++;
    if (outermost > last) return;
    text_append(text, "    INDEX r%d = %s;\n", joined, from);
    for (int axis = last; axis > outermost; axis--) {
        if (is_joined(loop, axis) != joined) continue;
        text_append(text, "    const INDEX x%d = r%d %% %" PRId64 ";\n    r%d /= %" PRId64 ";\n", axis, joined,
            loop->sizes[axis], joined, loop->sizes[axis]);
    }
    text_append(text, "    const INDEX x%d = r%d;\n", outermost, joined);
}

/* " + x0 * 12 + x1" for the axes of a kind. */
static void print_place(
    struct text *text, const struct loop *loop, const struct loop_operand *o, bool joined, bool skip)
{
    for (int axis = 0; axis < loop->rank - skip; axis++)
        if (is_joined(loop, axis) == joined && o->strides[axis] != 0)
            text_append(text, " + x%d * %" PRId64, axis, o->strides[axis]);
}

static void print_parameters(struct text *text, const struct loop *loop)
{
    for (int i = 0; i < loop->operand_count; i++)
        text_append(text, "global const element_%s *p%d, ", type_name(loop->operands[i].type), i);
    text_append(text, "global element_%s *out, ", type_name(loop->out.type));
}

/* "scalar_element(GET(float, q0 + i), ...)": the operands at `i` along the innermost axis. */
static void print_call(struct text *text, const struct loop *loop, bool vector, const char *pointer, const char *at)
{
    text_append(text, "%s_element(", vector ? "vector" : "scalar");
    for (int k = 0; k < loop->operand_count; k++) {
        const struct loop_operand *o = &loop->operands[k];
        const int64_t stride = o->strides[loop->rank - 1];
        const char *type = type_name(o->type);
        text_append(text, "%s", k ? ", " : "");
        if (stride == 0)
            text_append(text, vector ? "(VF)(GET(%s, %s%d))" : "GET(%s, %s%d)", type, pointer, k);
        else if (vector)
            text_append(text, "GET_VECTOR(%s, %s%d + %s)", type, pointer, k, at);
        else
            text_append(text, "GET(%s, %s%d + (%s) * %" PRId64 ")", type, pointer, k, at, stride);
    }
    text_append(text, ")");
}

static bool has_vectors(const struct loop *loop)
{
    const int inner = loop->rank - 1;
    for (int i = 0; i < loop->operand_count; i++)
        if (loop->operands[i].strides[inner] > 1 || loop->operands[i].strides[inner] < 0) return false;
    return is_joined(loop, inner) || loop->out.strides[inner] == 1;
}

/* Pointers to the operands at x<axis> of a kind: from those named `from`. */
static void print_pointers(
    struct text *text, const struct loop *loop, const char *from, const char *to, bool joined, bool skip, bool offset)
{
    for (int i = 0; i < loop->operand_count; i++) {
        const struct loop_operand *o = &loop->operands[i];
        text_append(text, "    global const element_%s *%s%d = %s%d", type_name(o->type), to, i, from, i);
        if (offset && o->offset) text_append(text, " + %" PRId64, o->offset);
        print_place(text, loop, o, joined, skip);
        text_append(text, ";\n");
    }
}

/* Elements one by one. */
static void print_cpu_elements(struct text *text, const struct loop *loop)
{
    const char *type = type_name(loop->out.type);
    if (has_vectors(loop)) {
        text_append(
            text, "    for (; i + V <= end; i += V) %s(%s, ", loop->rank == 1 ? "PUT_STREAM" : "PUT_VECTOR", type);
        print_call(text, loop, true, "q", "i");
        text_append(text, ", to + i);\n");
    }
    text_append(text, "    for (; i < end; i++) PUT(%s, ", type);
    print_call(text, loop, false, "q", "i");
    text_append(text, ", to + i * %" PRId64 ");\n", loop->out.strides[loop->rank - 1]);
}

/* Numbers side by side, each the join of a column: `vectors` vectors of them at a time; 0: one number. */
static void print_cpu_columns(struct text *text, const struct loop *loop, int vectors)
{
    const char *type = vectors ? "VF" : "float", *math = vectors ? "vector" : "scalar";
    char step[32] = "1", at[48];
    if (vectors) snprintf(step, sizeof step, "%d * V", vectors);
    text_append(text, "    for (; i + %s <= end; i += %s) {\n", step, step);
    for (int v = 0; v < (vectors ? vectors : 1); v++) text_append(text, "    %s s%d = (%s)(START);\n", type, v, type);
    text_append(text, "    for (INDEX k = from; k < until; k++) {\n");
    print_coordinates(text, loop, true, true, "k");
    print_pointers(text, loop, "q", "j", true, true, false);
    for (int v = 0; v < (vectors ? vectors : 1); v++) {
        snprintf(at, sizeof at, vectors ? "i + %d * V" : "i", v);
        text_append(text, "    s%d = %s_join(s%d, ", v, math, v);
        print_call(text, loop, vectors > 0, "j", at);
        text_append(text, ");\n");
    }
    text_append(text, "    }\n");
    for (int v = 0; v < (vectors ? vectors : 1); v++) {
        snprintf(at, sizeof at, vectors ? "i + %d * V" : "i", v);
        if (vectors)
            text_append(text, "    PUT_VECTOR(%s, s%d * scale, to + %s);\n", type_name(loop->out.type), v, at);
        else
            text_append(text, "    PUT(%s, s%d * scale, to + i * %" PRId64 ");\n", type_name(loop->out.type), v,
                loop->out.strides[loop->rank - 1]);
    }
    text_append(text, "    }\n");
}

/* One number, the join of rows. */
static void print_cpu_rows(struct text *text, const struct loop *loop)
{
    const bool vectors = has_vectors(loop);
    if (vectors) text_append(text, "    VF sums = (VF)(START);\n");
    text_append(text, "    float sum = START;\n    for (INDEX k = from; k < until; k++) {\n");
    print_coordinates(text, loop, true, true, "k");
    print_pointers(text, loop, "q", "j", true, true, false);
    text_append(text, "    INDEX i = 0;\n");
    if (vectors) {
        text_append(text, "    for (; i + V <= width; i += V) sums = vector_join(sums, ");
        print_call(text, loop, true, "j", "i");
        text_append(text, ");\n");
    }
    text_append(text, "    for (; i < width; i++) sum = scalar_join(sum, ");
    print_call(text, loop, false, "j", "i");
    text_append(text, ");\n    }\n");
    if (vectors)
        text_append(text, "    for (int i = 0; i < V; i++) sum = scalar_join(sum, ((const float *)&sums)[i]);\n");
    text_append(text, "    PUT(%s, sum * scale, to);\n", type_name(loop->out.type));
}

/* get_group_id(0): a piece of the innermost axis, (1): some rows, (2): a part of what is joined. */
static void print_cpu_kernel(struct text *text, const struct loop *loop)
{
    const bool inner_joined = is_joined(loop, loop->rank - 1);
    text_append(text, "TASK void run(");
    print_parameters(text, loop);
    text_append(text,
        "long rows, long each, long width, long piece, long count, long part, long made, float scale)\n{\n"
        "    const INDEX first = (INDEX)get_group_id(1) * each, last = min(first + (INDEX)each, (INDEX)rows);\n"
        "    const INDEX begin = (INDEX)get_group_id(0) * piece, end = min(begin + (INDEX)piece, (INDEX)width);\n"
        "    const INDEX from = (INDEX)get_group_id(2) * part, until = min(from + (INDEX)part, (INDEX)count);\n"
        "    out += (size_t)get_group_id(2) * made;\n"
        "    for (INDEX row = first; row < last; row++) {\n");
    print_coordinates(text, loop, false, !inner_joined, "row");
    print_pointers(text, loop, "p", "q", false, !inner_joined, true);
    text_append(text, "    global element_%s *to = out + %" PRId64, type_name(loop->out.type), loop->out.offset);
    print_place(text, loop, &loop->out, false, !inner_joined);
    text_append(text, ";\n    INDEX i = begin;\n");
    if (!loop->join) {
        print_cpu_elements(text, loop);
    } else if (inner_joined) {
        print_cpu_rows(text, loop);
    } else {
        if (has_vectors(loop)) print_cpu_columns(text, loop, VECTORS);
        if (has_vectors(loop)) print_cpu_columns(text, loop, 1);
        print_cpu_columns(text, loop, 0);
    }
    text_append(text, "    }\n}\n");
}

/* A work-item, or where neighbours are joined a group, for each number that is made. get_global_id(1): a part. */
static void print_gpu_kernel(struct text *text, const struct loop *loop)
{
    const bool groups = is_joined(loop, loop->rank - 1);
    if (groups)
        text_append(text,
            "static float group_joined(float value, local float *scratch)\n{\n"
            "    GROUP_JOIN(value, scratch, scalar_join)\n}\n"
            "__attribute__((reqd_work_group_size(GROUP, 1, 1))) ");
    text_append(text, "kernel void run(");
    print_parameters(text, loop);
    text_append(text, "long n, long count, long part, float scale)\n{\n");
    if (groups) text_append(text, "    local float scratch[GROUP];\n");
    text_append(text, "    const INDEX at = %s;\n    if (at >= (INDEX)n) return;\n",
        groups ? "get_group_id(0)" : "get_global_id(0)");
    print_coordinates(text, loop, false, false, "at");
    print_pointers(text, loop, "p", "q", false, false, true);
    text_append(text, "    out += (size_t)get_group_id(1) * n + %" PRId64, loop->out.offset);
    print_place(text, loop, &loop->out, false, false);
    text_append(text, ";\n");
    if (loop->join) {
        text_append(text,
            "    const INDEX from = (INDEX)get_group_id(1) * part, until = min(from + (INDEX)part, (INDEX)count);\n"
            "    float sum = START;\n    for (INDEX k = from%s; k < until; k += %s) {\n",
            groups ? " + (INDEX)get_local_id(0)" : "", groups ? "GROUP" : "1");
        print_coordinates(text, loop, true, false, "k");
        print_pointers(text, loop, "q", "j", true, false, false);
        text_append(text, "    sum = scalar_join(sum, ");
    } else {
        text_append(text, "    PUT(%s, ", type_name(loop->out.type));
    }
    /* The innermost axis is in the pointers. */
    text_append(text, "scalar_element(");
    for (int k = 0; k < loop->operand_count; k++)
        text_append(
            text, "%sGET(%s, %s%d)", k ? ", " : "", type_name(loop->operands[k].type), loop->join ? "j" : "q", k);
    if (!loop->join)
        text_append(text, "), out);\n}\n");
    else if (groups)
        text_append(text,
            "));\n    }\n    sum = group_joined(sum, scratch);\n"
            "    if (get_local_id(0) == 0) PUT(%s, sum * scale, out);\n}\n",
            type_name(loop->out.type));
    else
        text_append(text, "));\n    }\n    PUT(%s, sum * scale, out);\n}\n", type_name(loop->out.type));
}

static const char *make_source(const struct loop *loop, const struct capabilities *device)
{
    struct text text = { 0 };
    const bool cpu = device->class == DEVICE_CPU;
    if (loop->join == JOIN_SUM) text_append(&text, "#define START 0.0f\n#define JOIN(x, y) ((x) + (y))\n");
    if (loop->join == JOIN_MAX) text_append(&text, "#define START -INFINITY\n#define JOIN(x, y) larger(x, y)\n");
    for (int vector = 0; vector <= cpu; vector++) {
        const char *math = vector ? "vector" : "scalar", *type = vector ? "VF" : "float";
        print_element(&text, loop, math, type);
        if (loop->join)
            text_append(&text, "#define T %s\nINLINE T %s_join(T x, T y)\n{\n    return JOIN(x, y);\n}\n#undef T\n",
                type, math);
    }
    if (cpu)
        print_cpu_kernel(&text, loop);
    else
        print_gpu_kernel(&text, loop);
    const char *name = text.failed ? NULL : source_make("generated", text.data);
    text_free(&text);
    return name;
}

/* -------------------------------------------------------------------------------------------------- launches ---- */

/* The operand has the kept axes, one behind another, and nothing else. */
static void set_kept_strides(const struct loop *loop, struct loop_operand *operand)
{
    int64_t stride = 1;
    for (int i = loop->rank - 1; i >= 0; i--) {
        operand->strides[i] = is_joined(loop, i) ? 0 : stride;
        if (!is_joined(loop, i)) stride *= loop->sizes[i];
    }
}

/* The loop that joins what the parts gave: the parts, then the kept axes. */
static struct loop finish_of(const struct loop *loop, const struct division *d, cl_mem workspace)
{
    struct loop finish = { .rank = 1,
        .sizes = { d->parts },
        .operand_count = 1,
        .operands = { { .buffer = workspace } },
        .out = { .buffer = loop->out.buffer, .type = loop->out.type, .offset = loop->out.offset },
        .join = loop->join,
        .joined = 1,
        .scale = loop->scale };
    finish.operands[0].strides[0] = d->kept;
    for (int i = 0; i < loop->rank; i++) {
        if (is_joined(loop, i)) continue;
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

/* Whether every place fits a 32-bit number. */
static bool is_short(const struct loop *loop)
{
    int64_t most = 1;
    for (int i = 0; i < loop->rank; i++) most *= loop->sizes[i];
    for (int i = 0; i <= loop->operand_count; i++) {
        const struct loop_operand *o = i < loop->operand_count ? &loop->operands[i] : &loop->out;
        int64_t end = o->offset + 1;
        for (int k = 0; k < loop->rank; k++) end += o->strides[k] * (loop->sizes[k] - 1);
        most = at_least(most, end);
    }
    return most < (int64_t)1 << 30;
}

static void set_arguments(
    struct launch *launch, const struct loop *loop, const struct division *d, const struct capabilities *device)
{
    const int64_t part = divide_up(device->class == DEVICE_CPU ? d->count : d->joined, d->parts);
    const double scale = d->parts > 1 || !loop->join ? 1 : loop->scale;
    if (device->class == DEVICE_CPU) {
        launch_long(launch, d->rows);
        launch_long(launch, d->each);
        launch_long(launch, d->width);
        launch_long(launch, d->piece);
        launch_long(launch, d->count);
        launch_long(launch, part);
        launch_long(launch, d->kept);
        launch_float(launch, scale);
        launch_tasks(
            launch, (size_t)divide_up(d->width, d->piece), (size_t)divide_up(d->rows, d->each), (size_t)d->parts);
        return;
    }
    launch_long(launch, d->kept);
    launch_long(launch, d->joined);
    launch_long(launch, part);
    launch_float(launch, scale);
    const size_t items = d->inner_joined ? (size_t)d->kept * d->group : size_round_up((size_t)d->kept, d->group);
    launch_grid(launch, 2, items, (size_t)d->parts, 1, d->group, 1, 1);
}

/* Bytes that the operands have. */
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

void loop_emit(struct loop *loop, cl_mem workspace, struct launch_list *list)
{
    const struct capabilities *device = &list->device->can;
    simplify(loop);
    const struct division d = divide(loop, device);
    const struct loop finish = finish_of(loop, &d, workspace);
    if (d.parts > 1) {
        loop->out = (struct loop_operand) { .buffer = workspace };
        set_kept_strides(loop, &loop->out);
    }
    const char *source = make_source(loop, device);
    if (!source) {
        if (list->status == TUTTI_OK) list->status = TUTTI_NO_MEMORY;
        return;
    }
    const bool stream = loop->rank == 1 && !loop->join && loop->out.offset == 0 &&
        (size_t)d.kept * value_type_bytes(loop->out.type) > STREAM_BYTES;
    struct launch *launch = launch_add(list, source, "run", "-cl-single-precision-constant -DINDEX=%s%s -DGROUP=%zu",
        is_short(loop) ? "uint" : "long", stream ? " -DSTREAM" : "", d.group ? d.group : 1);
    for (int i = 0; i < loop->operand_count; i++) launch_buffer(launch, loop->operands[i].buffer);
    launch_buffer(launch, loop->out.buffer);
    set_arguments(launch, loop, &d, device);
    launch_work(launch, (double)loop->step_count * (double)d.kept * (double)d.joined, bytes_of(loop));
    if (d.parts > 1) {
        struct loop last = finish;
        loop_emit(&last, NULL, list);
    }
}

/* ---------------------------------------------------------------------------------------------------- nodes ---- */

/* Every operand, and the output, lies one after another in the loop's order. */
static bool is_flat(const struct loop *loop)
{
    if (loop->join || loop->out.offset) return false;
    for (int i = 0; i < loop->operand_count; i++)
        if (loop->operands[i].offset || memcmp(loop->operands[i].strides, loop->out.strides, sizeof loop->out.strides))
            return false;
    return true;
}

bool loop_is_flat(const struct problem *problem)
{
    struct loop loop;
    for (int i = 0; i < problem->node->input_count; i++) {
        const struct value *input = problem->inputs[i];
        if (input && (input->role == ROLE_PARAMETER || !shape_equal(input->shape, problem->outputs[0]->shape)))
            return false;
    }
    return loop_of(problem, &loop) && is_flat(&loop);
}

/* One axis, with what the layout pads. */
static void make_flat(const struct problem *problem, struct loop *loop)
{
    const struct value *y = problem->outputs[0];
    loop->rank = 1;
    loop->sizes[0] = (int64_t)(value_bytes(y, problem->device->vector_width) / value_type_bytes(y->type));
    for (int i = 0; i < loop->operand_count; i++) loop->operands[i].strides[0] = 1;
    loop->out.strides[0] = 1;
}

/* Whether channels of padding, which are 0, become 0. */
static bool keeps_zero(const struct loop *loop)
{
    double results[LOOP_STEP + LOOP_STEPS] = { 0 };
    for (int s = 0; s < loop->step_count; s++) {
        const struct loop_step *step = &loop->steps[s];
        double variables[POINTWISE_VARIABLES] = { 0 };
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (step->variables[i] != LOOP_UNUSED) variables[i] = results[step->variables[i]];
        results[LOOP_STEP + s] = step->expression->function(variables, (double)step->low, (double)step->high);
    }
    return results[loop_result(loop)] == 0;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    struct loop loop;
    loop_of(problem, &loop);
    for (int i = 0; i < loop.operand_count; i++) {
        struct loop_operand *operand = &loop.operands[i];
        const bool added = operand->input == LOOP_ADDED;
        operand->buffer = added ? operands->add : operands->inputs[operand->input];
        operand->type = (added ? problem->add : problem->inputs[operand->input])->type;
    }
    loop.out.buffer = operands->outputs[0];
    loop.out.type = problem->outputs[0]->type;
    const bool clear = problem->outputs[0]->layout == LAYOUT_BLOCKED && !keeps_zero(&loop);
    if (is_flat(&loop)) make_flat(problem, &loop);
    loop_emit(&loop, operands->workspace, list);
    if (clear) elementwise_clear_padding(list, problem->outputs[0], operands->outputs[0]);
}

static size_t workspace(const struct problem *problem)
{
    struct loop loop;
    return loop_of(problem, &loop) ? loop_workspace(&loop, problem->device) : 0;
}

static unsigned epilogues(const struct problem *problem)
{
    struct loop loop;
    problem->node->operation->loop(problem, &loop);
    const bool room = loop.operand_count < LOOP_OPERANDS && loop.step_count + 2 <= LOOP_STEPS;
    return loop.join || !room ? 0 : EPILOGUE_ACTIVATION | EPILOGUE_ADD;
}

/* Where every reader of an input's element writes to that element only. A copy has memory of its own: that is what it
 * is for. */
static bool in_place(const struct problem *problem, int input)
{
    struct loop loop;
    if (!loop_of(problem, &loop) || loop.join || problem->node->operation == &operation_copy) return false;
    for (int i = 0; i < loop.operand_count; i++) {
        const struct loop_operand *o = &loop.operands[i];
        if (o->input == input && (o->offset || memcmp(o->strides, loop.out.strides, sizeof o->strides))) return false;
    }
    return shape_equal(problem->inputs[input]->shape, problem->outputs[0]->shape);
}

static const struct implementation generated = {
    .name = "generated",
    .fits = fits_everything,
    .any_layout = IN_ANY_LAYOUT | WHERE_FLAT,
    .epilogues = epilogues,
    .workspace = workspace,
    .in_place = in_place,
    .emit = emit,
    .bf16_inputs = (1 << GRAPH_MAX_INPUTS) - 1,
    .bf16_outputs = 1,
};
const struct implementation *const loop_implementations[] = { &generated, NULL };

double loop_flops(const struct problem *problem)
{
    struct loop loop;
    double elements = 1;
    if (!loop_of(problem, &loop)) return 0;
    for (int i = 0; i < loop.rank; i++) elements *= (double)loop.sizes[i];
    return elements * (loop.join ? loop.step_count + 1 : loop.step_count);
}

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    bool batched = false;
    for (int i = 0; i < node->input_count; i++) batched |= graph_at(graph, node->inputs[i])->batched;
    const struct loop *loop = node->attributes.loop;
    outputs[0] = (struct value) {
        .type = TYPE_F32, .batched = batched && !(loop->join && loop->joined & 1), .shape = node->attributes.shape
    };
    node->output_count = 1;
    return TUTTI_OK;
}

static void copy_loop(const struct problem *problem, struct loop *loop)
{
    *loop = *problem->node->attributes.loop;
}

const struct operation operation_loop = {
    .name = "loop",
    .infer = infer,
    .loop = copy_loop,
    .implementations = loop_implementations,
    .flops = loop_flops,
};
