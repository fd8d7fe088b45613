#include "tools/table.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 16 << 20 };

char *table_default_path(void)
{
    const char *settings = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (settings && *settings) return memory_format("%s/tutti/tuning.txt", settings);
    return home && *home ? memory_format("%s/.config/tutti/tuning.txt", home) : NULL;
}

static bool speaks_of(const char *line, const struct finding *findings, size_t count)
{
    const size_t length = strcspn(line, " ");
    for (size_t i = 0; i < count; i++)
        if (strlen(findings[i].problem) == length && !memcmp(findings[i].problem, line, length)) return true;
    return false;
}

static void append_findings(struct text *table, const struct finding *findings, size_t count, const char *comment)
{
    text_append(table, "# %s\n", comment);
    for (size_t i = 0; i < count; i++)
        if (findings[i].entry) text_append(table, "%s %s\n", findings[i].problem, findings[i].entry);
}

tutti_status table_update(const char *path, const char *device, const struct finding *findings, size_t count,
    const char *comment, struct text *table)
{
    unsigned char *data = NULL;
    size_t size = 0;
    tutti_status status = access(path, F_OK) == 0 ? file_read(path, MOST_BYTES, &data, &size) : TUTTI_OK;
    char *head = memory_format("[device %s]", device), *text = data ? memory_format("%.*s", (int)size, data) : NULL;
    bool ours = false, written = false;
    if (!head || (data && !text)) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK && !text)
        text_append(table, "# The fastest kernels, found by `tutti tune`, for `tutti --tuning FILE`.\n");
    char *rest = text;
    for (char *line; status == TUTTI_OK && rest && (line = strsep(&rest, "\n"));) {
        if (*line == '[') ours = !strcmp(line, head);
        if (!*line && !rest) break; /* after the last line's end */
        if (ours && speaks_of(line, findings, count)) continue;
        text_append(table, "%s\n", line);
        if (!ours || written || *line != '[') continue;
        append_findings(table, findings, count, comment);
        written = true;
    }
    if (status == TUTTI_OK && !written) {
        text_append(table, "\n%s\n", head);
        append_findings(table, findings, count, comment);
    }
    free(head);
    free(text);
    free(data);
    return status == TUTTI_OK && table->failed ? TUTTI_NO_MEMORY : status;
}

tutti_status table_write(const char *path, const struct text *table)
{
    char *folder = memory_copy_text(path), *slash = folder ? strrchr(folder, '/') : NULL;
    tutti_status status = folder ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (slash && slash != folder) {
        *slash = '\0';
        status = folder_make(folder);
    }
    free(folder);
    return status == TUTTI_OK ? file_write(path, table->data, table->size) : status;
}
