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

/* What an operand reads of the producer's output: the place of its first element, and how far a step along each axis of
 * the consumer goes. False: some element's place is not the sum of these, because an axis carries into the next one. */
static bool map_axes(const struct loop *consumer, const struct loop_operand *read, const struct loop *producer,
    struct place *first, struct place *steps)
{
    if (!place_of(producer, read->offset, first)) return false;
    struct place last = *first;
    for (int axis = 0; axis < consumer->rank; axis++) {
        const int64_t most = consumer->sizes[axis] - 1;
        if (!place_of(producer, most > 0 ? read->strides[axis] : 0, &steps[axis])) return false;
        for (int i = 0; i < producer->rank; i++) last.at[i] += steps[axis].at[i] * most;
    }
    for (int i = 0; i < producer->rank; i++)
        if (last.at[i] >= producer->sizes[i]) return false;
    return true;
}

/* The operand of the loop that is equal to this one, which is appended where there is none. */
static int add_operand(struct loop *loop, const struct loop_operand *operand)
{
    for (int i = 0; i < loop->operand_count; i++) {
        const struct loop_operand *o = &loop->operands[i];
        if (o->input == operand->input && o->offset == operand->offset &&
            !memcmp(o->strides, operand->strides, sizeof o->strides))
            return i;
    }
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

bool loop_compose(const struct loop *consumer, int read, const struct loop *given, struct loop *made)
{
    struct loop producer = *given;
    struct place first = { 0 }, steps[TUTTI_MAX_RANK] = { 0 };
    int names[NAMES];
    if (producer.join || producer.out.offset) return false;
    loop_simplify(&producer);
    if (!map_axes(consumer, &consumer->operands[read], &producer, &first, steps)) return false;
    *made = *consumer;
    made->operand_count = made->step_count = 0;
    for (int i = 0; i < producer.operand_count; i++) {
        struct loop_operand operand = producer.operands[i];
        memset(operand.strides, 0, sizeof operand.strides);
        for (int p = 0; p < producer.rank; p++) {
            operand.offset += first.at[p] * producer.operands[i].strides[p];
            for (int axis = 0; axis < consumer->rank; axis++)
                operand.strides[axis] += steps[axis].at[p] * producer.operands[i].strides[p];
        }
        names[i] = add_operand(made, &operand);
    }
    if (!add_steps(made, &producer, names)) return false;
    const int result = names[loop_result(&producer)];
    for (int i = 0; i < consumer->operand_count; i++)
        names[i] = i == read ? result : add_operand(made, &consumer->operands[i]);
    return add_steps(made, consumer, names) && made->operand_count <= LOOP_OPERANDS;
}
