/* tutti_op(): finds an operation by its name in the table `recipes`, and reads its attributes from text. */
#include "layers/op.h"
#include "base/invariant.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "graph/network.h"
#include "layers/composition.h"
#include "layers/grid_sample.h"
#include "layers/indices.h"
#include "layers/layers.h"
#include "layers/lines.h"
#include "layers/op_builders.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The attributes read from the text. */
struct given {
    struct attribute_values attributes;
    struct said said;
    char *name; /* of the layer */
};

/* A "key=value" of the text. Axes are those of a sample, counted from the end if negative; a shape is of a sample. */
struct word {
    const char *name;
    const char *attribute;    /* of the operation, which it sets; NULL: it sets a member of struct said */
    enum attribute_kind kind; /* of that member; ATTRIBUTE_OTHER: struct list, of whole numbers */
    size_t offset;
    double otherwise;    /* without the word; of a number, flag or axis */
    const char *choices; /* "none add": words that stand for the numbers 0, 1, ...; NULL: numbers */
    bool reals;          /* the member is a struct reals */
};
#define SETS(attribute) #attribute, ATTRIBUTE_OTHER, 0
#define SAYS(kind, member) NULL, ATTRIBUTE_##kind, offsetof(struct said, member)
#define SAYS_LIST(member) SAYS(OTHER, member)
#define SAYS_CHOICE(member, choices) SAYS_LIST(member), 0, choices
#define SAYS_REALS(member) SAYS(OTHER, member), .reals = true

enum { MOST_WORDS = 4 };
struct recipe {
    const char *name;
    const struct operation *operation;
    int least, most; /* inputs */
    struct word words[MOST_WORDS];
    const struct word *more; /* instead of words: a list that ends with a word without a name */
    enum activation activation;
    bool random; /* takes the step's constants, and a stream of random numbers */
    /* Derives the operation's attributes from others, from `said` and from x, the first input. May be NULL. */
    tutti_status (*complete)(const struct value *x, const struct said *said, void *attributes);
    composition *compose; /* makes several nodes instead of one of `operation`, whose attributes it takes */
    const struct attribute_type *attributes; /* of `compose`; NULL: those of `operation` */
    op_builder *build;                       /* makes all nodes, from struct said (layers/op_builders.h) */
};

static const struct word *word_at(const struct recipe *recipe, int i)
{
    const struct word *word = recipe->more ? &recipe->more[i] : i < MOST_WORDS ? &recipe->words[i] : NULL;
    return word && word->name ? word : NULL;
}

static tutti_status complete_reduction(const struct value *x, const struct said *said, void *attributes)
{
    struct reduce_attributes *a = attributes;
    const unsigned all = ((1u << x->shape.rank) - 1) & ~(unsigned)x->batched;
    if (a->axes == 0) a->axes = all;
    if (said->keepdims) return TUTTI_OK;
    for (int i = 0; i < x->shape.rank; i++) {
        if (a->axes >> i & 1) continue;
        a->kinds.kinds[a->shape.rank] = x->axes.kinds[i];
        a->shape.sizes[a->shape.rank++] = x->shape.sizes[i];
    }
    if (a->shape.rank == 0) a->shape = TUTTI_SHAPE(1);
    return TUTTI_OK;
}

/* Without `perm`, the axes are reversed, as by numpy. */
static tutti_status complete_transpose(const struct value *x, const struct said *said, void *attributes)
{
    int *order = ((struct transpose_attributes *)attributes)->order, rank = x->shape.rank;
    bool given = false;
    (void)said;
    for (int i = x->batched; i < rank; i++) given |= order[i] != 0;
    for (int i = x->batched; i < rank && !given; i++) order[i] = rank - 1 - i + x->batched;
    return TUTTI_OK;
}

static tutti_status complete_expand(const struct value *x, const struct said *said, void *attributes)
{
    (void)x, (void)said;
    ((struct expand_attributes *)attributes)->factor = 1;
    return TUTTI_OK;
}

static tutti_status complete_reshape(const struct value *x, const struct said *said, void *attributes)
{
    (void)said;
    return reshape_resolve(x, attributes);
}

static tutti_status complete_fold(const struct value *x, const struct said *said, void *attributes)
{
    (void)said;
    return reshape_fold(x, attributes);
}

static tutti_status complete_unfold(const struct value *x, const struct said *said, void *attributes)
{
    return reshape_unfold(x, said->starts.count == 1 ? said->starts.numbers[0] : 0, attributes);
}

/* Takes the first elements, as many as sequences are long, along the given axes, or all if none is given. */
static tutti_status complete_prefix(const struct value *x, const struct said *said, void *attributes)
{
    struct window_attributes *a = attributes;
    a->shape = x->shape;
    a->within = true;
    for (int i = x->batched; i < x->shape.rank; i++)
        if (said->axes == 0 || said->axes >> i & 1) a->shape.sizes[i] = TUTTI_SEQUENCE;
    return TUTTI_OK;
}

/* Sets `reduction` of scatter. */
static tutti_status complete_elements(const struct value *x, const struct said *said, void *attributes)
{
    struct indexed_attributes *a = attributes;
    (void)x;
    a->kind = INDEXED_ELEMENTS;
    a->reduction = (int)said->picked.numbers[0];
    return TUTTI_OK;
}

/* Sets `batch_dims` of gather, the number of leading axes that data and indices share; and `reduction` of scatter. */
static tutti_status complete_nd(const struct value *x, const struct said *said, void *attributes)
{
    struct indexed_attributes *a = attributes;
    const int64_t shared = said->starts.numbers[0];
    if (said->starts.count > 1 || shared < 0 || shared >= x->shape.rank - x->batched)
        return fail(TUTTI_INVALID, "gather_nd: batch_dims must be one number, from 0 to less than the %d axes",
            x->shape.rank - x->batched);
    a->kind = INDEXED_ND;
    a->axis = x->batched + (int)shared;
    a->reduction = (int)said->picked.numbers[0];
    return TUTTI_OK;
}

/* Reads an attribute of one number, such as `k`; *to keeps its default where the number is not given. */
static tutti_status one_number(const char *name, const struct list *list, int64_t *to)
{
    if (list->count > 1) return fail(TUTTI_INVALID, "%s: it takes one number, and got %d", name, list->count);
    if (list->count) *to = list->numbers[0];
    return TUTTI_OK;
}

static tutti_status complete_topk(const struct value *x, const struct said *said, void *attributes)
{
    (void)x;
    return one_number("topk: k", &said->picked, &((struct topk_attributes *)attributes)->k);
}

static tutti_status complete_trilu(const struct value *x, const struct said *said, void *attributes)
{
    (void)x;
    return one_number("trilu: k", &said->picked, &((struct trilu_attributes *)attributes)->k);
}

/* Sets `axis`, an axis of the result, which has one more than the input. */
static tutti_status complete_one_hot(const struct value *x, const struct said *said, void *attributes)
{
    struct one_hot_attributes *a = attributes;
    int64_t axis = -1, rank = x->shape.rank - x->batched + 1;
    tutti_status status = one_number("one_hot: axis", &said->picked, &axis);
    if (status == TUTTI_OK) status = one_number("one_hot: depth", &said->starts, &a->depth);
    if (status == TUTTI_OK && (axis < -rank || axis >= rank))
        status = fail(
            TUTTI_INVALID, "one_hot: axis %lld does not exist: the result has %lld", (long long)axis, (long long)rank);
    a->axis = x->batched + (int)(axis < 0 ? axis + rank : axis);
    return status;
}

/* Sets `batch_axis`; none if it is not given. */
static tutti_status complete_reverse(const struct value *x, const struct said *said, void *attributes)
{
    struct reverse_sequence_attributes *a = attributes;
    int64_t axis = -1, rank = x->shape.rank - x->batched;
    const tutti_status status = one_number("reverse_sequence: batch_axis", &said->picked, &axis);
    if (status == TUTTI_OK && (axis < -1 || axis >= rank))
        return fail(TUTTI_INVALID, "reverse_sequence: batch_axis %lld does not exist: the input has %lld",
            (long long)axis, (long long)rank);
    a->batch_axis = axis < 0 ? -1 : x->batched + (int)axis;
    return status;
}

static tutti_status complete_grid(const struct value *x, const struct said *said, void *attributes)
{
    struct grid_sample_attributes *a = attributes;
    (void)x;
    a->mode = (int)said->picked.numbers[0];
    a->padding = (int)said->starts.numbers[0];
    return TUTTI_OK;
}

#define ARGMAX_RECIPE(name_)                                                                                      \
    {                                                                                                             \
#name_, &operation_##name_, 1, 1,                                                                         \
        {                                                                                                         \
            { "axis", SETS(axis), 0 }, { "keepdims", SETS(keepdims), 1 }, { "select_last_index", SETS(last), 0 }, \
        }                                                                                                         \
    }
#define SCAN_RECIPE(name_)                                                                                   \
    {                                                                                                        \
#name_, &operation_##name_, 1, 1,                                                                    \
        {                                                                                                    \
            { "axis", SETS(axis), 0 }, { "exclusive", SETS(exclusive), 0 }, { "reverse", SETS(reverse), 0 }, \
        }                                                                                                    \
    }
#define POINTWISE_RECIPE(name_, inputs, ...) { #name_, &operation_##name_, inputs, inputs },

#define REDUCTION(name_, of, compose_)                                                                                \
    {                                                                                                                 \
        .name = #name_, .operation = &operation_##of, .least = 1, .most = 1,                                          \
        .words = { { "axes", SETS(axes) }, { "keepdims", SAYS(FLAG, keepdims), 1 } }, .complete = complete_reduction, \
        .compose = compose_                                                                                           \
    }

#define NORM(name_, inputs, ...)                                                                          \
    {                                                                                                     \
        .name = #name_, .least = 1, .most = inputs, .words = { __VA_ARGS__ }, .compose = compose_##name_, \
        .attributes = &norm_attributes_type                                                               \
    }

/* In the order of the enums of layers/resize.h. */
static const struct word resize_words[] = { { "axes", SAYS_LIST(picked) }, { "sizes", SAYS_LIST(sizes) },
    { "scales", SAYS_REALS(scales) }, { "roi", SAYS_REALS(roi) },
    { "mode", SAYS_CHOICE(resize_mode, "nearest linear cubic") },
    { "coordinate_transformation_mode",
        SAYS_CHOICE(resize_coordinates,
            "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize") },
    { "nearest_mode", SAYS_CHOICE(resize_nearest, "round_prefer_floor round_prefer_ceil floor ceil") },
    { "keep_aspect_ratio_policy", SAYS_CHOICE(resize_policy, "stretch not_larger not_smaller") },
    { "cubic_coeff_a", SAYS(NUMBER, resize.cubic_coeff_a), -0.75 },
    { "extrapolation_value", SAYS(NUMBER, resize.extrapolation_value), 0 },
    { "exclude_outside", SAYS(FLAG, resize.exclude_outside), 0 }, { "antialias", SAYS(FLAG, resize.antialias), 0 },
    { 0 } };

/* In the order of enum auto_pad. */
#define SLIDING_WORDS                                                                         \
    { "kernel_shape", SAYS_LIST(sliding.kernel) }, { "strides", SAYS_LIST(sliding.strides) }, \
        { "dilations", SAYS_LIST(sliding.dilations) }, { "pads", SAYS_LIST(sliding.pads) },   \
    {                                                                                         \
        "auto_pad", SAYS_CHOICE(sliding.auto_pad, "notset valid same_upper same_lower")       \
    }
#define POOL_WORDS                                    \
    SLIDING_WORDS,                                    \
    {                                                 \
        "ceil_mode", SAYS(FLAG, sliding.ceil_mode), 0 \
    }
static const struct word conv_words[] = { SLIDING_WORDS, { "group", SAYS_LIST(sliding.group) }, { 0 } };
static const struct word conv_transpose_words[] = { SLIDING_WORDS, { "group", SAYS_LIST(sliding.group) },
    { "output_padding", SAYS_LIST(sliding.output_padding) }, { "output_shape", SAYS_LIST(sliding.output_shape) },
    { 0 } };
static const struct word max_pool_words[] = { POOL_WORDS, { 0 } };
static const struct word average_pool_words[] = { POOL_WORDS,
    { "count_include_pad", SAYS(FLAG, sliding.count_include_pad), 0 }, { 0 } };
static const struct word lp_pool_words[] = { POOL_WORDS, { "p", SAYS(NUMBER, sliding.p), 2 }, { 0 } };

/* The first entry with a name is used. So elu and others with attributes precede their lines of POINTWISE_TABLE
 * (layers/pointwise.h), which stands last. */
static const struct recipe recipes[] = {
    { "elu", &operation_elu, 1, 1, { { "alpha", SETS(low), 1 } } },
    { "celu", &operation_celu, 1, 1, { { "alpha", SETS(low), 1 } } },
    { "thresholded_relu", &operation_thresholded_relu, 1, 1, { { "alpha", SETS(low), 1 } } },
    { "scale", &operation_scale, 1, 1, { { "factor", SETS(low), 1 } } },
    { "swish", &operation_swish, 1, 1, { { "alpha", SETS(low), 1 } } },
    { "swiglu", &operation_swiglu, 2, 2, { { "alpha", SETS(low), 1 } } },
    { "shift", &operation_shift, 1, 1, { { "by", SETS(low), 0 } } },
    { "power", &operation_power, 1, 1, { { "exponent", SETS(low), 1 } } },
    { "relu", &operation_activation, 1, 1, .activation = ACTIVATION_RELU },
    { "sigmoid", &operation_activation, 1, 1, .activation = ACTIVATION_SIGMOID },
    { "tanh", &operation_activation, 1, 1, .activation = ACTIVATION_TANH },
    { "leaky_relu", &operation_activation, 1, 1, { { "alpha", SETS(low), 0.01 } },
        .activation = ACTIVATION_LEAKY_RELU },
    { "clip", &operation_activation, 1, 1, { { "min", SETS(low), -INFINITY }, { "max", SETS(high), INFINITY } },
        .activation = ACTIVATION_CLIP },
    REDUCTION(reduce_sum, reduce_sum, NULL), REDUCTION(reduce_mean, reduce_mean, NULL),
    REDUCTION(reduce_max, reduce_max, NULL), REDUCTION(reduce_min, reduce_min, NULL),
    REDUCTION(reduce_prod, reduce_prod, NULL), REDUCTION(reduce_l1, reduce_sum, compose_reduce_l1),
    REDUCTION(reduce_l2, reduce_sum, compose_reduce_l2), REDUCTION(reduce_log_sum, reduce_sum, compose_reduce_log_sum),
    REDUCTION(reduce_log_sum_exp, reduce_sum, compose_reduce_log_sum_exp),
    REDUCTION(reduce_sum_square, reduce_sum, compose_reduce_sum_square),
    { "expand", &operation_expand, 1, 1, { { "shape", SETS(shape) } }, .complete = complete_expand },
    { "transpose", &operation_transpose, 1, 1, { { "perm", SETS(order) } }, .complete = complete_transpose },
    { "slice", &operation_window, 1, 1,
        { { "axes", SAYS_LIST(picked) }, { "starts", SAYS_LIST(starts) }, { "ends", SAYS_LIST(ends) },
            { "steps", SAYS_LIST(steps) } },
        .build = op_slice },
    { "prefix", &operation_window, 1, 1, { { "axes", SAYS(AXES, axes) } }, .complete = complete_prefix },
    { "pad", &operation_window, 1, 1,
        { { "before", SAYS_LIST(starts) }, { "behind", SAYS_LIST(ends) }, { "value", SETS(outside), 0 },
            { "mode", SAYS_CHOICE(mode, "constant reflect edge wrap") } },
        .build = op_pad },
    { "tile", NULL, 1, 1, { { "repeats", SAYS_LIST(sizes) } }, .build = op_tile },
    { "depth_to_space", NULL, 1, 1, { { "blocksize", SAYS_LIST(sizes) }, { "mode", SAYS_CHOICE(mode, "dcr crd") } },
        .build = op_depth_to_space },
    { "space_to_depth", NULL, 1, 1, { { "blocksize", SAYS_LIST(sizes) }, { "mode", SAYS_CHOICE(mode, "dcr crd") } },
        .build = op_space_to_depth },
    { "resize", NULL, 1, 1, .more = resize_words, .build = op_resize },
    { "conv", NULL, 2, 3, .more = conv_words, .build = op_conv },
    { "conv_transpose", NULL, 2, 3, .more = conv_transpose_words, .build = op_conv_transpose },
    { "max_pool", NULL, 1, 1, .more = max_pool_words, .build = op_max_pool },
    { "average_pool", NULL, 1, 1, .more = average_pool_words, .build = op_average_pool },
    { "lp_pool", NULL, 1, 1, .more = lp_pool_words, .build = op_lp_pool }, { "cast", &operation_cast, 1, 1 },
    { "reshape", &operation_reshape, 1, 1, { { "shape", SETS(shape) } }, .complete = complete_reshape },
    { "fold", &operation_reshape, 1, 1, .complete = complete_fold },
    { "unfold", &operation_reshape, 1, 1, { { "size", SAYS_LIST(starts) } }, .complete = complete_unfold },
    { "concat", &operation_concat, 1, 8, { { "axis", SETS(axis), 0 } } }, { "softmax", &operation_softmax, 1, 1 },
    { "dft", NULL, 1, 1,
        { { "axis", SAYS(AXIS, axis), -2 }, { "inverse", SAYS(FLAG, inverse), 0 },
            { "onesided", SAYS(FLAG, onesided), 0 }, { "length", SAYS_LIST(starts) } },
        .build = op_dft },
    { "dropout", &operation_dropout, 1, 1, { { "ratio", SETS(probability), 0.5 } }, .random = true },
    { "random_uniform", &operation_random_uniform, 1, 1, { { "offset", SETS(offset), 0 }, { "scale", SETS(scale), 1 } },
        .random = true },
    { "random_normal", &operation_random_normal, 1, 1, { { "offset", SETS(offset), 0 }, { "scale", SETS(scale), 1 } },
        .random = true },
    { "embedding", &operation_embedding, 2, 2 }, { "gather", &operation_gather, 2, 2, { { "axis", SETS(axis), 0 } } },
    { "gather_elements", &operation_gather, 2, 2, { { "axis", SETS(axis), 0 } }, .complete = complete_elements },
    { "gather_nd", &operation_gather, 2, 2, { { "batch_dims", SAYS_LIST(starts) } }, .complete = complete_nd },
    { "scatter_elements", &operation_scatter, 3, 3,
        { { "axis", SETS(axis), 0 }, { "reduction", SAYS_LIST(picked), .choices = SCATTER_REDUCTIONS } },
        .complete = complete_elements },
    { "scatter_nd", &operation_scatter, 3, 3, { { "reduction", SAYS_LIST(picked), .choices = SCATTER_REDUCTIONS } },
        .complete = complete_nd },
    ARGMAX_RECIPE(argmax), ARGMAX_RECIPE(argmin),
    { "hardmax", &operation_hardmax, 1, 1, { { "axis", SETS(axis), -1 } } },
    { "topk", &operation_topk, 1, 1,
        { { "k", SAYS_LIST(picked) }, { "axis", SETS(axis), -1 }, { "largest", SETS(largest), 1 } },
        .complete = complete_topk },
    SCAN_RECIPE(cumsum), SCAN_RECIPE(cumprod),
    { "one_hot", &operation_one_hot, 1, 1,
        { { "axis", SAYS_LIST(picked) }, { "depth", SAYS_LIST(starts) }, { "off", SETS(off), 0 },
            { "on", SETS(on), 1 } },
        .complete = complete_one_hot },
    { "trilu", &operation_trilu, 1, 1, { { "upper", SETS(upper), 1 }, { "k", SAYS_LIST(picked) } },
        .complete = complete_trilu },
    { "reverse_sequence", &operation_reverse_sequence, 2, 2,
        { { "time_axis", SETS(axis), 0 }, { "batch_axis", SAYS_LIST(picked) } }, .complete = complete_reverse },
    NORM(layer_norm, 3, { "axis", SETS(axis), -1 }, { "epsilon", SETS(epsilon), 1e-5 }),
    NORM(rms_norm, 2, { "axis", SETS(axis), -1 }, { "epsilon", SETS(epsilon), 1e-5 }),
    NORM(group_norm, 3, { "groups", SETS(count), 1 }, { "epsilon", SETS(epsilon), 1e-5 }),
    NORM(instance_norm, 3, { "epsilon", SETS(epsilon), 1e-5 }), NORM(mean_variance_norm, 1, { "axes", SETS(axes) }),
    NORM(lp_norm, 1, { "axis", SETS(axis), -1 }, { "p", SETS(count), 2 }),
    NORM(lrn, 1, { "size", SETS(count), 5 }, { "alpha", SETS(alpha), 1e-4 }, { "beta", SETS(beta), 0.75 },
        { "bias", SETS(bias), 1 }),
    { .name = "rotary_embedding",
        .least = 3,
        .most = 4,
        .words = { { "heads", SETS(heads), 0 }, { "width", SETS(width), 0 }, { "interleaved", SETS(interleaved), 0 } },
        .compose = compose_rotary_embedding,
        .attributes = &rotary_attributes_type },
    { "grid_sample", &operation_grid_sample, 2, 2,
        { { "mode", SAYS_LIST(picked), .choices = GRID_MODES },
            { "padding_mode", SAYS_LIST(starts), .choices = GRID_PADDINGS },
            { "align_corners", SETS(align_corners), 0 } },
        .complete = complete_grid },
    { "matmul", &operation_matmul, 2, 2,
        { { "transpose_a", SETS(transpose_a), 0 }, { "transpose_b", SETS(transpose_b), 0 } },
        .compose = compose_matmul },
    { "dense", &operation_dense, 2, 3 }, POINTWISE_TABLE(POINTWISE_RECIPE) /* layers/pointwise.h */
};

/* --------------------------------------------------------------------------------------------- names of nodes ---- */

static enum activation activation_of(const struct node *node)
{
    const bool is = node->operation == &operation_activation;
    return is ? activation_attributes(node)->function.activation : ACTIVATION_NONE;
}

const char *op_name(const struct node *node)
{
    const enum activation activation = activation_of(node);
    return activation == ACTIVATION_NONE ? node->operation->name : activations[activation].name;
}

const char *op_attribute(const struct node *node, const struct attribute *attribute)
{
    bool known = false;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        if (recipes[i].operation != node->operation || recipes[i].activation != activation_of(node)) continue;
        known = true;
        for (int w = 0; word_at(&recipes[i], w); w++) {
            const struct word *word = word_at(&recipes[i], w);
            if (word->attribute && !strcmp(word->attribute, attribute->name)) return word->name;
        }
    }
    return known && attribute->kind == ATTRIBUTE_NUMBER ? NULL : attribute->name;
}

/* ------------------------------------------------------------------------------------------- reading the text ---- */

static const struct recipe *find_recipe(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i].name, name)) return &recipes[i];
    return NULL;
}

enum { MOST_NUMBERS = 2 * TUTTI_MAX_RANK };

/* Reads "3,-1,5". Returns how many there are; 0: the text is invalid, or has too many. */
static int read_numbers(const char *text, size_t length, double numbers[MOST_NUMBERS])
{
    int count = 0;
    for (const char *at = text; count < MOST_NUMBERS; at++) {
        char *end = NULL;
        numbers[count++] = number_read(at, &end);
        if (end == at || end > text + length) return 0;
        at = end;
        if (at == text + length) return count;
        if (*at != ',') return 0;
    }
    return 0;
}

/* Returns the number that a word stands for; -1: the word is not among the choices. */
static int choice_of(const char *choices, const char *text, size_t length)
{
    int number = 0;
    for (const char *at = choices; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "), number++)
        if (strcspn(at, " ") == length && !memcmp(at, text, length)) return number;
    return -1;
}

/* Reads the numbers of a word's text and returns how many there are; 0: the text is invalid. */
static int read_value(const struct word *word, const char *text, size_t length, double numbers[MOST_NUMBERS])
{
    if (!word->choices) return read_numbers(text, length, numbers);
    numbers[0] = choice_of(word->choices, text, length);
    return numbers[0] >= 0;
}

/* The axis of the value for an axis number of the caller; -1 if it does not exist. */
static int axis_of(const struct value *x, double number)
{
    const int rank = x->shape.rank - x->batched;
    const double axis = number < 0 ? number + rank : number;
    return axis >= 0 && axis < rank && axis == floor(axis) ? (int)axis + x->batched : -1;
}

static bool set_axes(const struct value *x, enum attribute_kind kind, const double *numbers, int count, void *to)
{
    int axes[TUTTI_MAX_RANK] = { 0 };
    unsigned all = 0;
    for (int i = 0; i < count; i++) {
        if (i == TUTTI_MAX_RANK || (axes[i] = axis_of(x, numbers[i])) < 0 || all >> axes[i] & 1) return false;
        all |= 1u << axes[i];
    }
    if (kind == ATTRIBUTE_AXIS) {
        *(int *)to = axes[0];
        return count == 1;
    }
    if (kind == ATTRIBUTE_AXES) {
        *(unsigned *)to = all;
        return true;
    }
    if (count != x->shape.rank - x->batched) return false;
    for (int i = 0; i < count; i++) ((int *)to)[i + x->batched] = axes[i];
    return true;
}

static bool set_whole(const double *numbers, int count, int64_t *to)
{
    for (int i = 0; i < count; i++) {
        if (numbers[i] != floor(numbers[i]) || fabs(numbers[i]) > 1e15) return false;
        to[i] = (int64_t)numbers[i];
    }
    return true;
}

static bool set_shape(const struct value *x, const double *numbers, int count, tutti_shape *shape)
{
    if (count + x->batched > TUTTI_MAX_RANK) return false;
    *shape = (tutti_shape) { .rank = count + x->batched, .sizes = { x->shape.sizes[0] } };
    return set_whole(numbers, count, shape->sizes + x->batched);
}

static bool set_list(const double *numbers, int count, struct list *list)
{
    if (count > TUTTI_MAX_RANK) return false;
    list->count = count;
    return set_whole(numbers, count, list->numbers);
}

static void set_reals(const double *numbers, int count, struct reals *reals)
{
    reals->count = count;
    memcpy(reals->numbers, numbers, (size_t)count * sizeof *numbers);
}

/* What a word sets. */
struct target {
    enum attribute_kind kind;
    void *to;
};

static struct target attribute_in(struct given *given, const struct recipe *recipe, const char *name)
{
    const struct attribute *member =
        attribute_members(recipe->attributes ? recipe->attributes : recipe->operation->attributes);
    while (member->name && strcmp(member->name, name)) member++;
    INVARIANT(member->name);
    return (struct target) { member->kind, given->attributes.bytes + member->offset };
}

static struct target target_of(const struct recipe *recipe, const struct word *word, struct given *given)
{
    if (word->attribute) return attribute_in(given, recipe, word->attribute);
    return (struct target) { word->kind, (char *)&given->said + word->offset };
}

/* False if the numbers are invalid for this kind of target. */
static bool set(const struct value *x, struct target target, const double *numbers, int count)
{
    switch (target.kind) {
    case ATTRIBUTE_NUMBER: *(float *)target.to = (float)numbers[0]; return count == 1;
    case ATTRIBUTE_FLAG:
        *(bool *)target.to = numbers[0] != 0;
        return count == 1 && (numbers[0] == 0 || numbers[0] == 1);
    case ATTRIBUTE_AXIS:
    case ATTRIBUTE_AXES:
    case ATTRIBUTE_ORDER: return set_axes(x, target.kind, numbers, count, target.to);
    case ATTRIBUTE_SHAPE: return set_shape(x, numbers, count, target.to);
    default: return set_list(numbers, count, target.to);
    }
}

static tutti_status unknown_attribute(const struct recipe *recipe, const char *name, size_t length)
{
    char known[240] = "name";
    for (int i = 0; word_at(recipe, i); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), ", %s", word_at(recipe, i)->name);
    return fail(TUTTI_INVALID, "%s: there is no attribute '%.*s': it has %s", recipe->name, (int)length, name, known);
}

/* One "key=value" of the text. */
static tutti_status read_word(
    const struct recipe *recipe, const struct value *x, const char *text, size_t size, struct given *given)
{
    const char *equals = memchr(text, '=', size);
    const size_t key = equals ? (size_t)(equals - text) : size, length = equals ? size - key - 1 : 0;
    double numbers[MOST_NUMBERS];
    if (equals && key == 4 && !memcmp(text, "name", 4)) {
        free(given->name);
        given->name = memory_format("%.*s", (int)length, equals + 1);
        return given->name ? TUTTI_OK : TUTTI_NO_MEMORY;
    }
    for (int i = 0; word_at(recipe, i); i++) {
        const struct word *word = word_at(recipe, i);
        if (strlen(word->name) != key || memcmp(word->name, text, key) != 0) continue;
        const struct target target = target_of(recipe, word, given);
        const bool number = target.kind == ATTRIBUTE_SHAPE && x->batched && equals && length == 0; /* no axes */
        const int count = equals ? read_value(word, equals + 1, length, numbers) : 0;
        if (count > 0 && word->reals) {
            set_reals(numbers, count, target.to);
            return TUTTI_OK;
        }
        if ((count > 0 || number) && set(x, target, numbers, count)) return TUTTI_OK;
        return fail(TUTTI_INVALID, "%s: '%.*s' is no %s for an input of %d axes", recipe->name, (int)size, text,
            word->name, x->shape.rank - x->batched);
    }
    return unknown_attribute(recipe, text, key);
}

static tutti_status read_text(const struct recipe *recipe, const struct value *x, const char *text, struct given *given)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; word_at(recipe, i); i++) {
        const struct target target = target_of(recipe, word_at(recipe, i), given);
        const double otherwise = word_at(recipe, i)->otherwise;
        if (target.kind == ATTRIBUTE_NUMBER || target.kind == ATTRIBUTE_FLAG || target.kind == ATTRIBUTE_AXIS)
            (void)set(x, target, &otherwise, 1);
    }
    for (const char *at = text ? text : ""; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " "))
        TRY(read_word(recipe, x, at, strcspn(at, " "), given));
    for (int i = 0; word_at(recipe, i); i++) {
        const struct target target = target_of(recipe, word_at(recipe, i), given);
        if (target.kind == ATTRIBUTE_SHAPE && ((const tutti_shape *)target.to)->rank == 0)
            FAIL(TUTTI_INVALID, "%s: it needs the attribute '%s'", recipe->name, word_at(recipe, i)->name);
    }
    if (recipe->activation) *(enum activation *)attribute_in(given, recipe, "activation").to = recipe->activation;
    if (recipe->complete) status = recipe->complete(x, &given->said, given->attributes.bytes);
done:
    return status;
}

static tutti_tensor append(
    tutti_network *network, int layer, const struct recipe *recipe, struct given *given, const int *values, int count)
{
    int made = NO_VALUE;
    const void *attributes = given->attributes.bytes;
    const struct composing composing = { network, &network->graph, layer };
    if (!recipe->compose && !recipe->build)
        return network_append(network, layer, recipe->operation, attributes, values, count);
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (recipe->compose) return network_close(network, layer, recipe->compose(&composing, attributes, values, count));
    given->said.attributes = attributes;
    const tutti_status status = recipe->build(network, layer, values, count, &given->said, &made);
    if (status != TUTTI_OK) return network_fail(network, status);
    return network_ok(network) ? network_close(network, layer, made) : (tutti_tensor) { NO_VALUE };
}

tutti_tensor tutti_op(
    tutti_network *network, const char *operation, const tutti_tensor *inputs, int input_count, const char *attributes)
{
    enum { MOST = 8 };
    int values[MOST + 1];
    struct given given = { 0 };
    tutti_tensor made = { NO_VALUE };
    if (!network_ok(network)) return made;
    const struct recipe *recipe = operation ? find_recipe(operation) : NULL;
    if (!recipe)
        return network_fail(network,
            fail(TUTTI_UNSUPPORTED,
                "tutti_op() got the operation '%s', which does not exist: docs/operations.md lists them",
                operation ? operation : "(NULL)"));
    if (!inputs || input_count < recipe->least || input_count > recipe->most)
        return network_fail(network,
            fail(TUTTI_INVALID, "%s: it got %d inputs: it takes %d to %d", recipe->name, inputs ? input_count : 0,
                recipe->least, recipe->most));
    for (int i = 0; i < input_count; i++) {
        if (!network_operand(network, inputs[i])) return made;
        values[i] = inputs[i].id;
    }
    const tutti_status status = read_text(recipe, network_operand(network, inputs[0]), attributes, &given);
    const int layer = network_layer_begin(network, given.name, recipe->name);
    if (recipe->random) {
        *(int *)attribute_in(&given, recipe, "stream").to = network->dropout_count++;
        values[input_count++] = graph_constants(&network->graph);
    }
    made = status == TUTTI_OK ? append(network, layer, recipe, &given, values, input_count)
                              : network_fail(network, status);
    free(given.name);
    return made;
}
