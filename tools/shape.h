/* Shapes as options name them. */
#ifndef TOOLS_SHAPE_H
#define TOOLS_SHAPE_H

#include "tutti.h"

#include <stdbool.h>

/* Reads numbers with an x between them, such as 3x224x224; the caller checks their count and range. False, with an
 * empty shape, for anything else. */
bool shape_from_text(const char *text, tutti_shape *shape);

#endif
