#include "formats/cifar.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define CHANNELS 3
#define SIDE 32
#define PIXELS (CHANNELS * SIDE * SIDE)
/* The published files hold at most 50,000 records; ten times that is surely something else. */
#define LIMIT ((size_t)500000 * (PIXELS + 2))

/* A kind of record: which of its leading bytes is the label. */
struct record {
    const char *name;
    int labels, label, classes;
};

static const struct record cifar10 = { "CIFAR-10", 1, 0, 10 };
static const struct record cifar100 = { "CIFAR-100", 2, 1, 100 };

static size_t record_bytes(const struct record *record)
{
    return (size_t)record->labels + PIXELS;
}

static tutti_status unpack(const struct record *record, const char *path, const unsigned char *bytes, int64_t samples,
    int64_t first, struct dataset *dataset)
{
    for (int64_t i = 0; i < samples; i++, bytes += record_bytes(record)) {
        int label = bytes[record->label];
        if (label >= record->classes)
            return fail(TUTTI_FORMAT,
                "%s: record %lld has label %d, but %s has only %d classes: the file is damaged or of another format",
                path, (long long)i, label, record->name, record->classes);
        dataset->labels[first + i] = label;
        memcpy(dataset->pixels + (size_t)(first + i) * PIXELS, bytes + record->labels, PIXELS);
    }
    return TUTTI_OK;
}

static tutti_status read_records(const struct record *record, const char *path, unsigned char **bytes, int64_t *samples)
{
    size_t size, unit = record_bytes(record);
    tutti_status status = file_read(path, LIMIT, bytes, &size);
    if (status != TUTTI_OK) return status;
    if (size == 0 || size % unit != 0) {
        free(*bytes);
        *bytes = NULL;
        return fail(TUTTI_FORMAT,
            "%s: %zu bytes is not a multiple of the size of a %s record, %zu bytes: the file is truncated or of "
            "another format",
            path, size, record->name, unit);
    }
    *samples = (int64_t)(size / unit);
    return TUTTI_OK;
}

static tutti_status read_files(
    const struct record *record, const char *const *paths, int count, struct dataset *dataset)
{
    tutti_status status = TUTTI_OK;
    int64_t total = 0;
    memset(dataset, 0, sizeof(*dataset));
    unsigned char **bytes = memory_new((size_t)count, sizeof(*bytes));
    int64_t *samples = memory_new((size_t)count, sizeof(*samples));
    if (!bytes || !samples) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    for (int i = 0; i < count; i++) {
        TRY(read_records(record, paths[i], &bytes[i], &samples[i]));
        total += samples[i];
    }
    TRY(dataset_new(dataset, record->name, total, CHANNELS, SIDE, SIDE, record->classes));
    total = 0;
    for (int i = 0; i < count; i++) {
        TRY(unpack(record, paths[i], bytes[i], samples[i], total, dataset));
        total += samples[i];
    }
done:
    for (int i = 0; bytes && i < count; i++) free(bytes[i]);
    free(bytes);
    free(samples);
    if (status != TUTTI_OK) dataset_free(dataset);
    return status;
}

tutti_status cifar10_read(const char *const *paths, int count, struct dataset *dataset)
{
    return read_files(&cifar10, paths, count, dataset);
}

tutti_status cifar100_read(const char *path, struct dataset *dataset)
{
    return read_files(&cifar100, &path, 1, dataset);
}
