/* Connectionist temporal classification: labels without their positions (layers/loss/loss_ctc.cl has the formula). */
#include "layers/loss/arguments/loss_ctc.h"
#include "base/memory.h"
#include "base/options.h"
#include "layers/append.h"
#include "layers/elementwise.h"
#include "layers/interpreter/interpreter.h"
#include "layers/layers.h"
#include "layers/loss/loss.h"
#include "runtime/arguments.h"

#include <inttypes.h>

static tutti_status infer(const struct graph *graph, struct node *node, struct value *outputs)
{
    const struct value *x = graph_at(graph, node->inputs[LOSS_X]),
                       *labels = graph_at(graph, node->inputs[LOSS_TARGETS]),
                       *lengths = graph_at(graph, node->inputs[LOSS_LENGTHS]);
    const int blank = loss_attributes(node)->blank;
    if (x->type != TYPE_F32 || !x->batched || x->shape.rank != 3)
        return fail(TUTTI_SHAPE, "ctc: the predictions must be [frames, classes] for each sample, floats");
    const int64_t classes = x->shape.sizes[2];
    if (classes == TUTTI_SEQUENCE)
        return fail(TUTTI_SHAPE, "ctc: the number of classes is TUTTI_SEQUENCE, the length of sequences");
    if (labels->type != TYPE_I32 || !labels->batched || labels->shape.rank != 2)
        return fail(TUTTI_SHAPE,
            "ctc: the targets must be a list of class numbers (int32) for each sample, [labels]: -1 after its last "
            "label");
    if (blank < 0 || blank >= classes)
        return fail(TUTTI_INVALID,
            "ctc: blank is %d, but the predictions have %" PRId64 " classes, counted from 0: one of them is the blank",
            blank, classes);
    if (lengths && (lengths->type != TYPE_F32 || !lengths->batched || lengths->shape.rank != 1))
        return fail(TUTTI_SHAPE, "ctc: lengths must be one number for each sample");
    loss_outputs(x, node, outputs);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------- implementations ---- */

struct sizes {
    int64_t samples, frames, classes, listed;
    int64_t pitch; /* floats of a row of states */
    int64_t group;
};

static struct sizes sizes_of(const struct problem *problem)
{
    const tutti_shape *x = &problem->inputs[LOSS_X]->shape;
    struct sizes z = { x->sizes[0], x->sizes[1], x->sizes[2], problem->inputs[LOSS_TARGETS]->shape.sizes[1], 0, 1 };
    const int64_t states = 2 * z.listed + 1;
    const bool gpu = problem->device->class == DEVICE_GPU;
    if (gpu) z.group = (int64_t)group_size(problem->device, states > 64 || z.classes > 64 ? 256 : 64);
    z.pitch =
        4 + (z.group > 1 ? states : (int64_t)size_round_up((size_t)states, (size_t)problem->device->vector_width));
    return z;
}

/* Bytes of what loss_ctc.cl lists as its workspace. */
static size_t workspace(const struct problem *problem)
{
    const struct sizes z = sizes_of(problem);
    return sizeof(float) * (size_t)z.samples *
        (5 + 2 * (size_t)z.frames + 2 * (size_t)z.pitch + 2 * (size_t)z.frames * (size_t)z.pitch);
}

ARGUMENTS(ctc, CTC_ARGUMENTS)
ARGUMENTS(ctc_rows, CTC_ROWS_ARGUMENTS)

static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct sizes *z, const char *kernel)
{
    const struct loss_attributes *a = loss_attributes(problem->node);
    const bool lengths = problem->inputs[LOSS_LENGTHS] != NULL;
    struct launch *launch =
        launch_add(list, "loss_ctc", kernel, "-DGRADIENT=%d -DLENGTHS=%d -DZERO_INFINITY=%d -DSUM=%d -DGROUP=%d",
            operands->outputs[LOSS_GRADIENT] != NULL, lengths, a->zero_infinity, a->summed, (int)z->group);
    ARGUMENTS_SET(launch, ctc, .x = operands->inputs[LOSS_X], .targets = operands->inputs[LOSS_TARGETS],
        .lengths = operands->inputs[lengths ? LOSS_LENGTHS : LOSS_X], .constants = operands->inputs[LOSS_CONSTANTS],
        .dx = loss_gradient(operands), .workspace = operands->workspace, .weight = loss_factor(problem, 1),
        .samples = z->samples, .frames = z->frames, .classes = z->classes, .listed = z->listed, .blank = a->blank,
        .pitch = z->pitch);
    return launch;
}

static void add_of_frames(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct sizes *z, const char *kernel)
{
    struct launch *launch = add(problem, operands, list, z, kernel);
    const int64_t rows = z->samples * z->frames, each = z->group > 1 ? 1 : divide_up(2048, z->classes + z->pitch);
    ARGUMENTS_SET(launch, ctc_rows, .each = each);
    launch_grid(launch, 1, (size_t)divide_up(rows, each) * (size_t)z->group, 1, 1, (size_t)z->group, 1, 1);
    launch_work(
        launch, 8 * (double)rows * (double)(z->classes + z->pitch), 8 * (double)rows * (double)(z->classes + z->pitch));
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct sizes z = sizes_of(problem);
    const size_t group = (size_t)z.group, samples = (size_t)z.samples;
    const double states = (double)z.samples * (double)z.frames * (double)z.pitch;
    const bool wanted = operands->outputs[LOSS_GRADIENT] != NULL;
    launch_grid(add(problem, operands, list, &z, "ctc_lists"), 1, size_round_up(samples, group), 1, 1, group, 1, 1);
    add_of_frames(problem, operands, list, &z, "ctc_frames");
    struct launch *paths = add(problem, operands, list, &z, "ctc_paths");
    launch_grid(paths, 1, samples * group, 1, 1, group, 1, 1);
    launch_work(paths, (wanted ? 60 : 30) * states, 4 * (wanted ? 6 : 2) * states);
    if (wanted) add_of_frames(problem, operands, list, &z, "ctc_gradient");
    loss_sum(problem, operands, list, z.samples, 1);
}

static const struct implementation ctc = {
    .name = "one",
    .workspace = workspace,
    .emit = emit,
};

const struct operation operation_ctc = {
    .name = "ctc",
    .inputs = { [LOSS_X] = { "x" },
        [LOSS_TARGETS] = { "targets", PORT_ANY_TYPE },
        [LOSS_CONSTANTS] = { "constants" },
        [LOSS_LENGTHS] = { "lengths", PORT_OPTIONAL | PORT_INDEX } },
    .outputs = { [LOSS_METRICS] = { "metrics" }, [LOSS_GRADIENT] = { "dx" } },
    .attributes = &loss_attributes_type,
    .infer = infer,
    .reference = interpret_ctc,
    .implementations = ONE(ctc),
    .is_loss = true,
    .takes_classes = true,
    .takes_lists = true,
};

/* -------------------------------------------------------------------------------------------------- builder ---- */

/* Lengths as floats, of each sample. */
static int lengths_of(const struct append_context *c, const tutti_tensor *given, int like)
{
    const struct value *value = given ? graph_at(c->graph, given->id) : NULL, *x = graph_at(c->graph, like);
    if (!value || !x) return NO_VALUE;
    const tutti_shape shape = TUTTI_SHAPE(x->shape.sizes[0]);
    const bool batched = value->batched;
    const int lengths = value->type != TYPE_F32 ? append_one(c, &operation_cast, given->id) : given->id;
    return batched ? lengths : append_expand(c, lengths, shape, like);
}

tutti_tensor tutti_ctc(
    tutti_network *network, tutti_tensor logits, tutti_tensor targets, const tutti_ctc_options *given)
{
    tutti_ctc_options options;
    if (!network_value(network, logits) || !network_operand(network, targets)) return (tutti_tensor) { NO_VALUE };
    const tutti_status status = OPTIONS_READ(&options, given, tutti_ctc_options);
    if (status != TUTTI_OK) return network_fail(network, status);
    if (options.lengths && !network_operand(network, *options.lengths)) return (tutti_tensor) { NO_VALUE };
    const int layer = network_layer_begin(network, options.name, operation_ctc.name);
    if (layer < 0) return (tutti_tensor) { NO_VALUE };
    const struct append_context c = { network, &network->graph, layer };
    const struct loss_attributes attributes = {
        .blank = options.blank, .zero_infinity = options.zero_infinity, .summed = options.sum
    };
    const int lengths = lengths_of(&c, options.lengths, logits.id);
    const int inputs[] = { logits.id, targets.id, graph_constants(&network->graph), lengths };
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    return network_append(network, layer, &operation_ctc, &attributes, inputs, lengths == NO_VALUE ? 3 : 4);
}
