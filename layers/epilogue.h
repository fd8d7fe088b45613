/* A node's list of fusions (graph/fusion.h) as build options and arguments of the kernels that do them. */
#ifndef LAYERS_EPILOGUE_H
#define LAYERS_EPILOGUE_H

#include "graph/operation.h"

enum { EPILOGUE_OPTIONS = 128 }; /* bytes that the options of each function need */

/* Options of FUSION_ADD and FUSION_ACTIVATION for clkernels/epilogue.h. node: NULL stands for one without fusions. */
const char *epilogue_options(const struct node *node, char *buffer, size_t size);
/* Like epilogue_options(), but with another function for FUSION_ACTIVATION. */
const char *epilogue_options_with(const struct node *node, struct nonlinearity function, char *buffer, size_t size);
/* Options of the function alone, for kernels that look at run time whether something is to be added. */
const char *activation_options(struct nonlinearity function, char *buffer, size_t size);
/* The derivative that a result is multiplied by, as clkernels/derivative.h reads it. */
const char *mask_options(struct nonlinearity function, char *buffer, size_t size);
/* The numbers of a function as options: clip's " -DLOW=... -DHIGH=...", leaky relu's slope as LOW. */
void append_bounds(struct nonlinearity function, char *buffer, size_t size);
/* Whether the function of 0 is 0, so that padding lanes need no care. */
bool keeps_zero(struct nonlinearity function);

/* Options and arguments of FUSION_MASK, FUSION_GATE and FUSION_STATISTICS in convolutions for CPU-class devices. The
 * arguments come after all others. */
enum { RESULT_OPTIONS = EPILOGUE_OPTIONS + 48 };
const char *result_options(const struct node *node, char *buffer, size_t size);
void result_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands);
/* FUSION_STATISTICS in convolutions for GPU-class devices, whose kernels have the option STATISTICS. */
bool gives_statistics(const struct node *node);
void statistics_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands);
/* Option of FUSION_NORMALISED, and its arguments, which come after all others. */
const char *normalised_option(const struct node *node);
void normalised_arguments(struct launch *launch, const struct problem *problem, const struct operands *operands);
/* Sets the layout of the ports that are read besides the first output. */
void fused_layouts(const struct node *node, enum value_layout layout, enum value_layout *inputs);
/* Value and buffer of a fusion's input, counted from 0; NULL where the kind is not fused or the input is absent. */
const struct value *fused_input(const struct problem *problem, enum fusion_kind kind, int input);
cl_mem fused_input_buffer(
    const struct problem *problem, const struct operands *operands, enum fusion_kind kind, int input);
/* Value and buffer of a fusion's output; NULL where the kind is not fused. */
const struct value *fused_output(const struct problem *problem, enum fusion_kind kind);
cl_mem fused_output_buffer(const struct problem *problem, const struct operands *operands, enum fusion_kind kind);

#endif
