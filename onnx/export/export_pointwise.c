/* Elementwise operations in ONNX, and others that have a node of the same attributes. */
#include "base/numbers.h"
#include "onnx/export/export.h"
#include "tutti_inspect.h"

#include <math.h>
#include <string.h>

/* An input as ONNX's operator takes it. */
static const char *operand(struct source *source, int input)
{
    const char *name = source->info.input_count > 1 ? source_aligned(source, input) : source_input(source, input);
    return source->row.takes_truths ? source_cast(source, name, ONNX_BOOL) : name;
}

/* Writes an attribute that the operation shares with ONNX's operator. A result of one number keeps its axis. */
static void write_attribute(struct source *source, struct made made, const tutti_operation_attribute_info *info)
{
    const double fallback = info->default_value ? number_read(info->default_value, NULL) : 0;
    const double number = source_number(source, info->name, fallback);
    int64_t integer = (int64_t)number;
    if (info->type == TUTTI_ATTRIBUTE_AXIS && integer >= 0) integer = array_axis(&source->x, integer);
    if (!strcmp(info->onnx, "keepdims")) integer = source->x.shape.rank == source->y.shape.rank;
    if (info->type == TUTTI_ATTRIBUTE_NUMBER)
        made_number(made, info->onnx, (float)number);
    else
        made_integer(made, info->onnx, integer);
}

static void write_attributes(struct source *source, struct made made)
{
    const int position = tutti_operation_find(source->info.operation);
    tutti_operation_info operation = { .size = sizeof operation };
    tutti_operation_attribute_info info = { .size = sizeof info };
    if (position < 0 || tutti_operation(position, &operation) != TUTTI_OK) return;
    for (int i = 0; i < operation.attribute_count; i++)
        if (tutti_operation_attribute(position, i, &info) == TUTTI_OK && info.onnx)
            write_attribute(source, made, &info);
}

void export_plain(struct source *source)
{
    const char *inputs[TUTTI_NODE_PORTS];
    const struct export_row *row = &source->row;
    const char *output = row->casts ? source_temporary(source) : source_output(source);
    for (int i = 0; i < source->info.input_count; i++) inputs[i] = operand(source, i);
    write_attributes(source, source_node_of(source, row->type, inputs, source->info.input_count, output));
    if (row->casts)
        made_integer(source_node(source, "Cast", output, NULL, NULL, source_output(source)), "to", ONNX_FLOAT);
}

void export_scale(struct source *source)
{
    const char *factor = source_scalar(source, (float)source_number(source, "factor", 1));
    (void)source_node(source, "Mul", source_input(source, 0), factor, NULL, source_output(source));
}

void export_shift(struct source *source)
{
    const char *by = source_scalar(source, (float)source_number(source, "by", 0));
    (void)source_node(source, "Add", source_input(source, 0), by, NULL, source_output(source));
}

void export_power(struct source *source)
{
    const char *exponent = source_scalar(source, (float)source_number(source, "exponent", 1));
    (void)source_node(source, "Pow", source_input(source, 0), exponent, NULL, source_output(source));
}

void export_clip(struct source *source)
{
    const double low = source_number(source, "min", -INFINITY), high = source_number(source, "max", INFINITY);
    const char *min = low > -INFINITY ? source_scalar(source, (float)low) : "";
    const char *max = high < INFINITY ? source_scalar(source, (float)high) : "";
    (void)source_node(source, "Clip", source_input(source, 0), min, max, source_output(source));
}

void export_square(struct source *source)
{
    (void)source_node(source, "Mul", source_input(source, 0), source_input(source, 0), NULL, source_output(source));
}

static const char *gated(struct source *source, const char *x)
{
    const float alpha = (float)source_number(source, "alpha", 1);
    const char *inner = alpha == 1 ? x : source_step(source, "Mul", x, source_scalar(source, alpha));
    return source_step(source, "Mul", x, source_step(source, "Sigmoid", inner, NULL));
}

/* silu, too, whose factor is 1. */
void export_swish(struct source *source)
{
    source_finish(source, gated(source, source_input(source, 0)));
}

void export_swiglu(struct source *source)
{
    const char *a = gated(source, source_aligned(source, 0));
    (void)source_node(source, "Mul", a, source_aligned(source, 1), NULL, source_output(source));
}

void export_gelu_tanh(struct source *source)
{
    made_text(
        source_node(source, "Gelu", source_input(source, 0), NULL, NULL, source_output(source)), "approximate", "tanh");
}

/* PyTorch's function: its slope is not ONNX's default. */
void export_hard_sigmoid(struct source *source)
{
    const struct made made =
        source_node(source, "HardSigmoid", source_input(source, 0), NULL, NULL, source_output(source));
    made_number(made, "alpha", 1.0f / 6);
    made_number(made, "beta", 0.5f);
}

void export_fmod(struct source *source)
{
    made_integer(
        source_node(source, "Mod", source_aligned(source, 0), source_aligned(source, 1), NULL, source_output(source)),
        "fmod", 1);
}

/* ONNX has the remainder with the sign of b for integers only. So it is r = fmod(a, b), or r + b where the signs of r
 * and b differ. */
void export_mod(struct source *source)
{
    const char *b = source_aligned(source, 1), *rest = source_temporary(source);
    made_integer(source_node(source, "Mod", source_aligned(source, 0), b, NULL, rest), "fmod", 1);
    const char *signs =
        source_step(source, "Mul", source_step(source, "Sign", rest, NULL), source_step(source, "Sign", b, NULL));
    const char *differ = source_step(source, "Less", signs, source_scalar(source, 0));
    (void)source_node(source, "Where", differ, source_step(source, "Add", rest, b), rest, source_output(source));
}

void export_trunc(struct source *source)
{
    const char *x = source_input(source, 0);
    const char *size = source_step(source, "Floor", source_step(source, "Abs", x, NULL), NULL);
    (void)source_node(source, "Mul", source_step(source, "Sign", x, NULL), size, NULL, source_output(source));
}

/* ONNX broadcasts the slope to x only. */
void export_prelu(struct source *source)
{
    const char *x = source_aligned(source, 0), *slope = source_aligned(source, 1);
    if (source->x.shape.rank == source->y.shape.rank &&
        !memcmp(source->x.shape.sizes, source->y.shape.sizes, (size_t)source->x.shape.rank * sizeof(int64_t)) &&
        source->x.for_each_sample == source->y.for_each_sample) {
        (void)source_node(source, "PRelu", x, slope, NULL, source_output(source));
        return;
    }
    const char *positive = source_step(source, "Greater", x, source_scalar(source, 0));
    (void)source_node(source, "Where", positive, x, source_step(source, "Mul", slope, x), source_output(source));
}

void export_where(struct source *source)
{
    const char *condition = source_cast(source, source_aligned(source, 0), ONNX_BOOL);
    (void)source_node(
        source, "Where", condition, source_aligned(source, 1), source_aligned(source, 2), source_output(source));
}
