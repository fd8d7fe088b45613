/* Refuses options by which a command would write over a file that it reads, or twice to one file. The rows of its
 * options say which files these are (options.h). */
#ifndef TOOLS_OVERWRITE_H
#define TOOLS_OVERWRITE_H

#include "tools/options.h"

/* Checks a command's options, its argument (NULL: none) and those after it, before any work. Prints a line and returns
 * an exit status. */
int overwrite_check(const struct usage *usage, const char *argument, char *const *more, int more_count);
/* Checks a further file or folder that the command reads, which its options do not name. */
int overwrite_check_input(const char *command, const char *path);

#endif
