/* Connectionist temporal classification, by the equations of the paper (Graves et al. 2006, section 4.1) in double. */
#include "layers/interpreter/interpreter.h"

#include "base/memory.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"

#include <math.h>
#include <stdlib.h>

/* One sample: logits and gradient [frames][classes], labels [count], frames that count. dx may be NULL. */
struct list {
    const double *x, *labels;
    double *dx, *log_y, *before, *after; /* before, after: [length][states], sums of paths to and from a state */
    int64_t classes, count, states, length, frames;
    int blank;
};

static int64_t class_of(const struct list *l, int64_t s)
{
    return s % 2 ? (int64_t)l->labels[s / 2] : l->blank;
}

static bool may_skip(const struct list *l, int64_t s)
{
    return s >= 2 && s < l->states && s % 2 && class_of(l, s) != class_of(l, s - 2);
}

static double log_sum(double a, double b)
{
    const double most = fmax(a, b), least = fmin(a, b);
    return isnan(a) || isnan(b) ? NAN : most == -INFINITY ? most : most + log1p(exp(least - most));
}

static void log_softmax(const struct list *l)
{
    for (int64_t t = 0; t < l->length; t++) {
        const double *x = l->x + t * l->classes;
        double most = -INFINITY, sum = 0;
        for (int64_t c = 0; c < l->classes; c++) most = fmax(most, x[c]);
        for (int64_t c = 0; c < l->classes; c++) sum += exp(x[c] - most);
        for (int64_t c = 0; c < l->classes; c++) l->log_y[t * l->classes + c] = x[c] - most - log(sum);
    }
}

/* Returns minus the logarithm of the sum of all paths; infinity: there is none. */
static double sum_paths(const struct list *l)
{
    const int64_t states = l->states;
    if (l->length == 0) return l->count ? INFINITY : 0;
    for (int64_t t = 0; t < l->length; t++)
        for (int64_t s = 0; s < states; s++) {
            double sum = t == 0 && s < 2 ? 0 : -INFINITY;
            const double *from = l->before + (t - 1) * states;
            for (int64_t d = 0; t > 0 && d <= 2 && d <= s; d++)
                if (d < 2 || may_skip(l, s)) sum = log_sum(sum, from[s - d]);
            l->before[t * states + s] = sum + l->log_y[t * l->classes + class_of(l, s)];
        }
    for (int64_t t = l->length; t-- > 0;)
        for (int64_t s = 0; s < states; s++) {
            double sum = t == l->length - 1 && s >= states - 2 ? 0 : -INFINITY;
            for (int64_t d = 0; t < l->length - 1 && d <= 2 && s + d < states; d++)
                if (d < 2 || may_skip(l, s + d))
                    sum = log_sum(
                        sum, l->after[(t + 1) * states + s + d] + l->log_y[(t + 1) * l->classes + class_of(l, s + d)]);
            l->after[t * states + s] = sum;
        }
    const double *last = l->before + (l->length - 1) * states;
    return -log_sum(last[states - 1], states > 1 ? last[states - 2] : -INFINITY);
}

static void differentiate(const struct list *l, double loss, double factor)
{
    for (int64_t t = 0; t < l->frames; t++)
        for (int64_t c = 0; c < l->classes; c++) {
            double through = 0;
            for (int64_t s = 0; t < l->length && s < l->states; s++)
                if (class_of(l, s) == c)
                    through += exp(l->before[t * l->states + s] + l->after[t * l->states + s] + loss);
            l->dx[t * l->classes + c] = t < l->length ? (exp(l->log_y[t * l->classes + c]) - through) * factor : 0;
        }
}

/* Reads the labels of a sample. Returns whether all are possible. */
static bool read_labels(struct list *l, const double *labels, int64_t listed)
{
    bool possible = true;
    l->labels = labels;
    for (l->count = 0; l->count < listed && labels[l->count] >= 0; l->count++)
        possible &= labels[l->count] < (double)l->classes && labels[l->count] != l->blank;
    l->states = 2 * l->count + 1;
    return possible;
}

/* Returns the sample's loss. */
static double run(const struct problem *problem, struct list *l, bool possible, double factor)
{
    const struct loss_attributes *a = loss_attributes(problem->node);
    const double share = a->summed ? 1 : 1 / fmax((double)l->count, 1);
    double loss = NAN;
    if (possible) {
        log_softmax(l);
        loss = sum_paths(l);
    }
    const bool zero = loss == INFINITY && a->zero_infinity;
    if (l->dx && isfinite(loss)) differentiate(l, loss, factor * share);
    for (int64_t i = 0; l->dx && !isfinite(loss) && i < l->frames * l->classes; i++)
        l->dx[i] = zero || i >= l->length * l->classes ? 0 : NAN;
    return zero ? 0 : loss * share;
}

tutti_status interpret_ctc(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct loss_attributes *a = loss_attributes(problem->node);
    const tutti_shape *x = &problem->inputs[LOSS_X]->shape;
    const int64_t frames = x->sizes[1], classes = x->sizes[2], listed = problem->inputs[LOSS_TARGETS]->shape.sizes[1];
    const double factor = (a->weight != 0 ? (double)a->weight : 1) * (double)arrays->constants->gradient_weight;
    struct list l = { .classes = classes, .frames = frames, .blank = a->blank };
    tutti_status status = TUTTI_OK;
    double loss = 0;
    l.log_y = memory_new((size_t)(frames * classes), sizeof *l.log_y);
    l.before = memory_new((size_t)(frames * (2 * listed + 1)), sizeof *l.before);
    l.after = memory_new((size_t)(frames * (2 * listed + 1)), sizeof *l.after);
    if (!l.log_y || !l.before || !l.after) FAIL(TUTTI_NO_MEMORY, "not enough memory for a loss of ctc");
    for (int64_t n = 0; n < x->sizes[0]; n++) {
        const double *lengths = arrays->inputs[LOSS_LENGTHS];
        l.x = arrays->inputs[LOSS_X] + n * frames * classes;
        l.dx = arrays->outputs[LOSS_GRADIENT] ? arrays->outputs[LOSS_GRADIENT] + n * frames * classes : NULL;
        l.length = lengths ? (int64_t)fmin(fmax(lengths[n], 0), (double)frames) : frames;
        const bool possible = read_labels(&l, arrays->inputs[LOSS_TARGETS] + n * listed, listed);
        loss += run(problem, &l, possible, factor);
    }
    write_if(arrays->outputs[LOSS_METRICS], 0, loss);
    write_if(arrays->outputs[LOSS_METRICS], 1, 0);
done:
    free(l.log_y);
    free(l.before);
    free(l.after);
    return status;
}
