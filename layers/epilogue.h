/* Epilogues in words, as build options of the kernels that apply them. */
#ifndef LAYERS_EPILOGUE_H
#define LAYERS_EPILOGUE_H

#include "graph/operation.h"

enum { EPILOGUE_OPTIONS = 128 }; /* bytes that epilogue_options() needs */

/* Those of the activation alone, for kernels that look at run time whether something is to be added. */
const char *activation_options(const struct epilogue *epilogue, char *buffer, size_t size);
/* Whether the activation of 0 is 0, so that padding lanes need no care. */
bool epilogue_keeps_zero(const struct epilogue *epilogue);
/* The numbers of an activation as options: clip's " -DLOW=... -DHIGH=...", leaky relu's slope as LOW. */
void epilogue_append_bounds(char *buffer, size_t size, enum activation activation, float low, float high);

#endif
