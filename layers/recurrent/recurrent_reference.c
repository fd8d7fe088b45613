/* Recurrent layers in double precision, for the interpreter: the formulas at the head of recurrent.c, sample by sample.
 */
#include "layers/recurrent/recurrent.h"

#include <math.h>
#include <string.h>

static double apply(enum activation function, double x)
{
    const double variables[POINTWISE_VARIABLES] = { [VARIABLE_A] = x };
    return activations[function].y.function(variables, 0, 0);
}

static double slope(enum activation function, double y)
{
    const double variables[POINTWISE_VARIABLES] = { [VARIABLE_Y] = y, [VARIABLE_G] = 1 };
    return activations[function].derivatives[0].function(variables, 0, 0);
}

static double squash(const struct recurrent_attributes *a, int function, double x)
{
    const double clip = (double)a->clip;
    return apply(a->functions[function], clip > 0 ? fmin(fmax(x, -clip), clip) : x);
}

/* 0 where the argument was clipped. */
static double squash_slope(const struct recurrent_attributes *a, int function, double y)
{
    const double clip = (double)a->clip;
    const enum activation f = a->functions[function];
    if (clip > 0 && !(y < apply(f, clip) && y > apply(f, -clip))) return 0;
    return slope(f, y);
}

struct sample {
    const struct recurrent_attributes *a;
    int64_t steps, width, count; /* count: steps that it has */
    const double *r, *bias, *h0, *c0, *peepholes;
};

static int64_t count_of(const double *lengths, int64_t sample, int64_t steps)
{
    if (!lengths || lengths[sample] >= (double)steps) return steps;
    return lengths[sample] > 0 ? (int64_t)lengths[sample] : 0;
}

static const double *row_of(const double *from, int64_t sample, int64_t width)
{
    return from ? from + sample * width : NULL;
}

static int64_t place(const struct sample *s, int64_t step)
{
    return s->a->reverse ? s->count - 1 - step : step;
}

static double product(const struct sample *s, int gate, int64_t j, const double *v)
{
    const int64_t row = recurrent_place(s->a, gate) * s->width + j;
    double sum = s->bias ? s->bias[row] : 0;
    for (int64_t k = 0; v && k < s->width; k++) sum += s->r[row * s->width + k] * v[k];
    return sum;
}

static double peep(const struct sample *s, int number, int64_t j, double cell)
{
    return s->peepholes ? s->peepholes[number * s->width + j] * cell : 0;
}

#define INPUT(gate) now[recurrent_place(s->a, gate) * s->width + j]

static void lstm_step(
    const struct sample *s, const double *now, const double *h, const double *c, double *keep, double *y)
{
    for (int64_t j = 0; j < s->width; j++) {
        const double cell = c ? c[j] : 0, i = squash(s->a, 0, INPUT(0) + product(s, 0, j, h) + peep(s, 0, j, cell));
        const double f = s->a->coupled ? 1 - i : squash(s->a, 0, INPUT(2) + product(s, 2, j, h) + peep(s, 2, j, cell));
        const double g = squash(s->a, 1, INPUT(3) + product(s, 3, j, h)), next = f * cell + i * g;
        const double o = squash(s->a, 0, INPUT(1) + product(s, 1, j, h) + peep(s, 1, j, next));
        const double kept[] = { i, o, f, g, next };
        for (int k = 0; k < 5; k++) keep[k * s->width + j] = kept[k];
        y[j] = o * apply(s->a->functions[2], next);
    }
}

static void gru_step(const struct sample *s, const double *now, const double *h, double *keep, double *y)
{
    const int64_t width = s->width;
    double *z = keep, *r = keep + width, *n = keep + 2 * width, *q = keep + 3 * width;
    for (int64_t j = 0; j < width; j++) {
        z[j] = squash(s->a, 0, INPUT(0) + product(s, 0, j, h));
        r[j] = squash(s->a, 0, INPUT(1) + product(s, 1, j, h));
        q[j] = s->a->after ? product(s, 2, j, h) : h ? r[j] * h[j] : 0;
    }
    for (int64_t j = 0; j < width; j++) {
        n[j] = squash(s->a, 1, INPUT(2) + (s->a->after ? r[j] * q[j] : product(s, 2, j, h ? q : NULL)));
        y[j] = (1 - z[j]) * n[j] + (h ? z[j] * h[j] : 0);
    }
}

static void simple_step(const struct sample *s, const double *now, const double *h, double *y)
{
    for (int64_t j = 0; j < s->width; j++) y[j] = squash(s->a, 0, INPUT(0) + product(s, 0, j, h));
}

static void copy_state(double *to, const double *from, int64_t width)
{
    for (int64_t j = 0; to && j < width; j++) to[j] = from ? from[j] : 0;
}

tutti_status recurrent_interpret(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[RECURRENT_GATES];
    double *const *in = arrays->inputs, *const *out = arrays->outputs;
    struct sample all = { recurrent_attributes(problem->node), x->shape.sizes[1],
        value_size(problem->inputs[RECURRENT_R], 0), .r = in[RECURRENT_R], .bias = in[RECURRENT_BIAS],
        .peepholes = in[RECURRENT_PEEPHOLES] };
    const int64_t width = all.width, steps = all.steps;
    const int saved = recurrent_saved(all.a->kind), gates = recurrent_gates(all.a->kind);
    for (int64_t n = 0; n < x->shape.sizes[0]; n++) {
        struct sample *s = &all;
        double *y = out[RECURRENT_Y] + n * steps * width;
        double *keep = saved ? out[RECURRENT_SAVED] + n * steps * width * saved : NULL;
        s->count = count_of(in[RECURRENT_LENGTHS], n, steps);
        const double *h = row_of(in[RECURRENT_H0], n, width), *c = row_of(in[RECURRENT_C0], n, width);
        memset(y, 0, (size_t)(steps * width) * sizeof *y);
        if (keep) memset(keep, 0, (size_t)(steps * width * saved) * sizeof *keep);
        for (int64_t step = 0; step < s->count; step++) {
            const int64_t t = place(s, step);
            const double *now = in[RECURRENT_GATES] + (n * steps + t) * gates * width;
            double *kept = keep ? keep + t * saved * width : NULL, *to = y + t * width;
            if (s->a->kind == RECURRENT_LSTM) lstm_step(s, now, h, c, kept, to);
            if (s->a->kind == RECURRENT_GRU) gru_step(s, now, h, kept, to);
            if (s->a->kind == RECURRENT_SIMPLE) simple_step(s, now, h, to);
            h = to;
            if (s->a->kind == RECURRENT_LSTM) c = kept + 4 * width;
        }
        copy_state(out[RECURRENT_LAST] ? out[RECURRENT_LAST] + n * width : NULL, h, width);
        if (s->a->kind == RECURRENT_LSTM)
            copy_state(out[RECURRENT_LAST_C] ? out[RECURRENT_LAST_C] + n * width : NULL, c, width);
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- gradient ---- */

/* One step backwards: the gradients of its products and of the states before it. */
struct back {
    const double *keep, *h, *c, *y; /* h, c: before the step, or NULL */
    const double *dy;               /* or NULL */
    double *d, *other;              /* other: or NULL */
    double *dh, *dc;                /* of the states; dc of an LSTM alone */
};

#define D(gate) b->d[recurrent_place(s->a, gate) * s->width + j]

static double state_at(const double *state, int64_t j)
{
    return state ? state[j] : 0;
}

static double through(const struct sample *s, const double *d, int64_t j, int first, int last)
{
    double sum = 0;
    for (int64_t row = first * s->width; row < last * s->width; row++) sum += d[row] * s->r[row * s->width + j];
    return sum;
}

static void lstm_back(const struct sample *s, const struct back *b)
{
    const int64_t width = s->width;
    for (int64_t j = 0; j < width; j++) {
        const double i = b->keep[j], o = b->keep[width + j], f = b->keep[2 * width + j], g = b->keep[3 * width + j];
        const double squashed = apply(s->a->functions[2], b->keep[4 * width + j]), c = state_at(b->c, j);
        const double dh = b->dh[j] + state_at(b->dy, j), dout = dh * squashed * squash_slope(s->a, 0, o);
        const double dcell = b->dc[j] + dh * o * slope(s->a->functions[2], squashed) + peep(s, 1, j, dout);
        const double dforget = s->a->coupled ? 0 : dcell * c * squash_slope(s->a, 0, f);
        const double din = dcell * (s->a->coupled ? g - c : g) * squash_slope(s->a, 0, i);
        D(0) = din;
        D(1) = dout;
        D(2) = dforget;
        D(3) = dcell * i * squash_slope(s->a, 1, g);
        b->dc[j] = dcell * f + peep(s, 0, j, din) + peep(s, 2, j, dforget);
        if (b->other) b->other[j] = c;
    }
    for (int64_t j = 0; j < width; j++) b->dh[j] = through(s, b->d, j, 0, 4);
}

static void gru_back(const struct sample *s, const struct back *b)
{
    const int64_t width = s->width;
    const double *z = b->keep, *r = b->keep + width, *n = b->keep + 2 * width, *q = b->keep + 3 * width;
    for (int64_t j = 0; j < width; j++) {
        const double dh = b->dh[j] + state_at(b->dy, j);
        D(2) = dh * (1 - z[j]) * squash_slope(s->a, 1, n[j]);
        D(0) = dh * (state_at(b->h, j) - n[j]) * squash_slope(s->a, 0, z[j]);
        b->dh[j] = dh * z[j];
    }
    for (int64_t j = 0; j < width; j++) {
        const double dstate = through(s, b->d, j, 2, 3);
        D(1) = (s->a->after ? D(2) * q[j] : dstate * state_at(b->h, j)) * squash_slope(s->a, 0, r[j]);
        if (!s->a->after) b->dh[j] += dstate * r[j];
    }
    for (int64_t j = 0; j < width && s->a->after; j++) {
        b->other[j] = b->d[j];
        b->other[width + j] = b->d[width + j];
        b->other[2 * width + j] = D(2) * r[j];
    }
    for (int64_t j = 0; j < width; j++)
        b->dh[j] += s->a->after ? through(s, b->other, j, 0, 3) : through(s, b->d, j, 0, 2);
}

static void simple_back(const struct sample *s, const struct back *b)
{
    for (int64_t j = 0; j < s->width; j++) D(0) = (b->dh[j] + state_at(b->dy, j)) * squash_slope(s->a, 0, b->y[j]);
    for (int64_t j = 0; j < s->width; j++) b->dh[j] = through(s, b->d, j, 0, 1);
}

static double *step_in(double *from, int64_t step, int64_t size)
{
    return from ? from + step * size : NULL;
}

static void run_back(const struct problem *problem, const struct node_arrays *arrays, const struct sample *s, int64_t n)
{
    double *const *in = arrays->inputs, *const *out = arrays->outputs;
    const int64_t width = s->width;
    const int saved = recurrent_saved(s->a->kind), gates = recurrent_gates(s->a->kind);
    const int others = recurrent_others(s->a->kind);
    const bool lstm = s->a->kind == RECURRENT_LSTM;
    struct back b = { .dh = out[BACKWARD_DH0] + n * width, .dc = step_in(out[BACKWARD_DC0], n, width) };
    (void)problem;
    copy_state(b.dh, row_of(in[BACKWARD_DLAST], n, width), width);
    if (lstm) copy_state(b.dc, row_of(in[BACKWARD_DLAST_C], n, width), width);
    for (int64_t step = s->count - 1; step >= 0; step--) {
        const int64_t t = n * s->steps + place(s, step), before = n * s->steps + place(s, step - 1);
        b.keep = step_in(in[BACKWARD_SAVED], t, saved * width);
        b.y = in[BACKWARD_Y] + t * width;
        b.h = step ? in[BACKWARD_Y] + before * width : s->h0;
        b.c = lstm && step ? in[BACKWARD_SAVED] + (before * saved + 4) * width : s->c0;
        b.dy = step_in(in[BACKWARD_DY], t, width);
        b.d = out[BACKWARD_DGATES] + t * gates * width;
        b.other = step_in(out[BACKWARD_OTHER], t, others * width);
        if (lstm) lstm_back(s, &b);
        if (s->a->kind == RECURRENT_GRU) gru_back(s, &b);
        if (s->a->kind == RECURRENT_SIMPLE) simple_back(s, &b);
        copy_state(step_in(out[BACKWARD_PREVIOUS], t, width), b.h, width);
    }
}

tutti_status recurrent_interpret_gradient(const struct problem *problem, const struct node_arrays *arrays)
{
    double *const *in = arrays->inputs;
    const struct value *y = problem->inputs[BACKWARD_Y];
    struct sample s = { recurrent_attributes(problem->node), y->shape.sizes[1], value_size(y, 0), .r = in[BACKWARD_R],
        .peepholes = in[BACKWARD_PEEPHOLES] };
    static const int outputs[] = { BACKWARD_DGATES, BACKWARD_PREVIOUS, BACKWARD_OTHER };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (arrays->outputs[outputs[i]])
            memset(
                arrays->outputs[outputs[i]], 0, (size_t)value_elements(problem->outputs[outputs[i]]) * sizeof(double));
    for (int64_t n = 0; n < y->shape.sizes[0]; n++) {
        s.count = count_of(in[BACKWARD_LENGTHS], n, s.steps);
        s.h0 = row_of(in[BACKWARD_H0], n, s.width);
        s.c0 = row_of(in[BACKWARD_C0], n, s.width);
        run_back(problem, arrays, &s, n);
    }
    return TUTTI_OK;
}
