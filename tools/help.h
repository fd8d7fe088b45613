/* --help of a command, from its table of options. */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include "tools/options.h"

/* Prints it to standard output, in lines as wide as the terminal, or of at most 80 columns. */
void help_print(const struct usage *usage);
/* Joins names by ", " into the buffer, which it returns, and cuts them if it is full. */
const char *help_join(const char *const *names, char *buffer, size_t size);

#endif
