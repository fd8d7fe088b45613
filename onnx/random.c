/* Random numbers: new ones in each step, also in inference. The attribute `seed` is not read: they follow the trainer's
 * seed. */
#include "onnx/operators.h"

#include <string.h>

/* Type of the node's elements; `otherwise` if it does not say one. */
static tutti_status read_type(const struct step *step, int otherwise)
{
    const int type = (int)step_integer(step, "dtype", otherwise);
    if (!onnx_type_is_known(type)) return step_refuse("dtype %d, which is not read", type);
    step_type(step, 0, type);
    return TUTTI_OK;
}

/* The node's distribution, in the shape of x. */
static tutti_tensor draw(const struct step *step, tutti_tensor x)
{
    const bool normal = !strcmp(step->operation, "random_normal");
    const float first = step_number(step, normal ? "mean" : "low", 0);
    const float second = step_number(step, normal ? "scale" : "high", 1);
    return step_op(step, step->operation, &x, 1, "offset=%.9g scale=%.9g", (double)first,
        normal ? (double)second : (double)second - (double)first);
}

/* Draws numbers of these sizes. In a file for one number of samples, values of each sample have this number as their
 * first size. If it is 1, values that all samples share have this size, too, and samples get numbers of their own. */
static tutti_status draw_sizes(struct step *step, struct extent *sizes, int rank)
{
    const int64_t batch = step->import->options->whole ? 0 : step->import->fixed_batch;
    bool guessed = batch > 0 && rank > 0 && sizes[0].number == batch && (batch > 1 || rank > 1);
    struct operand x;
    struct value *y = step_output(step, 0);
    for (int i = 0; i < rank; i++) guessed &= !sizes[i].batches;
    if (guessed && y) {
        const tutti_status status = step_filled(step, sizes, (size_t)rank, 0, &x);
        if (status != TUTTI_OK) return status;
        y->alike = draw(step, x.tensor);
        sizes[0] = (struct extent) { 0, 1 };
    }
    const tutti_status status = step_filled(step, sizes, (size_t)rank, 0, &x);
    return status == TUTTI_OK ? step_done(step, draw(step, x.tensor), x.place) : status;
}

tutti_status build_random(struct step *step)
{
    struct extent sizes[TUTTI_MAX_RANK + 1];
    size_t rank = 0;
    const int64_t *shape = step_integers(step, "shape", &rank);
    if (rank > TUTTI_MAX_RANK) return step_refuse("its shape has too many axes");
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 1) return step_refuse("axis %zu has no element", i);
        sizes[i] = (struct extent) { shape[i], 0 };
    }
    const tutti_status status = read_type(step, ONNX_FLOAT);
    return status == TUTTI_OK ? draw_sizes(step, sizes, (int)rank) : status;
}

tutti_status build_random_like(struct step *step)
{
    struct operand x;
    struct extent sizes[TUTTI_MAX_RANK + 1];
    int rank = 0;
    const struct value *like = step_input(step, 0);
    if (!like) return fail(TUTTI_FORMAT, "input 0 is missing");
    tutti_status status = read_type(step, onnx_type_is_float(like->type) ? like->type : ONNX_FLOAT);
    if (status != TUTTI_OK) return status;
    if (like->tensor.id >= 0) {
        status = step_operand(step, 0, &x);
        if (status == TUTTI_OK && x.place.batched) return step_done(step, draw(step, x.tensor), x.place);
    }
    if (status == TUTTI_OK) status = value_extents(step->import, like, sizes, &rank);
    return status == TUTTI_OK ? draw_sizes(step, sizes, rank) : status;
}

/* 1 with the probability that is the input's element. */
tutti_status build_bernoulli(struct step *step)
{
    struct operand p;
    const struct value *input = step_input(step, 0);
    tutti_status status = step_operand(step, 0, &p);
    if (status == TUTTI_OK) status = read_type(step, input->type);
    if (status != TUTTI_OK) return status;
    const tutti_tensor drawn = step_plain(step, "random_uniform", &p.tensor, 1);
    return step_done(step, step_binary(step, "less", drawn, p.tensor), p.place);
}
