/* Two loops as one: what a loop reads is computed where it is read. */
#include "layers/loop.h"

#include <string.h>

struct place {
    int64_t at[TUTTI_MAX_RANK]; /* along each axis of the producer */
};

/* Where the element `position` of what a loop makes lies among its axes. False: behind the end. */
static bool place_of(const struct loop *producer, int64_t position, struct place *place)
{
    if (position < 0) return false;
    for (int i = 0; i < producer->rank; i++) {
        const int64_t stride = producer->out.strides[i];
        place->at[i] = stride ? position / stride : 0;
        if (stride) position %= stride;
        if (place->at[i] >= producer->sizes[i]) return false;
    }
    return position == 0;
}

/* Elements of an axis that the operand has. */
static int64_t extent(const struct loop *loop, const struct loop_operand *operand, int axis)
{
    return operand_is_guarded(operand, axis) ? operand->high[axis] - operand->low[axis] : loop->sizes[axis];
}

/* What an operand reads of the producer's output: the place of the first element that it has, and how far a step along
 * each axis of the consumer goes. False: some element's place is not the sum of these, because an axis carries into the
 * next one. */
static bool map_axes(const struct loop *consumer, const struct loop_operand *read, const struct loop *producer,
    struct place *first, struct place *steps)
{
    int64_t begin = read->offset;
    for (int axis = 0; axis < consumer->rank; axis++) begin += read->low[axis] * read->strides[axis];
    if (!place_of(producer, begin, first)) return false;
    struct place last = *first;
    for (int axis = 0; axis < consumer->rank; axis++) {
        const int64_t most = extent(consumer, read, axis) - 1;
        if (!place_of(producer, most > 0 ? read->strides[axis] : 0, &steps[axis])) return false;
        for (int i = 0; i < producer->rank; i++) last.at[i] += steps[axis].at[i] * most;
    }
    for (int i = 0; i < producer->rank; i++)
        if (last.at[i] >= producer->sizes[i]) return false;
    return true;
}

enum { NO_AXIS = -1, SEVERAL_AXES = -2 };

/* The axis of the consumer along which this one of the producer goes, element by element. */
static int axis_along(const struct loop *consumer, const struct place *steps, int p)
{
    int along = NO_AXIS;
    for (int axis = 0; axis < consumer->rank; axis++) {
        if (steps[axis].at[p] == 0) continue;
        if (steps[axis].at[p] != 1 || along != NO_AXIS) return SEVERAL_AXES;
        along = axis;
    }
    return along;
}

/* Where the operand of the producer exists, along the consumer's axes. */
static bool map_guards(const struct loop *consumer, const struct loop_operand *given, const struct loop *producer,
    const struct place *first, const struct place *steps, struct loop_operand *operand)
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

/* An operand of the producer as the consumer reads it. False: where one of them is padded, the other does more than to
 * move elements. */
static bool map_operand(const struct loop *consumer, const struct loop_operand *read, const struct loop *producer,
    const struct loop_operand *given, struct loop_operand *operand)
{
    struct place first = { 0 }, steps[TUTTI_MAX_RANK] = { 0 };
    if (read->guarded && (producer->step_count || given->guarded || given->indexed)) return false;
    if (read->indexed) return false;
    if (!map_axes(consumer, read, producer, &first, steps)) return false;
    *operand = *read;
    operand->input = given->input;
    operand->offset = given->offset;
    operand->indexed = given->indexed;
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
        !memcmp(a->high, b->high, sizeof a->high) && a->indexed == b->indexed && a->index == b->index &&
        a->index_stride == b->index_stride && a->index_size == b->index_size;
}

/* The operand of the loop that is equal to this one, which is appended where there is none. */
static int add_operand(struct loop *loop, const struct loop_operand *operand)
{
    for (int i = 0; i < loop->operand_count && i < LOOP_OPERANDS; i++)
        if (operand_equal(&loop->operands[i], operand)) return i;
    if (loop->operand_count < LOOP_OPERANDS) loop->operands[loop->operand_count] = *operand;
    return loop->operand_count++; /* too many are noticed in the end */
}

static bool step_equal(const struct loop_step *a, const struct loop_step *b)
{
    return a->expression == b->expression && a->low == b->low && a->high == b->high &&
        !memcmp(a->variables, b->variables, sizeof a->variables);
}

/* Appends the steps of another loop, whose variables are renamed; those that exist already get the name of their equal.
 * False: there is no room. */
static bool add_steps(struct loop *loop, const struct loop *from, int *names)
{
    for (int s = 0; s < from->step_count; s++) {
        struct loop_step step = from->steps[s];
        int same = 0;
        for (int i = 0; i < POINTWISE_VARIABLES; i++)
            if (step.variables[i] != LOOP_UNUSED) step.variables[i] = names[step.variables[i]];
        while (same < loop->step_count && !step_equal(&loop->steps[same], &step)) same++;
        if (same == LOOP_STEPS) return false;
        loop->steps[same] = step;
        if (same == loop->step_count) loop->step_count++;
        names[LOOP_STEP + s] = LOOP_STEP + same;
    }
    return true;
}

enum { NAMES = LOOP_STEP + LOOP_STEPS };

/* As add_operand(); the operand that it is indexed by has its new name already. */
static int add_renamed(struct loop *loop, struct loop_operand operand, const int *names)
{
    if (operand.indexed) operand.index = names[operand.index];
    return add_operand(loop, &operand);
}

/* The producer's operands as the consumer reads them: those that others are indexed by come first. */
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
    return add_steps(made, producer, names);
}

bool loop_compose(const struct loop *consumer, int read, const struct loop *given, struct loop *made)
{
    struct loop producer = *given;
    int names[NAMES];
    if (producer.join || producer.out.offset) return false;
    loop_simplify(&producer);
    *made = *consumer;
    made->operand_count = made->step_count = 0;
    if (!add_producer(consumer, read, &producer, names, made)) return false;
    const int result = names[loop_result(&producer)];
    for (int indexed = 0; indexed < 2; indexed++)
        for (int i = 0; i < consumer->operand_count; i++)
            if (consumer->operands[i].indexed == (indexed == 1))
                names[i] = i == read ? result : add_renamed(made, consumer->operands[i], names);
    if (!add_steps(made, consumer, names) || made->operand_count > LOOP_OPERANDS) return false;
    return made->step_count > 0 || names[0] == 0; /* without steps, operand 0 is the element */
}
