/* Options that list patterns of parameters' names. */
#ifndef TOOLS_PATTERNS_H
#define TOOLS_PATTERNS_H

#include "tools/session.h"

typedef tutti_status (*pattern_use)(const struct session *session, const char *pattern, double number);
/* Calls `use` for each pattern of a list, which is separated by commas; if `numbers`, with the number after "=", else
 * with 0. `option`: for messages. Returns an exit status. */
int patterns_each(const struct session *session, const char *option, const char *list, bool numbers, pattern_use use);

#endif
