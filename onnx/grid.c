/* GridSample, AffineGrid. */
#include "base/text.h"
#include "onnx/operators.h"

#include <inttypes.h>

/* Opset 16 has other names for two modes. NULL: the mode is unknown. */
static const char *mode_of(const struct step *step)
{
    if (!step_attribute(step, "mode") || step_says(step, "mode", "linear") || step_says(step, "mode", "bilinear"))
        return "linear";
    if (step_says(step, "mode", "cubic") || step_says(step, "mode", "bicubic")) return "cubic";
    return step_says(step, "mode", "nearest") ? "nearest" : NULL;
}

static const char *padding_of(const struct step *step)
{
    if (!step_attribute(step, "padding_mode") || step_says(step, "padding_mode", "zeros")) return "zeros";
    if (step_says(step, "padding_mode", "border")) return "border";
    return step_says(step, "padding_mode", "reflection") ? "reflection" : NULL;
}

tutti_status build_grid_sample(struct step *step)
{
    struct operand x, grid;
    const char *mode = mode_of(step), *padding = padding_of(step);
    tutti_status status = step_rows(step, 0, &x);
    if (status == TUTTI_OK) status = step_operand(step, 1, &grid);
    if (status != TUTTI_OK) return status;
    if (!mode || !padding) return step_refuse("its mode or padding_mode does not exist");
    if (grid.place.batched || step->import->options->whole)
        status = step_rows(step, 1, &grid);
    else if (grid.shape.rank > 1)
        status = step_drop_axis(step, 1, 0, 1, &grid);
    if (status != TUTTI_OK) return status;
    if (grid.place.batched && grid.place.rows != x.place.rows)
        return step_refuse("its inputs have other numbers of samples");
    const tutti_tensor pair[] = { x.tensor, grid.tensor };
    return step_done_rows(step, 0,
        step_op(step, "grid_sample", pair, 2, "mode=%s padding_mode=%s align_corners=%d", mode, padding,
            step_integer(step, "align_corners", 0) != 0),
        &x);
}

/* The size of the image, [N, C, ...], of which the axes of space are read. */
tutti_status build_affine_grid(struct step *step)
{
    struct operand theta;
    const struct array *size = NULL;
    struct text text = { 0 };
    tutti_status status = step_rows(step, 0, &theta);
    if (status == TUTTI_OK) status = step_array(step, 1, &size);
    if (status != TUTTI_OK) return status;
    if (!size->extents || size->count < 4 || size->count > 5) return step_refuse("its size is not of 4 or 5 integers");
    for (size_t i = 2; i < size->count; i++) {
        if (size->extents[i].batches) return step_refuse("its axes of space have the number of samples");
        text_append(&text, i == 2 ? "%" PRId64 : ",%" PRId64, size->extents[i].number);
    }
    const int64_t align = step_integer(step, "align_corners", 0) != 0;
    const tutti_tensor y = text.failed
        ? (tutti_tensor) { -1 }
        : step_op(step, "affine_grid", &theta.tensor, 1, "size=%s align_corners=%d", text.data, (int)align);
    status = text.failed ? TUTTI_NO_MEMORY : step_done_rows(step, 0, y, &theta);
    text_free(&text);
    return status;
}
