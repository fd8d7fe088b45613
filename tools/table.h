/* The tuning table that `tutti tune` writes: text, of which it changes what it has measured and keeps the rest. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "base/text.h"
#include "tutti.h"

struct finding {
    char *problem, *said; /* "conv2d/...", "winograd 1.100 direct 3.201" or "!direct REASON"; NULL: nothing to say */
};

/* $XDG_CONFIG_HOME/tutti/tuning.txt, where every run finds it; the caller frees it; NULL where there is no place. */
char *table_default_path(void);
/* The table that is there, or an empty one, with the device's findings in the place of what it said of their problems.
 */
tutti_status table_update(const char *path, const char *device, const struct finding *findings, size_t count,
    const char *comment, struct text *table);
tutti_status table_write(const char *path, const struct text *table);

#endif
