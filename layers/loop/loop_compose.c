/* Composes two loops: the consumer computes the producer's elements instead of reading them from memory. */
#include "layers/loop/loop.h"

#include <string.h>

struct coordinates {
    int64_t at[TUTTI_MAX_RANK]; /* along each axis of the producer */
};

/* Sets the coordinates of the element at `position` of the producer's output. False: after the end. */
static bool coordinates_of(const struct loop *producer, int64_t position, struct coordinates *element)
{
    if (position < 0) return false;
    for (int i = 0; i < producer->rank; i++) {
        const int64_t stride = producer->out.strides[i];
        element->at[i] = stride ? position / stride : 0;
        if (stride) position %= stride;
        if (element->at[i] >= producer->sizes[i]) return false;
    }
    return position == 0;
}

/* Expresses an operand that reads the producer's output in the producer's axes: the coordinates of the first element
 * that it has, and the change of the coordinates per step along each axis of the consumer. False if the coordinates are
 * not a linear function, because a step along one axis carries into the next one. */
static bool map_axes(const struct loop *consumer, const struct loop_operand *read, const struct loop *producer,
    struct coordinates *first, struct coordinates *steps)
{
    int64_t begin = read->offset;
    for (int axis = 0; axis < consumer->rank; axis++) begin += read->low[axis] * read->strides[axis];
    if (!coordinates_of(producer, begin, first)) return false;
    struct coordinates last = *first;
    for (int axis = 0; axis < consumer->rank; axis++) {
        const bool guarded = operand_is_guarded(read, axis);
        const int64_t most = (guarded ? read->high[axis] - read->low[axis] : consumer->sizes[axis]) - 1;
        if (!coordinates_of(producer, most > 0 ? read->strides[axis] : 0, &steps[axis])) return false;
        for (int i = 0; i < producer->rank; i++) last.at[i] += steps[axis].at[i] * most;
    }
    for (int i = 0; i < producer->rank; i++)
        if (last.at[i] >= producer->sizes[i]) return false;
    return true;
}

enum { NO_AXIS = -1, SEVERAL_AXES = -2 };

/* Returns the axis of the consumer that steps through axis p of the producer, one element at a time. */
static int axis_along(const struct loop *consumer, const struct coordinates *steps, int p)
{
    int along = NO_AXIS;
    for (int axis = 0; axis < consumer->rank; axis++) {
        if (steps[axis].at[p] == 0) continue;
        if (steps[axis].at[p] != 1 || along != NO_AXIS) return SEVERAL_AXES;
        along = axis;
    }
    return along;
}

/* Translates the guards of a producer's operand into the consumer's axes. */
static bool map_guards(const struct loop *consumer, const struct loop_operand *given, const struct loop *producer,
    const struct coordinates *first, const struct coordinates *steps, struct loop_operand *operand)
{
    for (int p = 0; p < producer->rank; p++) {
        if (!operand_is_guarded(given, p)) continue;
        const int axis = axis_along(consumer, steps, p);
        const int64_t low = given->low[p] - first->at[p], high = given->high[p] - first->at[p];
        if (axis == SEVERAL_AXES || low >= (axis == NO_AXIS ? 1 : consumer->sizes[axis]) || high <= 0) return false;
        if (axis != NO_AXIS) loop_guard(operand, axis, low, high, consumer->sizes[axis]);
    }
    return true;
}

/* Translates an operand of the producer into the consumer's axes. False if it cannot be expressed, for example if the
 * consumer pads and the producer computes. */
static bool map_operand(const struct loop *consumer, const struct loop_operand *read, const struct loop *producer,
    const struct loop_operand *given, struct loop_operand *operand)
{
    struct coordinates first = { 0 }, steps[TUTTI_MAX_RANK] = { 0 };
    if (read->guarded && (producer->expression_count || given->guarded || given->indexed)) return false;
    if (read->indexed) return false;
    if (!map_axes(consumer, read, producer, &first, steps)) return false;
    *operand = *read;
    operand->input = given->input;
    operand->offset = given->offset;
    operand->indexed = given->indexed;
    operand->index_from_end = given->index_from_end;
    operand->index = given->index;
    operand->index_stride = given->index_stride;
    operand->index_size = given->index_size;
    memset(operand->strides, 0, sizeof operand->strides);
    for (int p = 0; p < producer->rank; p++) {
        operand->offset += first.at[p] * given->strides[p];
        for (int axis = 0; axis < consumer->rank; axis++)
            operand->strides[axis] += steps[axis].at[p] * given->strides[p];
    }
    for (int axis = 0; axis < consumer->rank; axis++) operand->offset -= read->low[axis] * operand->strides[axis];
    if (read->guarded) return true;
    operand->outside = given->outside;
    return map_guards(consumer, given, producer, &first, steps, operand);
}

static bool operand_equal(const struct loop_operand *a, const struct loop_operand *b)
{
    return a->input == b->input && a->offset == b->offset && !memcmp(a->strides, b->strides, sizeof a->strides) &&
        a->guarded == b->guarded && a->outside == b->outside && !memcmp(a->low, b->low, sizeof a->low) &&
        !memcmp(a->high, b->high, sizeof a->high) && a->indexed == b->indexed &&
        a->index_from_end == b->index_from_end && a->index == b->index && a->index_stride == b->index_stride &&
        a->index_size == b->index_size;
}

/* Returns the number of an equal operand of the loop; appends the operand if there is none. */
static int add_operand(struct loop *loop, const struct loop_operand *operand)
{
    for (int i = 0; i < loop->operand_count && i < LOOP_OPERANDS; i++)
        if (operand_equal(&loop->operands[i], operand)) return i;
    if (loop->operand_count < LOOP_OPERANDS) loop->operands[loop->operand_count] = *operand;
    return loop->operand_count++; /* loop_compose() checks for too many */
}

static bool expression_equal(const struct loop_expression *a, const struct loop_expression *b)
{
    return a->formula == b->formula && a->low == b->low && a->high == b->high &&
        !memcmp(a->variables, b->variables, sizeof a->variables);
}

/* Appends the expressions of another loop, with variables renamed by `names`; one that exists already is used again.
 * False if there are too many. */
static bool add_expressions(struct loop *loop, const struct loop *from, int *names)
{
    for (int s = 0; s < from->expression_count; s++) {
        struct loop_expression expression = from->expressions[s];
        int same = 0;
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (expression.variables[i] != LOOP_UNUSED) expression.variables[i] = names[expression.variables[i]];
        while (same < loop->expression_count && !expression_equal(&loop->expressions[same], &expression)) same++;
        if (same == LOOP_EXPRESSIONS) return false;
        loop->expressions[same] = expression;
        if (same == loop->expression_count) loop->expression_count++;
        names[LOOP_EXPRESSION + s] = LOOP_EXPRESSION + same;
    }
    return true;
}

enum { NAMES = LOOP_EXPRESSION + LOOP_EXPRESSIONS };

/* Like add_operand(), for an operand whose index operand is already in `names`. */
static int add_renamed(struct loop *loop, struct loop_operand operand, const int *names)
{
    if (operand.indexed) operand.index = names[operand.index];
    return add_operand(loop, &operand);
}

/* Appends the producer's operands and expressions. Operands that are indices come first, because others name them. */
static bool add_producer(
    const struct loop *consumer, int read, const struct loop *producer, int *names, struct loop *made)
{
    for (int i = 0; i < 2 * producer->operand_count; i++) {
        const int k = i % producer->operand_count;
        const struct loop_operand *given = &producer->operands[k];
        struct loop_operand operand;
        if (given->indexed != (i >= producer->operand_count)) continue;
        if (!map_operand(consumer, &consumer->operands[read], producer, given, &operand)) return false;
        names[k] = add_renamed(made, operand, names);
    }
    return add_expressions(made, producer, names);
}

bool loop_compose(const struct loop *consumer, int read, const struct loop *given, struct loop *made)
{
    struct loop producer = *given;
    int names[NAMES];
    if (producer.reduction || producer.out.offset) return false;
    loop_simplify(&producer);
    *made = *consumer;
    made->operand_count = made->expression_count = 0;
    if (!add_producer(consumer, read, &producer, names, made)) return false;
    const int result = names[loop_result(&producer)];
    for (int indexed = 0; indexed < 2; indexed++)
        for (int i = 0; i < consumer->operand_count; i++)
            if (consumer->operands[i].indexed == (indexed == 1))
                names[i] = i == read ? result : add_renamed(made, consumer->operands[i], names);
    if (!add_expressions(made, consumer, names) || made->operand_count > LOOP_OPERANDS) return false;
    return made->expression_count > 0 || names[0] == 0; /* without expressions, operand 0 is the element */
}
