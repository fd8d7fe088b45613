/* What the implementations of dft share: the length of their passes, and tables. */
#ifndef LAYERS_DFT_KERNELS_H
#define LAYERS_DFT_KERNELS_H

#include "layers/dft.h"

enum { DFT_OPTIONS = 96 };

/* How transforms are computed: by passes of `size` elements, which is the length, or more for Bluestein's algorithm. */
struct dft_plan {
    struct dft_sizes sizes;
    int64_t transforms;
    int size, passes;
    bool chirp;
};
struct dft_plan dft_plan_of(const struct problem *problem);
/* Build options for clkernels/dft_element.h. */
const char *dft_options(const struct problem *problem, bool chirp, char options[DFT_OPTIONS]);
/* The table that clkernels/dft_plain.cl describes: bytes, its launches, and where the filter lies in it (float2). */
size_t dft_table_bytes(const struct dft_plan *plan);
void dft_emit_table(const struct dft_plan *plan, cl_mem table, struct launch_list *list);
int64_t dft_filter_at(const struct dft_plan *plan);
void dft_work(const struct problem *problem, struct launch *launch);

extern const struct implementation dft_plain;

#endif
