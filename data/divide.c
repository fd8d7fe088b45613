/* Which sample belongs to which part. The same data and seed give the same parts. */
#include "data/data.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SPLIT 0.2

static int classes_of(const struct collection *collection)
{
    return collection->labels && collection->info.classes > 0 ? collection->info.classes : 1;
}

static int class_of(const struct collection *collection, int64_t sample)
{
    return classes_of(collection) > 1 ? collection->labels[sample] : 0;
}

/* Checks that labels lie within the classes: what follows indexes by them. */
static tutti_status check_labels(const struct collection *collection)
{
    if (classes_of(collection) == 1) return TUTTI_OK;
    for (int64_t i = 0; i < collection->samples; i++)
        if (collection->labels[i] < 0 || collection->labels[i] >= collection->info.classes)
            return fail(TUTTI_FORMAT, "sample %lld has the class %d of %d", (long long)i, (int)collection->labels[i],
                collection->info.classes);
    return TUTTI_OK;
}

/* Returns how many of `count` open samples of a class are held out: as many as the split says, but at least one on
 * either side where there are two. */
static int64_t held_out(double split, int64_t count)
{
    int64_t held = (int64_t)(split * (double)count + 0.5);
    if (held < 1) held = 1;
    if (held > count - 1) held = count - 1;
    return held;
}

/* Sorts the open samples by class: *at[c] to at[c + 1] are those of class c in `sorted`. */
static void sort_open(const struct collection *collection, int64_t *at, int64_t *sorted)
{
    const int classes = classes_of(collection);
    for (int64_t i = 0; i < collection->samples; i++)
        if (collection->parts[i] == PART_OPEN) at[class_of(collection, i) + 1]++;
    for (int c = 0; c < classes; c++) at[c + 1] += at[c];
    for (int64_t i = 0; i < collection->samples; i++)
        if (collection->parts[i] == PART_OPEN) sorted[at[class_of(collection, i)]++] = i;
    for (int c = classes; c > 0; c--) at[c] = at[c - 1];
    at[0] = 0;
}

/* Draws the samples of one class that are held out, by the beginning of a shuffle. */
static void draw_class(struct tutti_data *data, int class_number, int64_t *samples, int64_t count, double split)
{
    const int64_t held = held_out(split, count);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t stream = (uint64_t)class_number << 32 | (uint64_t)(i & 0xffffffff);
        const int64_t other =
            i + (int64_t)random_below(data->options.seed, RANDOM_SPLIT, stream, (uint64_t)(count - i));
        const int64_t moved = samples[i];
        samples[i] = samples[other];
        samples[other] = moved;
        data->part_of[samples[i]] = i < held ? TUTTI_DATA_VAL : TUTTI_DATA_TRAIN;
    }
}

static tutti_status draw_open(struct tutti_data *data)
{
    const struct collection *collection = data->collection;
    const int classes = classes_of(collection);
    const double split = data->options.split > 0 ? data->options.split : DEFAULT_SPLIT;
    int64_t *at = memory_new((size_t)classes + 1, sizeof(*at));
    int64_t *sorted = memory_new((size_t)collection->samples, sizeof(*sorted));
    if (at && sorted) {
        memcpy(data->part_of, collection->parts, (size_t)collection->samples);
        sort_open(collection, at, sorted);
        for (int c = 0; c < classes; c++) draw_class(data, c, sorted + at[c], at[c + 1] - at[c], split);
    }
    const bool done = at && sorted;
    free(at);
    free(sorted);
    return done ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status count_classes(struct tutti_data *data)
{
    const struct collection *collection = data->collection;
    if (!collection->labels || collection->info.classes < 1) return TUTTI_OK;
    data->class_counts = memory_new((size_t)collection->info.classes, sizeof(*data->class_counts));
    if (!data->class_counts) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples; i++)
        if (data->part_of[i] == TUTTI_DATA_TRAIN) data->class_counts[collection->labels[i]]++;
    for (int c = 0; c < collection->info.classes; c++)
        if (data->class_counts[c] == 0 && data->options.note && !data->description.object) {
            char line[400];
            snprintf(line, sizeof(line), "class '%s' has no training samples", collection->info.class_names[c]);
            data->options.note(data->options.user, line);
        }
    return TUTTI_OK;
}

static bool belongs(const struct tutti_data *data, int64_t sample, int part)
{
    return part == TUTTI_DATA_ALL || data->part_of[sample] == part;
}

/* Counts the samples of a part. Where oversampling is asked for, the training part has each class as often as the
 * most frequent one: *most times. */
static tutti_status count_part(const struct tutti_data *data, int part, int64_t *count, int64_t *most)
{
    const bool even = part == TUTTI_DATA_TRAIN && data->options.oversample && data->class_counts;
    *count = *most = 0;
    for (int64_t i = 0; i < data->collection->samples; i++) *count += belongs(data, i, part);
    if (!even) return TUTTI_OK;
    int64_t classes = 0;
    for (int c = 0; c < data->collection->info.classes; c++) {
        if (data->class_counts[c] > *most) *most = data->class_counts[c];
        classes += data->class_counts[c] > 0;
    }
    if (*most > INT64_MAX / 16 / (classes ? classes : 1)) return fail(TUTTI_INVALID, "the classes are too uneven");
    *count = *most * classes;
    return TUTTI_OK;
}

/* Links the positions of each class in a ring. `last` [classes] keeps the last position seen of each class; a second
 * round closes the rings. */
static void link_classes(const struct collection *collection, struct data_part *part, int64_t *last)
{
    const int classes = classes_of(collection);
    for (int c = 0; c < classes; c++) last[c] = -1;
    for (int round = 0; round < 2; round++) /* the second one closes the rings */
        for (int64_t i = 0; i < part->count; i++) {
            const int class_number = class_of(collection, part->samples[i]);
            if (last[class_number] >= 0 && (round == 0 || part->next[last[class_number]] < 0))
                part->next[last[class_number]] = i;
            if (round == 0) part->next[i] = -1;
            last[class_number] = i;
        }
}

/* Repeats samples of the rarer classes after the `own` samples, until each class has `most`. have: [classes] */
static void repeat_rare(const struct tutti_data *data, struct data_part *part, int64_t own, int64_t most, int64_t *have)
{
    memcpy(have, data->class_counts, (size_t)classes_of(data->collection) * sizeof(*have));
    for (int64_t i = 0, used = own; used < part->count; i = (i + 1) % own) {
        const int class_number = class_of(data->collection, part->samples[i]);
        if (have[class_number] == most) continue;
        part->samples[used++] = part->samples[i];
        have[class_number]++;
    }
}

static tutti_status list_part(struct tutti_data *data, int number)
{
    tutti_status status;
    const struct collection *collection = data->collection;
    struct data_part *part = &data->parts[number];
    int64_t most, *last = NULL;
    TRY(count_part(data, number, &part->count, &most));
    if (part->count == 0) return TUTTI_OK;
    part->samples = memory_new((size_t)part->count, sizeof(*part->samples));
    part->next = memory_new((size_t)part->count, sizeof(*part->next));
    last = memory_new((size_t)classes_of(collection), sizeof(*last));
    if (!part->samples || !part->next || !last) FAIL(TUTTI_NO_MEMORY, "no memory for the list of samples");
    int64_t used = 0;
    for (int64_t i = 0; i < collection->samples; i++)
        if (belongs(data, i, number)) part->samples[used++] = i;
    if (used < part->count) repeat_rare(data, part, used, most, last);
    link_classes(collection, part, last);
done:
    free(last);
    return status;
}

tutti_status data_divide(struct tutti_data *data)
{
    tutti_status status;
    if (data->options.split < 0 || data->options.split >= 1)
        return fail(TUTTI_INVALID, "the part that is held out is %g: it lies between 0 and 1", data->options.split);
    TRY(check_labels(data->collection));
    data->part_of = memory_new((size_t)data->collection->samples, 1);
    if (!data->part_of) FAIL(TUTTI_NO_MEMORY, "no memory for the list of samples");
    TRY(draw_open(data));
    TRY(data_fold(data));
    TRY(count_classes(data));
    for (int part = 0; part < DATA_PARTS; part++) TRY(list_part(data, part));
done:
    return status;
}
