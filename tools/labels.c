#include "tools/labels.h"

#include "base/memory.h"
#include "base/status.h"
#include "tutti_inspect.h"

#include <stdlib.h>

enum { CHUNK = 64 }; /* samples that are read at once */

static tutti_status read_all(const tutti_source *source, const tutti_buffer *input, struct labels *labels)
{
    const size_t target_bytes = (size_t)labels->each * sizeof(*labels->of);
    int64_t indices[CHUNK];
    for (int64_t first = 0; first < labels->samples; first += CHUNK) {
        const int64_t left = labels->samples - first, count = left < CHUNK ? left : CHUNK;
        const tutti_buffer buffers[] = {
            *input,
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

/* Makes a buffer for the network's first input, with room for a chunk. */
static tutti_status make_buffer(const struct session *session, tutti_buffer *buffer)
{
    tutti_tensor input;
    tutti_tensor_info info = { .size = sizeof(info) };
    tutti_status status;
    TRY(tutti_network_input(session->network, 0, &input));
    TRY(tutti_network_tensor(session->network, input, &info));
    *buffer = (tutti_buffer) { .name = info.name, .dtype = info.dtype, .bytes = tutti_dtype_bytes(info.dtype) };
    for (int i = 0; i < info.shape.rank; i++) buffer->bytes *= (size_t)info.shape.sizes[i];
    buffer->data = memory_new(CHUNK, buffer->bytes);
    if (!buffer->data) status = TUTTI_NO_MEMORY;
done:
    return status;
}

tutti_status labels_read(
    const struct session *session, const struct data *data, const tutti_source *source, struct labels *labels)
{
    tutti_buffer buffer = { 0 };
    tutti_status status = TUTTI_OK;
    *labels = (struct labels) { .samples = source->samples, .each = session->labels };
    labels->of = memory_new((size_t)source->samples, (size_t)session->labels * sizeof(*labels->of));
    if (!labels->of) return TUTTI_NO_MEMORY;
    if (tutti_data_label(data->opened, TUTTI_DATA_TRAIN, 0) >= 0) {
        for (int64_t i = 0; i < labels->samples; i++)
            labels->of[i] = tutti_data_label(data->opened, TUTTI_DATA_TRAIN, i);
    } else {
        status = make_buffer(session, &buffer);
        if (status == TUTTI_OK) status = read_all(source, &buffer, labels);
    }
    free(buffer.data);
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
