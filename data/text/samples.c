/* What there is of each text besides its tokens: part, row or file, class or number. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 20 }; /* whole numbers that are taken as classes */

/* The table that a sample is in. */
const char *texts_path(const struct texts *texts, int64_t index)
{
    int file = texts->file_count - 1;
    while (file > 0 && index < texts->files[file].begins) file--;
    return texts->files[file].path;
}

void texts_name_sample(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct texts *texts = (const struct texts *)collection;
    const char *path = texts->file_count > 1 ? texts_path(texts, index) : "", *slash = strrchr(path, '/');
    if (texts->stream)
        snprintf(text, size, "block %" PRId64, index + 1);
    else if (texts->targets.tags.on && !texts->name_at)
        snprintf(text, size, "%s%ssentence %" PRId64, slash ? slash + 1 : path, *path ? " " : "", texts->rows[index]);
    else if (texts->name_at)
        snprintf(text, size, "%s", names_at(&texts->names, texts->name_at[index]));
    else
        snprintf(text, size, "%s%srow %" PRId64, slash ? slash + 1 : path, *path ? " " : "", texts->rows[index]);
}

tutti_status texts_add_sample(struct texts *texts, int part, int64_t row, const char *name)
{
    struct collection *collection = &texts->collection;
    struct text_targets *targets = &texts->targets;
    const size_t count = (size_t)collection->samples + 1;
    tutti_status status = TUTTI_OK;
    TRY(memory_grow((void **)&texts->samples, &texts->room.samples, count, sizeof *texts->samples));
    TRY(memory_grow((void **)&collection->parts, &texts->room.parts, count, sizeof *collection->parts));
    TRY(memory_grow((void **)&collection->labels, &targets->labels_room, count, sizeof *collection->labels));
    TRY(memory_grow((void **)&targets->numbers, &targets->numbers_room, count, sizeof *targets->numbers));
    if (row > 0) TRY(memory_grow((void **)&texts->rows, &texts->room.rows, count, sizeof *texts->rows));
    if (name) TRY(memory_grow((void **)&texts->name_at, &texts->room.names, count, sizeof *texts->name_at));
    if (name) TRY(names_add(&texts->names, name, NULL, &texts->name_at[count - 1]));
    if (row > 0) texts->rows[count - 1] = row;
    collection->parts[count - 1] = (signed char)part;
    collection->labels[count - 1] = -1;
    targets->numbers[count - 1] = 0;
    collection->samples++;
done:
    return status;
}

tutti_status texts_set_target(struct texts *texts, const char *text)
{
    struct text_targets *targets = &texts->targets;
    const int64_t last = texts->collection.samples - 1;
    char number[TABLE_NUMBER_NAME];
    if (!csv_number(text, &targets->numbers[last])) {
        targets->numbers[last] = NAN;
        targets->words = true;
    }
    if (targets->many || (texts->described && !targets->by_class)) return TUTTI_OK;
    const tutti_status status =
        table_class_of(&targets->classes, table_class_name(text, number), &texts->collection.labels[last]);
    targets->many = status == TUTTI_FORMAT;
    return targets->many ? TUTTI_OK : status;
}

/* ---------------------------------------------------------------------------------------------- what they are ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = text ? strlen(text) : 0, size = strlen(end);
    return length > size && !strcmp(text + length - size, end);
}

static bool are_whole(const struct texts *texts)
{
    for (int64_t i = 0; i < texts->collection.samples; i++)
        if (texts->targets.numbers[i] != floor(texts->targets.numbers[i])) return false;
    return true;
}

/* Words are classes, and so are few whole numbers: stars of a review are meant so more often than not. */
static tutti_status choose(struct texts *texts)
{
    struct text_targets *targets = &texts->targets;
    const char *asked = texts->options->target;
    const bool number = ends_with(asked, ":number"), class_ = ends_with(asked, ":class");
    if (number && targets->words)
        return fail(TUTTI_FORMAT, "column '%s': not all of its texts are numbers: leave :number out", texts->target);
    if (number || (!class_ && targets->many && !targets->words)) return TUTTI_OK;
    targets->by_class = class_ || targets->words || (targets->classes.count <= FEW && are_whole(texts));
    if (targets->by_class && targets->many)
        return fail(
            TUTTI_FORMAT, "column '%s' has more than 10000 different texts: these are not classes", texts->target);
    if (targets->by_class && !class_ && !targets->words)
        texts_note(texts,
            memory_format("column '%s' has %zu different whole numbers, which are taken as classes: --target "
                          "'%s:number' predicts "
                          "them as numbers",
                texts->target, targets->classes.count, texts->target));
    return TUTTI_OK;
}

tutti_status texts_name_classes(struct texts *texts, int32_t *labels, size_t count)
{
    struct collection *collection = &texts->collection;
    struct table_classes *classes = &texts->targets.classes;
    const tutti_status status = table_rank_classes(classes, labels, count);
    if (status != TUTTI_OK) return status;
    texts->class_names = memory_new(classes->count + 1, sizeof *texts->class_names);
    if (!texts->class_names) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < classes->count; i++) texts->class_names[i] = classes->list[i].name;
    collection->info.classes = (int)classes->count;
    collection->info.class_names = texts->class_names;
    return TUTTI_OK;
}

static tutti_status take_numbers(struct texts *texts)
{
    struct collection *collection = &texts->collection;
    for (int64_t i = 0; i < collection->samples; i++)
        if (isnan(texts->targets.numbers[i]))
            return fail(TUTTI_FORMAT, "column '%s': the targets were numbers in training, but row %lld has none",
                texts->target, texts->rows ? (long long)texts->rows[i] : (long long)i + 1);
    free(collection->labels);
    collection->labels = NULL;
    collection->info.target_dtype = TUTTI_DTYPE_F32;
    collection->info.target_shape = (tutti_shape) { .rank = 1, .sizes = { 1 } };
    return standards_read_targets(&texts->of_targets, texts->options, 1, &collection->info);
}

/* Without targets, numbers are 0 and classes -1, with none in the info. */
tutti_status texts_end_targets(struct texts *texts)
{
    tutti_status status = TUTTI_OK;
    texts->collection.info.target_dtype = TUTTI_DTYPE_I32;
    if (!texts->described) TRY(choose(texts));
    if (!texts->targets.by_class) return take_numbers(texts);
    if (texts->targets.classes.count > 0)
        TRY(texts_name_classes(texts, texts->collection.labels, (size_t)texts->collection.samples));
done:
    return status;
}

void texts_leave_out(struct texts *texts, const char *name)
{
    enum { MOST_NAMED = 3 };
    struct text_counts *counts = &texts->counts;
    counts->empty++;
    texts->collection.info.damaged++;
    if (counts->left_out++ < MOST_NAMED)
        text_append(&counts->listed, "%s%s", counts->left_out > 1 ? ", " : "", text_printable(name).text);
}

void texts_drop_empty(struct texts *texts)
{
    struct collection *collection = &texts->collection;
    int64_t kept = 0;
    char name[256];
    for (int64_t i = 0; i < collection->samples; i++) {
        if (texts->samples[i].count > 0) continue;
        texts_name_sample(collection, i, name, sizeof name);
        texts_leave_out(texts, name);
    }
    for (int64_t i = 0; i < collection->samples; i++) {
        for (int f = 0; kept < i && f < texts->file_count; f++)
            if (texts->files[f].begins == i) texts->files[f].begins = kept;
        if (texts->samples[i].count == 0) continue;
        texts->samples[kept] = texts->samples[i];
        collection->parts[kept] = collection->parts[i];
        collection->labels[kept] = collection->labels[i];
        texts->targets.numbers[kept] = texts->targets.numbers[i];
        if (texts->targets.tags.on) texts->targets.tags.sentences[kept] = texts->targets.tags.sentences[i];
        if (texts->rows) texts->rows[kept] = texts->rows[i];
        if (texts->name_at) texts->name_at[kept] = texts->name_at[i];
        kept++;
    }
    collection->samples = kept;
}
