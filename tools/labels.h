/* The labels of training samples, without the samples. */
#ifndef TOOLS_LABELS_H
#define TOOLS_LABELS_H

#include "tools/data.h"
#include "tools/session.h"

struct labels {
    int32_t *of;           /* [samples][each] */
    int64_t samples, each; /* each: 1, or as many as the network's output has positions */
};

/* Reads the labels of `source`, which has samples of `data`. If the data do not know their classes, reads all samples
 * once, as the session's network is fed. Free with labels_free(). */
tutti_status labels_read(
    const struct session *session, const struct data *data, const tutti_source *source, struct labels *labels);
void labels_free(struct labels *labels);
/* Counts the labels of each class, [classes]; ignores others. */
void labels_count(const struct labels *labels, int64_t classes, int64_t *counts);

#endif
