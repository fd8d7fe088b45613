/* The tuning table that `tutti tune` writes: a text, in which it replaces what it has measured and keeps the rest. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "base/text.h"
#include "tutti.h"

struct finding {
    char *problem, *entry; /* "conv2d/...", "winograd 1.100 direct 3.201" or "!direct REASON"; NULL: nothing to say */
};

/* $XDG_CONFIG_HOME/tutti/tuning.txt, where every run finds it. The caller frees it. NULL if neither XDG_CONFIG_HOME
 * nor HOME is set. */
char *table_default_path(void);
/* Appends the table at `path`, if there is one, with the device's findings in the place of its old entries for the
 * same problems. */
tutti_status table_update(const char *path, const char *device, const struct finding *findings, size_t count,
    const char *comment, struct text *table);
tutti_status table_write(const char *path, const struct text *table);

#endif
