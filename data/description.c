#include "data/description.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "data/column.h"
#include "formats/json_shape.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATISTICS = 1 << 16, MOST_NAMED = 10 };

/* ------------------------------------------------------------------------------------------------- reading ---- */

/* "0.5,0.4,0.4/0.2,0.2,0.2" from two lists. */
static bool read_statistics(const json_t *mean, const json_t *std, char **text)
{
    const size_t count = json_array_size(mean);
    struct text made = { 0 };
    if (count == 0) return true;
    if (count > MOST_STATISTICS || json_array_size(std) != count) return false;
    for (size_t i = 0; i < 2 * count; i++) {
        const json_t *number = json_array_get(i < count ? mean : std, i % count);
        char digits[40];
        number_print(digits, sizeof digits, "%.17g", json_number_value(number));
        text_append(&made, "%s%s", i == 0 ? "" : i == count ? "/" : ",", digits);
    }
    *text = text_take(&made);
    return *text != NULL;
}

/* What is particular to a kind of data (tutti_data_info.kind). */
struct kind_rules {
    const char *name, *article;
    bool alone;           /* no other kind can stand for it: its samples are prepared in a way of their own */
    bool renames_classes; /* some are saved by former names */
    bool own_statistics;  /* it reads its normalisation itself */
    bool standardised;    /* by statistics of each number, where it has no channels */
};

/* The last ones are those of all other kinds. */
static const struct kind_rules *rules_of(const char *kind)
{
    static const struct kind_rules rules[] = {
        { "table", "a ", .alone = true, .renames_classes = true, .own_statistics = true },
        { "recordings", "", .alone = true },
        { "text", "", .alone = true, .own_statistics = true },
        { "speech", "", .alone = true },
        { "arrays", "", .standardised = true },
        { NULL, "" },
    };
    const struct kind_rules *of = rules;
    while (of->name && (!kind || strcmp(kind, of->name) != 0)) of++;
    return of;
}

/* Before classes that are whole numbers had one name, they were saved as they stood in the file. */
static bool rename_class(json_t *list, size_t at)
{
    char number[TABLE_NUMBER_NAME];
    const char *name = json_string_value(json_array_get(list, at));
    return name && json_array_set_new(list, at, json_string(table_class_name(name, number))) == 0;
}

static bool read_classes(json_t *list, struct description *description)
{
    const size_t count = json_array_size(list);
    const bool renames = rules_of(description->kind)->renames_classes;
    if (count > INT32_MAX) return false;
    description->classes = memory_new(count + 1, sizeof *description->classes);
    if (!description->classes) return false;
    for (size_t i = 0; i < count; i++) {
        if (renames && !rename_class(list, i)) return false;
        if (!(description->classes[i] = json_string_value(json_array_get(list, i)))) return false;
    }
    description->class_count = (int)count;
    return true;
}

static bool read_object(struct description *description)
{
    const json_t *object = description->object;
    description->kind = json_string_value(json_object_get(object, "kind"));
    if (!read_statistics(json_object_get(object, "mean"), json_object_get(object, "std"), &description->normalise))
        return false;
    if (!read_statistics(json_object_get(object, "target_mean"), json_object_get(object, "target_std"),
            &description->normalise_targets))
        return false;
    return json_shape_read(json_object_get(object, "shape"), &description->shape) &&
        read_classes(json_object_get(object, "classes"), description);
}

tutti_status description_open(struct description *description, const char *text)
{
    *description = (struct description) { 0 };
    if (!text) return TUTTI_OK;
    description->object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(description->object) && read_object(description)) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "the description of the data that the network was trained on is damaged");
}

void description_close(struct description *description)
{
    json_decref(description->object);
    free(description->classes);
    free(description->normalise);
    free(description->normalise_targets);
    *description = (struct description) { 0 };
}

/* A whole number from 0 to `most`; false: it is something else. 0 where there is none. */
static bool read_whole(const struct description *description, const char *name, json_int_t most, json_int_t *number)
{
    *number = json_integer_value(json_object_get(description->object, name));
    return *number >= 0 && *number <= most;
}

tutti_status description_apply(const struct description *description, tutti_data_options *options)
{
    json_int_t seed, rate, folds, fold;
    const double split = json_number_value(json_object_get(description->object, "split"));
    if (!description->object) return TUTTI_OK;
    if (!(split >= 0 && split < 1) || !read_whole(description, "rate", INT32_MAX, &rate) ||
        !read_whole(description, "folds", INT32_MAX, &folds) || !read_whole(description, "fold", INT32_MAX, &fold) ||
        (folds > 0 && fold >= folds))
        return fail(TUTTI_FORMAT,
            "the description of the data that the network was trained on is damaged: its split, rate or fold is "
            "impossible");
    seed = json_integer_value(json_object_get(description->object, "seed"));
    options->seed = (uint64_t)seed;
    if (options->split == 0) options->split = split;
    if (options->rate == 0) options->rate = (int)rate;
    if (options->folds == 0) {
        options->folds = (int)folds;
        options->fold = (int)fold;
    }
    if (!options->normalise && !rules_of(description->kind)->own_statistics)
        options->normalise = description->normalise;
    if (!options->normalise_targets)
        options->normalise_targets = description->normalise_targets ? description->normalise_targets : "none";
    if (!options->layout) options->layout = json_string_value(json_object_get(description->object, "layout"));
    if (!options->target) options->target = json_string_value(json_object_get(description->object, "target"));
    if (options->channels == 0 && options->height == 0 && options->width == 0 && description->shape.rank == 3) {
        options->channels = (int)description->shape.sizes[0];
        options->height = (int)description->shape.sizes[1];
        options->width = (int)description->shape.sizes[2];
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------- comparison ---- */

/* Begins the sentence on another difference. */
static void begin(struct text *differences)
{
    if (differences->size > 0) text_append(differences, "; ");
}

static void compare_kinds(const struct description *description, const tutti_data_info *info, struct text *differences)
{
    const struct kind_rules *was = rules_of(description->kind), *is = rules_of(info->kind);
    if (!description->kind || was == is || (!was->alone && !is->alone)) return;
    begin(differences);
    const struct printable kind = text_printable(description->kind);
    text_append(differences, "the network was trained on %s%s, but these data are %s%s: it takes %s%s only",
        was->article, kind.text, is->article, info->kind, was->article, kind.text);
}

static void append_shape(struct text *text, const tutti_shape *shape)
{
    for (int i = 0; i < shape->rank; i++) text_append(text, "%s%lld", i ? " x " : "", (long long)shape->sizes[i]);
}

/* A network may take images of other sizes, but not with other channels; nor other numbers of columns. */
static void compare_shapes(const struct description *description, const tutti_data_options *options,
    const tutti_data_info *info, struct text *differences)
{
    const tutti_shape *before = &description->shape, *now = &info->shape;
    struct text note = { 0 };
    bool equal = before->rank == now->rank;
    for (int i = 0; i < before->rank && equal; i++) equal = before->sizes[i] == now->sizes[i];
    if (before->rank == 0 || equal || info->length > 0) return; /* sequences have any length */
    const bool refused = before->rank != now->rank || before->rank == 1 || before->sizes[0] != now->sizes[0];
    struct text *text = refused ? differences : &note;
    if (refused) begin(text);
    text_append(text, "samples are ");
    append_shape(text, now);
    text_append(text, ", but they were ");
    append_shape(text, before);
    text_append(text, " in training");
    if (note.data && options->note) options->note(options->user, note.data);
    text_free(&note);
}

struct class_name {
    const char *name;
    int32_t number;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct class_name *)a)->name, ((const struct class_name *)b)->name);
}

static int compare_numbers(const void *a, const void *b)
{
    const int32_t first = *(const int32_t *)a, second = *(const int32_t *)b;
    return first < second ? -1 : first > second;
}

static void append_names(struct text *text, const char *const *names, int count)
{
    for (int i = 0; i < count && i < MOST_NAMED; i++)
        text_append(text, "%s'%s'", i ? ", " : "", text_printable(names[i]).text);
    if (count > MOST_NAMED) text_append(text, " and %d more", count - MOST_NAMED);
}

static void report_unknown(
    const struct description *description, const char *const *unknown, int count, struct text *differences)
{
    const struct suggestion suggestion = text_suggest(unknown[0], description->classes);
    begin(differences);
    text_append(
        differences, "the data have %s that the network was not trained on: ", count == 1 ? "a class" : "classes");
    append_names(differences, unknown, count);
    text_append(differences, "%s %s knows ", suggestion.text[0] ? suggestion.text : ";",
        suggestion.text[0] ? "The network" : "it");
    append_names(differences, description->classes, description->class_count);
}

/* Sets the number in the description of each of the collection's classes. */
static tutti_status number_classes(
    const struct description *description, const tutti_data_info *info, int32_t *numbers, struct text *differences)
{
    tutti_status status = TUTTI_NO_MEMORY;
    int unknown_count = 0;
    const size_t known = (size_t)description->class_count;
    struct class_name *sorted = memory_new(known, sizeof *sorted);
    const char **unknown = memory_new((size_t)info->classes, sizeof *unknown);
    if (!sorted || !unknown) goto done;
    for (size_t i = 0; i < known; i++) sorted[i] = (struct class_name) { description->classes[i], (int32_t)i };
    qsort(sorted, known, sizeof *sorted, compare_names);
    for (int i = 0; i < info->classes; i++) {
        const struct class_name wanted = { info->class_names[i], 0 };
        const struct class_name *found = bsearch(&wanted, sorted, known, sizeof *sorted, compare_names);
        numbers[i] = found ? found->number : 0;
        if (!found) unknown[unknown_count++] = info->class_names[i];
    }
    if (unknown_count > 0) report_unknown(description, unknown, unknown_count, differences);
    status = TUTTI_OK;
done:
    free(sorted);
    free(unknown);
    return status;
}

/* Masks have the numbers of classes in their pixels: these cannot change, but classes may be missing at the end. */
static void compare_masks(const struct description *description, const int32_t *numbers, const tutti_data_info *info,
    struct text *differences)
{
    for (int i = 0; i < info->classes && differences->size == 0; i++)
        if (numbers[i] != i)
            text_append(differences, "class %d is '%s', but it was '%s' in training", i,
                text_printable(info->class_names[i]).text,
                i < description->class_count ? text_printable(description->classes[i]).text : "unknown");
}

static const char *find_missing(const struct description *description, int32_t *numbers, int classes)
{
    qsort(numbers, (size_t)classes, sizeof *numbers, compare_numbers);
    int32_t next = 0;
    for (int i = 0; i < classes && numbers[i] <= next; i++) next = numbers[i] + 1;
    return next < description->class_count ? description->classes[next] : NULL;
}

static tutti_status match_classes(
    const struct description *description, struct collection *collection, struct text *differences)
{
    tutti_data_info *info = &collection->info;
    const bool numbers_before = description->class_count == 0, numbers_now = info->classes == 0;
    if (numbers_now && info->target_dtype == TUTTI_DTYPE_I32) return TUTTI_OK;       /* it has no targets */
    if (info->tokenizer && info->classes > 0 && !info->class_names) return TUTTI_OK; /* tokens of the description's */
    if (numbers_before != numbers_now) {
        begin(differences);
        text_append(differences, "the targets are %s, but they were %s in training",
            numbers_now ? "numbers" : "classes", numbers_before ? "numbers" : "classes");
        return TUTTI_OK;
    }
    if (numbers_now) return TUTTI_OK;
    int32_t *numbers = memory_new((size_t)info->classes, sizeof *numbers);
    if (!numbers) return TUTTI_NO_MEMORY;
    const tutti_status status = number_classes(description, info, numbers, differences);
    if (status == TUTTI_OK && info->target_shape.rank == 2) compare_masks(description, numbers, info, differences);
    if (status == TUTTI_OK && collection->renumber) collection->renumber(collection, numbers);
    for (int64_t i = 0; status == TUTTI_OK && collection->labels && i < collection->samples; i++)
        if (collection->labels[i] >= 0 && collection->labels[i] < info->classes)
            collection->labels[i] = numbers[collection->labels[i]];
    info->missing_class = find_missing(description, numbers, info->classes);
    free(numbers);
    info->classes = description->class_count;
    info->class_names = description->classes;
    return status;
}

tutti_status description_match(
    const struct description *description, const tutti_data_options *options, struct collection *collection)
{
    struct text differences = { 0 };
    if (!description->object) return TUTTI_OK;
    compare_kinds(description, &collection->info, &differences);
    tutti_status status = TUTTI_OK;
    if (differences.size == 0) {
        compare_shapes(description, options, &collection->info, &differences);
        status = match_classes(description, collection, &differences);
    }
    if (status == TUTTI_OK && differences.failed) status = fail(TUTTI_NO_MEMORY, "no memory for a message");
    if (status == TUTTI_OK && differences.data) status = fail(TUTTI_MISMATCH, "%s", differences.data);
    text_free(&differences);
    return status;
}

/* Compares the numbers by which arrays are standardised. */
static tutti_status check_standards(const struct description *description, const struct collection *collection)
{
    tutti_status status = TUTTI_OK;
    json_t *now = json_object();
    if (!now || collection->describe(collection, now) != 0) FAIL(TUTTI_NO_MEMORY, "no memory for a description");
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "mean" : "std";
        const json_t *is = json_object_get(now, name), *was = json_object_get(description->object, name);
        const size_t count = json_array_size(is);
        bool same = count == json_array_size(was);
        for (size_t k = 0; k < count && same; k++)
            same = (float)json_number_value(json_array_get(is, k)) == (float)json_number_value(json_array_get(was, k));
        if (!same)
            FAIL(TUTTI_MISMATCH,
                "the arrays are standardised otherwise than in training (by %zu means, and by %zu then): leave the "
                "option for it out",
                count, json_array_size(was));
    }
done:
    json_decref(now);
    return status;
}

tutti_status description_check_normalised(const struct description *description, const struct collection *collection)
{
    const tutti_data_info *info = &collection->info;
    const json_t *mean = json_object_get(description->object, "mean");
    const json_t *std = json_object_get(description->object, "std");
    if (description->object && info->channels == 0 && rules_of(info->kind)->standardised)
        return check_standards(description, collection);
    if (info->channels == 0 || json_array_size(mean) != (size_t)info->channels) return TUTTI_OK;
    for (int c = 0; c < info->channels; c++) {
        const double means[] = { (double)info->mean[c], json_number_value(json_array_get(mean, (size_t)c)) };
        const double deviations[] = { (double)info->std[c], json_number_value(json_array_get(std, (size_t)c)) };
        if ((float)means[0] == (float)means[1] && (float)deviations[0] == (float)deviations[1]) continue;
        return fail(TUTTI_MISMATCH,
            "channel %d is normalised by mean %.6g and deviation %.6g, but it was by %.6g and %.6g in training: leave "
            "the option for it out",
            c + 1, means[0], deviations[0], means[1], deviations[1]);
    }
    return TUTTI_OK;
}
