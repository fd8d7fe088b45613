/* GatherND and ScatterND. Their indices [.., k] are positions along the first k axes of the data. The batch can be an
 * axis behind these, which the indices do not refer to, or one of these: then a component of the indices counts
 * samples. */
#include "onnx/operators.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA, INDICES, UPDATES, MOST };

struct nd {
    struct operand in[MOST];
    int count;    /* of inputs */
    int k;        /* axes of the data that the indices refer to, behind `shared` ones */
    int shared;   /* axes in front that data and indices have in common */
    int q;        /* axes of the indices before the last one */
    int batch;    /* the batch's axis of the data, in the file; HIDDEN: none */
    int at;       /* the batch axis of indices and updates, if the indices count samples */
    int64_t rows; /* in this case, rows of each sample in indices and updates */
};

static tutti_status read_inputs(const struct step *step, struct nd *nd)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < nd->count && status == TUTTI_OK; i++)
        status = (i == INDICES ? step_indices : step_operand)(step, (size_t)i, &nd->in[i]);
    if (status != TUTTI_OK) return status;
    const struct operand *indices = &nd->in[INDICES];
    nd->q = operand_rank(indices) - 1;
    if (nd->q < 0 || indices->shape.rank < 1)
        return step_refuse("its indices have no axis, or the batch is their last one");
    if (!operand_is_whole(indices) && indices->place.axis == nd->q)
        return step_refuse("the batch is the indices' last axis");
    const int64_t k = indices->shape.sizes[indices->shape.rank - 1];
    if (k < 1 || k + nd->shared > operand_rank(&nd->in[DATA]))
        return fail(TUTTI_FORMAT, "its indices are %" PRId64 " numbers each", k);
    nd->k = (int)k;
    for (int i = 0; i < nd->count; i++)
        if (!operand_is_whole(&nd->in[i]) && nd->in[i].place.ahead != 1)
            return step_refuse("an axis in front of the batch is joined with it");
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------- indices of each sample ----
 */

/* Reduces known indices of all samples to those of the first one. `rows_of_data`: elements of a sample along the
 * data's batch axis. */
static tutti_status known_indices(const struct step *step, struct nd *nd, int64_t rows_of_data)
{
    struct operand *indices = &nd->in[INDICES];
    const int64_t samples = import_samples(step->import);
    const struct array *x = NULL;
    const tutti_status status = step_array(step, INDICES, &x);
    if (status != TUTTI_OK) return status;
    if (!x->extents || samples == 0 || x->sizes[nd->at] != samples * nd->rows ||
        !array_counts(x, nd->at, nd->rows, nd->batch - nd->shared, rows_of_data))
        return step_refuse("its indices do not tell the same part of each sample");
    indices->tensor = step_first_sample(step, x, nd->at, nd->rows);
    return indices->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* Indices that the network computes must count samples where the data has the batch. */
static tutti_status computed_indices(const struct step *step, struct nd *nd, int64_t rows_of_data)
{
    struct operand *indices = &nd->in[INDICES];
    const struct counting *counting = &step_input(step, INDICES)->counting;
    const int component = nd->batch - nd->shared;
    const bool counts = counting->factor == rows_of_data &&
        (counting->component == component || (counting->component == EACH && nd->k == 1));
    if (indices->place.axis != nd->at || indices->place.rows != nd->rows)
        return step_refuse("the batch is another axis of its indices");
    if (!counts && (counting->factor || step->import->fixed_batch != 1 || rows_of_data != 1))
        return step_refuse("its indices along the batch must count samples");
    if (nd->rows > 1) indices->tensor = step_with_rows(step, indices->tensor, &indices->shape, nd->at, nd->rows);
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------- data of each sample ---- */

/* Gives a sample of the data the axis along which the indices count: that of its rows, or one of size 1. */
static tutti_status with_axis(const struct step *step, const struct nd *nd, struct operand *x)
{
    if (x->shape.rank + 1 >= TUTTI_MAX_RANK) return step_refuse("its data has too many axes");
    x->tensor = step_with_rows(step, x->tensor, &x->shape, nd->batch, x->place.rows);
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* Reads a constant with several rows of each sample along its first axis, which must be the same for each sample. */
static tutti_status like_rows(const struct step *step, int input, int64_t rows, struct operand *x)
{
    const struct array *array = NULL;
    const int64_t samples = import_samples(step->import);
    const tutti_status status = step_array(step, (size_t)input, &array);
    if (status != TUTTI_OK) return status;
    bool same = array->floats && array->rank > 0 && rows <= INT32_MAX && array->sizes[0] == samples * rows;
    const size_t part = same && samples ? array->count / (size_t)samples : 1;
    for (size_t i = 0; same && i < array->count; i++) same = array->floats[i] == array->floats[i % part];
    if (!same) return step_refuse("input %d does not have the same rows for each sample", input);
    x->tensor = step_op(step, "slice", &x->tensor, 1, "axes=0 starts=0 ends=%" PRId64, rows);
    x->place = (struct place) { .batched = true, .axis = 0, .rows = rows, .ahead = 1 };
    const tutti_status spread = step_spread_operand(step, x);
    if (spread != TUTTI_OK) return spread;
    x->tensor = step_plain(step, "fold", &x->tensor, 1);
    x->shape.rank--;
    for (int i = 0; i < x->shape.rank; i++) x->shape.sizes[i] = x->shape.sizes[i + 1];
    return x->tensor.id < 0 ? tutti_network_status(step->import->network) : TUTTI_OK;
}

/* An input without a batch is the same for each sample. */
static tutti_status like(const struct step *step, struct nd *nd, int input, int axis, int64_t rows)
{
    struct operand *x = &nd->in[input];
    struct operand other = { .place = { .batched = true, .axis = axis, .rows = rows, .ahead = 1 } };
    if (x->place.batched)
        return x->place.axis == axis && x->place.rows == rows
            ? TUTTI_OK
            : step_refuse("the batch is another axis of input %d", input);
    if (rows > 1 && axis == 0) return like_rows(step, input, rows, x);
    other.shape.rank = x->shape.rank - 1;
    return step_like(step, (size_t)input, &other, x);
}

/* ------------------------------------------------------------------------------------------------------ places ---- */

/* The component of known indices that counts samples along an axis. */
static int counting_component(const struct step *step, int at)
{
    const struct array *x = NULL;
    const int64_t samples = import_samples(step->import);
    const struct counting *counting = &step_input(step, INDICES)->counting;
    if (counting->factor) return counting->component == EACH ? 0 : counting->component;
    if (step_array(step, INDICES, &x) != TUTTI_OK || !x->extents || samples == 0) return HIDDEN;
    for (int64_t k = 0; k < x->sizes[x->rank - 1] && x->sizes[at] == samples; k++)
        if (array_counts(x, at, 1, (int)k, 1)) return (int)k;
    return HIDDEN;
}

/* Finds which axes are the batch, by the operands that have one. */
static void find_axes(const struct step *step, struct nd *nd)
{
    const struct place *data = &nd->in[DATA].place, *indices = &nd->in[INDICES].place;
    const struct place *updates = nd->count == MOST && nd->in[UPDATES].place.batched ? &nd->in[UPDATES].place : NULL;
    nd->at = indices->batched ? indices->axis : updates && updates->axis < nd->q ? updates->axis : HIDDEN;
    nd->rows = indices->batched ? indices->rows : nd->at != HIDDEN ? updates->rows : 1;
    nd->batch = data->batched               ? data->axis
        : updates && updates->axis >= nd->q ? updates->axis - nd->q + nd->k
        : nd->at != HIDDEN                  ? counting_component(step, nd->at)
                                            : HIDDEN;
    if (nd->batch == HIDDEN || nd->batch >= nd->k + nd->shared || nd->at != HIDDEN) return;
    /* The data has the batch, the indices are known, and no updates tell where the indices' batch is. */
    const struct array *x = NULL;
    if (step_array(step, INDICES, &x) != TUTTI_OK || !x->extents) return;
    const int64_t samples = import_samples(step->import);
    for (int i = 0; i < nd->q && nd->at == HIDDEN && samples; i++) {
        nd->rows = x->sizes[i] / samples;
        if (x->sizes[i] % samples == 0 && nd->rows && array_counts(x, i, nd->rows, nd->batch - nd->shared, data->rows))
            nd->at = i;
    }
}

static tutti_tensor add(const struct step *step, const struct nd *nd, int shared, const char *reduction)
{
    const tutti_tensor list[] = { nd->in[DATA].tensor, nd->in[INDICES].tensor, nd->in[UPDATES].tensor };
    if (!reduction) return step_op(step, "gather_nd", list, 2, "batch_dims=%d", shared);
    return step_op(step, "scatter_nd", list, 3, "reduction=%s", reduction);
}

/* The indices count samples. */
static tutti_status build_along(const struct step *step, struct nd *nd, const char *reduction)
{
    struct operand *x = &nd->in[DATA], *updates = &nd->in[UPDATES];
    if (nd->at == HIDDEN) return step_refuse("its indices along the batch do not select the same part of each sample");
    const int64_t counted = step_input(step, INDICES)->counting.factor;
    tutti_status status = like(step, nd, DATA, nd->batch, x->place.batched ? x->place.rows : counted > 1 ? counted : 1);
    const struct place place = x->place;
    if (status == TUTTI_OK)
        status = (nd->in[INDICES].place.batched ? computed_indices : known_indices)(step, nd, place.rows);
    if (status == TUTTI_OK && nd->count == MOST) status = like(step, nd, UPDATES, nd->at, nd->rows);
    if (status == TUTTI_OK) status = with_axis(step, nd, x);
    if (status != TUTTI_OK) return status;
    if (nd->count == MOST && nd->rows > 1)
        updates->tensor = step_with_rows(step, updates->tensor, &updates->shape, nd->at, nd->rows);
    tutti_tensor y = add(step, nd, nd->shared, reduction);
    if (nd->count == MOST) return step_done(step, step_without_rows(step, y, nd->batch), place);
    if (nd->rows > 1) y = step_without_rows(step, y, nd->at);
    return step_done(step, y, (struct place) { .batched = true, .axis = nd->at, .rows = nd->rows, .ahead = 1 });
}

/* The batch is an axis of the slices. */
static tutti_status build_beside(const struct step *step, struct nd *nd, const char *reduction)
{
    struct operand *x = &nd->in[DATA], *updates = &nd->in[UPDATES];
    if (nd->in[INDICES].place.batched) return step_refuse("its indices, and slices of its data, depend on the samples");
    const int moved = nd->q - nd->k - nd->shared;
    const int64_t rows = x->place.batched ? x->place.rows : updates->place.rows;
    tutti_status status = like(step, nd, DATA, nd->batch, rows);
    if (status == TUTTI_OK && nd->count == MOST) status = like(step, nd, UPDATES, nd->batch + moved, rows);
    if (status != TUTTI_OK) return status;
    return step_done(step, add(step, nd, nd->shared, reduction), place_moved(x->place, nd->count == MOST ? 0 : moved));
}

/* The batch is one of the first `batch_dims` axes. */
static tutti_status build_shared(const struct step *step, struct nd *nd)
{
    struct operand *x = &nd->in[DATA], *indices = &nd->in[INDICES];
    const struct place place = x->place.batched ? x->place : indices->place;
    if (place.rows > 1 && place.axis > 0) return step_refuse("rows of samples lie behind another axis");
    tutti_status status = like(step, nd, DATA, place.axis, place.rows);
    if (status == TUTTI_OK && !indices->place.batched) status = step_operand(step, INDICES, indices);
    if (status == TUTTI_OK) status = like(step, nd, INDICES, place.axis, place.rows);
    return status == TUTTI_OK ? step_done(step, add(step, nd, nd->shared - 1, NULL), place) : status;
}

static tutti_status build(const struct step *step, struct nd *nd, const char *reduction)
{
    bool whole = true;
    struct place place = { .rows = 1, .ahead = 1, .axis = HIDDEN };
    tutti_status status = read_inputs(step, nd);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < nd->count; i++) {
        whole &= operand_is_whole(&nd->in[i]);
        if (nd->in[i].place.batched) place = nd->in[i].place;
    }
    if (whole) return step_done(step, add(step, nd, nd->shared, reduction), place);
    find_axes(step, nd);
    const struct place *indices = &nd->in[INDICES].place;
    if (nd->batch != HIDDEN ? nd->batch < nd->shared : indices->batched && indices->axis < nd->shared)
        return build_shared(step, nd);
    if (nd->batch == HIDDEN && nd->count == 2) /* slices of a table */
        return step_done(step, add(step, nd, nd->shared, NULL), place);
    if (nd->batch == HIDDEN) return step_refuse("indices of each sample change data that is the same for all");
    return nd->batch < nd->shared + nd->k ? build_along(step, nd, reduction) : build_beside(step, nd, reduction);
}

tutti_status build_gather_nd(struct step *step)
{
    struct nd nd = { .count = 2, .shared = (int)step_integer(step, "batch_dims", 0) };
    if (step_integer(step, "batch_dims", 0) < 0 || nd.shared >= TUTTI_MAX_RANK)
        return fail(TUTTI_FORMAT, "batch_dims is %" PRId64, step_integer(step, "batch_dims", 0));
    return build(step, &nd, NULL);
}

tutti_status build_scatter_nd(struct step *step)
{
    struct nd nd = { .count = MOST };
    const char *reduction = step_reduction(step);
    if (!reduction) return step_refuse("its reduction must be none, add, mul, max or min");
    return build(step, &nd, reduction);
}
