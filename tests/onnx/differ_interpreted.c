/* Outputs and gradients of a case by the interpreter, in double precision. */
#include "tests/onnx/differ.h"

#include "base/status.h"
#include "graph/network.h"

#include <string.h>

/* Feeds are in the order in which the network's inputs were added: the file's, then the target. */
static tutti_status write_feeds(const struct session *s, bool target)
{
    const struct plan *plan = s->made.plan;
    const int wanted = s->test.input_count + (target ? 1 : 0);
    if (plan->feed_count != wanted)
        return fail(TUTTI_INTERNAL, "the plan has %d inputs, not %d", plan->feed_count, wanted);
    for (int i = 0; i < wanted; i++) {
        const struct safetensors_tensor *from =
            i < s->test.input_count ? s->test.inputs[i] : record_find(s, "target", "");
        double *to = s->made.interpreter.values[plan->feeds[i]];
        for (int64_t e = 0; e < array_elements(from); e++) to[e] = array_at(from, e);
    }
    return TUTTI_OK;
}

static tutti_status compute(struct session *s, const struct plan_options *options)
{
    tutti_status status = TUTTI_OK;
    const bool trains = options->mode == PLAN_TRAIN;
    interpreted_free(&s->made);
    TRY(interpreted_new(&s->runtime->devices[0], s->model.network, options, false, &s->made));
    s->made.interpreter.constants.gradient_weight = 1.0 / (double)s->samples;
    s->made.interpreter.inference = !trains;
    interpreted_start(&s->made);
    TRY(write_feeds(s, trains));
    TRY(interpreter_run(&s->made.interpreter, s->made.plan->graph.node_count));
done:
    return status;
}

tutti_status interpreted_infer(struct session *s, const tutti_fetch *fetches)
{
    tutti_status status = TUTTI_OK;
    struct plan_options options = { .mode = PLAN_INFER, .sizes.samples = s->samples };
    options.objective.output_count = s->model.output_count;
    for (int i = 0; i < s->model.output_count; i++) options.objective.outputs[i] = s->model.outputs[i].id;
    TRY(compute(s, &options));
    for (int i = 0; i < s->model.output_count; i++) {
        const double *from = s->made.interpreter.values[s->made.plan->outputs[i]];
        tutti_shape shape = { 0 };
        TRY(tutti_shape_of(s->model.network, s->model.outputs[i], &shape));
        int64_t count = s->samples;
        for (int k = 0; k < shape.rank; k++) count *= shape.sizes[k];
        for (int64_t e = 0; e < count; e++) ((float *)fetches[i].data)[e] = (float)from[e];
    }
done:
    return status;
}

tutti_status interpreted_train(struct session *s)
{
    tutti_status status = TUTTI_OK;
    tutti_shape shape = { 0 };
    tutti_network *network = s->model.network;
    TRY(tutti_shape_of(network, s->model.outputs[0], &shape));
    const tutti_tensor target = tutti_input_typed(network, "target~", TUTTI_DTYPE_F32, shape.sizes, shape.rank);
    const tutti_tensor loss = tutti_mse(network, s->model.outputs[0], target, NULL);
    TRY(tutti_network_status(network));
    struct plan_options options = { .mode = PLAN_TRAIN, .sizes.samples = s->samples };
    options.objective.output_count = options.objective.loss_count = 1;
    options.objective.outputs[0] = s->model.outputs[0].id;
    options.objective.losses[0] = loss.id;
    options.objective.weights[0] = 1;
    TRY(compute(s, &options));
done:
    return status;
}

/* A parameter that nothing reads has no array. */
static tutti_status copy(const double *from, float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) values[i] = from ? (float)from[i] : 0;
    return TUTTI_OK;
}

tutti_status interpreted_gradient_of(struct session *s, const char *name, float *values, int64_t count)
{
    return copy(interpreted_gradient(&s->made, interpreted_find(&s->made, name)), values, count);
}

tutti_status interpreted_value_of(struct session *s, const char *name, float *values, int64_t count)
{
    return copy(interpreted_parameter(&s->made, interpreted_find(&s->made, name)), values, count);
}

void interpreted_update(struct session *s, double rate)
{
    const tutti_network *network = s->model.network;
    for (size_t p = 0; p < network->parameter_count; p++) {
        double *value = interpreted_parameter(&s->made, (int)p);
        const double *gradient = interpreted_gradient(&s->made, (int)p);
        if (network->parameters[p].kind != PARAMETER_TRAINED || !value || !gradient) continue;
        for (int64_t i = 0; i < network->parameters[p].elements; i++) value[i] -= rate * gradient[i];
    }
}

tutti_status interpreted_again(struct session *s)
{
    return interpreter_run(&s->made.interpreter, s->made.plan->graph.node_count);
}
