/* The gradients of a node test: those of a weighted sum of its float outputs with respect to its float inputs. What a
 * device computes is compared with the interpreter's backward pass, element by element, and with central differences of
 * the interpreter's forward pass in double precision; and with what PyTorch computes, where nodes.py recorded it. */
#include "tests/onnx/conform.h"

#include "base/memory.h"
#include "graph/network.h"
#include "runtime/device.h"
#include "tests/interpreted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOSSES = 8, MOST_PROBES = 32 };
#define STEP 1e-5
/* Tolerances of a gradient, relative to the element, to the largest one, and to an output's weight. */
#define OF_ELEMENT 1e-3
#define OF_LARGEST 1e-4
#define OF_WEIGHTS 1e-6
/* A kink: the differences to the two sides differ by this part of them. */
#define KINK 1e-2
#define FAR 1e30 /* of targets */

struct gradients {
    struct conform_test *test;
    struct outcome *outcome;
    tutti_onnx made;
    tutti_trainer *trainer;
    struct interpreted reference;
    int float_outputs[MOST_LOSSES], loss_count;
    tutti_tensor losses[MOST_LOSSES];
    double scale;        /* the largest weight */
    int compared, kinks; /* differences */
};

double conform_weight(const struct conform_test *test, int output, int64_t element)
{
    const uint32_t hash = ((uint32_t)element * 2654435761u + (uint32_t)output * 40503u) >> 13;
    return (hash & 1 ? 1.0 : -1.0) / (double)array_elements(test->outputs[output]);
}

/* ------------------------------------------------------------------------------------------------------- losses ----
 */

/* loss = the mean of |y - target|, where targets lie so far above or below that it falls or grows with y. */
static void add_loss(struct gradients *g, int output)
{
    tutti_network *network = g->made.network;
    tutti_shape shape = { 0 };
    char name[32];
    if (tutti_shape_of(network, g->made.outputs[output], &shape) != TUTTI_OK) return;
    snprintf(name, sizeof name, "target~%d", output);
    const tutti_tensor target = tutti_input_typed(network, name, TUTTI_DTYPE_F32, shape.sizes, shape.rank);
    g->losses[g->loss_count] = tutti_l1(network, g->made.outputs[output], target, NULL);
    g->float_outputs[g->loss_count++] = output;
    g->scale = fmax(g->scale, fabs(conform_weight(g->test, output, 0)));
}

static bool is_finite(const struct safetensors_tensor *array)
{
    bool finite = true;
    for (int64_t i = 0; i < array_elements(array); i++) finite &= isfinite(array_at(array, i)) != 0;
    return finite;
}

/* Adds losses of the outputs that are finite floats. */
static bool add_losses(struct gradients *g)
{
    for (int i = 0; i < g->test->output_count && g->loss_count < MOST_LOSSES; i++) {
        const struct safetensors_tensor *output = g->test->outputs[i];
        if (array_is_float(output) && array_elements(output) > 0 && is_finite(output)) add_loss(g, i);
    }
    return tutti_network_status(g->made.network) == TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- the device ----
 */

static double target_of(const struct gradients *g, int loss, int64_t element)
{
    return conform_weight(g->test, g->float_outputs[loss], element) > 0 ? -FAR : FAR;
}

static float *targets_of(const struct gradients *g, int loss)
{
    const int64_t count = array_elements(g->test->outputs[g->float_outputs[loss]]);
    float *targets = memory_new((size_t)count, sizeof *targets);
    for (int64_t i = 0; targets && i < count; i++) targets[i] = (float)target_of(g, loss, i);
    return targets;
}

static tutti_status train(struct gradients *g)
{
    tutti_feed feeds[2 * TUTTI_ONNX_PORTS];
    char names[MOST_LOSSES][32];
    int count = 0;
    g->trainer = tutti_compile(g->made.network, g->made.outputs[g->float_outputs[0]],
        &(tutti_training) { .batch = 1, .losses = g->losses, .loss_count = g->loss_count });
    if (!g->trainer) return TUTTI_INTERNAL;
    tutti_status status = conform_feeds(g->test, &g->made, feeds, &count);
    for (int i = 0; i < g->loss_count; i++) {
        snprintf(names[i], sizeof names[i], "target~%d", g->float_outputs[i]);
        feeds[count] = (tutti_feed) { names[i], TUTTI_DTYPE_F32, targets_of(g, i), 0 };
        if (!feeds[count++].data) status = TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK) status = tutti_train_step(g->trainer, feeds, count, 1, NULL);
    conform_feeds_free(feeds, count);
    return status;
}

/* ---------------------------------------------------------------------------------------------- the interpreter ----
 */

static void write_values(struct gradients *g)
{
    const tutti_network *network = g->made.network;
    const struct interpreted *made = &g->reference;
    for (size_t p = 0; p < network->parameter_count; p++) {
        const struct parameter *how = &network->parameters[p];
        double *to = interpreted_parameter(made, (int)p);
        if (how->kind == PARAMETER_CONSTANT || !to) continue;
        for (int64_t i = 0; i < how->elements; i++) to[i] = (double)(how->values ? how->values[i] : how->init_constant);
    }
    int feed = 0;
    for (int i = 0; i < g->test->input_count; i++) {
        if (g->test->roles[i] == ROLE_GIVEN) continue;
        double *to = made->interpreter.values[made->plan->feeds[feed++]];
        for (int64_t e = 0; e < array_elements(g->test->inputs[i]); e++) {
            const double factor = array_is_float(g->test->inputs[i]) ? g->test->scale : 1;
            to[e] = factor * array_at(g->test->inputs[i], e);
        }
    }
    for (int i = 0; i < g->loss_count; i++)
        for (int64_t e = 0; e < array_elements(g->test->outputs[g->float_outputs[i]]); e++)
            made->interpreter.values[made->plan->feeds[feed + i]][e] = target_of(g, i, e);
}

static tutti_status interpret(struct gradients *g)
{
    tutti_status status = TUTTI_OK;
    struct plan_options options = { .mode = PLAN_TRAIN, .sizes.samples = 1 };
    for (int i = 0; i < g->loss_count; i++) {
        options.objective.outputs[i] = g->made.outputs[g->float_outputs[i]].id;
        options.objective.losses[i] = g->losses[i].id;
        options.objective.weights[i] = 1;
    }
    options.objective.output_count = options.objective.loss_count = g->loss_count;
    TRY(interpreted_new(&g->made.network->runtime->devices[0], g->made.network, &options, false, &g->reference));
    g->reference.interpreter.constants.gradient_weight = 1;
    write_values(g);
    TRY(interpreter_run(&g->reference.interpreter, g->reference.plan->graph.node_count));
done:
    return status;
}

/* The weighted sum of the outputs. */
static double evaluate(struct gradients *g)
{
    double sum = 0;
    if (interpreter_run(&g->reference.interpreter, g->reference.forward) != TUTTI_OK) return NAN;
    for (int i = 0; i < g->loss_count; i++) {
        const int output = g->float_outputs[i];
        const double *y = g->reference.interpreter.values[g->reference.plan->outputs[i]];
        const int64_t count = array_elements(g->test->outputs[output]);
        for (int64_t e = 0; e < count; e++) sum += conform_weight(g->test, output, e) * y[e];
    }
    return sum;
}

/* --------------------------------------------------------------------------------------------------- comparing ---- */

static double largest_of(const double *numbers, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(numbers[i]));
    return largest;
}

static bool close_to(struct gradients *g, double got, double wanted, double largest)
{
    const double apart = fabs(got - wanted);
    if (isnan(got) && isnan(wanted)) return true;
    g->outcome->difference = fmax(g->outcome->difference, largest > 0 ? apart / largest : apart);
    return apart <= OF_ELEMENT * fabs(wanted) + OF_LARGEST * largest + OF_WEIGHTS * g->scale;
}

/* Differences to both sides, and whether they are near each other. */
static bool two_sided(struct gradients *g, double *value, double step, double here, double *mean)
{
    const double kept = *value;
    *value = kept + step;
    const double above = (evaluate(g) - here) / step;
    *value = kept - step;
    const double below = (here - evaluate(g)) / step;
    *value = kept;
    *mean = (above + below) / 2;
    return fabs(above - below) <= KINK * (fabs(above) + fabs(below)) + OF_WEIGHTS * g->scale;
}

/* The central difference at an element. NAN where those to both sides differ, or those of two steps: at a kink or a
 * jump, or at the border of a domain. */
static double difference(struct gradients *g, double *value, double here)
{
    double wide, narrow;
    if (!two_sided(g, value, STEP, here, &wide) || !two_sided(g, value, STEP / 8, here, &narrow)) return NAN;
    return fabs(wide - narrow) <= KINK * (fabs(wide) + fabs(narrow)) + OF_WEIGHTS * g->scale ? wide : NAN;
}

/* The elements of an input that are probed, spread over it. */
static int64_t probe(int number, int64_t elements)
{
    return elements <= MOST_PROBES ? number : number * elements / MOST_PROBES;
}

static bool differs(
    struct gradients *g, const char *name, int64_t element, double got, double wanted, const char *whose)
{
    outcome_set(g->outcome, VERDICT_FAIL, "%s[%lld] is %.7g, %s %.7g", name, (long long)element, got, whose, wanted);
    return false;
}

/* Compares every element with the interpreter's backward pass. */
static bool check_backward(
    struct gradients *g, const char *name, const float *got, const double *wanted, int64_t elements)
{
    const double largest = wanted ? largest_of(wanted, elements) : 0;
    for (int64_t i = 0; i < elements; i++) {
        const double one = wanted ? wanted[i] : 0;
        if (!close_to(g, (double)got[i], one, largest))
            return differs(g, name, i, (double)got[i], one, "by the interpreter");
    }
    return true;
}

/* PyTorch's gradients of the probed elements, recorded by nodes.py. NULL: there are none. */
static const struct safetensors_tensor *recorded(const struct gradients *g, const char *name)
{
    char key[CONFORM_NAME + 8];
    snprintf(key, sizeof key, "torch.%s", name);
    return safetensors_find(g->test->arrays, key);
}

static bool check_probes(
    struct gradients *g, const char *name, const float *got, int64_t elements, const double *wanted, int probes)
{
    const struct safetensors_tensor *torch = recorded(g, name);
    double largest = 0;
    if (torch && (array_elements(torch) != probes || g->test->scale != 1)) torch = NULL;
    for (int i = 0; i < probes; i++) largest = isnan(wanted[i]) ? largest : fmax(largest, fabs(wanted[i]));
    for (int i = 0; i < probes; i++) {
        const int64_t element = probe(i, elements);
        const double one = (double)got[element], other = torch ? array_at(torch, i) : 0;
        if (isnan(wanted[i])) continue;
        if (!close_to(g, one, wanted[i], largest)) return differs(g, name, element, one, wanted[i], "by differences");
        if (torch && !close_to(g, one, other, largest)) return differs(g, name, element, one, other, "by PyTorch");
    }
    return true;
}

/* Compares some elements with differences and with PyTorch's gradients, except at kinks. */
static bool check_differences(struct gradients *g, const char *name, const float *got, int parameter, int64_t elements)
{
    double *values = interpreted_parameter(&g->reference, parameter), wanted[MOST_PROBES];
    const int probes = elements < MOST_PROBES ? (int)elements : MOST_PROBES;
    const double here = values ? evaluate(g) : 0;
    for (int i = 0; i < probes; i++) {
        wanted[i] = values ? difference(g, &values[probe(i, elements)], here) : 0;
        if (isnan(wanted[i]))
            g->kinks++;
        else
            g->compared++;
    }
    return check_probes(g, name, got, elements, wanted, probes);
}

/* The parameter that has an input's gradient; -1: none, as the importer made a constant of it. */
static int parameter_of(const struct gradients *g, int input)
{
    char name[CONFORM_NAME];
    const tutti_network *network = g->made.network;
    snprintf(name, sizeof name, "%s%s", g->test->input_names[input],
        g->test->roles[input] == ROLE_MOVED ? VARIANT_ZERO : "");
    for (size_t p = 0; p < network->parameter_count; p++)
        if (!strcmp(network->parameters[p].name, name))
            return network->parameters[p].kind == PARAMETER_TRAINED ? (int)p : -1;
    return -1;
}

static bool check_input(struct gradients *g, int input)
{
    const int parameter = parameter_of(g, input);
    const char *name = g->test->input_names[input];
    if (parameter < 0) return true;
    const int64_t elements = g->made.network->parameters[parameter].elements;
    float *got = memory_new((size_t)elements, sizeof *got);
    bool good = got != NULL &&
        tutti_get_gradient(g->trainer, g->made.network->parameters[parameter].name, got, elements) == TUTTI_OK;
    if (!good) outcome_set(g->outcome, VERDICT_FAIL, "%s", tutti_message(NULL));
    good = good && check_backward(g, name, got, interpreted_gradient(&g->reference, parameter), elements) &&
        check_differences(g, name, got, parameter, elements);
    free(got);
    return good;
}

static void check(struct gradients *g)
{
    for (int i = 0; i < g->test->input_count; i++)
        if (array_is_float(g->test->inputs[i]) && array_elements(g->test->inputs[i]) > 0 && !check_input(g, i)) return;
    if (g->compared > 0)
        g->outcome->verdict = VERDICT_PASS;
    else if (g->kinks > 0)
        outcome_set(g->outcome, VERDICT_NONE, "every element is at a kink");
}

/* ------------------------------------------------------------------------------------------------------ the test ----
 */

static void run(struct gradients *g, tutti_runtime *runtime)
{
    struct outcome *outcome = g->outcome;
    if (conform_import(runtime, g->test, &g->made) != TUTTI_OK || !add_losses(g))
        outcome_set(outcome, VERDICT_FAIL, "%s", tutti_message(NULL));
    else if (g->loss_count == 0)
        outcome_set(outcome, VERDICT_NONE, "no output is finite");
    else if (tutti_network_parameters(g->made.network) == 0)
        outcome_set(outcome, VERDICT_NONE, "all inputs are numbers that the file is read with");
    else {
        const tutti_status status = train(g);
        if (status == TUTTI_NOT_FINITE)
            outcome_set(outcome, VERDICT_NONE, "not finite");
        else if (status != TUTTI_OK || interpret(g) != TUTTI_OK)
            outcome_set(outcome, VERDICT_FAIL, "%s", tutti_message(NULL));
        else
            check(g);
    }
    interpreted_free(&g->reference);
    tutti_trainer_free(g->trainer);
    tutti_network_free(g->made.network);
}

/* Where tanh of the test's inputs is 1 in float32, all gradients are roundings. They are computed of smaller inputs. */
static double scale_of(const struct conform_test *test)
{
    return strcmp(test->name, "rnn_seq_length") ? 1 : 1.0 / 32;
}

void conform_gradients(tutti_runtime *runtime, struct conform_test *test, struct outcome *outcome)
{
    bool floats = false;
    *outcome = (struct outcome) { .verdict = VERDICT_NONE };
    test->scale = scale_of(test);
    for (int i = 0; i < test->input_count; i++) {
        if (!array_is_float(test->inputs[i])) continue;
        if (test->roles[i] == ROLE_FED) test->roles[i] = ROLE_MOVED;
        floats = true;
    }
    bool outputs = false;
    for (int i = 0; i < test->output_count; i++) outputs |= array_is_float(test->outputs[i]);
    if (floats && outputs) run(&(struct gradients) { .test = test, .outcome = outcome }, runtime);
}
