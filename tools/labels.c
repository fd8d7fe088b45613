#include "tools/labels.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>

enum { CHUNK = 64 }; /* samples that are read at once */

static tutti_status read_all(const tutti_source *source, size_t sample_bytes, void *sample, struct labels *labels)
{
    const size_t target_bytes = (size_t)labels->each * sizeof(*labels->of);
    int64_t indices[CHUNK];
    for (int64_t first = 0; first < labels->samples; first += CHUNK) {
        const int64_t left = labels->samples - first, count = left < CHUNK ? left : CHUNK;
        const tutti_buffer buffers[] = {
            { .name = "input", .dtype = TUTTI_DTYPE_F32, .data = sample, .bytes = sample_bytes },
            { .name = "targets",
                .dtype = TUTTI_DTYPE_I32,
                .data = labels->of + first * labels->each,
                .bytes = target_bytes },
        };
        for (int64_t i = 0; i < count; i++) indices[i] = first + i;
        const int failed = source->read(source->user, indices, count, buffers, 2);
        if (failed) return fail(TUTTI_FILE, "the training data cannot be read: their source returned %d", failed);
    }
    return TUTTI_OK;
}

tutti_status labels_read(const struct session *session, const tutti_source *source, struct labels *labels)
{
    size_t bytes = sizeof(float);
    for (int i = 0; i < session->shape.rank; i++) bytes *= (size_t)session->shape.sizes[i];
    *labels = (struct labels) { .samples = source->samples, .each = session->labels };
    labels->of = memory_new((size_t)source->samples, (size_t)session->labels * sizeof(*labels->of));
    void *sample = memory_new(CHUNK, bytes);
    tutti_status status = TUTTI_NO_MEMORY;
    if (labels->of && sample) status = read_all(source, bytes, sample, labels);
    free(sample);
    if (status != TUTTI_OK) labels_free(labels);
    return status;
}

void labels_free(struct labels *labels)
{
    free(labels->of);
    labels->of = NULL;
}

void labels_count(const struct labels *labels, int64_t classes, int64_t *counts)
{
    for (int64_t i = 0; i < classes; i++) counts[i] = 0;
    for (int64_t i = 0; i < labels->samples * labels->each; i++)
        if (labels->of[i] >= 0 && labels->of[i] < classes) counts[labels->of[i]]++;
}
