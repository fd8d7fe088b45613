/* Shapes in JSON, as weights record them of the data that a network was trained on. */
#ifndef FORMATS_JSON_SHAPE_H
#define FORMATS_JSON_SHAPE_H

#include "tutti.h"

struct json_t; /* jansson's */

/* Reads a list of sizes from 1 to 2^31 - 1; false: it has others, or more than TUTTI_MAX_RANK. No list is rank 0. */
bool json_shape_read(const struct json_t *list, tutti_shape *shape);

#endif
