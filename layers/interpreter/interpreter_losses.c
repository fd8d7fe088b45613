/* Losses, with the gradients that they make at once, and their sum. */
#include "layers/interpreter/interpreter.h"

#include "layers/layers.h"
#include "layers/loss/loss.h"

#include <math.h>
#include <string.h>

/* Returns the factor of a loss's gradient; `positions` are those of a sample. */
static double gradient_factor(const struct problem *problem, const struct node_arrays *arrays, int64_t positions)
{
    const float weight = loss_attributes(problem->node)->weight;
    return (weight != 0 ? (double)weight : 1) / (double)positions * (double)arrays->constants->gradient_weight;
}

/* cross_entropy and nll of one label. x and dx are its classes, `inner` elements apart. dx may be NULL. weights: of
 * the classes, or NULL. Returns the loss, the sum of wanted[i] (norm - x[i]), where norm is log(sum of exp(x)), or 0
 * in nll. *correct: whether the label is the first of the largest. The mean of the weights is taken from the
 * attributes, as kernels do: a trial makes up weights with another mean. */
static double classify(const struct problem *problem, const double *x, const double *weights, int64_t classes,
    int64_t inner, int64_t label, double factor, double *dx, bool *correct)
{
    const struct loss_attributes *a = loss_attributes(problem->node);
    const bool probabilities = problem->node->operation == &operation_nll, known = label < classes;
    const double smoothing = (double)a->smoothing, own = known ? x[label * inner] : NAN;
    double pull = 1, most = -INFINITY, sum = 0; /* pull: the sum of wanted */
    if (weights && known) pull = (1 - smoothing) * weights[label] + smoothing * (double)a->mean_weight;
    for (int64_t i = 0; i < classes; i++) most = fmax(most, x[i * inner]);
    for (int64_t i = 0; i < classes; i++) sum += exp(x[i * inner] - most);
    double loss = probabilities ? 0 : pull * log(sum);
    *correct = known;
    for (int64_t i = 0; i < classes; i++) {
        const double share = probabilities ? 0 : exp(x[i * inner] - most) / sum;
        const double wanted =
            ((i == label ? 1 - smoothing : 0) + smoothing / (double)classes) * (weights ? weights[i] : 1);
        if (x[i * inner] > own || isnan(x[i * inner]) || (x[i * inner] == own && i < label)) *correct = false;
        if (wanted != 0) loss += wanted * ((probabilities ? 0 : most) - x[i * inner]);
        if (dx) dx[i * inner] = (pull * share - wanted) * factor;
    }
    return known ? loss : NAN;
}

tutti_status interpret_loss_of_classes(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[LOSS_X];
    const struct loss_attributes *a = loss_attributes(problem->node);
    const int axis = loss_class_axis(problem->node, x);
    const int64_t classes = x->shape.sizes[axis], inner = value_planes(x, axis).pixels;
    const int64_t labels = value_elements(problem->inputs[LOSS_TARGETS]), positions = labels / x->shape.sizes[0];
    const double factor = gradient_factor(problem, arrays, positions);
    const double *weights = arrays->inputs[LOSS_CLASS_WEIGHTS];
    double *metrics = arrays->outputs[LOSS_METRICS], loss = 0, hits = 0;
    for (int64_t i = 0; i < labels; i++) {
        const int64_t label = (int64_t)arrays->inputs[LOSS_TARGETS][i];
        const int64_t first = i / inner * classes * inner + i % inner;
        double *dx = arrays->outputs[LOSS_GRADIENT] ? arrays->outputs[LOSS_GRADIENT] + first : NULL;
        bool correct = false;
        if (label >= 0 && !(a->ignores && label == a->ignored))
            loss +=
                classify(problem, arrays->inputs[LOSS_X] + first, weights, classes, inner, label, factor, dx, &correct);
        else
            for (int64_t c = 0; dx && c < classes; c++) dx[c * inner] = 0;
        hits += correct;
    }
    write_if(metrics, 0, loss / (double)positions);
    write_if(metrics, 1, hits / (double)positions);
    return TUTTI_OK;
}

/* soft_cross_entropy of one position; x, p and dx are its classes, `inner` elements apart. dx may be NULL. */
static double compare(const struct problem *problem, const double *x, const double *p, const double *weights,
    int64_t classes, int64_t inner, double factor, double *dx, bool *correct)
{
    const double smoothing = (double)loss_attributes(problem->node)->smoothing;
    double most = -INFINITY, sum = 0, pull = 0, loss = 0;
    int64_t predicted = 0, right = 0;
    for (int64_t i = 0; i < classes; i++) {
        if (x[i * inner] > x[predicted * inner]) predicted = i;
        if (p[i * inner] > p[right * inner]) right = i;
        most = fmax(most, x[i * inner]);
    }
    for (int64_t i = 0; i < classes; i++) {
        const double wanted =
            ((1 - smoothing) * p[i * inner] + smoothing / (double)classes) * (weights ? weights[i] : 1);
        sum += exp(x[i * inner] - most);
        pull += wanted;
        if (wanted != 0) loss += wanted * (most - x[i * inner]);
        if (dx) dx[i * inner] = -wanted * factor;
    }
    for (int64_t i = 0; dx && i < classes; i++) dx[i * inner] += pull * exp(x[i * inner] - most) / sum * factor;
    *correct = predicted == right && !isnan(sum);
    return loss + pull * log(sum);
}

tutti_status interpret_soft_cross_entropy(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[LOSS_X];
    const int axis = loss_class_axis(problem->node, x);
    const int64_t classes = x->shape.sizes[axis], inner = value_planes(x, axis).pixels;
    const int64_t labels = value_elements(x) / classes, positions = labels / x->shape.sizes[0];
    const double factor = gradient_factor(problem, arrays, positions);
    double loss = 0, hits = 0;
    for (int64_t i = 0; i < labels; i++) {
        const int64_t first = i / inner * classes * inner + i % inner;
        double *dx = arrays->outputs[LOSS_GRADIENT] ? arrays->outputs[LOSS_GRADIENT] + first : NULL;
        bool correct = false;
        loss += compare(problem, arrays->inputs[LOSS_X] + first, arrays->inputs[LOSS_TARGETS] + first,
            arrays->inputs[LOSS_CLASS_WEIGHTS], classes, inner, factor, dx, &correct);
        hits += correct;
    }
    write_if(arrays->outputs[LOSS_METRICS], 0, loss / (double)positions);
    write_if(arrays->outputs[LOSS_METRICS], 1, hits / (double)positions);
    return TUTTI_OK;
}

/* The loss of prediction x and target t, and its derivative by x. */
static double loss_of_element(const struct node *node, double x, double t, double *derivative)
{
    const double d = x - t, delta = (double)loss_attributes(node)->delta;
    if (node->operation == &operation_mean_squared_error) {
        *derivative = 2 * d;
        return d * d;
    }
    if (node->operation == &operation_l1) {
        *derivative = (d > 0) - (d < 0);
        return fabs(d);
    }
    if (node->operation == &operation_huber) {
        *derivative = fabs(d) <= delta ? d : copysign(delta, d);
        return fabs(d) <= delta ? d * d / 2 : delta * (fabs(d) - delta / 2);
    }
    *derivative = 1 / (1 + exp(-x)) - t;
    return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
}

tutti_status interpret_loss_of_elements(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[LOSS_X];
    const int64_t count = value_elements(x), positions = count / x->shape.sizes[0];
    const double factor = gradient_factor(problem, arrays, positions);
    double loss = 0, hits = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = arrays->inputs[LOSS_X][i], t = arrays->inputs[LOSS_TARGETS][i];
        double derivative = 0;
        loss += loss_of_element(problem->node, v, t, &derivative);
        hits += problem->node->operation == &operation_bce_with_logits && (v > 0) == (t > 0.5);
        write_if(arrays->outputs[LOSS_GRADIENT], i, derivative * factor);
    }
    write_if(arrays->outputs[LOSS_METRICS], 0, loss / (double)positions);
    write_if(arrays->outputs[LOSS_METRICS], 1, hits / (double)positions);
    return TUTTI_OK;
}

tutti_status interpret_mean_loss(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct value *x = problem->inputs[LOSS_X];
    const int64_t count = value_elements(x), positions = count / x->shape.sizes[0];
    const double factor = gradient_factor(problem, arrays, positions);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += arrays->inputs[LOSS_X][i];
        write_if(arrays->outputs[LOSS_GRADIENT], i, factor);
    }
    write_if(arrays->outputs[LOSS_METRICS], 0, sum / (double)positions);
    write_if(arrays->outputs[LOSS_METRICS], 1, 0);
    return TUTTI_OK;
}

tutti_status interpret_loss_total(const struct problem *problem, const struct node_arrays *arrays)
{
    const struct loss_total_attributes *a = loss_total_attributes(problem->node);
    double *total = arrays->outputs[0];
    total[0] = total[1] = 0;
    for (int i = 0; i < problem->node->input_count; i++) {
        const double *metrics = arrays->inputs[i];
        if (a->weights[i] != 0) total[0] += (double)a->weights[i] * metrics[0];
        if (i == a->counted) total[1] = metrics[1];
        memcpy(total + 2 + 2 * (ptrdiff_t)i, metrics, 2 * sizeof *metrics);
    }
    return TUTTI_OK;
}
