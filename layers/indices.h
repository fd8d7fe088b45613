/* Elements of a tensor by index, which another tensor holds: what gather and scatter share. */
#ifndef LAYERS_INDICES_H
#define LAYERS_INDICES_H

#include "layers/operations.h"

/* How `indices` select from `data`.
 *   AXIS       slices along the axis, the same for all other coordinates
 *   ELEMENTS   elements along the axis, an index for each; other axes are equal
 *   ND         slices: the last axis of the indices has the coordinates of an index, along the axes of data from `axis`
 *              on; the axes before are those of the indices, too
 * Indices are whole numbers, int32 or float32. Negative ones count from the end. Both data and indices can be of a
 * sample or the same for all. */
enum indexed_kind { INDEXED_AXIS, INDEXED_ELEMENTS, INDEXED_ND };
#define SCATTER_REDUCTIONS "none add mul max min"
enum scatter_reduction { SCATTER_NONE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN };
struct indexed_attributes {
    int kind, axis; /* the batch's included, if data has it */
    int reduction;  /* of scatter and its gradient */
    /* Whether data has the batch, and its shape, for gather_gradient. */
    bool batched;
    tutti_shape shape;
};
ATTRIBUTES(indexed)

/* gather.c: data, indices -> y
 * scatter.c
 * scatter: data, indices, updates -> y; updates have the shape that gather would give
 * gather_gradient: indices, dy -> ddata
 * scatter_gradient: indices, dy, data, updates (the last two not of NONE) -> ddata, dupdates, with y's batch; not of
 * ADD
 */

/* Sets y to the shape that gather gives; fails with the operation's name. */
tutti_status indexed_shape(
    const struct node *node, const struct value *data, const struct value *indices, struct value *y);

/* data as [samples][outer][axis][inner], with `count` indices in each [axis][inner], and where these lie
 * (clkernels/indices.h). */
struct indexed_sizes {
    int64_t samples, outer, count, inner, axis;
    int64_t index_sample, index_outer, index_next, index_inner; /* from one index to the next */
    int index_length; /* coordinates in each index, along axes of these sizes */
    int64_t sizes[TUTTI_MAX_RANK];
};
struct indexed_sizes indexed_sizes_of(
    const struct indexed_attributes *attributes, const struct value *data, const struct value *indices);
/* Sets the arguments INDICES_ARGUMENTS (clkernels/arguments/gather.h); and the option for the type of the indices:
 * "-DWHOLE=1" of int32. */
void indexed_arguments(struct launch *launch, const struct indexed_sizes *z);
const char *indexed_options(const struct value *indices);

/* Of gather_gradient, in embedding.c: rows of one table for all samples, on devices of CPU class. */
extern const struct implementation gather_gradient_rows;

#endif
