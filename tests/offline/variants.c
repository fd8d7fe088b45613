/* Writes down every program that GPU-class devices are given, without a device: variants FOLDER writes the text of each
 * as FOLDER/NAME.cl, and FOLDER/variants, a line for each kernel of each set of options, tab-separated:
 *
 *   text  kernel  options  group  local  FLOPs  bytes  launches  network
 *
 * group: work-items; local: bytes that the launch adds to the kernel's own, of the largest launch. FLOPs, bytes and
 * launches: of one training step of the network that has the most of it, at its usual batch; 0 where none has.
 *
 * Asked are the plans of the networks in models/, training and inference, for a small and a large device; of each node
 * every implementation that takes it counts, not only the one chosen. Networks whose kernels differ from those of the
 * others only in sizes and in generated chains are left out: they would double the time. A network of operations that
 * no model has comes next to them, and one network's training for each form of matrix instructions, another's for one
 * of them. A text for GPU-class devices that nobody asks for is an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "layers/layers.h"
#include "models/models.h"
#include "plan/ahead.h"
#include "plan/node.h"
#include "plan/passes.h"
#include "plan/pipeline.h"
#include "plan/trial.h"
#include "replica/gradients.h"
#include "replica/optimizer.h"
#include "runtime/kernels_text.h"
#include "runtime/matrix.h"
#include "runtime/program.h"
#include "runtime/shuffle.h"
#include "runtime/source.h"
#include "runtime/store.h"
#include "runtime/tile.h"
#include "tutti_finetune.h"
#include "tutti_sequences.h"

/* The smallest and the largest GPUs of the last ten years: sizes of tiles and groups follow from these. */
static const struct capabilities devices[] = {
    { .name = "small", .units = 10, .group_max = 256, .local_bytes = 32 << 10, .allocation_max = (size_t)4 << 30 },
    { .name = "large", .units = 132, .group_max = 1024, .local_bytes = 64 << 10, .allocation_max = (size_t)16 << 30 },
};
enum { DEVICES = sizeof devices / sizeof *devices };

/* Precisions and forms of matrix instructions that are tried on the large device; the plain kernels are tried with
 * each, too. */
static const struct rounding {
    enum matrix_form form;
    tutti_precision precision;
} roundings[] = {
    { MATRIX_MMA, TUTTI_TF32 },
    { MATRIX_MMA_LDMATRIX, TUTTI_BF16 },
    { MATRIX_MMA_LDMATRIX, TUTTI_FP16 },
    { MATRIX_MMA, TUTTI_BF16 },
    { MATRIX_MFMA, TUTTI_BF16 },
    { MATRIX_WMMA, TUTTI_BF16 },
    { MATRIX_MAD_16, TUTTI_BF16 },
    { MATRIX_MAD_8, TUTTI_BF16 },
    { MATRIX_MMA, TUTTI_FP16 },
    { MATRIX_MFMA, TUTTI_FP16 },
    { MATRIX_WMMA, TUTTI_FP16 },
    { MATRIX_MAD_16, TUTTI_FP16 },
    { MATRIX_MAD_8, TUTTI_FP16 },
};
/* One network is planned with all of these; another one, whose depthwise convolutions have their channels last, with
 * the first. */
#define ROUNDED_MODEL "resnet18"
#define ROUNDED_ONCE "mobilenet_v2"
enum { ROUNDINGS = sizeof roundings / sizeof *roundings };

struct variant {
    const char *source, *kernel;
    char *options;
    size_t group, local;
    struct work {
        double flops, bytes;
        int launches;
        const char *network;
    } most, now; /* now: in the list at hand */
};

static struct variant *variants;
static size_t variant_count, variant_capacity;
static struct device device;
static struct tutti_runtime runtime;

/* ---- collecting ---- */

/* Takes the options over; NULL where there is no memory. */
static struct variant *variant_of(const char *source, const char *kernel, char *options)
{
    for (size_t i = 0; i < variant_count; i++) {
        struct variant *v = &variants[i];
        if (strcmp(v->source, source) || strcmp(v->kernel, kernel) || strcmp(v->options, options)) continue;
        free(options);
        return v;
    }
    void *array = variants;
    const tutti_status status = memory_grow(&array, &variant_capacity, variant_count + 1, sizeof *variants);
    variants = array;
    if (status != TUTTI_OK) return NULL;
    variants[variant_count] = (struct variant) { .source = source, .kernel = kernel, .options = options };
    return &variants[variant_count++];
}

static tutti_status collect_launch(const struct launch *launch)
{
    const struct program_request request = { launch->source, launch->options };
    char *options = program_options(&device, &request);
    struct variant *v = options ? variant_of(launch->source, launch->kernel_name, options) : NULL;
    if (!v) return fail(TUTTI_NO_MEMORY, "no memory for the list of kernels");
    size_t group = 1, local = 0;
    for (int d = 0; d < launch->dimensions; d++) group *= launch->local[d];
    for (int i = 0; i < launch->count; i++)
        if (launch->arguments[i].kind == ARGUMENT_LOCAL) local += launch->arguments[i].size;
    if (group > v->group) v->group = group;
    if (local > v->local) v->local = local;
    v->now.flops += launch->flops;
    v->now.bytes += launch->bytes;
    v->now.launches++;
    return TUTTI_OK;
}

/* network: of a training step whose work is to be noted; else NULL. Frees the list. */
static tutti_status collect(struct launch_list *list, const char *network)
{
    tutti_status status = list->status;
    for (size_t i = 0; i < list->count && status == TUTTI_OK; i++)
        if (!list->launches[i].call) status = collect_launch(&list->launches[i]);
    for (size_t i = 0; i < variant_count; i++) {
        struct variant *v = &variants[i];
        v->now.network = network;
        if (network && v->now.bytes > v->most.bytes) v->most = v->now;
        v->now = (struct work) { 0 };
    }
    launch_list_free(list);
    return status;
}

/* ---- what plans ask for ---- */

/* Whether it can stand in for the one that the passes chose, which may have been given a fused form. */
static bool takes(struct plan *plan, const struct problem *of_chosen, const struct implementation *implementation)
{
    const struct node *node = of_chosen->node;
    struct problem own = *of_chosen, *problem = &own;
    own.design = NULL;
    const struct implementation *chosen = node->operation->implementations[node->implementation];
    const unsigned fused = node_fusions(node), form = FUSED(MASK) | FUSED(GIVEN) | FUSED(BIAS);
    if (implementation_refusal(plan, problem, implementation)) return false;
    if (fused & ~implementation->fusions || (implementation->cannot_fuse && implementation->cannot_fuse(problem)))
        return false;
    if (fused & FUSED(STATISTICS) && implementation->design) own.design = plan_design(plan, problem, implementation);
    if (fused & FUSED(STATISTICS) && !implementation->statistics(problem)) return false;
    return !((implementation->fusions ^ chosen->fusions) & form);
}

/* The launches of every implementation, besides those chosen. */
static void emit_others(struct plan *plan, struct launch_list *list)
{
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        struct problem problem;
        if (node->operation->alias) continue;
        problem_of(plan, node, &problem);
        for (int i = 0; node->operation->implementations[i]; i++) {
            const struct implementation *other = node->operation->implementations[i];
            if (i == node->implementation || !takes(plan, &problem, other)) continue;
            trial_emit(&problem, other, list);
        }
    }
}

/* counted: the name to note its work under, or NULL. */
static tutti_status ask_plan(const tutti_network *network, const struct plan_options *options, const char *counted)
{
    tutti_status status = TUTTI_OK;
    struct launch_list list;
    struct plan *plan = plan_start(&device, network, options);
    if (!plan) return TUTTI_NO_MEMORY;
    launch_list_init(&list, &device);
    status = plan_run_passes(plan);
    if (status == TUTTI_OK) status = plan_emit_ahead(plan, &list);
    if (status == TUTTI_OK) status = collect(&list, counted);
    launch_list_init(&list, &device);
    if (status == TUTTI_OK) emit_others(plan, &list);
    if (status == TUTTI_OK) status = collect(&list, NULL);
    plan_free(plan);
    return status;
}

static tutti_status ask_plans(const struct model *model, const tutti_network *network, tutti_tensor output)
{
    tutti_status status = TUTTI_OK;
    static const enum plan_mode modes[] = { PLAN_TRAIN, PLAN_EVALUATE, PLAN_INFER };
    const int64_t batches[] = { model->batch, 1 };
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
            for (int synchronised = 0; synchronised <= (modes[m] == PLAN_TRAIN); synchronised++) {
                const bool usual =
                    modes[m] == PLAN_TRAIN && b == 0 && !synchronised && device.can.units > devices[0].units;
                const struct plan_options options = { .mode = modes[m],
                    .sizes.samples = batches[b],
                    .objective = objective_of(output, modes[m] == PLAN_INFER ? TUTTI_LOSS_NONE : model->loss),
                    .synchronised = synchronised };
                TRY(ask_plan(network, &options, usual ? model->name : NULL));
            }
done:
    return status;
}

/* Gives the device this form of matrix instructions, for the types that the form takes. */
static void have_matrix(enum matrix_form form)
{
    const struct tile *list[TILES];
    for (enum compute_type type = 0; type < COMPUTE_TYPES; type++)
        device.can.matrix[type] =
            (struct matrix_ability) { .form = tile_list(form, type, list) > 0 ? form : MATRIX_NONE,
                .pipelined = form == MATRIX_MMA_LDMATRIX && type != COMPUTE_FP32 };
}

/* Plans the training step with the first `count` of the roundings. */
static tutti_status ask_rounded(
    const struct model *model, const tutti_network *network, tutti_tensor output, size_t count)
{
    tutti_status status = TUTTI_OK;
    for (size_t r = 0; r < count && status == TUTTI_OK; r++) {
        const struct plan_options options = { .mode = PLAN_TRAIN,
            .sizes.samples = model->batch,
            .objective = objective_of(output, model->loss),
            .precision = roundings[r].precision };
        have_matrix(roundings[r].form);
        status = ask_plan(network, &options, model->name);
    }
    have_matrix(MATRIX_NONE);
    return status;
}

static tutti_status ask_optimizers(const tutti_network *network, const char *name)
{
    tutti_status status = TUTTI_OK;
    const tutti_training trainings[] = { { .optimizer = TUTTI_SGD }, { .optimizer = TUTTI_SGD, .momentum = 0.9f },
        { .optimizer = TUTTI_SGD, .momentum = 0.9f, .nesterov = true },
        { .optimizer = TUTTI_ADAM, .clip_norm = 1, .ema_decay = 0.9f }, { .optimizer = TUTTI_ADAMW },
        { .optimizer = TUTTI_LION }, { .optimizer = TUTTI_ADAM, .amsgrad = true },
        { .optimizer = TUTTI_ADAMW, .amsgrad = true }, { .optimizer = TUTTI_NADAM }, { .optimizer = TUTTI_ADAGRAD },
        { .optimizer = TUTTI_RMSPROP }, { .optimizer = TUTTI_RMSPROP, .momentum = 0.9f },
        { .optimizer = TUTTI_RMSPROP, .centered = true },
        { .optimizer = TUTTI_RMSPROP, .momentum = 0.9f, .centered = true } };
    struct optimizer_group group = { 1, 0 };
    for (size_t i = 0; i < 2 * sizeof trainings / sizeof *trainings; i++) {
        struct optimizer optimizer;
        struct launch_list list;
        const struct optimizer_buffers none = { 0 };
        launch_list_init(&list, &device);
        TRY(optimizer_init(&optimizer, &trainings[i / 2]));
        if (i % 2) optimizer.groups = &group;
        optimizer_emit(&optimizer, network, &none, 1, &list);
        if (i == 0) optimizer_emit_check(network, NULL, NULL, &list);
        if (i == 0) gradients_emit_add(network, NULL, NULL, &list);
        TRY(collect(&list, name));
    }
done:
    return status;
}

/* The cross-entropy of probabilities: of rows, and of the positions of an image. */
static tutti_status ask_soft(void)
{
    tutti_status status = TUTTI_OK;
    static const int64_t sizes[] = { 10, 5, 7 };
    for (int rank = 1; rank <= 3; rank += 2) {
        tutti_network *network = tutti_network_new(&runtime);
        if (!network) return TUTTI_NO_MEMORY;
        const tutti_tensor x = tutti_input_typed(network, "x", TUTTI_DTYPE_F32, sizes, rank);
        const tutti_tensor targets = tutti_input_typed(network, "targets", TUTTI_DTYPE_F32, sizes, rank);
        const tutti_tensor logits = tutti_mul(network, x, tutti_parameter_sized(network, "w", sizes, rank, NULL));
        const tutti_tensor loss = tutti_cross_entropy(network, logits, targets, NULL);
        struct plan_options options = { .mode = PLAN_TRAIN,
            .sizes.samples = 8,
            .objective = { .outputs = { logits.id }, .output_count = 1, .losses = { loss.id }, .loss_count = 1 } };
        options.objective.weights[0] = 1;
        status = tutti_network_status(network);
        if (status == TUTTI_OK) status = network_layout(network);
        if (status == TUTTI_OK) status = ask_plan(network, &options, NULL);
        tutti_network_free(network);
        if (status != TUTTI_OK) return status;
    }
    return status;
}

/* Plans the training step again with each form of shuffles: this adds the texts that depend on the form. */
static tutti_status ask_shuffled(const struct model *model, const tutti_network *network, tutti_tensor output)
{
    tutti_status status = TUTTI_OK;
    const struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = model->batch, .objective = objective_of(output, model->loss)
    };
    for (enum shuffle_form form = SHUFFLE_NONE + 1; form < SHUFFLE_FORMS && status == TUTTI_OK; form++) {
        device.can.shuffle = form;
        status = ask_plan(network, &options, NULL);
        if (status == TUTTI_OK) status = ask_optimizers(network, NULL);
    }
    device.can.shuffle = SHUFFLE_NONE;
    return status;
}

static tutti_status ask_model(const struct model *model)
{
    tutti_status status = TUTTI_OK;
    tutti_network *network = tutti_network_new(&runtime);
    if (!network) return TUTTI_NO_MEMORY;
    const tutti_tensor logits = model->build(network, tutti_input(network, "x", model->input), model->classes);
    TRY(tutti_network_status(network));
    TRY(network_layout(network));
    TRY(ask_plans(model, network, logits));
    TRY(ask_shuffled(model, network, logits));
    if (device.can.units > devices[0].units) {
        TRY(ask_optimizers(network, model->name));
        if (!strcmp(model->name, ROUNDED_MODEL)) TRY(ask_rounded(model, network, logits, ROUNDINGS));
        if (!strcmp(model->name, ROUNDED_ONCE)) TRY(ask_rounded(model, network, logits, 1));
    }
done:
    tutti_network_free(network);
    return status;
}

/* Operations that no model has, on odd sizes. */
static tutti_tensor build_others(tutti_network *network, tutti_tensor x, int classes)
{
    const tutti_tensor first = tutti_conv2d(network, x, 10, 3, &(tutti_conv2d_options) { .padding = 1, .groups = 2 });
    const tutti_tensor parts[] = { tutti_sigmoid(network, first), tutti_tanh(network, first),
        tutti_leaky_relu(network, first, 0.1f) };
    x = tutti_dropout(network, tutti_concat(network, parts, 3, 0), 0.5f);
    x = tutti_mul(network, x, tutti_add(network, x, x));
    x = tutti_batch_norm(network, tutti_average_pool(network, x, 2, NULL), NULL);
    tutti_tensor parts_of_sum[] = { x, tutti_op(network, "reduce_mean", &x, 1, "axes=-1") };
    x = tutti_op(network, "sub", parts_of_sum, 2, NULL);
    x = tutti_op(network, "transpose", &x, 1, "perm=0,2,1");
    x = tutti_op(network, "pad", &x, 1, "before=0,1,2 after=0,0,1");
    x = tutti_softmax(network, tutti_max_pool(network, x, 3, NULL));
    x = tutti_layer_norm(network, NULL, x, 0);
    x = tutti_add(network, x, tutti_op(network, "random_uniform", &x, 1, NULL));
    x = tutti_add(network, x, tutti_op(network, "random_normal", &x, 1, NULL));
    return tutti_softmax(network, tutti_dense(network, tutti_flatten(network, x), classes, NULL));
}

static const struct model others = {
    .name = "others", .input = { 3, { 6, 17, 19 } }, .classes = 10, .loss = TUTTI_MSE, .batch = 8, .build = build_others
};

/* Operations by index, along lines, on spectra and sequences. Each keeps the shape of x, [4, 6, 8]. */
static tutti_tensor build_indices(tutti_network *network, tutti_tensor x, int classes)
{
    x = tutti_conv2d(network, x, 4, 1, NULL);
    tutti_tensor list[] = { x, tutti_op(network, "argmax", &x, 1, "axis=-1 keepdims=1"), { 0 } };
    const tutti_tensor index = list[1];
    x = tutti_op(
        network, "sub", (tutti_tensor[]) { x, tutti_op(network, "gather_elements", list, 2, "axis=-1") }, 2, NULL);
    list[0] = x, list[2] = tutti_op(network, "topk", &x, 1, "k=1");
    x = tutti_op(network, "scatter_elements", list, 3, "axis=-1 reduction=add");
    x = tutti_op(network, "cumsum", &x, 1, "axis=-1");
    x = tutti_op(network, "trilu", &x, 1, NULL);
    tutti_tensor row = tutti_op(network, "one_hot", &index, 1, "depth=8");
    x = tutti_mul(network, x, tutti_reshape(network, row, TUTTI_SHAPE(4, 6, 8)));
    list[0] = x, list[1] = tutti_op(network, "reduce_max", &index, 1, "keepdims=0");
    x = tutti_op(network, "reverse_sequence", list, 2, "time_axis=1");
    x = tutti_op(network, "resize", &x, 1, "sizes=4,9,8 mode=linear");
    x = tutti_op(network, "slice", &x, 1, "axes=1 starts=0 ends=6");
    list[0] = x, list[1] = tutti_op(network, "slice", &x, 1, "axes=0,2 starts=0,0 ends=1,2");
    list[1] = tutti_reshape(network, list[1], TUTTI_SHAPE(6, 1, 2));
    list[1] = tutti_op(network, "expand", &list[1], 1, "shape=6,8,2");
    x = tutti_op(network, "grid_sample", list, 2, NULL);
    x = tutti_irfft2(network, tutti_rfft2(network, x), 8);
    x = tutti_lstm(network, tutti_reshape(network, x, TUTTI_SHAPE(6, 32)), 5, NULL);
    x = tutti_rfft(network, tutti_dense(network, tutti_flatten(network, x), 1 << 13, NULL), -1, 0);
    return tutti_softmax(network, tutti_dense(network, tutti_flatten(network, x), classes, NULL));
}

static const struct model indices = {
    .name = "indices", .input = { 3, { 3, 6, 8 } }, .classes = 10, .loss = TUTTI_MSE, .batch = 8, .build = build_indices
};

/* Layers whose weights are stored in fewer bits. ids [5, 7], the result, too. */
static tutti_tensor build_stored(tutti_network *network, tutti_tensor x, tutti_tensor ids)
{
    static const char *const names[] = { [TUTTI_STORE_BF16] = "bf16", [TUTTI_STORE_INT8] = "int8" };
    x = tutti_flatten(network, x);
    for (int storage = TUTTI_STORE_BF16; storage <= TUTTI_STORE_INT8; storage++) {
        char pattern[32], table[32];
        snprintf(pattern, sizeof pattern, "%s*.weight", names[storage]);
        snprintf(table, sizeof table, "%s_rows", names[storage]);
        x = tutti_dense(network, x, 5 * 7, &(tutti_dense_options) { .name = names[storage] });
        x = tutti_add(network, x, tutti_flatten(network, tutti_embedding(network, table, ids, 9, 1)));
        tutti_freeze(network, pattern);
        tutti_store(network, pattern, (tutti_storage)storage);
    }
    return tutti_reshape(network, x, TUTTI_SHAPE(5, 7));
}

/* A network that only has what losses and other operations on integers need: bytes that become floats, and every loss.
 */
static tutti_status ask_losses(void)
{
    tutti_status status = TUTTI_OK;
    static const int64_t image[] = { 3, 5, 7 };
    tutti_network *network = tutti_network_new(&runtime);
    if (!network) return TUTTI_NO_MEMORY;
    tutti_tensor inputs[7];
    for (int dtype = TUTTI_DTYPE_F32; dtype <= TUTTI_DTYPE_BOOL; dtype++) {
        const tutti_tensor input = tutti_input_typed(network, NULL, (tutti_dtype)dtype, image, 3);
        inputs[dtype] = tutti_cast(network, input, TUTTI_DTYPE_F32);
    }
    const tutti_tensor labels = tutti_input_typed(network, "labels", TUTTI_DTYPE_U8, image + 1, 2),
                       targets = inputs[TUTTI_DTYPE_U8], classes = tutti_cast(network, labels, TUTTI_DTYPE_I32),
                       class_rows = tutti_input_typed(network, "rows", TUTTI_DTYPE_I32, image, 2),
                       rows = tutti_embedding(network, NULL, classes, 9, 7),
                       table = tutti_op(network, "reduce_mean", &rows, 1, "axes=-1 keepdims=0"),
                       stored = build_stored(network, inputs[TUTTI_DTYPE_F32], classes),
                       output = tutti_add(network, tutti_conv2d(network, inputs[TUTTI_DTYPE_F32], 3, 1, NULL),
                           tutti_add(network, table, stored));
    for (int i = TUTTI_DTYPE_F16; i <= TUTTI_DTYPE_BOOL; i++) inputs[0] = tutti_add(network, inputs[0], inputs[i]);
    const float weights[7] = { 1, 2, 3, 4, 5, 6, 7 };
    const tutti_loss_options weighted = { .size = sizeof weighted, .class_weights = weights, .class_weight_count = 3 },
                             weighted_rows = { .size = sizeof weighted_rows,
                                 .class_axis = -1,
                                 .class_weights = weights,
                                 .class_weight_count = 7 };
    const tutti_tensor losses[] = {
        tutti_cross_entropy(network, output, classes, NULL),
        tutti_nll(network, output, classes, NULL),
        tutti_cross_entropy(network, output, classes, &weighted),
        tutti_cross_entropy(network, output, class_rows, &weighted_rows),
        tutti_bce_with_logits(network, output, targets, NULL),
        tutti_mse(network, output, inputs[0], NULL),
        tutti_l1(network, output, targets, NULL),
        tutti_huber(network, output, targets, NULL),
    };
    struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = 4, .objective = objective_of(output, TUTTI_LOSS_NONE)
    };
    struct objective *objective = &options.objective;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        objective->weights[i] = 0.5f;
        objective->losses[objective->loss_count++] = losses[i].id;
    }
    const tutti_tensor mean = tutti_mean(network, output, NULL),
                       list = tutti_input_typed(network, "list", TUTTI_DTYPE_I32, image, 1),
                       frames = tutti_reshape(network, output, TUTTI_SHAPE(15, 7)),
                       ctc = tutti_ctc(network, frames, list, NULL);
    TRY(tutti_network_status(network));
    TRY(network_layout(network));
    for (int more = 0; more < 2; more++) { /* a plan has at most eight losses */
        options.mode = PLAN_TRAIN;
        TRY(ask_plan(network, &options, NULL));
        options.mode = PLAN_EVALUATE;
        TRY(ask_plan(network, &options, NULL));
        objective->losses[0] = mean.id;
        objective->losses[1] = ctc.id;
        objective->loss_count = 2;
    }
done:
    tutti_network_free(network);
    return status;
}

/* Texts that none of these plans asks for: the probes of a device; reorders, of which resnet18 needs none. */
static tutti_status ask_probes(void)
{
    static const struct {
        const char *source, *kernel, *options;
    } probes[] = {
        { "check", "check_copy", "" },
        { "check", "check_arithmetic", "" },
        { "check", "check_functions", "" },
        { "check", "check_local", "" },
        { "wire", "gradients_to_bf16", "" },
        { "peak", "peak_arithmetic", "" },
        { "peak", "peak_read", "" },
        { "peak", "peak_copy", "" },
    };
    enum { GROUP = 64, TILE = 16 };
    struct launch_list list;
    launch_list_init(&list, &device);
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        launch_grid(launch_add(&list, probes[i].source, probes[i].kernel, "%s", probes[i].options), 1, GROUP, 1, 1,
            GROUP, 1, 1);
    launch_grid(
        launch_add(&list, "reorder_gpu", "tiles", "-DTYPE=uint -DTILE=%d", TILE), 2, TILE, TILE, 1, TILE, TILE, 1);
    for (enum matrix_form form = MATRIX_NONE + 1; form < MATRIX_FORMS; form++) {
        have_matrix(form);
        for (enum compute_type type = 0; type < COMPUTE_TYPES; type++) matrix_emit_trial(type, &list);
    }
    have_matrix(MATRIX_NONE);
    tutti_status status = collect(&list, NULL);
    for (enum shuffle_form form = SHUFFLE_NONE + 1; form < SHUFFLE_FORMS && status == TUTTI_OK; form++) {
        device.can.shuffle = form;
        launch_list_init(&list, &device);
        shuffle_emit_trial(&list);
        status = collect(&list, NULL);
    }
    device.can.shuffle = SHUFFLE_NONE;
    return status;
}

/* Texts for CPU-class devices: "_cpu" after their names, and these. */
static bool is_for_cpus(const char *name)
{
    static const char *const more[] = { "gemm_packed", "gemm_bf16", "gemm_bf16_pack", "gemm_skinny", "reorder" };
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (!strcmp(name, more[i])) return true;
    return length > 4 && !strcmp(name + length - 4, "_cpu");
}

/* Whether a program's text is this one, or begins with it (runtime/source.h). */
static bool is_of(const char *source, const char *name)
{
    const size_t length = strlen(name);
    return !strncmp(source, name, length) && (source[length] == '\0' || source[length] == '-');
}

static tutti_status check_coverage(void)
{
    for (const struct kernel_text *text = kernel_texts; text->name; text++) {
        bool asked = false;
        for (size_t i = 0; i < variant_count && !asked; i++) asked = is_of(variants[i].source, text->name);
        if (asked == is_for_cpus(text->name))
            return fail(TUTTI_INVALID,
                asked ? "%s is for CPU-class devices, and a GPU-class one asks for it"
                      : "no plan asks for %s: have build_others() do so",
                text->name);
    }
    return TUTTI_OK;
}

/* ---- writing ---- */

static int compare_variants(const void *a, const void *b)
{
    const struct variant *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    if (!order) order = strcmp(x->options, y->options);
    return order ? order : strcmp(x->kernel, y->kernel);
}

static FILE *create(const char *folder, const char *name, const char *ending)
{
    char *path = memory_format("%s/%s%s", folder, name, ending);
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) perror(path);
    free(path);
    return file;
}

static bool write_text(const char *folder, const char *name)
{
    FILE *file = create(folder, name, ".cl");
    if (!file) return false;
    bool good = fputs(source_find(name)->text, file) >= 0;
    good &= fclose(file) == 0;
    return good;
}

static bool write_all(const char *folder)
{
    bool good = true;
    qsort(variants, variant_count, sizeof *variants, compare_variants);
    FILE *file = create(folder, "variants", "");
    for (size_t i = 0; file && i < variant_count; i++) {
        const struct variant *v = &variants[i];
        fprintf(file, "%s\t%s\t%s\t%zu\t%zu\t%.0f\t%.0f\t%d\t%s\n", v->source, v->kernel, v->options, v->group,
            v->local, v->most.flops, v->most.bytes, v->most.launches, v->most.network ? v->most.network : "-");
        if (i == 0 || strcmp(v->source, v[-1].source)) good &= write_text(folder, v->source);
    }
    return file && fclose(file) == 0 && good;
}

/* The kernels of tabular are those of other networks, and loops; so are those of networks for text and speech, but for
 * what build_others() has. */
static bool is_left_out(const struct model *model)
{
    static const char *const names[] = { "tabular", "efficientnet_b0", "convnext_tiny", "vit_b_16", "unet", "fno2d" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(model->name, names[i])) return true;
    return model->takes == MODEL_TAKES_TEXT || model->takes == MODEL_TAKES_SPEECH;
}

int main(int argc, char **argv)
{
    tutti_status status = TUTTI_OK;
    if (argc != 2) return fprintf(stderr, "usage: variants FOLDER\n"), 2;
    for (int d = 0; d < DEVICES && status == TUTTI_OK; d++) {
        device = (struct device) { .runtime = &runtime, .can = devices[d] };
        device.can.class = DEVICE_GPU;
        device.can.vector_width = 4;
        device.can.alignment = 128;
        device.can.memory_bytes = (size_t)64 << 30;
        runtime = (struct tutti_runtime) { .devices = &device, .count = 1, .threads = 1 };
        for (int m = 0; model_at(m) && status == TUTTI_OK; m++)
            if (!is_left_out(model_at(m))) status = ask_model(model_at(m));
        if (status == TUTTI_OK) status = ask_model(&others);
        if (status == TUTTI_OK) status = ask_model(&indices);
        if (status == TUTTI_OK) status = ask_losses();
        if (status == TUTTI_OK) status = ask_soft();
        if (status == TUTTI_OK) status = ask_probes();
        stores_free(&device);
    }
    if (status == TUTTI_OK) status = check_coverage();
    const bool good = status == TUTTI_OK && write_all(argv[1]);
    if (!good) fprintf(stderr, "variants: %s\n", status == TUTTI_OK ? "cannot write" : status_message());
    for (size_t i = 0; i < variant_count; i++) free(variants[i].options);
    free(variants);
    return good ? 0 : 1;
}
