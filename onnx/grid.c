/* GridSample, AffineGrid. */
#include "base/text.h"
#include "onnx/operators.h"

#include <inttypes.h>

/* Opset 16 has other names for two modes. NULL: the mode is unknown. */
static const char *mode_of(const struct onnx_node *node)
{
    if (!node_attribute(node, "mode") || node_attribute_is(node, "mode", "linear") ||
        node_attribute_is(node, "mode", "bilinear"))
        return "linear";
    if (node_attribute_is(node, "mode", "cubic") || node_attribute_is(node, "mode", "bicubic")) return "cubic";
    return node_attribute_is(node, "mode", "nearest") ? "nearest" : NULL;
}

static const char *padding_of(const struct onnx_node *node)
{
    if (!node_attribute(node, "padding_mode") || node_attribute_is(node, "padding_mode", "zeros")) return "zeros";
    if (node_attribute_is(node, "padding_mode", "border")) return "border";
    return node_attribute_is(node, "padding_mode", "reflection") ? "reflection" : NULL;
}

tutti_status build_grid_sample(struct onnx_node *node)
{
    struct operand x, grid;
    const char *mode = mode_of(node), *padding = padding_of(node);
    tutti_status status = node_batch_first(node, 0, &x);
    if (status == TUTTI_OK) status = node_operand(node, 1, &grid);
    if (status != TUTTI_OK) return status;
    if (!mode || !padding) return node_refuse("its mode or padding_mode does not exist");
    if (grid.batch.batched || node->import->options->whole)
        status = node_batch_first(node, 1, &grid);
    else if (grid.shape.rank > 1)
        status = node_drop_axis(node, 1, 0, 1, &grid);
    if (status != TUTTI_OK) return status;
    if (grid.batch.batched && grid.batch.rows_per_sample != x.batch.rows_per_sample)
        return node_refuse("its inputs have other numbers of samples");
    const tutti_tensor pair[] = { x.tensor, grid.tensor };
    return node_set_output_batch_first(node, 0,
        node_op(node, "grid_sample", pair, 2, "mode=%s padding_mode=%s align_corners=%d", mode, padding,
            node_integer(node, "align_corners", 0) != 0),
        &x);
}

/* The size of the image, [N, C, ...], of which the axes of space are read. */
tutti_status build_affine_grid(struct onnx_node *node)
{
    struct operand theta;
    const struct array *size = NULL;
    struct text text = { 0 };
    tutti_status status = node_batch_first(node, 0, &theta);
    if (status == TUTTI_OK) status = node_array(node, 1, &size);
    if (status != TUTTI_OK) return status;
    if (!size->integers || size->count < 4 || size->count > 5) return node_refuse("its size is not of 4 or 5 integers");
    for (size_t i = 2; i < size->count; i++) {
        if (size->integers[i].batches) return node_refuse("its axes of space have the number of samples");
        text_append(&text, i == 2 ? "%" PRId64 : ",%" PRId64, size->integers[i].number);
    }
    const int64_t align = node_integer(node, "align_corners", 0) != 0;
    const tutti_tensor y = text.failed
        ? (tutti_tensor) { -1 }
        : node_op(node, "affine_grid", &theta.tensor, 1, "size=%s align_corners=%d", text.data, (int)align);
    status = text.failed ? TUTTI_NO_MEMORY : node_set_output_batch_first(node, 0, y, &theta);
    text_free(&text);
    return status;
}
