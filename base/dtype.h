/* Types of elements in arrays of the host. */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include "tutti.h"

/* Returns the name of a type, such as "f32"; numbers that are not a type have a name, too. */
const char *dtype_name(tutti_dtype dtype);

#endif
