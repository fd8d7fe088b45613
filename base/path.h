/* What a path may have meant that is not there. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/text.h"

/* "; did you mean FOLDER/NAME?" with the name in the path's folder that was probably meant, one with this end if it is
 * not NULL; else "". */
struct suggestion path_suggest(const char *path, const char *end);

#endif
