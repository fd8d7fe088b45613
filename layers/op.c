/* tutti_op(): finds an operation by its name in the table `recipes`, and reads its attributes from text. */
#include "base/memory.h"
#include "base/numbers.h"
#include "graph/network.h"
#include "layers/layers.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of an attribute such as starts=0,1. */
struct list {
    int count;
    int64_t numbers[TUTTI_MAX_RANK];
};

/* The attributes as read from the text. */
struct given {
    struct attributes attributes;
    bool keepdims;
    struct list axes, starts, ends;
    char *name; /* of the layer */
};

/* AXIS, AXES and ORDER: axes of a sample, counted from the end if negative. SHAPE: of a sample. LIST: whole numbers. */
enum kind { NUMBER, FLAG, AXIS, AXES, ORDER, SHAPE, LIST };

struct attribute {
    const char *name;
    enum kind kind;
    size_t offset; /* in struct given */
    double otherwise;
};

enum { MOST_ATTRIBUTES = 3 };
struct recipe {
    const char *name;
    const struct operation *operation;
    int least, most; /* inputs */
    struct attribute attributes[MOST_ATTRIBUTES];
    enum activation activation;
    bool random; /* takes the step's constants, and a stream of random numbers */
    /* Derives attributes from others and from x, the first input. May be NULL. */
    tutti_status (*complete)(const struct value *x, struct given *given);
};

#define AT(member) offsetof(struct given, member)

static tutti_status complete_reduction(const struct value *x, struct given *given)
{
    struct attributes *a = &given->attributes;
    const unsigned all = ((1u << x->shape.rank) - 1) & ~(unsigned)x->batched;
    if (a->axes == 0) a->axes = all;
    if (given->keepdims) return TUTTI_OK;
    for (int i = 0; i < x->shape.rank; i++) {
        if (a->axes >> i & 1) continue;
        a->shape_axes.kinds[a->shape.rank] = x->axes.kinds[i];
        a->shape.sizes[a->shape.rank++] = x->shape.sizes[i];
    }
    if (a->shape.rank == 0) a->shape = TUTTI_SHAPE(1);
    return TUTTI_OK;
}

/* Without `perm`, the axes are reversed, as by numpy. */
static tutti_status complete_transpose(const struct value *x, struct given *given)
{
    int *order = given->attributes.order, rank = x->shape.rank;
    bool said = false;
    for (int i = x->batched; i < rank; i++) said |= order[i] != 0;
    for (int i = x->batched; i < rank && !said; i++) order[i] = rank - 1 - i + x->batched;
    return TUTTI_OK;
}

static tutti_status complete_expand(const struct value *x, struct given *given)
{
    (void)x;
    given->attributes.low = 1;
    return TUTTI_OK;
}

static tutti_status complete_reshape(const struct value *x, struct given *given)
{
    return reshape_resolve(x, &given->attributes);
}

/* `before` and `behind`: the number of elements added at each end of each axis of a sample. */
static tutti_status complete_pad(const struct value *x, struct given *given)
{
    struct attributes *a = &given->attributes;
    const int rank = x->shape.rank - x->batched;
    const struct list *before = &given->starts, *behind = &given->ends;
    if ((before->count && before->count != rank) || (behind->count && behind->count != rank))
        return fail(TUTTI_INVALID, "pad: before and behind need a number for each of the %d axes", rank);
    a->shape = x->shape;
    for (int i = 0; i < rank; i++) {
        if (x->shape.sizes[i + x->batched] == TUTTI_SEQUENCE && (before->numbers[i] || behind->numbers[i]))
            return fail(
                TUTTI_SHAPE, "pad: axis %d has the length of sequences, TUTTI_SEQUENCE: nothing can be added to it", i);
        a->begins[i + x->batched] = -before->numbers[i];
        a->shape.sizes[i + x->batched] += before->numbers[i] + behind->numbers[i];
    }
    return TUTTI_OK;
}

/* As many elements as sequences are long, from the first one on; all axes if none is given. */
static tutti_status complete_prefix(const struct value *x, struct given *given)
{
    struct attributes *a = &given->attributes;
    a->shape = x->shape;
    a->within = true;
    for (int i = x->batched; i < x->shape.rank; i++)
        if (a->axes == 0 || a->axes >> i & 1) a->shape.sizes[i] = TUTTI_SEQUENCE;
    a->axes = 0;
    return TUTTI_OK;
}

/* Elements start to end - 1. Both are counted from the end of the axis if negative; `end` is clipped. */
static tutti_status slice_axis(const struct value *x, int axis, int64_t start, int64_t end, struct attributes *a)
{
    int64_t size = x->shape.sizes[axis];
    if (size == TUTTI_SEQUENCE) size = INT64_MAX; /* window's infer() looks at what is asked for */
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end > size ? size : end;
    if (start < 0 || start >= end)
        return fail(TUTTI_INVALID, "slice: nothing lies from %lld to %lld: axis %d has %lld elements", (long long)start,
            (long long)end, axis - x->batched, (long long)size);
    a->begins[axis] = start;
    a->shape.sizes[axis] = end - start;
    return TUTTI_OK;
}

/* Without `axes`, the first ones. */
static tutti_status complete_slice(const struct value *x, struct given *given)
{
    tutti_status status = TUTTI_OK;
    const struct list *axes = &given->axes, *starts = &given->starts, *ends = &given->ends;
    const int rank = x->shape.rank - x->batched;
    if (starts->count == 0 || starts->count != ends->count || (axes->count && axes->count != starts->count) ||
        starts->count > rank)
        return fail(TUTTI_INVALID, "slice: it needs as many ends as starts, one for each axis");
    given->attributes.shape = x->shape;
    for (int i = 0; i < starts->count; i++) {
        const int64_t number = axes->count ? axes->numbers[i] : i, axis = number < 0 ? number + rank : number;
        if (axis < 0 || axis >= rank)
            FAIL(TUTTI_INVALID, "slice: axis %lld does not exist: the input has %d", (long long)number, rank);
        TRY(slice_axis(x, (int)axis + x->batched, starts->numbers[i], ends->numbers[i], &given->attributes));
    }
done:
    return status;
}

#define POINTWISE_RECIPE(name_, inputs, ...) { #name_, &operation_##name_, inputs, inputs },

#define REDUCTION(name_)                                                                         \
    {                                                                                            \
#name_, &operation_##name_, 1, 1,                                                        \
            { { "axes", AXES, AT(attributes.axes), 0 }, { "keepdims", FLAG, AT(keepdims), 1 } }, \
                .complete = complete_reduction                                                   \
    }

/* The first entry with a name is used. So elu and scale, with attributes, precede their lines of POINTWISE_TABLE
 * (layers/pointwise.h), which stands last. */
static const struct recipe recipes[] = {
    { "elu", &operation_elu, 1, 1, { { "alpha", NUMBER, AT(attributes.low), 1 } } },
    { "scale", &operation_scale, 1, 1, { { "factor", NUMBER, AT(attributes.low), 1 } } },
    { "relu", &operation_activation, 1, 1, .activation = ACTIVATION_RELU },
    { "sigmoid", &operation_activation, 1, 1, .activation = ACTIVATION_SIGMOID },
    { "tanh", &operation_activation, 1, 1, .activation = ACTIVATION_TANH },
    { "leaky_relu", &operation_activation, 1, 1, { { "alpha", NUMBER, AT(attributes.low), 0.01 } },
        .activation = ACTIVATION_LEAKY_RELU },
    { "clip", &operation_activation, 1, 1,
        { { "min", NUMBER, AT(attributes.low), -INFINITY }, { "max", NUMBER, AT(attributes.high), INFINITY } },
        .activation = ACTIVATION_CLIP },
    REDUCTION(reduce_sum), REDUCTION(reduce_mean), REDUCTION(reduce_max),
    { "expand", &operation_expand, 1, 1, { { "shape", SHAPE, AT(attributes.shape), 0 } }, .complete = complete_expand },
    { "transpose", &operation_transpose, 1, 1, { { "perm", ORDER, AT(attributes.order), 0 } },
        .complete = complete_transpose },
    { "slice", &operation_window, 1, 1,
        { { "axes", LIST, AT(axes), 0 }, { "starts", LIST, AT(starts), 0 }, { "ends", LIST, AT(ends), 0 } },
        .complete = complete_slice },
    { "prefix", &operation_window, 1, 1, { { "axes", AXES, AT(attributes.axes), 0 } }, .complete = complete_prefix },
    { "pad", &operation_window, 1, 1,
        { { "before", LIST, AT(starts), 0 }, { "behind", LIST, AT(ends), 0 },
            { "value", NUMBER, AT(attributes.low), 0 } },
        .complete = complete_pad },
    { "cast", &operation_cast, 1, 1 },
    { "reshape", &operation_reshape, 1, 1, { { "shape", SHAPE, AT(attributes.shape), 0 } },
        .complete = complete_reshape },
    { "concat", &operation_concat, 1, 8, { { "axis", AXIS, AT(attributes.axis), 0 } } },
    { "softmax", &operation_softmax, 1, 1 },
    { "dropout", &operation_dropout, 1, 1, { { "ratio", NUMBER, AT(attributes.probability), 0.5 } }, .random = true },
    { "layer_norm", &operation_layer_norm, 3, 3,
        { { "axis", AXIS, AT(attributes.axis), -1 }, { "epsilon", NUMBER, AT(attributes.epsilon), 1e-5 } } },
    { "embedding", &operation_embedding, 2, 2 },
    { "matmul", &operation_matmul, 2, 2,
        { { "transpose_a", FLAG, AT(attributes.transpose_a), 0 },
            { "transpose_b", FLAG, AT(attributes.transpose_b), 0 } } },
    { "dense", &operation_dense, 2, 3 }, POINTWISE_TABLE(POINTWISE_RECIPE) /* layers/pointwise.h */
};

/* ------------------------------------------------------------------------------------------- reading the text ---- */

static const struct recipe *find_recipe(const char *name)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i].name, name)) return &recipes[i];
    return NULL;
}

/* Reads "3,-1,5", at most one number more than the largest rank. Returns how many there are; 0: the text is invalid. */
static int read_numbers(const char *text, size_t length, double numbers[TUTTI_MAX_RANK + 1])
{
    int count = 0;
    for (const char *at = text; count <= TUTTI_MAX_RANK; at++) {
        char *end = NULL;
        numbers[count++] = number_read(at, &end);
        if (end == at || end > text + length) return 0;
        at = end;
        if (at == text + length) return count;
        if (*at != ',') return 0;
    }
    return 0;
}

/* The axis of the value for an axis number of the caller; -1 if it does not exist. */
static int axis_of(const struct value *x, double number)
{
    const int rank = x->shape.rank - x->batched;
    const double axis = number < 0 ? number + rank : number;
    return axis >= 0 && axis < rank && axis == floor(axis) ? (int)axis + x->batched : -1;
}

static bool set_axes(
    const struct value *x, const struct attribute *attribute, const double *numbers, int count, char *to)
{
    int axes[TUTTI_MAX_RANK];
    unsigned all = 0;
    for (int i = 0; i < count; i++) {
        if (i == TUTTI_MAX_RANK || (axes[i] = axis_of(x, numbers[i])) < 0 || all >> axes[i] & 1) return false;
        all |= 1u << axes[i];
    }
    if (attribute->kind == AXIS) {
        *(int *)to = axes[0];
        return count == 1;
    }
    if (attribute->kind == AXES) {
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

/* False if the numbers are invalid for this kind of attribute. */
static bool set_attribute(
    const struct value *x, const struct attribute *attribute, const double *numbers, int count, struct given *given)
{
    char *to = (char *)given + attribute->offset;
    switch (attribute->kind) {
    case NUMBER: *(float *)to = (float)numbers[0]; return count == 1;
    case FLAG: *(bool *)to = numbers[0] != 0; return count == 1 && (numbers[0] == 0 || numbers[0] == 1);
    case AXIS:
    case AXES:
    case ORDER: return set_axes(x, attribute, numbers, count, to);
    case SHAPE: return set_shape(x, numbers, count, (tutti_shape *)to);
    case LIST: return set_list(numbers, count, (struct list *)to);
    }
    return false;
}

static tutti_status unknown_attribute(const struct recipe *recipe, const char *name, size_t length)
{
    char known[160] = "name";
    for (int i = 0; i < MOST_ATTRIBUTES && recipe->attributes[i].name; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), ", %s", recipe->attributes[i].name);
    return fail(TUTTI_INVALID, "%s: there is no attribute '%.*s': it has %s", recipe->name, (int)length, name, known);
}

/* One "key=value" of the text. */
static tutti_status read_word(
    const struct recipe *recipe, const struct value *x, const char *word, size_t size, struct given *given)
{
    const char *equals = memchr(word, '=', size);
    const size_t key = equals ? (size_t)(equals - word) : size, length = equals ? size - key - 1 : 0;
    double numbers[TUTTI_MAX_RANK + 1];
    if (equals && key == 4 && !memcmp(word, "name", 4)) {
        free(given->name);
        given->name = memory_format("%.*s", (int)length, equals + 1);
        return given->name ? TUTTI_OK : TUTTI_NO_MEMORY;
    }
    for (int i = 0; i < MOST_ATTRIBUTES; i++) {
        const struct attribute *attribute = &recipe->attributes[i];
        if (!attribute->name || strlen(attribute->name) != key || memcmp(attribute->name, word, key)) continue;
        const int count = equals ? read_numbers(equals + 1, length, numbers) : 0;
        if (count > 0 && set_attribute(x, attribute, numbers, count, given)) return TUTTI_OK;
        return fail(TUTTI_INVALID, "%s: '%.*s' is no %s for an input of %d axes", recipe->name, (int)size, word,
            attribute->name, x->shape.rank - x->batched);
    }
    return unknown_attribute(recipe, word, key);
}

static tutti_status read_text(const struct recipe *recipe, const struct value *x, const char *text, struct given *given)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < MOST_ATTRIBUTES; i++) {
        const struct attribute *attribute = &recipe->attributes[i];
        const double otherwise = attribute->otherwise;
        if (attribute->name && (attribute->kind == NUMBER || attribute->kind == FLAG || attribute->kind == AXIS))
            (void)set_attribute(x, attribute, &otherwise, 1, given);
    }
    for (const char *at = text ? text : ""; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " "))
        TRY(read_word(recipe, x, at, strcspn(at, " "), given));
    for (int i = 0; i < MOST_ATTRIBUTES; i++)
        if (recipe->attributes[i].name && recipe->attributes[i].kind == SHAPE && given->attributes.shape.rank == 0)
            FAIL(TUTTI_INVALID, "%s: it needs the attribute '%s'", recipe->name, recipe->attributes[i].name);
    given->attributes.activation = recipe->activation;
    if (recipe->complete) status = recipe->complete(x, given);
done:
    return status;
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
        given.attributes.stream = network->dropout_count++;
        values[input_count++] = graph_constants(&network->graph);
    }
    made = status == TUTTI_OK
        ? network_append(network, layer, recipe->operation, &given.attributes, values, input_count)
        : network_fail(network, status);
    free(given.name);
    return made;
}
