/* GridSample. */
#include "onnx/operators.h"

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
