/* Shared by the implementations of dft: the length of their passes, and tables. */
#ifndef LAYERS_DFT_KERNELS_H
#define LAYERS_DFT_KERNELS_H

#include "layers/dft/dft.h"

enum { DFT_OPTIONS = 96 };

/* How transforms are computed: by passes of `size` elements, which is the length, or more for Bluestein's algorithm. */
struct dft_plan {
    struct dft_sizes sizes;
    int64_t transforms;
    int size, passes;
    bool chirp;
};
struct dft_plan dft_plan_of(const struct problem *problem);
bool dft_has_passes(int length); /* no factor is so large that Bluestein's algorithm costs less */
/* Build options for layers/dft/dft_element.h. */
const char *dft_build_options(const struct problem *problem, bool chirp, char options[DFT_OPTIONS]);
/* The offset of the filter in the table of layers/dft/dft_plain.cl (float2). */
int64_t dft_filter_at(const struct dft_plan *plan);
size_t dft_prepared(const struct problem *problem);
void dft_emit_prepare(const struct problem *problem, const struct operands *operands, struct launch_list *list);
/* Few elements on one side: each element of the result is a sum, which needs a table of the length's angles alone. */
bool dft_is_few(const struct problem *problem); /* whether sums cost less than passes */
struct dft_plan dft_plan_of_few(const struct problem *problem);
size_t dft_prepared_few(const struct problem *problem);
void dft_emit_prepare_few(const struct problem *problem, const struct operands *operands, struct launch_list *list);
/* The values of DFT_SIZES in layers/dft/arguments/dft.h. */
#define DFT_SIZES_VALUES(plan, attributes, table_)                                                              \
    .table = (table_), .transforms = (plan)->transforms, .inner = (plan)->sizes.inner, .in = (plan)->sizes.in,  \
    .out = (plan)->sizes.out, .length = (plan)->sizes.length, .size = (plan)->size, .from = (attributes)->from, \
    .to = (attributes)->to, .scale = (double)(attributes)->scale
void dft_work(const struct problem *problem, struct launch *launch);

extern const struct implementation dft_few, dft_columns, dft_few_groups, dft_groups, dft_library, dft_plain;

#endif
