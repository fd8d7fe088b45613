/* How parameters lie in their arenas, and their numbers as floats. */
#ifndef GRAPH_PARAMETER_STORAGE_H
#define GRAPH_PARAMETER_STORAGE_H

#include "graph/network.h"

/* Returns TYPE_BF16 or TYPE_INT8 (graph/stored.h) if it is a frozen matrix and tutti_store() asked for that. */
enum value_type parameter_type(const struct parameter *parameter);
int64_t parameter_rows(const struct parameter *parameter);
int64_t parameter_row(const struct parameter *parameter); /* numbers of a row */
size_t parameter_bytes(const struct parameter *parameter);
/* Where it lies. */
void *parameter_bytes_in(const struct parameter *parameter, const struct parameter_arenas *arenas);
/* Read and write all numbers of a parameter, or `count` numbers of a row from `first` on, a multiple of STORED_BLOCK.
 * The count is one, too, unless they are the row's last ones. */
void parameter_get(const struct parameter *parameter, const struct parameter_arenas *arenas, float *to);
void parameter_set(const struct parameter *parameter, const struct parameter_arenas *arenas, const float *from);
void parameter_set_part(const struct parameter *parameter, const struct parameter_arenas *arenas, int64_t row,
    int64_t first, int64_t count, const float *from);

#endif
