/* What implementations and the interpreter read of a problem. */
#include "base/numbers.h"
#include "base/random.h"
#include "layers/attention/attention.h"

/* Elements from one index of the bias's axis to the next; 0 where it is repeated. */
static int64_t stride_of(const struct value *bias, int from_last)
{
    int64_t stride = 1;
    if (from_last >= bias->shape.rank - bias->batched || value_size(bias, from_last) == 1) return 0;
    for (int i = 0; i < from_last; i++) stride *= value_size(bias, i);
    return stride;
}

bool attention_is_gradient(const struct problem *problem)
{
    return problem->node->operation == &operation_attention_gradient;
}

struct attention_sizes attention_sizes(const struct problem *problem)
{
    const struct attention_attributes *a = attention_attributes(problem->node);
    const struct value *q = problem->inputs[ATTENTION_Q], *k = problem->inputs[ATTENTION_K];
    const struct value *v = problem->inputs[ATTENTION_V], *bias = problem->inputs[ATTENTION_BIAS];
    struct attention_sizes sizes = {
        .samples = q->shape.sizes[0],
        .heads = attention_heads(q, a->q_joined),
        .length = attention_length(q, a->q_joined),
        .keys = attention_length(k, a->k_joined),
        .width = value_size(q, 0),
        .width_v = value_size(v, 0),
    };
    if (!bias) return sizes;
    sizes.bias_row = stride_of(bias, 1);
    sizes.bias_head = stride_of(bias, 2);
    sizes.bias_sample = bias->batched ? value_elements(bias) / bias->shape.sizes[0] : 0;
    return sizes;
}

struct dropping attention_dropping(const struct problem *problem, const struct attention_sizes *sizes)
{
    const struct attention_attributes *a = attention_attributes(problem->node);
    const double probability = (double)a->probability;
    const int64_t total = sizes->samples * sizes->heads * sizes->length * sizes->keys;
    return (struct dropping) {
        .threshold = (uint32_t)(probability * 0x1p32),
        .stream = (uint32_t)RANDOM_DROPOUT + (uint32_t)a->stream,
        .scale = 1 / (1 - probability),
        .elements_of_sample = total / value_samples(problem->inputs[ATTENTION_Q]),
    };
}

const char *attention_options(const struct problem *problem, char text[ATTENTION_OPTIONS])
{
    const struct attention_attributes *a = attention_attributes(problem->node);
    const bool backward = attention_is_gradient(problem);
    text[0] = '\0';
    number_append(text, ATTENTION_OPTIONS,
        "-DQ_JOINED=%d -DK_JOINED=%d -DV_JOINED=%d -DY_JOINED=%d -DOPEN=%d -DBIAS=%d -DDROP=%d", a->q_joined,
        a->k_joined, a->v_joined, a->y_joined, a->open, problem->inputs[ATTENTION_BIAS] != NULL, a->probability > 0);
    number_append(text, ATTENTION_OPTIONS, " -DSOFTMAX=%d -DDQ=%d -DDK=%d -DDV=%d", !backward && problem->outputs[1],
        backward && problem->outputs[0], backward && problem->outputs[1], backward && problem->outputs[2]);
    return text;
}

cl_mem attention_any(const struct operands *operands, int i)
{
    for (int j = 0; j < 3 && !operands->outputs[i]; j++) i = operands->outputs[j] ? j : i;
    return operands->outputs[i];
}

/* The products: two, and five in the gradient. Keys that a bias hides are counted. */
double attention_flops(const struct problem *problem)
{
    const struct attention_sizes z = attention_sizes(problem);
    const double scores = (double)(z.samples * z.heads) * (double)z.length * (double)z.keys;
    const double backward = attention_is_gradient(problem) ? 1 : 0;
    return 2 * scores * ((1 + 2 * backward) * (double)z.width + (1 + backward) * (double)z.width_v);
}

double attention_bytes(const struct problem *problem)
{
    double elements = 0;
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i] && i != ATTENTION_CONSTANTS) elements += (double)value_elements(problem->inputs[i]);
    for (int i = 0; i < problem->node->output_count; i++)
        if (problem->outputs[i]) elements += (double)value_elements(problem->outputs[i]);
    return 4 * elements;
}
