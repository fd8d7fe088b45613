#include "plan/outputs.h"

void plan_keep_outputs(struct plan *plan, int kept)
{
    const int count = plan->options.objective.output_count;
    for (int i = 0; i < count; i++) plan->graph.values[plan->outputs[i]].output = false;
    for (int i = 0; i < kept; i++) plan->graph.values[plan->outputs[i]].output = true; /* a value may occur twice */
}

int plan_read_outputs(const struct plan_options *options)
{
    const struct objective *objective = &options->objective;
    if (options->mode == PLAN_INFER || (options->mode == PLAN_TRAIN && objective->keeps_outputs))
        return objective->output_count;
    return options->mode == PLAN_SCORE;
}

int plan_input_gradients(const struct plan_options *options)
{
    return options->mode == PLAN_TRAIN && !options->seeded ? options->objective.gradient_input_count : 0;
}

int plan_wanted_outputs(const struct plan_options *options)
{
    return options->seeded ? options->objective.output_count : plan_read_outputs(options);
}
