#include "base/path.h"

#include "base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 10000 };

/* Names in a folder, and what of them is compared: without the end that all have, which would make them alike. */
struct names {
    char **whole;
    char **compared; /* ended by NULL */
    size_t count;
};

static char *without(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return memory_format("%.*s", (int)(text_ends_with(name, end) ? length - strlen(end) : length), name);
}

static void list_names(struct names *names, const char *folder, const char *end, bool only)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;
    while (opened && names->count < MOST_NAMES && (entry = readdir(opened))) {
        if (entry->d_name[0] == '.' || (only && !text_ends_with(entry->d_name, end))) continue;
        char *whole = memory_copy_text(entry->d_name), *compared = without(entry->d_name, end);
        if (!whole || !compared) {
            free(whole);
            free(compared);
            break;
        }
        names->whole[names->count] = whole;
        names->compared[names->count++] = compared;
    }
    if (opened) closedir(opened);
}

static const char *nearest_name(const struct names *names, const char *name)
{
    const char *nearest = name ? text_nearest(name, (const char *const *)names->compared) : NULL;
    for (size_t i = 0; nearest && i < names->count; i++)
        if (names->compared[i] == nearest) return names->whole[i];
    return NULL;
}

struct suggestion path_suggest(const char *path, const char *end)
{
    struct suggestion suggestion = { "" };
    struct names names = { memory_new(MOST_NAMES, sizeof *names.whole),
        memory_new(MOST_NAMES + 1, sizeof *names.compared), 0 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *point = strrchr(name, '.');
    const int before = (int)(name - path);
    const char *common = end ? end : point ? point : "";
    char *folder = before ? memory_format("%.*s", before, path) : memory_copy_text(".");
    char *compared = without(name, common);
    if (folder && names.whole && names.compared) list_names(&names, folder, common, end != NULL);
    const char *nearest = nearest_name(&names, compared);
    if (nearest && before < (int)sizeof suggestion.text / 2)
        snprintf(suggestion.text, sizeof suggestion.text, "; did you mean %.*s%s?", before, path,
            text_printable(nearest).text);
    for (size_t i = 0; i < names.count; i++) {
        free(names.whole[i]);
        free(names.compared[i]);
    }
    free(names.whole);
    free(names.compared);
    free(folder);
    free(compared);
    return suggestion;
}
