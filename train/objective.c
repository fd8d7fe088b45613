/* What a trainer is made for: its outputs, its losses, and the arrays that these need. */
#include "train/objective.h"

#include "layers/loss/loss.h"

#include <math.h>

static tutti_status add_output(tutti_trainer *trainer, tutti_tensor tensor)
{
    struct objective *objective = &trainer->objective;
    const struct value *value = graph_at(&trainer->network->graph, tensor.id);
    if (!value)
        return fail(TUTTI_INVALID,
            "output %d is tensor %d, which is not of this network: pass one that the network's functions returned",
            objective->output_count, tensor.id);
    if (!value->batched)
        return fail(TUTTI_INVALID,
            "output %d is a parameter or a constant: it does not depend on an input; parameters are read "
            "with tutti_get_parameter()",
            objective->output_count);
    if (value->rows != 1)
        return fail(TUTTI_INVALID, "output %d has %lld rows for each sample: unfold it", objective->output_count,
            (long long)value->rows);
    if (objective->output_count == PLAN_MAX_OUTPUTS)
        return fail(TUTTI_INVALID, "a trainer has at most %d outputs", PLAN_MAX_OUTPUTS);
    if (value->type != TYPE_F32)
        return fail(TUTTI_INVALID, "output %d is not float32: convert it with tutti_cast()", objective->output_count);
    arrays_add(&trainer->outputs, value);
    objective->outputs[objective->output_count++] = tensor.id;
    return TUTTI_OK;
}

/* After all outputs. */
static tutti_status add_gradient_inputs(tutti_trainer *trainer, const tutti_training *training)
{
    struct objective *objective = &trainer->objective;
    const struct graph *graph = &trainer->network->graph;
    const int most = PLAN_MAX_OUTPUTS - objective->output_count;
    if (training->gradient_input_count < 0 || training->gradient_input_count > most)
        return fail(TUTTI_INVALID, "gradient_input_count is %d: with the outputs, at most %d are possible",
            training->gradient_input_count, most);
    for (int i = 0; i < training->gradient_input_count; i++) {
        const struct value *value = graph_at(graph, training->gradient_inputs[i].id);
        if (!value || value->role != ROLE_INPUT || value->type != TYPE_F32)
            return fail(TUTTI_INVALID, "gradient_inputs[%d] is not an input of float32 of this network", i);
        arrays_add(&trainer->outputs, value);
        objective->gradient_inputs[objective->gradient_input_count++] = training->gradient_inputs[i].id;
    }
    return TUTTI_OK;
}

static tutti_status add_losses(struct objective *objective, const struct graph *graph, const tutti_training *training)
{
    bool any = false;
    if (training->loss_count < 1 || training->loss_count > PLAN_MAX_LOSSES)
        return fail(TUTTI_INVALID, "loss_count is %d: it must be from 1 to %d", training->loss_count, PLAN_MAX_LOSSES);
    for (int i = 0; i < training->loss_count; i++) {
        const struct value *value = graph_at(graph, training->losses[i].id);
        const float weight = training->loss_weights ? training->loss_weights[i] : 1;
        if (!value || value->producer < 0 || !graph->nodes[value->producer].operation->is_loss)
            return fail(TUTTI_INVALID,
                "losses[%d] is not a loss: pass a tensor that tutti_cross_entropy() or another returned", i);
        if (!isfinite(weight)) return fail(TUTTI_INVALID, "loss_weights[%d] is not a finite number", i);
        objective->losses[i] = training->losses[i].id;
        objective->weights[i] = weight;
        any |= weight != 0;
    }
    objective->loss_count = training->loss_count;
    return any ? TUTTI_OK : fail(TUTTI_INVALID, "all loss_weights are 0: nothing would be trained");
}

tutti_status trainer_read_objective(tutti_trainer *trainer, tutti_tensor output, const tutti_training *training)
{
    tutti_status status = TUTTI_OK;
    struct objective *objective = &trainer->objective;
    TRY(add_output(trainer, output));
    for (int i = 0; i < training->output_count; i++) TRY(add_output(trainer, training->outputs[i]));
    objective->keeps_outputs = training->fetch_in_training;
    if (training->losses) {
        TRY(add_losses(objective, &trainer->network->graph, training));
    } else {
        objective->loss = loss_find(training->loss);
        if (training->loss != TUTTI_LOSS_NONE && !objective->loss)
            FAIL(TUTTI_INVALID, "loss %d does not exist: pass one of tutti_loss", (int)training->loss);
    }
    trainer->options.evaluates = objective->loss || objective->loss_count > 0;
    trainer->options.trains = trainer->options.evaluates && parameters_owner(trainer->store) == trainer;
    if (trainer->options.trains) TRY(add_gradient_inputs(trainer, training));
    TRY(feeds_init(&trainer->feeds, trainer->network, objective, training->sequence));
    trainer->feeds.length = trainer->feeds.longest;
done:
    return status;
}

int *trainer_count_uses(const tutti_trainer *trainer)
{
    const struct objective *objective = &trainer->objective;
    if (objective->loss_count == 0) return network_count_uses(trainer->network, objective->outputs, 1);
    int losses[PLAN_MAX_LOSSES], count = 0;
    for (int i = 0; i < objective->loss_count; i++)
        if (objective->weights[i] != 0) losses[count++] = objective->losses[i];
    return network_count_uses(trainer->network, losses, count);
}

tutti_status trainer_check_reached(const tutti_trainer *trainer)
{
    const tutti_network *network = trainer->network;
    const char *first = NULL;
    int trained = 0, unreached = 0;
    for (size_t i = 0; i < network->parameter_count; i++) {
        if (network->parameters[i].kind != PARAMETER_TRAINED) continue;
        trained++;
        if (trainer->optimizer.uses[i]) continue;
        if (!unreached++) first = network->parameters[i].name;
    }
    if (unreached && unreached == trained)
        return fail(TUTTI_INVALID, "the loss depends on no parameter, as '%s': nothing would be trained", first);
    if (unreached == 1)
        log_warn(
            &trainer->network->runtime->log, "parameter '%s' has no gradient: the loss does not depend on it", first);
    if (unreached > 1)
        log_warn(&trainer->network->runtime->log,
            "%d of %d parameters have no gradient, the first is '%s': the loss does not depend on them", unreached,
            trained, first);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------- metrics ---- */

/* Returns whether the sum of `correct` over all losses is meaningful. */
static bool counts_correct(const tutti_trainer *trainer)
{
    const struct objective *objective = &trainer->objective;
    bool counts = objective->loss && objective->loss->counts_correct;
    for (int i = 0; i < objective->loss_count; i++) {
        const struct graph *graph = &trainer->network->graph;
        counts |= graph->nodes[graph_at(graph, objective->losses[i])->producer].operation->counts_correct;
    }
    return counts;
}

static tutti_metrics means(double loss, double correct, double excluded, int64_t samples, bool counts)
{
    const double n = (double)samples, counted = n - excluded;
    return (tutti_metrics) { .loss = samples ? loss / n : 0,
        .accuracy = !counts ? NAN
            : counted > 0   ? correct / counted
                            : 0,
        .samples = samples,
        .counted = counted };
}

void metrics_set(const tutti_trainer *trainer, const struct metric_sums *sums, int64_t samples, tutti_metrics *metrics)
{
    *metrics = means(sums->loss, sums->correct, sums->excluded, samples, counts_correct(trainer));
}

void metrics_report(tutti_trainer *trainer, const struct metric_sums *sums, int64_t samples, tutti_metrics *metrics)
{
    trainer->report.reported = *sums;
    trainer->report.reported_samples = samples;
    if (metrics) metrics_set(trainer, sums, samples, metrics);
}

tutti_status tutti_loss_metrics(const tutti_trainer *trainer, tutti_tensor loss, tutti_metrics *metrics)
{
    if (!trainer || !metrics) return fail(TUTTI_INVALID, "the trainer or the metrics are NULL: pass both");
    const struct objective *objective = &trainer->objective;
    const struct graph *graph = &trainer->network->graph;
    if (trainer->report.reported_samples == 0)
        return fail(TUTTI_INVALID, "there are no metrics before the first step or evaluation");
    for (int i = 0; i < objective->loss_count; i++) {
        if (objective->losses[i] != loss.id) continue;
        const struct operation *operation = graph->nodes[graph_at(graph, loss.id)->producer].operation;
        const bool alone = objective_pairs(objective) == 1;
        const struct metric_sums *reported = &trainer->report.reported;
        *metrics =
            means(alone ? reported->loss : reported->each[2 * i], alone ? reported->correct : reported->each[2 * i + 1],
                reported->each_excluded[i], trainer->report.reported_samples, operation->counts_correct);
        return TUTTI_OK;
    }
    return fail(TUTTI_INVALID, "tensor %d is not in tutti_training.losses", loss.id);
}
