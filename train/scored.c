#include "train/scored.h"

#include "base/memory.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "plan/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the trainer compares its first output with. */
struct comparison {
    const struct operation *loss;
    int target; /* feed */
    int axis;   /* of the classes, the batch included */
    bool ignores;
    int32_t ignored;
};

static bool is_of_numbers(const struct operation *loss)
{
    return loss == &operation_mean_squared_error || loss == &operation_l1 || loss == &operation_huber;
}

/* The first loss of the first output whose targets are an input. */
static bool find_node(const struct tutti_trainer *trainer, struct comparison *found)
{
    const struct objective *objective = &trainer->objective;
    const struct graph *graph = &trainer->network->graph;
    int inputs[PLAN_MAX_FEEDS], count;
    if (plan_find_inputs(graph, inputs, &count) != TUTTI_OK) return false;
    for (int l = 0; l < objective->loss_count; l++) {
        const struct node *node = &graph->nodes[graph_at(graph, objective->losses[l])->producer];
        const struct loss_attributes *a = loss_attributes(node);
        if (node->inputs[LOSS_X] != objective->outputs[0]) continue;
        const bool lists = node->operation->takes_lists;
        if (!node->operation->of_classes && !lists && !is_of_numbers(node->operation)) continue;
        for (int i = 0; i < count; i++) {
            if (inputs[i] != node->inputs[LOSS_TARGETS]) continue;
            *found = (struct comparison) { node->operation, i,
                loss_class_axis(node, graph_at(graph, objective->outputs[0])), a->ignores, a->ignored };
            return true;
        }
    }
    return false;
}

static tutti_status find(const struct tutti_trainer *trainer, struct comparison *found)
{
    const struct objective *objective = &trainer->objective;
    if (objective->loss) {
        *found = (struct comparison) { .loss = objective->loss, .target = trainer->feeds.arrays.count - 1, .axis = 1 };
        return TUTTI_OK;
    }
    if (find_node(trainer, found)) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "scores need a cross-entropy, nll, mse, l1 or huber loss of the trainer's first output, whose targets are an "
        "input");
}

static tutti_status check_classes(
    struct scored *scored, const struct comparison *c, const struct value *x, int64_t size)
{
    const tutti_scores *scores = scored->scores;
    const int64_t classes = x->shape.sizes[c->axis];
    const bool last = c->axis == x->shape.rank - 1;
    if (classes != scores->classes || size != classes * scores->labels)
        return fail(TUTTI_INVALID,
            "the scores are for %" PRId64 " classes and %" PRId64 " labels of a sample, but the output has %" PRId64
            " and %" PRId64 ": set tutti_scores_options",
            scores->classes, scores->labels, classes, size / classes);
    if (c->axis != 1 && !last)
        return fail(TUTTI_INVALID, "scores need the classes at the first or the last axis of the output, not at %d",
            c->axis - 1);
    scored->layout = c->axis == 1 ? (struct score_layout) { scores->labels, 1, scores->labels }
                                  : (struct score_layout) { 1, classes, scores->labels };
    return TUTTI_OK;
}

/* Outputs are logits of steps, and targets lists of labels. */
static tutti_status check_transcripts(
    struct scored *scored, const struct comparison *c, const struct value *x, int64_t size)
{
    const tutti_scores *scores = scored->scores;
    const int64_t classes = x->shape.sizes[2], listed = scored->trainer->feeds.feeds[c->target].shape.sizes[1];
    scored->layout = (struct score_layout) { 1, classes, scores->labels };
    if (scores->transcript == listed && scores->classes == classes && size == classes * scores->labels) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "the scores are for transcripts of %" PRId64 " labels, %" PRId64 " classes and %" PRId64
        " steps, but the trainer has %" PRId64 ", %" PRId64 " and %" PRId64 ": set tutti_scores_options",
        scores->transcript, scores->classes, scores->labels, listed, classes, size / classes);
}

static tutti_status check(struct scored *scored, const struct comparison *c, int64_t length)
{
    const struct tutti_trainer *trainer = scored->trainer;
    const struct value *x = graph_at(&trainer->network->graph, trainer->objective.outputs[0]);
    const int64_t size = (int64_t)(arrays_sample_bytes(&trainer->outputs, 0, length) / sizeof(float));
    if (!c->loss->takes_lists != !scored->scores->transcript)
        return fail(TUTTI_INVALID, "the loss is %sof transcripts, but the scores are %s: set tutti_scores_options",
            c->loss->takes_lists ? "" : "not ", c->loss->takes_lists ? "not" : "for some");
    if (c->loss->takes_lists) return check_transcripts(scored, c, x, size);
    if (c->loss->of_classes && scored->scores->classes) return check_classes(scored, c, x, size);
    if (c->loss->of_classes || scored->scores->classes)
        return fail(TUTTI_INVALID, "the loss is of %s, and the scores are for %s: set tutti_scores_options.classes",
            c->loss->of_classes ? "classes" : "numbers", scored->scores->classes ? "classes" : "numbers");
    scored->layout.count = scored->scores->labels;
    if (size != scored->scores->labels)
        return fail(TUTTI_INVALID,
            "the scores are for %" PRId64 " numbers of a sample, but the output has %" PRId64
            ": set tutti_scores_options.labels",
            scored->scores->labels, size);
    return TUTTI_OK;
}

/* Whether a sample of the output is [TUTTI_SEQUENCE, classes], and each position has a label. */
static bool has_class_of_each_position(const struct tutti_trainer *trainer, const struct comparison *c)
{
    const struct value *x = graph_at(&trainer->network->graph, trainer->objective.outputs[0]);
    return c->loss->takes_classes && trainer->outputs.sequences[0] == 1 && x->shape.rank == 3 && c->axis == 2;
}

tutti_status scored_open(
    struct scored *scored, struct tutti_trainer *trainer, tutti_scores *scores, const tutti_source *source)
{
    tutti_status status = TUTTI_OK;
    struct comparison c = { 0 };
    int64_t length = source->length;
    *scored = (struct scored) { .scores = scores, .trainer = trainer };
    if (!scores) return TUTTI_OK;
    tutti_scores_reset(scores);
    TRY(feeds_length(&trainer->feeds, &length));
    TRY(find(trainer, &c));
    TRY(check(scored, &c, length));
    scored->of_positions = source->batch_length && trainer->outputs.sequences[0] > 0;
    if (scored->of_positions && !has_class_of_each_position(trainer, &c))
        FAIL(TUTTI_INVALID,
            "scores need as many numbers of each sample, but the output has those of each position: set no "
            "tutti_source.batch_length");
    const size_t bytes = arrays_sample_bytes(&trainer->outputs, 0, length);
    const size_t most =
        (size_t)(trainer->device_division.rank_batch < source->samples ? trainer->device_division.rank_batch
                                                                       : source->samples); /* of a batch */
    scored->target = c.target;
    scored->soft = c.loss->of_classes && !c.loss->takes_classes;
    scored->outputs.at[0] = memory_new(most, bytes);
    if (!scored->outputs.at[0]) return TUTTI_NO_MEMORY;
    if (!scored->soft && !c.ignores) return TUTTI_OK;
    scored->labels = memory_new(most, (size_t)scores->labels * sizeof(*scored->labels));
    if (!scored->labels) status = TUTTI_NO_MEMORY;
done:
    return status;
}

/* Takes the likeliest class of each label, the first of equal ones; none if all probabilities are 0. */
static void take_likeliest(const struct scored *scored, const float *from, int64_t samples)
{
    const int64_t classes = scored->scores->classes, labels = scored->layout.count;
    for (int64_t i = 0; i < samples * labels; i++) {
        const float *p = from + i / labels * labels * classes + i % labels * scored->layout.labels;
        int32_t best = 0;
        bool any = false;
        for (int64_t c = 0; c < classes; c++) {
            any |= p[c * scored->layout.classes] != 0;
            if (p[c * scored->layout.classes] > p[best * scored->layout.classes]) best = (int32_t)c;
        }
        scored->labels[i] = any ? best : -1;
    }
}

static void take_labels(const struct scored *scored, const int32_t *from, int64_t samples)
{
    const int32_t ignored = scored->trainer->feeds.feeds[scored->target].ignored;
    for (int64_t i = 0; i < samples * scored->layout.count; i++) scored->labels[i] = from[i] == ignored ? -1 : from[i];
}

tutti_status scored_forward(struct scored *scored, const struct batch *batch, struct metric_totals *totals)
{
    const struct arrays *outputs = scored->scores ? &scored->outputs : NULL;
    scored->outputs.length = batch->feeds.length;
    if (scored->of_positions) scored->layout.count = batch->feeds.length;
    const tutti_status status = trainer_forward(
        scored->trainer, outputs ? PLAN_SCORE : PLAN_EVALUATE, &batch->feeds, batch->samples, totals, outputs);
    if (status != TUTTI_OK || !outputs) return status;
    const void *targets = batch->feeds.at[scored->target];
    if (scored->soft)
        take_likeliest(scored, targets, batch->samples);
    else if (scored->labels)
        take_labels(scored, targets, batch->samples);
    if (scored->labels) targets = scored->labels;
    return scores_take(scored->scores, outputs->at[0], scored->layout, targets, batch->indices, batch->samples);
}

void scored_close(struct scored *scored)
{
    free(scored->outputs.at[0]);
    free(scored->labels);
}
