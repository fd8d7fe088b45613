/* Writes the OpenCL C of a loop's kernel. source_make() puts layers/loop/generated.cl before it.
 *
 * `reduced` selects the reduced axes, else the kept ones; `skip` omits the innermost axis. */
#include "layers/loop/loop.h"

#include "base/numbers.h"
#include "base/text.h"
#include "runtime/source.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *type_name(enum value_type type)
{
    static const char *const names[] = { "float", "i32", "u8", "bf16", "f16", "bf16", "bool" };
    return names[type];
}

static void print_number(struct text *text, float value)
{
    char number[48];
    if (isinf(value))
        snprintf(number, sizeof number, "%sINFINITY", value < 0 ? "-" : "");
    else
        number_print(number, sizeof number, "%.9ef", (double)value);
    text_append(text, "%s", number);
}

static void print_attribute(struct text *text, const char *name, float value)
{
    text_append(text, "    const float %s = ", name);
    print_number(text, value);
    text_append(text, ";\n");
}

/* "T vector_element(T v0, T v1)": computes an element from the elements v0, v1, ... of the operands. */
static void print_element(struct text *text, const struct loop *loop, const char *math, const char *type)
{
    static const char *const names[POINTWISE_VARIABLES] = { "g", "a", "b", "c", "y" };
    text_append(text, "#define MATH %s\n#define T %s\nINLINE T %s_element(", math, type, math);
    for (int i = 0; i < loop->operand_count; i++) text_append(text, "%sT v%d", i ? ", " : "", i);
    text_append(text, ")\n{\n");
    for (int s = 0; s < loop->expression_count; s++) {
        const struct loop_expression *expression = &loop->expressions[s];
        text_append(text, "    T v%d;\n    {\n", LOOP_EXPRESSION + s);
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (expression->variables[i] != LOOP_UNUSED)
                text_append(text, "    const T %s = v%d;\n", names[i], expression->variables[i]);
        print_attribute(text, "low", expression->low);
        print_attribute(text, "high", expression->high);
        text_append(text, "    v%d = %s;\n    }\n", LOOP_EXPRESSION + s, expression->formula->text);
    }
    text_append(text, "    return v%d;\n}\n#undef MATH\n#undef T\n", loop_result(loop));
}

/* Declares the coordinates x<axis> of the element number `from`. */
static void print_coordinates(struct text *text, const struct loop *loop, bool reduced, bool skip, const char *from)
{
    const int last = skip ? loop->rank - 2 : loop->rank - 1;
    int outermost = 0;
    while (outermost <= last && loop_reduces(loop, outermost) != reduced) outermost++;
    if (outermost > last) return;
    text_append(text, "    INDEX r%d = %s;\n", reduced, from);
    for (int axis = last; axis > outermost; axis--) {
        if (loop_reduces(loop, axis) != reduced) continue;
        text_append(text, "    const INDEX x%d = r%d %% %" PRId64 ";\n    r%d /= %" PRId64 ";\n", axis, reduced,
            loop->sizes[axis], reduced, loop->sizes[axis]);
    }
    text_append(text, "    const INDEX x%d = r%d;\n", outermost, reduced);
}

/* Indices are unsigned, so negative strides are subtracted from the pointer. */
static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* " + x0 * 12 - x1": the position of the element. */
static void print_place(
    struct text *text, const struct loop *loop, const struct loop_operand *o, bool reduced, bool skip)
{
    for (int axis = 0; axis < loop->rank - skip; axis++)
        if (loop_reduces(loop, axis) == reduced && o->strides[axis] != 0)
            text_append(
                text, " %c x%d * %" PRId64, o->strides[axis] < 0 ? '-' : '+', axis, magnitude(o->strides[axis]));
}

static void print_parameters(struct text *text, const struct loop_arguments *arguments)
{
    text_append(text, "void run(");
    for (int i = 0; i < arguments->count; i++) {
        const struct loop_argument *a = &arguments->list[i];
        text_append(text, "%s", i ? ", " : "");
        switch (a->kind) {
        case LOOP_READ: text_append(text, "global const element_%s *%s", type_name(a->operand->type), a->name); break;
        case LOOP_WRITTEN: text_append(text, "global element_%s *%s", type_name(a->operand->type), a->name); break;
        case LOOP_LONG: text_append(text, "long %s", a->name); break;
        case LOOP_FLOAT: text_append(text, "float %s", a->name); break;
        }
    }
    text_append(text, ")\n{\n");
}

/* " && x >= 3 && x < 7" where the operand is guarded along the axis. */
static void print_guard(struct text *text, const struct loop_operand *o, int axis, int64_t size, const char *x)
{
    if (!operand_is_guarded(o, axis)) return;
    if (o->low[axis] > 0) text_append(text, " && %s >= %" PRId64, x, o->low[axis]);
    if (o->high[axis] < size) text_append(text, " && %s < %" PRId64, x, o->high[axis]);
}

/* " + (at) * 3": `at` elements further along the innermost axis. */
static void print_inner(struct text *text, const struct loop *loop, const struct loop_operand *o, const char *at)
{
    const int64_t stride = at ? o->strides[loop->rank - 1] : 0;
    if (stride) text_append(text, " %c (%s) * %" PRId64, stride < 0 ? '-' : '+', at, magnitude(stride));
}

/* "*(p1 + 3)": the index; "(*(p1) + (*(p1) < 0 ? 7 : 0))" where negative ones count from the end. */
static void print_index(
    struct text *text, const struct loop *loop, const struct loop_operand *o, const char *pointer, const char *at)
{
    const struct loop_operand *index = &loop->operands[o->index];
    text_append(text, "%s*(%s%d", o->index_from_end ? "(" : "", pointer, o->index);
    print_inner(text, loop, index, at);
    text_append(text, ")");
    if (!o->index_from_end) return;
    text_append(text, " + (*(%s%d", pointer, o->index);
    print_inner(text, loop, index, at);
    text_append(text, ") < 0 ? %" PRId64 " : 0))", o->index_size);
}

static void print_indexed(
    struct text *text, const struct loop *loop, int k, bool vector, const char *pointer, const char *at)
{
    const struct loop_operand *o = &loop->operands[k];
    const bool vectors = vector && o->strides[loop->rank - 1] != 0;
    text_append(text, "%s(GATHER%s(%s, %s%d", vector && !vectors ? "(VF)" : "", vectors ? "_VECTOR" : "",
        type_name(o->type), pointer, k);
    print_inner(text, loop, o, at);
    text_append(text, ", ");
    print_index(text, loop, o, pointer, at);
    text_append(text, ", %" PRId64 ", %" PRId64 "))", o->index_size, o->index_stride);
}

/* The operand's element at its pointer, or `at` elements further along the innermost axis; `outside` where a guard says
 * so. */
static void print_operand(
    struct text *text, const struct loop *loop, int k, bool vector, const char *pointer, const char *at)
{
    const struct loop_operand *o = &loop->operands[k];
    const int inner = loop->rank - 1;
    const int64_t stride = at ? o->strides[inner] : 0;
    const char *type = type_name(o->type);
    if (o->guarded) {
        text_append(text, "(is_%s%d", pointer, k);
        if (at) print_guard(text, o, inner, loop->sizes[inner], at);
        text_append(text, " ? ");
    }
    if (o->indexed)
        print_indexed(text, loop, k, vector, pointer, at);
    else if (vector && stride == 0)
        text_append(text, "(VF)(GET(%s, %s%d))", type, pointer, k);
    else if (vector)
        text_append(text, "GET_VECTOR(%s, %s%d + %s)", type, pointer, k, at);
    else {
        text_append(text, "GET(%s, %s%d", type, pointer, k);
        print_inner(text, loop, o, at);
        text_append(text, ")");
    }
    if (o->guarded) {
        text_append(text, vector ? " : (VF)(" : " : (");
        print_number(text, o->outside);
        text_append(text, "))");
    }
}

/* "scalar_element(GET(float, q0 + i), ...)". `at` as for print_operand(); NULL: the pointers include it. */
static void print_call(struct text *text, const struct loop *loop, bool vector, const char *pointer, const char *at)
{
    text_append(text, "%s_element(", vector ? "vector" : "scalar");
    for (int k = 0; k < loop->operand_count; k++) {
        text_append(text, "%s", k ? ", " : "");
        print_operand(text, loop, k, vector, pointer, at);
    }
    text_append(text, ")");
}

bool loop_has_vectors(const struct loop *loop)
{
    const int inner = loop->rank - 1;
    for (int i = 0; i < loop->operand_count; i++) {
        const struct loop_operand *o = &loop->operands[i];
        if (o->strides[inner] > 1 || o->strides[inner] < 0 || operand_is_guarded(o, inner) || o->type == TYPE_F16)
            return false;
        if (o->indexed && loop->operands[o->index].strides[inner]) return false;
    }
    return loop_reduces(loop, inner) || loop->out.strides[inner] == 1;
}

/* Declares pointers `to` = `from` + position. is_<pointer>: whether the coordinates are inside the guards. */
static void print_pointers(
    struct text *text, const struct loop *loop, const char *from, const char *to, bool reduced, bool skip, bool offset)
{
    for (int i = 0; i < loop->operand_count; i++) {
        const struct loop_operand *o = &loop->operands[i];
        char x[16];
        text_append(text, "    global const element_%s *%s%d = %s%d", type_name(o->type), to, i, from, i);
        if (offset && o->offset) text_append(text, " + %" PRId64, o->offset);
        print_place(text, loop, o, reduced, skip);
        text_append(text, ";\n");
        if (!o->guarded) continue;
        text_append(text, "    const bool is_%s%d = ", to, i);
        text_append(text, offset ? "true" : "is_%s%d", from, i);
        for (int axis = 0; axis < loop->rank - skip; axis++) {
            snprintf(x, sizeof x, "x%d", axis);
            if (loop_reduces(loop, axis) == reduced) print_guard(text, o, axis, loop->sizes[axis], x);
        }
        text_append(text, ";\n");
    }
}

/* Without reduction: vectors, then the rest one by one. */
static void print_cpu_elements(struct text *text, const struct loop *loop)
{
    const char *type = type_name(loop->out.type);
    if (loop_has_vectors(loop)) {
        text_append(
            text, "    for (; i + V <= end; i += V) %s(%s, ", loop->rank == 1 ? "PUT_STREAM" : "PUT_VECTOR", type);
        print_call(text, loop, true, "q", "i");
        text_append(text, ", to + i);\n");
    }
    text_append(text, "    for (; i < end; i++) PUT(%s, ", type);
    print_call(text, loop, false, "q", "i");
    text_append(text, ", to + i * %" PRId64 ");\n", loop->out.strides[loop->rank - 1]);
}

/* Joins s<v>, of at most SUM_BLOCK numbers, to t<v>; a sum carries its rounding error e<v> along (clkernels/sum.h). */
static void print_reduction(struct text *text, const struct loop *loop, bool vector, int v)
{
    const char *type = vector ? "VF" : "float";
    if (loop->reduction == REDUCE_SUM)
        text_append(text, "    SUM_ADD(%s, t%d, e%d, s%d);\n", type, v, v, v);
    else
        text_append(text, "    t%d = %s_join(t%d, s%d);\n", v, vector ? "vector" : "scalar", v, v);
}

/* Declares what print_reduction() reduces to. */
static void print_begin(struct text *text, const struct loop *loop, const char *type, int v)
{
    text_append(text, "    %s t%d = (%s)(START);\n", type, v, type);
    if (loop->reduction == REDUCE_SUM) text_append(text, "    %s e%d = (%s)(0.0f);\n", type, v, type);
}

/* Reduces columns: `vectors` vectors of columns at a time, or one column if it is 0. */
static void print_cpu_columns(struct text *text, const struct loop *loop, int vectors)
{
    const char *type = vectors ? "VF" : "float", *math = vectors ? "vector" : "scalar";
    const int count = vectors ? vectors : 1;
    char step[32] = "1", at[48];
    if (vectors) snprintf(step, sizeof step, "%d * V", vectors);
    text_append(text, "    for (; i + %s <= end; i += %s) {\n", step, step);
    for (int v = 0; v < count; v++) print_begin(text, loop, type, v);
    text_append(text, "    for (INDEX k = from; k < until;) {\n");
    text_append(text, "    const INDEX stop = min(k + (INDEX)SUM_BLOCK, until);\n");
    for (int v = 0; v < count; v++) text_append(text, "    %s s%d = (%s)(START);\n", type, v, type);
    text_append(text, "    for (; k < stop; k++) {\n");
    print_coordinates(text, loop, true, true, "k");
    print_pointers(text, loop, "q", "j", true, true, false);
    for (int v = 0; v < count; v++) {
        snprintf(at, sizeof at, vectors ? "i + %d * V" : "i", v);
        text_append(text, "    s%d = %s_join(s%d, ", v, math, v);
        print_call(text, loop, vectors > 0, "j", at);
        text_append(text, ");\n");
    }
    text_append(text, "    }\n");
    for (int v = 0; v < count; v++) print_reduction(text, loop, vectors > 0, v);
    text_append(text, "    }\n");
    for (int v = 0; v < count; v++) {
        text_append(text, "    %s(%s, (", vectors ? "PUT_VECTOR" : "PUT", type_name(loop->out.type));
        text_append(text, "t%d", v);
        if (vectors)
            text_append(text, ") * scale, to + i + %d * V);\n", v);
        else
            text_append(text, ") * scale, to + i * %" PRId64 ");\n", loop->out.strides[loop->rank - 1]);
    }
    text_append(text, "    }\n");
}

/* Prints the loop over a row from i on, by vectors or single numbers, in pieces of at most SUM_BLOCK. */
static void print_row(struct text *text, const struct loop *loop, bool vector)
{
    const char *type = vector ? "VF" : "float", *math = vector ? "vector" : "scalar", *step = vector ? "V" : "1";
    const int v = vector;
    text_append(text, "    while (i + %s <= width) {\n", step);
    text_append(text, "    const INDEX stop = min(i + (INDEX)(SUM_BLOCK * %s), (INDEX)width);\n", step);
    text_append(text, "    %s s%d = (%s)(START);\n", type, v, type);
    text_append(text, "    for (; i + %s <= stop; i += %s) s%d = %s_join(s%d, ", step, step, v, math, v);
    print_call(text, loop, vector, "j", "i");
    text_append(text, ");\n");
    print_reduction(text, loop, vector, v);
    text_append(text, "    }\n");
}

/* Prints the reduction of rows to one number. */
static void print_cpu_rows(struct text *text, const struct loop *loop)
{
    const bool vectors = loop_has_vectors(loop);
    print_begin(text, loop, "float", 0);
    if (vectors) print_begin(text, loop, "VF", 1);
    text_append(text, "    for (INDEX k = from; k < until; k++) {\n");
    print_coordinates(text, loop, true, true, "k");
    print_pointers(text, loop, "q", "j", true, true, false);
    text_append(text, "    INDEX i = 0;\n");
    if (vectors) print_row(text, loop, true);
    print_row(text, loop, false);
    text_append(text, "    }\n");
    if (vectors) {
        text_append(text, "    const VF all = ");
        text_append(text, "t%d", 1);
        text_append(text, ";\n    for (int l = 0; l < V; l++) {\n    const float s0 = ((const float *)&all)[l];\n");
        print_reduction(text, loop, false, 0);
        text_append(text, "    }\n");
    }
    text_append(text, "    PUT(%s, (", type_name(loop->out.type));
    text_append(text, "t%d", 0);
    text_append(text, ") * scale, to);\n");
}

/* get_group_id(0): a piece of the innermost axis, (1): some rows, (2): a part of what is reduced. */
static void print_cpu_kernel(struct text *text, const struct loop *loop, const struct loop_arguments *arguments)
{
    const bool inner_reduced = loop_reduces(loop, loop->rank - 1);
    text_append(text, "TASK ");
    print_parameters(text, arguments);
    text_append(text,
        "    const INDEX first = (INDEX)get_group_id(1) * each, last = min(first + (INDEX)each, (INDEX)rows);\n"
        "    const INDEX begin = (INDEX)get_group_id(0) * piece, end = min(begin + (INDEX)piece, (INDEX)width);\n"
        "    const INDEX from = (INDEX)get_group_id(2) * part, until = min(from + (INDEX)part, (INDEX)count);\n"
        "    out += (size_t)get_group_id(2) * made;\n"
        "    for (INDEX row = first; row < last; row++) {\n");
    print_coordinates(text, loop, false, !inner_reduced, "row");
    print_pointers(text, loop, "p", "q", false, !inner_reduced, true);
    text_append(text, "    global element_%s *to = out + %" PRId64, type_name(loop->out.type), loop->out.offset);
    print_place(text, loop, &loop->out, false, !inner_reduced);
    text_append(text, ";\n    INDEX i = begin;\n");
    if (!loop->reduction) {
        print_cpu_elements(text, loop);
    } else if (inner_reduced) {
        print_cpu_rows(text, loop);
    } else {
        if (loop_has_vectors(loop)) print_cpu_columns(text, loop, LOOP_VECTORS);
        if (loop_has_vectors(loop)) print_cpu_columns(text, loop, 1);
        print_cpu_columns(text, loop, 0);
    }
    text_append(text, "    }\n}\n");
}

static bool has_fours(const struct loop *loop, const struct loop_operand *o)
{
    const int inner = loop->rank - 1;
    bool aligned = o->offset % 4 == 0 && o->strides[inner] == 1;
    for (int axis = 0; axis < inner; axis++) aligned = aligned && o->strides[axis] % 4 == 0;
    return aligned && (o->type == TYPE_F32 || o->type == TYPE_BF16);
}

bool loop_has_fours(const struct loop *loop)
{
    const int inner = loop->rank - 1;
    if (loop->reduction || loop->sizes[inner] % 4 || !has_fours(loop, &loop->out)) return false;
    for (int i = 0; i < loop->operand_count; i++) {
        const struct loop_operand *o = &loop->operands[i];
        if (o->indexed || operand_is_guarded(o, inner)) return false;
        if (o->strides[inner] != 0 && !has_fours(loop, o)) return false;
    }
    return true;
}

/* "    const float4 f0 = ...;": the operand's four elements, which lie together or are one. */
static void print_four(struct text *text, const struct loop *loop, int k)
{
    const struct loop_operand *o = &loop->operands[k];
    text_append(text, "    const float4 f%d = ", k);
    if (o->guarded) text_append(text, "!is_q%d ? (float4)(", k);
    if (o->guarded) print_number(text, o->outside);
    if (o->guarded) text_append(text, ") : ");
    if (o->strides[loop->rank - 1])
        text_append(text, "FOUR(%s, q%d);\n", type_name(o->type), k);
    else
        text_append(text, "(float4)(GET(%s, q%d));\n", type_name(o->type), k);
}

/* A work-item makes four results that lie together: reads and stores are of 16 bytes. */
static void print_gpu_fours(struct text *text, const struct loop *loop, const struct loop_arguments *arguments)
{
    static const char *const element = "xyzw";
    text_append(text, "kernel ");
    print_parameters(text, arguments);
    text_append(text, "    const INDEX at = (INDEX)get_global_id(0) * 4;\n    if (at >= (INDEX)n) return;\n");
    print_coordinates(text, loop, false, false, "at");
    print_pointers(text, loop, "p", "q", false, false, true);
    text_append(text, "    out += %" PRId64, loop->out.offset);
    print_place(text, loop, &loop->out, false, false);
    text_append(text, ";\n");
    for (int k = 0; k < loop->operand_count; k++) print_four(text, loop, k);
    text_append(text, "    const float4 made = (float4)(");
    for (int i = 0; i < 4; i++) {
        text_append(text, "%sscalar_element(", i ? ", " : "");
        for (int k = 0; k < loop->operand_count; k++) text_append(text, "%sf%d.%c", k ? ", " : "", k, element[i]);
        text_append(text, ")");
    }
    text_append(text, ");\n    PUT_FOUR(%s, made, out);\n}\n", type_name(loop->out.type));
}

/* A work-item per result, or a work-group if the innermost axis is reduced. get_group_id(1) is the part. */
static void print_gpu_kernel(struct text *text, const struct loop *loop, const struct loop_arguments *arguments)
{
    const bool groups = loop_reduces(loop, loop->rank - 1);
    if (groups)
        text_append(text,
            "static float group_joined(float value, local float *scratch)\n{\n"
            "    GROUP_JOIN(value, scratch, scalar_join)\n}\n"
            "__attribute__((reqd_work_group_size(GROUP, 1, 1))) ");
    text_append(text, "kernel ");
    print_parameters(text, arguments);
    if (groups) text_append(text, "    local float scratch[GROUP];\n");
    text_append(text, "    const INDEX at = %s;\n    if (at >= (INDEX)n) return;\n",
        groups ? "get_group_id(0)" : "get_global_id(0)");
    print_coordinates(text, loop, false, false, "at");
    print_pointers(text, loop, "p", "q", false, false, true);
    text_append(text, "    out += (size_t)get_group_id(1) * n + %" PRId64, loop->out.offset);
    print_place(text, loop, &loop->out, false, false);
    text_append(text, ";\n");
    if (loop->reduction) {
        text_append(text,
            "    const INDEX from = (INDEX)get_group_id(1) * part, until = min(from + (INDEX)part, (INDEX)count);\n");
        print_begin(text, loop, "float", 0);
        text_append(text,
            "    for (INDEX k = from%s; k < until;) {\n    const INDEX stop = min(k + (INDEX)(SUM_BLOCK * %s), "
            "until);\n"
            "    float s0 = START;\n    for (; k < stop; k += %s) {\n",
            groups ? " + (INDEX)get_local_id(0)" : "", groups ? "GROUP" : "1", groups ? "GROUP" : "1");
        print_coordinates(text, loop, true, false, "k");
        print_pointers(text, loop, "q", "j", true, false, false);
        text_append(text, "    s0 = scalar_join(s0, ");
    } else {
        text_append(text, "    PUT(%s, ", type_name(loop->out.type));
    }
    print_call(text, loop, false, loop->reduction ? "j" : "q", NULL);
    if (!loop->reduction) {
        text_append(text, ", out);\n}\n");
        return;
    }
    text_append(text, ");\n    }\n");
    print_reduction(text, loop, false, 0);
    text_append(text, "    }\n    %sfloat sum = ", groups ? "" : "const ");
    text_append(text, "t%d", 0);
    text_append(text, ";\n");
    if (groups) text_append(text, "    sum = group_joined(sum, scratch);\n    if (get_local_id(0) == 0) ");
    text_append(text, "PUT(%s, sum * scale, out);\n}\n", type_name(loop->out.type));
}

const char *loop_source(
    const struct loop *loop, const struct loop_arguments *arguments, const struct capabilities *device)
{
    struct text text = { 0 };
    const bool cpu = device->class == DEVICE_CPU;
    if (loop->reduction) {
        text_append(&text, "#define START ");
        print_number(&text, reductions[loop->reduction].start);
        text_append(&text, "\n");
    }
    for (int vector = 0; vector <= cpu; vector++) {
        const char *math = vector ? "vector" : "scalar", *type = vector ? "VF" : "float";
        print_element(&text, loop, math, type);
        if (loop->reduction)
            text_append(&text, "#define T %s\nINLINE T %s_join(T a, T b)\n{\n    return %s;\n}\n#undef T\n", type, math,
                reductions[loop->reduction].operation->pointwise->y.text);
    }
    if (cpu)
        print_cpu_kernel(&text, loop, arguments);
    else if (loop_has_fours(loop))
        print_gpu_fours(&text, loop, arguments);
    else
        print_gpu_kernel(&text, loop, arguments);
    const char *name = text.failed ? NULL : source_make("generated", text.data);
    text_free(&text);
    return name;
}
