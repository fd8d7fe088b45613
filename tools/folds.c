#include "tools/folds.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

enum { STREAM = 9 << 24 }; /* of the seed */

/* ------------------------------------------------------------------------------------------------- division ---- */

/* Samples in the order of their classes, and at random within each. */
struct place {
    int32_t label;
    uint32_t key;
    int64_t index;
};

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Dealt like cards: no fold has two samples more than another one, of any class and in all. */
static tutti_status deal(struct folds *folds, int64_t samples, const struct labels *labels, uint64_t seed)
{
    struct place *places = memory_new((size_t)samples, sizeof(*places));
    if (!places) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < samples; i++)
        places[i] = (struct place) {
            .label = labels ? labels->of[i] : 0, .key = random_bits(seed, STREAM, (uint64_t)i), .index = i
        };
    qsort(places, (size_t)samples, sizeof(*places), compare);
    for (int64_t i = 0; i < samples; i++) folds->fold_of[places[i].index] = (int)(i % folds->count);
    free(places);
    return TUTTI_OK;
}

static int read_chosen(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct chosen *chosen = user;
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= chosen->count) return 1;
        chosen->room[i] = chosen->indices[indices[i]];
    }
    return chosen->of->read(chosen->of->user, chosen->room, count, buffers, buffer_count);
}

static tutti_status open_chosen(struct chosen *chosen, const tutti_source *source)
{
    const size_t samples = (size_t)source->samples;
    chosen->of = source;
    chosen->indices = memory_new(samples, sizeof(*chosen->indices));
    chosen->room = memory_new(samples, sizeof(*chosen->room));
    return chosen->indices && chosen->room ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status folds_open(
    struct folds *folds, int64_t count, const tutti_source *source, const struct labels *labels, uint64_t seed)
{
    tutti_status status;
    *folds = (struct folds) { .count = count };
    folds->fold_of = memory_new((size_t)source->samples, sizeof(*folds->fold_of));
    if (!folds->fold_of) return TUTTI_NO_MEMORY;
    TRY(open_chosen(&folds->train, source));
    TRY(open_chosen(&folds->test, source));
    status = deal(folds, source->samples, labels && labels->each == 1 ? labels : NULL, seed);
done:
    if (status != TUTTI_OK) folds_close(folds);
    return status;
}

void folds_close(struct folds *folds)
{
    free(folds->fold_of);
    free(folds->train.indices);
    free(folds->train.room);
    free(folds->test.indices);
    free(folds->test.room);
    *folds = (struct folds) { 0 };
}

void folds_select(struct folds *folds, int fold)
{
    struct chosen *const both[] = { &folds->train, &folds->test };
    folds->train.count = folds->test.count = 0;
    for (int64_t i = 0; i < folds->train.of->samples; i++) {
        struct chosen *chosen = both[folds->fold_of[i] == fold];
        chosen->indices[chosen->count++] = i;
    }
    for (int i = 0; i < 2; i++)
        both[i]->source = (tutti_source) {
            .samples = both[i]->count, .read = read_chosen, .user = both[i], .length = both[i]->of->length
        };
}

void folds_begin_epoch(void *user, int64_t epoch)
{
    const struct chosen *chosen = user;
    if (chosen->begin_epoch) chosen->begin_epoch(chosen->of->user, epoch);
}

/* --------------------------------------------------------------------------------------------------- results ---- */

/* The mean, and the deviation as of a sample (divided by K - 1). */
static double mean_of(const double *values, int64_t count, double *deviation)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i];
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    *deviation = sqrt(squares / (double)(count - 1));
    return mean;
}

void folds_text(const struct folds *folds)
{
    double of_loss, of_accuracy;
    const double loss = mean_of(folds->losses, folds->count, &of_loss);
    const double accuracy = mean_of(folds->accuracies, folds->count, &of_accuracy);
    for (int64_t i = 0; i < folds->count; i++) {
        fprintf(stderr, "fold %lld of %lld: ", (long long)i + 1, (long long)folds->count);
        if (isfinite(folds->accuracies[i])) fprintf(stderr, "accuracy %.2f %%, ", 100 * folds->accuracies[i]);
        fprintf(stderr, "loss %.6g\n", folds->losses[i]);
    }
    fprintf(stderr, "mean of %lld folds: ", (long long)folds->count);
    if (isfinite(accuracy)) fprintf(stderr, "accuracy %.2f +- %.2f %%, ", 100 * accuracy, 100 * of_accuracy);
    fprintf(stderr, "loss %.6g +- %.6g\n", loss, of_loss);
}

tutti_status folds_json(const struct folds *folds)
{
    struct json_line line;
    double deviation;
    json_line_begin(&line, stdout);
    json_line_integer(&line, "folds", folds->count);
    json_line_number(&line, "test_accuracy", mean_of(folds->accuracies, folds->count, &deviation));
    json_line_number(&line, "test_accuracy_deviation", deviation);
    json_line_number(&line, "test_loss", mean_of(folds->losses, folds->count, &deviation));
    json_line_number(&line, "test_loss_deviation", deviation);
    return json_line_end(&line);
}
