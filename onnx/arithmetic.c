/* Arithmetic, comparisons and logic on numbers that are known when the file is read, of all types. Integers can be
 * multiples of the number of samples: symbols. */
#include "onnx/known.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------- integers ---- */

/* Functions of two integers. They return false if the result is not a number plus a multiple of the number of samples.
 * Without a symbol they wrap around, as in other runtimes. */
typedef bool integer_function(
    int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y);

static bool multiply(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)type;
    if (a.batches || b.batches) return symbolic_multiply(a, b, y);
    *y = (struct symbolic_integer) { (int64_t)((uint64_t)a.number * (uint64_t)b.number) };
    return true;
}

static bool add(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)type;
    const bool overflows = __builtin_add_overflow(a.number, b.number, &y->number);
    return !__builtin_add_overflow(a.batches, b.batches, &y->batches) && !(overflows && y->batches);
}

static bool subtract(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)type;
    const bool overflows = __builtin_sub_overflow(a.number, b.number, &y->number);
    return !__builtin_sub_overflow(a.batches, b.batches, &y->batches) && !(overflows && y->batches);
}

static bool divide(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    if (b.batches || b.number == 0 || (a.batches && (a.number % b.number || a.batches % b.number))) return false;
    if (type == ONNX_UINT64 && !a.batches)
        *y = (struct symbolic_integer) { (int64_t)((uint64_t)a.number / (uint64_t)b.number) };
    else if (b.number == -1)
        return subtract(type, (struct symbolic_integer) { 0 }, a, y);
    else
        *y = (struct symbolic_integer) { a.number / b.number, a.batches / b.number };
    return true;
}

/* The remainder with the sign of the dividend; modulo(): with that of the divisor. */
static bool remainder_of(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    if (a.batches || b.batches || b.number == 0) return false;
    if (type == ONNX_UINT64)
        *y = (struct symbolic_integer) { (int64_t)((uint64_t)a.number % (uint64_t)b.number) };
    else
        *y = (struct symbolic_integer) { b.number == -1 ? 0 : a.number % b.number };
    return true;
}

static bool modulo(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    if (!remainder_of(type, a, b, y)) return false;
    if (type != ONNX_UINT64 && y->number && (y->number < 0) != (b.number < 0)) y->number += b.number;
    return true;
}

static bool equal(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)type;
    *y = (struct symbolic_integer) { a.number == b.number && a.batches == b.batches };
    return true;
}

/* *order: -1, 0 or 1. False: the order depends on the number of samples. */
static bool compare(int type, struct symbolic_integer a, struct symbolic_integer b, int *order)
{
    if (type == ONNX_UINT64)
        *order = ((uint64_t)a.number > (uint64_t)b.number) - ((uint64_t)a.number < (uint64_t)b.number);
    else
        *order = (a.number > b.number) - (a.number < b.number);
    return a.batches == b.batches;
}

#define ORDERED(name, formula)                                                                                   \
    static bool name(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y) \
    {                                                                                                            \
        int order;                                                                                               \
        if (!compare(type, a, b, &order)) return false;                                                          \
        *y = formula;                                                                                            \
        return true;                                                                                             \
    }
ORDERED(less, (struct symbolic_integer) { order < 0 })
ORDERED(less_or_equal, (struct symbolic_integer) { order <= 0 })
ORDERED(greater, (struct symbolic_integer) { order > 0 })
ORDERED(greater_or_equal, (struct symbolic_integer) { order >= 0 })
ORDERED(smaller, order < 0 ? a : b)
ORDERED(larger, order > 0 ? a : b)

static bool is_true(struct symbolic_integer a)
{
    return a.number || a.batches;
}

#define LOGIC(name, formula)                                                                                     \
    static bool name(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y) \
    {                                                                                                            \
        (void)type;                                                                                              \
        (void)b;                                                                                                 \
        *y = (struct symbolic_integer) { formula };                                                              \
        return true;                                                                                             \
    }
LOGIC(both, is_true(a) && is_true(b))
LOGIC(either, is_true(a) || is_true(b))
LOGIC(one_of, is_true(a) != is_true(b))
LOGIC(negation, !is_true(a))

static bool negative(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)b;
    return subtract(type, (struct symbolic_integer) { 0 }, a, y);
}

static bool absolute(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    if (a.batches && (a.number < 0 || a.batches < 0)) return false;
    *y = a;
    return type == ONNX_UINT64 || a.number >= 0 || negative(type, a, b, y);
}

static bool sign(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)b;
    if (a.batches && (a.number < 0 || a.batches < 0)) return false;
    *y = (struct symbolic_integer) { is_true(a) ? (type != ONNX_UINT64 && a.number < 0 ? -1 : 1) : 0 };
    return true;
}

static bool prelu(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    if (a.batches || b.batches) return false;
    *y = a;
    return type == ONNX_UINT64 || a.number >= 0 || multiply(type, a, b, y);
}

static bool relu(int type, struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *y)
{
    (void)b;
    return larger(type, a, (struct symbolic_integer) { 0 }, y);
}

/* ------------------------------------------------------------------------------------------------------ floats ---- */

typedef double real_function(double a, double b);

/* The operators in alphabetical order: the function of integers; whether the second number is not read; the function of
 * floats. NULL: elements of this kind are not supported, as floats of INTEGER. */
/* clang-format off */
#define OPERATORS(NUMBER, INTEGER) \
    NUMBER(Abs, absolute, true, fabs(a)) \
    NUMBER(Acos, NULL, true, acos(a)) \
    NUMBER(Acosh, NULL, true, acosh(a)) \
    NUMBER(Add, add, false, a + b) \
    INTEGER(And, both, false) \
    NUMBER(Asin, NULL, true, asin(a)) \
    NUMBER(Asinh, NULL, true, asinh(a)) \
    NUMBER(Atan, NULL, true, atan(a)) \
    NUMBER(Atanh, NULL, true, atanh(a)) \
    NUMBER(Ceil, NULL, true, ceil(a)) \
    NUMBER(Cos, NULL, true, cos(a)) \
    NUMBER(Cosh, NULL, true, cosh(a)) \
    NUMBER(Div, divide, false, a / b) \
    NUMBER(Equal, equal, false, a == b) \
    NUMBER(Erf, NULL, true, erf(a)) \
    NUMBER(Exp, NULL, true, exp(a)) \
    NUMBER(Floor, NULL, true, floor(a)) \
    NUMBER(Greater, greater, false, a > b) \
    NUMBER(GreaterOrEqual, greater_or_equal, false, a >= b) \
    NUMBER(IsNaN, NULL, true, isnan(a)) \
    NUMBER(Less, less, false, a < b) \
    NUMBER(LessOrEqual, less_or_equal, false, a <= b) \
    NUMBER(Log, NULL, true, log(a)) \
    NUMBER(Max, larger, false, isnan(a) || a > b ? a : b) \
    NUMBER(Mean, NULL, false, a + b) \
    NUMBER(Min, smaller, false, isnan(a) || a < b ? a : b) \
    NUMBER(Mod, modulo, false, fmod(a, b)) \
    NUMBER(Mul, multiply, false, a * b) \
    NUMBER(Neg, negative, true, -a) \
    INTEGER(Not, negation, true) \
    INTEGER(Or, either, false) \
    NUMBER(PRelu, prelu, false, a < 0 ? a * b : a) \
    NUMBER(Pow, NULL, false, pow(a, b)) \
    NUMBER(Reciprocal, NULL, true, 1 / a) \
    NUMBER(Relu, relu, true, isnan(a) || a > 0 ? a : 0) \
    NUMBER(Round, NULL, true, rint(a)) \
    NUMBER(Sigmoid, NULL, true, 1 / (1 + exp(-a))) \
    NUMBER(Sign, sign, true, isnan(a) ? a : (a > 0) - (a < 0)) \
    NUMBER(Sin, NULL, true, sin(a)) \
    NUMBER(Sinh, NULL, true, sinh(a)) \
    NUMBER(Softplus, NULL, true, a > 0 ? a + log1p(exp(-a)) : log1p(exp(a))) \
    NUMBER(Softsign, NULL, true, a / (1 + fabs(a))) \
    NUMBER(Sqrt, NULL, true, sqrt(a)) \
    NUMBER(Sub, subtract, false, a - b) \
    NUMBER(Sum, add, false, a + b) \
    NUMBER(Tan, NULL, true, tan(a)) \
    NUMBER(Tanh, NULL, true, tanh(a)) \
    INTEGER(Xor, one_of, false)
/* clang-format on */
#define NONE(...)
#define REAL(name, integer, unary, formula)       \
    static double real_##name(double a, double b) \
    {                                             \
        (void)b;                                  \
        return formula;                           \
    }
OPERATORS(REAL, NONE)

struct arithmetic {
    const char *name;
    integer_function *integer;
    real_function *real;
    bool unary;
};
#define BOTH(name, integer, unary, formula) { #name, integer, real_##name, unary },
#define ONLY(name, integer, unary) { #name, integer, NULL, unary },
static const struct arithmetic operations[] = { OPERATORS(BOTH, ONLY) };

static int compare_names(const void *name, const void *row)
{
    return strcmp(name, ((const struct arithmetic *)row)->name);
}

static const struct arithmetic *find_operation(const char *name)
{
    return bsearch(name, operations, sizeof operations / sizeof *operations, sizeof *operations, compare_names);
}

bool arithmetic_has(const char *name)
{
    return find_operation(name) != NULL;
}

/* ------------------------------------------------------------------------------------------------- one by one ---- */

static tutti_status no_number(void)
{
    return node_refuse("its result is not a whole multiple of the number of samples, or not a number");
}

/* One element of a result of this type, from inputs of these types. */
static bool compute(const struct onnx_node *node, const struct arithmetic *operation, const struct number *n,
    const struct known *x, int type, struct number *y)
{
    const bool floats = onnx_type_is_float(x[0].type);
    *y = (struct number) { 0 };
    if (operation->real == real_Pow && !floats) { /* by way of floats, as in other runtimes */
        const struct number power = { .real = pow(n[0].real, n[1].real) };
        return n[0].integer.batches == 0 && n[1].integer.batches == 0 && known_cast(power, ONNX_DOUBLE, type, y);
    }
    if (floats ? !operation->real : !operation->integer) return false;
    if (floats && !strcmp(operation->name, "Mod") && !node_integer(node, "fmod", 0)) return false;
    if (floats) {
        y->real = operation->real(n[0].real, n[1].real);
        y->integer.number = y->real != 0; /* of comparisons */
        return n[1].integer.batches == 0;
    }
    integer_function *function =
        operation->integer == modulo && node_integer(node, "fmod", 0) ? remainder_of : operation->integer;
    return function(x[0].type, n[0].integer, n[1].integer, &y->integer);
}

/* y = f(a, b) of this type */
static tutti_status combine(
    struct onnx_node *node, const struct arithmetic *operation, const struct known *x, int type, struct array **made)
{
    int rank = 0;
    int64_t sizes[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 };
    *made = NULL;
    if (!known_broadcast((const struct array *[]) { x[0].array, x[1].array }, 2, &rank, sizes))
        return fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
    struct array *y = known_new(rank, sizes, type);
    if (!y) return TUTTI_UNSUPPORTED;
    const struct reading from[] = { known_broadcast_reading(x[0].array, rank),
        known_broadcast_reading(x[1].array, rank) };
    for (size_t i = 0; i < y->count; i++) {
        const struct number n[] = { known_at(&x[0], reading_at(&from[0], rank, at)),
            known_at(&x[1], reading_at(&from[1], rank, at)) };
        struct number result;
        if (!compute(node, operation, n, x, type, &result)) {
            array_free(y);
            return no_number();
        }
        known_put(y, type, i, result);
        (void)known_next(rank, sizes, at);
    }
    *made = y;
    return TUTTI_OK;
}

/* The sum of all inputs becomes their mean. */
static void divide_all(struct array *y, int type, size_t count)
{
    const struct known sum = { y, type };
    for (size_t i = 0; i < y->count; i++)
        known_put(y, type, i, (struct number) { .real = known_at(&sum, i).real / (double)count });
}

/* Takes one input, two, or, as Max, any number of them. */
tutti_status evaluate_arithmetic(struct onnx_node *node)
{
    const struct arithmetic *operation = find_operation(node->proto->op_type);
    const size_t count = node->proto->n_input;
    struct known x[2];
    struct array *y = NULL, *before = NULL;
    if (!operation || (operation->unary && count != 1)) return fail(TUTTI_FORMAT, "it has %zu inputs", count);
    tutti_status status = known_input(node, 0, &x[0]);
    const int type = node->type ? node->type : status == TUTTI_OK ? x[0].type : 0;
    if (operation->unary && status == TUTTI_OK) {
        x[1] = x[0];
        status = combine(node, operation, x, type, &y);
    }
    for (size_t i = 1; i < count && status == TUTTI_OK; i++) {
        status = known_input(node, i, &x[1]);
        if (status == TUTTI_OK) status = combine(node, operation, x, type, &y);
        array_free(before);
        x[0].array = before = y;
    }
    if (status != TUTTI_OK) return status;
    if (!y) return node_same(node);
    if (!strcmp(operation->name, "Mean")) divide_all(y, type, count);
    return known_finish(node, y);
}

tutti_status evaluate_where(struct onnx_node *node)
{
    struct known x[3];
    struct reading from[3];
    int rank = 0;
    int64_t sizes[ARRAY_MAX_RANK], at[ARRAY_MAX_RANK] = { 0 };
    for (size_t i = 0; i < 3; i++) {
        const tutti_status status = known_input(node, i, &x[i]);
        if (status != TUTTI_OK) return status;
    }
    if (!known_broadcast((const struct array *[]) { x[0].array, x[1].array, x[2].array }, 3, &rank, sizes))
        return fail(TUTTI_FORMAT, "the shapes of its inputs do not fit");
    for (int i = 0; i < 3; i++) from[i] = known_broadcast_reading(x[i].array, rank);
    struct array *y = known_new(rank, sizes, x[1].type);
    for (size_t i = 0; y && i < y->count; i++) {
        const int pick = is_true(known_at(&x[0], reading_at(&from[0], rank, at)).integer) ? 1 : 2;
        known_put(y, x[1].type, i, known_at(&x[pick], reading_at(&from[pick], rank, at)));
        (void)known_next(rank, sizes, at);
    }
    node_set_type(node, 0, x[1].type);
    return known_finish(node, y);
}

/* A bound of Clip: an input, an attribute before opset 11, or none. */
static tutti_status read_bound(
    const struct onnx_node *node, size_t position, const char *name, int type, struct number *bound, bool *has)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    struct known x;
    *has = attribute != NULL;
    if (attribute) *bound = (struct number) { (double)attribute->f, { (int64_t)attribute->f } };
    if (!node_input(node, position)) return TUTTI_OK;
    const tutti_status status = known_input(node, position, &x);
    if (status != TUTTI_OK) return status;
    if (x.array->count != 1 || x.type != type) return fail(TUTTI_FORMAT, "input %zu must be one number", position);
    *bound = known_at(&x, 0);
    *has = true;
    return TUTTI_OK;
}

tutti_status evaluate_clip(struct onnx_node *node)
{
    static const struct arithmetic clips[] = { { "Max", larger, real_Max }, { "Min", smaller, real_Min } };
    struct known x[2];
    struct number bounds[2];
    bool has[2];
    tutti_status status = known_input(node, 0, &x[0]);
    if (status == TUTTI_OK) status = read_bound(node, 1, "min", x[0].type, &bounds[0], &has[0]);
    if (status == TUTTI_OK) status = read_bound(node, 2, "max", x[0].type, &bounds[1], &has[1]);
    if (status != TUTTI_OK) return status;
    struct array *y = known_new(x[0].array->rank, x[0].array->sizes, x[0].type);
    x[1] = x[0];
    for (size_t i = 0; y && i < y->count; i++) {
        struct number result = known_at(&x[0], i);
        for (int k = 0; k < 2; k++) {
            const struct number n[2] = { result, bounds[k] };
            if (!has[k] || compute(node, &clips[k], n, x, x[0].type, &result)) continue;
            array_free(y);
            return no_number();
        }
        known_put(y, x[0].type, i, result);
    }
    return known_finish(node, y);
}

tutti_status evaluate_is_inf(struct onnx_node *node)
{
    struct known x;
    const bool low = node_integer(node, "detect_negative", 1), high = node_integer(node, "detect_positive", 1);
    const tutti_status status = known_input(node, 0, &x);
    if (status != TUTTI_OK) return status;
    struct array *y = known_new(x.array->rank, x.array->sizes, ONNX_BOOL);
    for (size_t i = 0; y && i < y->count; i++) {
        const double real = known_at(&x, i).real;
        y->integers[i].number = isinf(real) && (real < 0 ? low : high);
    }
    return known_finish(node, y);
}

/* ------------------------------------------------------------------------------------------------------- casts ---- */

/* Cast and CastLike. */
tutti_status evaluate_cast(struct onnx_node *node)
{
    struct known x;
    int to = 0;
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = node_cast_type(node, &to);
    if (status != TUTTI_OK) return status;
    if (!onnx_type_is_known(to)) return node_refuse("to type %d, which is not read", to);
    node_set_type(node, 0, to);
    struct array *y = known_new(x.array->rank, x.array->sizes, to);
    for (size_t i = 0; y && i < y->count; i++) {
        struct number number;
        if (!known_cast(known_at(&x, i), x.type, to, &number)) {
            array_free(y);
            return node_refuse("the number of samples cannot become a float");
        }
        known_put(y, to, i, number);
    }
    return known_finish(node, y);
}

/* -------------------------------------------------------------------------------------------------- reductions ---- */

/* How a reduction changes each element before it joins them (`function`), and the result after. */
enum change { AS_IT_IS, ABSOLUTE, SQUARED, EXPONENTIAL, ROOT, LOGARITHM, MEAN };
static const struct reduction {
    const char *name, *function; /* of operations[] */
    enum change before, after;
} reductions[] = { { "ReduceL1", "Add", ABSOLUTE, AS_IT_IS }, { "ReduceL2", "Add", SQUARED, ROOT },
    { "ReduceLogSum", "Add", AS_IT_IS, LOGARITHM }, { "ReduceLogSumExp", "Add", EXPONENTIAL, LOGARITHM },
    { "ReduceMax", "Max", AS_IT_IS, AS_IT_IS }, { "ReduceMean", "Add", AS_IT_IS, MEAN },
    { "ReduceMin", "Min", AS_IT_IS, AS_IT_IS }, { "ReduceProd", "Mul", AS_IT_IS, AS_IT_IS },
    { "ReduceSum", "Add", AS_IT_IS, AS_IT_IS }, { "ReduceSumSquare", "Add", SQUARED, AS_IT_IS } };

/* Changes integers by functions of integers only. False: there is none, or it fails. */
static bool change_number(enum change change, int type, int64_t count, struct number *n)
{
    const bool floats = onnx_type_is_float(type);
    const struct symbolic_integer divisor = { count };
    switch (change) {
    case ABSOLUTE:
        return floats ? (n->real = fabs(n->real), true) : absolute(type, n->integer, n->integer, &n->integer);
    case SQUARED: return floats ? (n->real *= n->real, true) : multiply(type, n->integer, n->integer, &n->integer);
    case MEAN: return floats ? (n->real /= (double)count, true) : divide(type, n->integer, divisor, &n->integer);
    case EXPONENTIAL: n->real = exp(n->real); return floats;
    case LOGARITHM: n->real = log(n->real); return floats;
    case ROOT:
        n->real = sqrt(floats ? n->real : (double)n->integer.number);
        return floats || (n->integer.batches == 0 && known_cast(*n, ONNX_DOUBLE, type, n));
    case AS_IT_IS: break;
    }
    return true;
}

/* Adds x up along axes whose step in y is 0. */
static tutti_status reduce(struct onnx_node *node, const struct known *x, const int64_t *strides, struct array *y)
{
    const struct reduction *reduction = NULL;
    int64_t at[ARRAY_MAX_RANK] = { 0 };
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (!strcmp(reductions[i].name, node->proto->op_type)) reduction = &reductions[i];
    const struct arithmetic *operation = reduction ? find_operation(reduction->function) : NULL;
    struct number *sums = memory_new(y->count, sizeof *sums);
    unsigned char *begun = memory_new(y->count + 1, 1);
    tutti_status status = sums && begun && operation ? TUTTI_OK : TUTTI_NO_MEMORY;
    const struct known both[] = { *x, *x };
    for (size_t i = 0; i < x->array->count && status == TUTTI_OK; i++) {
        int64_t to = 0;
        for (int k = 0; k < x->array->rank; k++) to += at[k] * strides[k];
        struct number n[2] = { sums[to], known_at(x, i) };
        bool good = change_number(reduction->before, x->type, 1, &n[1]);
        if (good && begun[to])
            good = compute(node, operation, n, both, x->type, &sums[to]);
        else
            sums[to] = n[1];
        if (!good) status = no_number();
        begun[to] = 1;
        (void)known_next(x->array->rank, x->array->sizes, at);
    }
    const int64_t each = y->count ? (int64_t)(x->array->count / y->count) : 1;
    for (size_t i = 0; i < y->count && status == TUTTI_OK; i++) {
        if (!change_number(reduction->after, x->type, each, &sums[i])) status = no_number();
        known_put(y, x->type, i, sums[i]);
    }
    free(begun);
    free(sums);
    return status;
}

/* Axes are an attribute or the second input; if none is named, all axes are reduced. */
tutti_status evaluate_reduce(struct onnx_node *node)
{
    struct known x;
    int64_t list[ARRAY_MAX_RANK], sizes[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK] = { 0 };
    int count = 0, rank = 0;
    unsigned axes = 0;
    tutti_status status = known_input(node, 0, &x);
    if (status == TUTTI_OK) status = node_list_or_attribute(node, "axes", 1, list, ARRAY_MAX_RANK, &count);
    if (status == TUTTI_OK) status = axes_read(list, count, x.array->rank, &axes);
    if (status != TUTTI_OK) return status;
    if (count == 0 && node_integer(node, "noop_with_empty_axes", 0)) return node_refuse("it reduces nothing");
    if (count == 0) axes = (1u << x.array->rank) - 1;
    for (int i = 0; i < x.array->rank; i++)
        if (node_integer(node, "keepdims", 1) || !(axes >> i & 1))
            sizes[rank++] = axes >> i & 1 ? 1 : x.array->sizes[i];
    struct array *y = x.array->count ? known_new(rank, sizes, x.type) : NULL;
    if (!y) return node_refuse("it has no elements, or too many");
    int64_t stride = 1;
    for (int i = x.array->rank - 1; i >= 0; i--) {
        strides[i] = axes >> i & 1 ? 0 : stride;
        stride *= axes >> i & 1 ? 1 : x.array->sizes[i];
    }
    status = reduce(node, &x, strides, y);
    if (status == TUTTI_OK) return known_finish(node, y);
    array_free(y);
    return status;
}
