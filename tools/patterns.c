#include "tools/patterns.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

int patterns_each(const struct session *session, const char *option, const char *list, bool numbers, pattern_use use)
{
    int result = EXIT_DONE;
    char *copy = memory_copy_text(list), *rest = copy;
    if (!copy) return work_failed(session->command, TUTTI_NO_MEMORY, status_message());
    while (result == EXIT_DONE && rest) {
        char *pattern = strsep(&rest, ","), *number = numbers ? strrchr(pattern, '=') : NULL, *end = NULL;
        double value = 0;
        if (number) {
            *number++ = '\0';
            value = number_read(number, &end);
        }
        if (!*pattern || (numbers && (!number || end == number || *end || !(value > 0 && value <= 1e6))))
            result = wrong_use(session->command, "--%s needs %s separated by commas, not \"%s\"", option,
                numbers ? "PATTERN=X, with X above 0," : "patterns", list);
        else if (use(session, pattern, value) != TUTTI_OK)
            result = wrong_use(session->command, "--%s: %s", option, tutti_message(session->runtime));
    }
    free(copy);
    return result;
}
