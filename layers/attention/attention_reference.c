/* Attention and its gradient for the interpreter. */
#include "base/memory.h"
#include "base/random.h"
#include "layers/attention/attention.h"

#include <math.h>
#include <stdlib.h>

/* A head of a sample, and its arrays. */
struct head {
    const struct problem *problem;
    const struct node_arrays *arrays;
    struct attention_sizes z;
    int64_t sample, head;
};

static int64_t at(const struct head *h, bool joined, int64_t length, int64_t width, int64_t position)
{
    const int64_t row = joined ? (h->sample * length + position) * h->z.heads + h->head
                               : (h->sample * h->z.heads + h->head) * length + position;
    return row * width;
}

static int64_t at_q(const struct head *h, int64_t i)
{
    return at(h, attention_attributes(h->problem->node)->q_joined, h->z.length, h->z.width, i);
}

static int64_t at_k(const struct head *h, int64_t j)
{
    return at(h, attention_attributes(h->problem->node)->k_joined, h->z.keys, h->z.width, j);
}

static int64_t at_v(const struct head *h, int64_t j)
{
    return at(h, attention_attributes(h->problem->node)->v_joined, h->z.keys, h->z.width_v, j);
}

static int64_t at_y(const struct head *h, int64_t i)
{
    return at(h, attention_attributes(h->problem->node)->y_joined, h->z.length, h->z.width_v, i);
}

static double dot(const double *a, const double *b, int64_t width)
{
    double sum = 0;
    for (int64_t f = 0; f < width; f++) sum += a[f] * b[f];
    return sum;
}

/* The scores of query i; returns the largest one. */
static double scores(const struct head *h, int64_t i, double *s)
{
    double *const *in = h->arrays->inputs, most = -INFINITY;
    const double scale = (double)attention_attributes(h->problem->node)->scale;
    const int64_t bias = h->sample * h->z.bias_sample + h->head * h->z.bias_head + i * h->z.bias_row;
    for (int64_t j = 0; j < h->z.keys; j++) {
        s[j] = scale * dot(in[ATTENTION_Q] + at_q(h, i), in[ATTENTION_K] + at_k(h, j), h->z.width);
        if (in[ATTENTION_BIAS]) s[j] += in[ATTENTION_BIAS][bias + j];
        most = fmax(most, s[j]);
    }
    return most;
}

static int64_t at_softmax(const struct head *h, int64_t i)
{
    return 2 * ((h->sample * h->z.heads + h->head) * h->z.length + i);
}

/* The probabilities of query i, without dropout. */
static void probabilities(const struct head *h, int64_t i, double *p)
{
    const bool open = attention_attributes(h->problem->node)->open;
    double most = scores(h, i, p), sum = 0;
    if (open && most == -INFINITY) most = 0;
    for (int64_t j = 0; j < h->z.keys; j++) sum += p[j] = exp(p[j] - most);
    for (int64_t j = 0; j < h->z.keys; j++) p[j] = open && sum == 0 ? 0 : p[j] / sum;
    write_if(h->arrays->outputs[1], at_softmax(h, i), most);
    write_if(h->arrays->outputs[1], at_softmax(h, i) + 1, open && sum == 0 ? INFINITY : sum);
}

/* What dropout multiplies probability j of query i by (clkernels/dropout.cl). */
static double factor_of(const struct head *h, int64_t i, int64_t j)
{
    const struct step_constants *s = h->arrays->constants;
    const struct dropping drop = attention_dropping(h->problem, &h->z);
    if (attention_attributes(h->problem->node)->probability == 0 || h->arrays->inference) return 1;
    const uint64_t position = (uint64_t)s->first_sample * (uint64_t)drop.elements_of_sample +
        (uint64_t)(((h->sample * h->z.heads + h->head) * h->z.length + i) * h->z.keys + j);
    const uint64_t block = position / 64 * 16 + position % 16;
    const uint32_t key[2] = { s->seed_low, s->seed_high ^ s->step_high };
    const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), s->step_low, drop.stream };
    uint32_t numbers[4];
    philox4x32(key, counter, numbers);
    return numbers[position % 64 / 16] >= drop.threshold ? (double)(float)drop.scale : 0;
}

static void interpret_row(const struct head *h, int64_t i, double *p)
{
    double *y = h->arrays->outputs[0] + at_y(h, i);
    probabilities(h, i, p);
    for (int64_t f = 0; f < h->z.width_v; f++) y[f] = 0;
    for (int64_t j = 0; j < h->z.keys; j++) {
        const double kept = p[j] * factor_of(h, i, j), *v = h->arrays->inputs[ATTENTION_V] + at_v(h, j);
        for (int64_t f = 0; f < h->z.width_v; f++) y[f] += kept * v[f];
    }
}

static void add_to(double *to, int64_t at_first, const double *from, int64_t width, double factor)
{
    for (int64_t f = 0; to && f < width; f++) to[at_first + f] += factor * from[f];
}

static void interpret_gradient_row(const struct head *h, int64_t i, double *p)
{
    double *const *in = h->arrays->inputs, *const *out = h->arrays->outputs;
    const double *dy = in[ATTENTION_DY] + at_y(h, i), scale = (double)attention_attributes(h->problem->node)->scale;
    const double delta = dot(dy, in[ATTENTION_Y] + at_y(h, i), h->z.width_v);
    const double *softmax = in[ATTENTION_SOFTMAX] + at_softmax(h, i);
    scores(h, i, p);
    for (int64_t j = 0; j < h->z.keys; j++) {
        p[j] = exp(p[j] - softmax[0]) / softmax[1];
        const double factor = factor_of(h, i, j);
        const double ds = p[j] * (factor * dot(dy, in[ATTENTION_V] + at_v(h, j), h->z.width_v) - delta);
        add_to(out[0], at_q(h, i), in[ATTENTION_K] + at_k(h, j), h->z.width, ds * scale);
        add_to(out[1], at_k(h, j), in[ATTENTION_Q] + at_q(h, i), h->z.width, ds * scale);
        add_to(out[2], at_v(h, j), dy, h->z.width_v, p[j] * factor);
    }
}

static tutti_status interpret_rows(const struct problem *problem, const struct node_arrays *arrays,
    void (*row)(const struct head *h, int64_t i, double *p))
{
    struct head h = { .problem = problem, .arrays = arrays, .z = attention_sizes(problem) };
    double *p = memory_new((size_t)h.z.keys, sizeof *p);
    if (!p) return TUTTI_NO_MEMORY;
    for (h.sample = 0; h.sample < h.z.samples; h.sample++)
        for (h.head = 0; h.head < h.z.heads; h.head++)
            for (int64_t i = 0; i < h.z.length; i++) row(&h, i, p);
    free(p);
    return TUTTI_OK;
}

tutti_status attention_interpret(const struct problem *problem, const struct node_arrays *arrays)
{
    return interpret_rows(problem, arrays, interpret_row);
}

tutti_status attention_interpret_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    for (int i = 0; i < 3; i++)
        for (int64_t e = 0; arrays->outputs[i] && e < value_elements(problem->inputs[i]); e++)
            arrays->outputs[i][e] = 0;
    return interpret_rows(problem, arrays, interpret_gradient_row);
}
