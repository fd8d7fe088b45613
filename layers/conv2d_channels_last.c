/* conv2d on GPU-class devices by matrix instructions, with channels last: implicit matrix products whose rows are
 * pixels and whose columns are channels, where the layout pass has found that this layout pays. */
#include "base/memory.h"
#include "layers/conv2d_implicit_gemm.h"
#include "layers/epilogue.h"

/* Of local memory: more than any tile takes. */
enum { LOCAL_BYTES = 16 << 10 };
/* Channels below which the source of a forward pass is read in the plain layout: an image. */
enum { FEW_CHANNELS = 16 };

static enum matrix_form form_of(const struct problem *problem)
{
    return problem->device->matrix[problem->compute].form;
}

static bool reads_image(const struct conv2d_sizes *z)
{
    return z->c % CHANNELS_LAST_MULTIPLE && z->c < FEW_CHANNELS;
}

static const char *fits(const struct problem *problem)
{
    const enum matrix_form form = form_of(problem);
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    if (!form) return tile_matrix_refusal(problem->compute, problem->device);
    if (!problem->channels_last)
        return "the network keeps the plain layout: converting layouts would cost more than its convolutions gain";
    if (z.groups > 1) return "groups is not 1";
    if (z.k % CHANNELS_LAST_MULTIPLE) return "the number of output channels is not a multiple of 4";
    if (z.c % CHANNELS_LAST_MULTIPLE && (conv2d_is_data_gradient(problem) || !reads_image(&z)))
        return "the number of input channels is not a multiple of 4";
    if (problem->device->local_bytes < LOCAL_BYTES) return "the device's local memory is too small";
    return conv2d_gemm_refusal(problem, form);
}

/* Compiled for these forms, `image` spills up to 4 KiB for a thread, the plain layout's 512 bytes. */
static const char *passed_over(const struct problem *problem)
{
    const enum matrix_form form = form_of(problem);
    return form == MATRIX_MAD_16 || form == MATRIX_MAD_8
        ? "with this form of matrix instructions it needs more registers than the device has"
        : NULL;
}

static void layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const bool weights = conv2d_is_weight_gradient(problem);
    inputs[0] = reads_image(&z) ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
    inputs[1] = weights ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    outputs[0] = weights ? LAYOUT_PLAIN : LAYOUT_CHANNELS_LAST;
}

/* ------------------------------------------------------------------------------- forward and data gradient ---- */

static void design_image(const struct problem *problem, void *design)
{
    *(struct conv2d_gemm_image *)design = conv2d_gemm_image_of(problem, form_of(problem), LAYOUT_CHANNELS_LAST);
}

/* Of TF32 as floats, of the others in half as many bytes. */
static size_t image_prepared(const struct problem *problem)
{
    return (size_t)conv2d_gemm_packed_count(problem->design) * (problem->compute == COMPUTE_TF32 ? 4 : 2);
}

static int64_t statistics_parts(const struct problem *problem)
{
    return conv2d_gemm_statistics_parts(problem, form_of(problem), LAYOUT_CHANNELS_LAST);
}

/* Both kernels of a node come from one program. */
static struct launch *add(
    const struct problem *problem, const struct conv2d_gemm_image *m, struct launch_list *list, const char *kernel)
{
    char activation[EPILOGUE_OPTIONS];
    return launch_add(list, "conv2d_channels_last", kernel,
        TILE_OPTIONS " -DGRADIENT=%d -DFLAT=%d -DFLAT_CHANNELS=%d -DFLAT_WIDTH=%d -DSTATISTICS=%d %s",
        TILE_VALUES(&m->tile, m->form, problem->compute), conv2d_is_data_gradient(problem), m->flat,
        m->flat ? (int)m->cs : 1, m->flat ? (int)m->z.s : 1, problem->outputs[STATISTICS_OUTPUT] != NULL,
        activation_options(&problem->node->epilogue, activation, sizeof activation));
}

static void emit_pack(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_image *m = problem->design;
    const int64_t count = conv2d_gemm_packed_count(m);
    struct launch *launch = add(problem, m, list, "pack");
    LAUNCH_BUFFERS(launch, operands->inputs[1], operands->prepared);
    LAUNCH_INTS(launch, count, m->z.r * m->z.s, m->cs, m->cr, m->csp, m->crp);
    const size_t group = problem->device->group_max < 128 ? problem->device->group_max : 128;
    launch_grid(launch, 1, size_round_up((size_t)count, group), 1, 1, group, 1, 1);
    launch_work(launch, 0, 4.0 * (double)count + (double)image_prepared(problem));
}

static void emit_image(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_image *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    struct launch *launch = add(problem, m, list, "image");
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->prepared,
        conv2d_is_data_gradient(problem) ? NULL : operands->inputs[2], operands->add, operands->outputs[0]);
    LAUNCH_INTS(launch, z->n, m->cs, m->cr, m->csp, m->crp, m->sh, m->sw, m->rh, m->rw, z->r, z->s, z->stride_h,
        z->stride_w, z->padding_h, z->padding_w, z->dilation_h, z->dilation_w);
    if (problem->outputs[STATISTICS_OUTPUT]) {
        launch_buffer(launch, operands->outputs[STATISTICS_OUTPUT]);
        launch_int(launch, problem->outputs[STATISTICS_OUTPUT]->shape.sizes[2]);
    }
    const size_t group = (size_t)tile_items(&m->tile);
    launch_grid(launch, 3, (size_t)m->pixel_tiles * group, (size_t)m->channel_tiles, (size_t)m->classes, group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
}

/* ----------------------------------------------------------------------------------------- weight gradient ---- */

static void design_weights(const struct problem *problem, void *design)
{
    *(struct conv2d_gemm_weights *)design = conv2d_gemm_weights_of(problem, form_of(problem));
}

static void emit_weights(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct conv2d_gemm_weights *m = problem->design;
    const struct conv2d_sizes *z = &m->z;
    const struct tile *t = &m->tile;
    struct launch *launch = launch_add(list, "conv2d_channels_last_weights", "weight_gradient",
        TILE_OPTIONS " -DFLAT=%d", TILE_VALUES(t, m->form, problem->compute), reads_image(z));
    LAUNCH_BUFFERS(launch, operands->inputs[0], operands->inputs[1], operands->add,
        m->splits > 1 ? operands->workspace : operands->outputs[0]);
    LAUNCH_INTS(launch, z->n, z->c, z->k, z->h, z->w, z->oh, z->ow, z->r, z->s, z->stride_h, z->stride_w, z->padding_h,
        z->padding_w, z->dilation_h, z->dilation_w, m->pixels_of_split);
    const size_t group = (size_t)tile_items(t);
    launch_grid(launch, 3, (size_t)divide_up(m->columns, t->bn) * group, (size_t)divide_up(z->k, t->bm),
        (size_t)m->splits, group, 1, 1);
    launch_work(launch, conv2d_flops(problem), conv2d_bytes(problem));
    if (m->splits > 1) conv2d_sum_parts(problem, operands, m->splits, list);
}

#define COMMON \
    .name = "channels_last", .fits = fits, .passed_over = passed_over, .layouts = layouts, .epilogues = conv2d_epilogues
#define IMAGE                                                                                                         \
    COMMON, .statistics = statistics_parts, .design_bytes = sizeof(struct conv2d_gemm_image), .design = design_image, \
            .prepared = image_prepared, .emit_prepare = emit_pack, .emit = emit_image

const struct implementation conv2d_channels_last[CONV2D_PASSES] = {
    { IMAGE },
    { IMAGE },
    { COMMON, .design_bytes = sizeof(struct conv2d_gemm_weights), .design = design_weights,
        .workspace = conv2d_gemm_weights_workspace, .emit = emit_weights },
};
