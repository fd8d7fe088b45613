/* Resize. */
#include "onnx/operators.h"

#include "base/numbers.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Parameters for each axis of the network's tensor; `sizes` or `scales`. */
struct resized {
    int count;
    int64_t axes[TUTTI_MAX_RANK], sizes[TUTTI_MAX_RANK];
    float scales[TUTTI_MAX_RANK], begins[TUTTI_MAX_RANK], ends[TUTTI_MAX_RANK];
    bool has_sizes, has_roi;
};

/* An input of numbers; NULL if it is absent or empty, as exporters write it. */
static tutti_status read_optional(const struct onnx_node *node, size_t position, const struct array **array)
{
    *array = NULL;
    if (!node_input(node, position)) return TUTTI_OK;
    const tutti_status status = node_array(node, position, array);
    if (status == TUTTI_OK && *array && (*array)->count == 0) *array = NULL;
    return status;
}

/* The lists of the file, each of `count` axes; `sizes` or `scales` and `roi` can be NULL. */
struct asked {
    int count;
    const struct array *sizes, *scales, *roi;
};

/* Whether the batch axis keeps its size. */
static bool keeps_batch(
    const struct onnx_node *node, const struct asked *asked, int i, const struct batch_axis *batch_axis)
{
    if (!asked->sizes) return asked->scales->floats[i] == 1;
    const struct symbolic_integer size = asked->sizes->integers[i];
    const int64_t fixed = node->import->fixed_batch;
    return size.batches ? size.batches == batch_axis->rows_per_sample && size.number == 0
                        : fixed && size.number == fixed;
}

/* Adds number `i` of the lists, which is for this axis of the file. */
static tutti_status add_axis(const struct onnx_node *node, const struct operand *x, int64_t file_axis,
    const struct asked *asked, int i, struct resized *r)
{
    int axis = 0;
    const int64_t counted = file_axis < 0 ? file_axis + operand_rank(x) : file_axis;
    if (x->batch.batched && counted == x->batch.axis && keeps_batch(node, asked, i, &x->batch)) return TUTTI_OK;
    const tutti_status status = operand_axis(x, file_axis, &axis);
    if (status != TUTTI_OK) return status;
    if (asked->sizes && asked->sizes->integers[i].batches)
        return node_refuse("the number of samples would be a size of axis %d", axis);
    r->axes[r->count] = axis;
    r->sizes[r->count] = asked->sizes ? asked->sizes->integers[i].number : 0;
    r->scales[r->count] = asked->scales ? asked->scales->floats[i] : 0;
    r->begins[r->count] = asked->roi ? asked->roi->floats[i] : 0;
    r->ends[r->count++] = asked->roi ? asked->roi->floats[asked->count + i] : 1;
    return TUTTI_OK;
}

static tutti_status read_axes(
    const struct onnx_node *node, const struct operand *x, const struct asked *asked, struct resized *r)
{
    size_t given = 0;
    const int64_t *axes = node_integers(node, "axes", &given);
    const struct array *roi = asked->roi;
    tutti_status status = TUTTI_OK;
    if (!axes) given = (size_t)operand_rank(x);
    if ((size_t)asked->count != given || given > TUTTI_MAX_RANK)
        return fail(TUTTI_FORMAT, "it has %d scales or sizes for %zu axes", asked->count, given);
    if (roi && (!roi->floats || roi->count != 2 * given))
        return fail(TUTTI_FORMAT, "its roi must have %zu numbers", 2 * given);
    for (int i = 0; i < asked->count && status == TUTTI_OK; i++)
        status = add_axis(node, x, axes ? axes[i] : i, asked, i, r);
    return status;
}

static void append_floats(struct text *text, const char *name, const float *numbers, int count)
{
    char number[32];
    text_append(text, "%s", name);
    for (int i = 0; i < count; i++) {
        number_print(number, sizeof number, "%.9g", (double)numbers[i]);
        text_append(text, "%s%s", i ? "," : "", number);
    }
}

/* A text that is the same in tutti_op(): "mode" is "linear". */
static tutti_status append_name(const struct onnx_node *node, struct text *text, const char *name)
{
    const Onnx__AttributeProto *attribute = node_attribute(node, name);
    if (!attribute) return TUTTI_OK;
    if (attribute->s.len == 0 || attribute->s.len > 40 || memchr(attribute->s.data, ' ', attribute->s.len))
        return node_refuse("its %s is not known", name);
    text_append(text, " %s=%.*s", name, (int)attribute->s.len, (const char *)attribute->s.data);
    return TUTTI_OK;
}

static tutti_status print_resized(const struct onnx_node *node, const struct resized *r, struct text *text)
{
    static const char *const names[] = { "mode", "coordinate_transformation_mode", "nearest_mode",
        "keep_aspect_ratio_policy" };
    tutti_status status = TUTTI_OK;
    const float a = node_number(node, "cubic_coeff_a", -0.75f), outside = node_number(node, "extrapolation_value", 0);
    text_append(text, "axes=%s", list_print(r->axes, r->count).text);
    if (r->has_sizes)
        text_append(text, " sizes=%s", list_print(r->sizes, r->count).text);
    else
        append_floats(text, " scales=", r->scales, r->count);
    if (r->has_roi) append_floats(text, " roi=", r->begins, r->count);
    if (r->has_roi) append_floats(text, ",", r->ends, r->count);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == TUTTI_OK; i++)
        status = append_name(node, text, names[i]);
    append_floats(text, " cubic_coeff_a=", &a, 1);
    append_floats(text, " extrapolation_value=", &outside, 1);
    text_append(text, " exclude_outside=%d antialias=%d", node_integer(node, "exclude_outside", 0) != 0,
        node_integer(node, "antialias", 0) != 0);
    return status == TUTTI_OK && text->failed ? TUTTI_NO_MEMORY : status;
}

tutti_status build_resize(struct onnx_node *node)
{
    struct operand x;
    struct resized r = { 0 };
    struct asked asked = { 0 };
    struct text text = { 0 };
    tutti_status status = node_operand(node, 0, &x);
    if (node->import->opset < 11) return node_refuse("that of opset 10 has other inputs: export it again");
    if (status == TUTTI_OK && node_attribute_is(node, "coordinate_transformation_mode", "tf_crop_and_resize"))
        status = read_optional(node, 1, &asked.roi);
    if (status == TUTTI_OK) status = read_optional(node, 2, &asked.scales);
    if (status == TUTTI_OK) status = read_optional(node, 3, &asked.sizes);
    if (status != TUTTI_OK) return status;
    if (!asked.scales == !asked.sizes || (asked.scales && !asked.scales->floats) ||
        (asked.sizes && !asked.sizes->integers))
        return fail(TUTTI_FORMAT, "it needs either scales or sizes");
    const size_t count = asked.sizes ? asked.sizes->count : asked.scales->count;
    asked.count = count > TUTTI_MAX_RANK ? TUTTI_MAX_RANK + 1 : (int)count;
    status = read_axes(node, &x, &asked, &r);
    if (status != TUTTI_OK) return status;
    if (r.count == 0) return node_set_output(node, x.tensor, x.batch);
    r.has_sizes = asked.sizes != NULL;
    r.has_roi = asked.roi != NULL;
    status = print_resized(node, &r, &text);
    if (status == TUTTI_OK)
        status = node_set_output(node, node_op(node, "resize", &x.tensor, 1, "%s", text.data), x.batch);
    text_free(&text);
    return status;
}
