/* The columns of a table, and where they stand in each of its files: found by name. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 20 };

static const char class_suffix[] = ":class";

void table_free_texts(char **texts, int count)
{
    for (int i = 0; texts && i < count; i++) free(texts[i]);
    free(texts);
}

static bool is_name(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
    return text_is_utf8(text);
}

tutti_status table_check_text(const char *path, const char *text)
{
    if (is_name(text)) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: a name is not UTF-8, or has control characters in it", path);
}

/* Gives columns without names their numbers, from 1 on. */
static tutti_status name_columns(const char *path, char **texts, int count, bool header)
{
    for (int i = 0; i < count; i++) {
        if (!header || !texts[i][0]) {
            free(texts[i]);
            texts[i] = memory_format("%d", i + 1);
            if (!texts[i]) return TUTTI_NO_MEMORY;
        }
        const tutti_status status = table_check_text(path, texts[i]);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

static void append_names(struct text *text, char *const *names, int count)
{
    for (int i = 0; i < count && i < MOST_NAMED; i++) text_append(text, "%s'%s'", i ? ", " : "", names[i]);
    if (count > MOST_NAMED) text_append(text, " and %d more", count - MOST_NAMED);
}

static void note(const tutti_data_options *options, const char *path, struct text *text)
{
    struct text line = { 0 };
    text_append(&line, "%s: %s", path, text->data ? text->data : "");
    if (options->note && line.data && !text->failed) options->note(options->user, line.data);
    text_free(&line);
}

/* -------------------------------------------------------------------------------------------------- target ---- */

static int column_named(char *const *names, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length)) return i;
    return -1;
}

static int column_numbered(int count, const char *text, size_t length)
{
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (length == 0 || end != text + length || errno || number < 1 || number > count) return -1;
    return (int)number - 1;
}

/* Finds a column by its name, or by its number from 1 on; either may have ":class" after it. -1: there is none. */
static int find_column(char *const *names, int count, const char *text, bool *by_class)
{
    const size_t all = strlen(text), end = sizeof class_suffix - 1;
    const bool suffixed = all > end && !strcmp(text + all - end, class_suffix);
    int found = column_named(names, count, text, all);
    if (found >= 0) return found;
    if (suffixed && (found = column_named(names, count, text, all - end)) < 0)
        found = column_numbered(count, text, all - end);
    if (suffixed && found >= 0) *by_class = true;
    return suffixed ? found : column_numbered(count, text, all);
}

static tutti_status find_target(struct table *table, const char *path, const char *text)
{
    table->target = table->column_count - 1;
    if (text) table->target = find_column(table->columns, table->column_count, text, &table->by_class);
    if (table->target >= 0) return TUTTI_OK;
    struct text names = { 0 };
    for (int i = 0; i < table->column_count && i < MOST_NAMED; i++)
        text_append(&names, "%s%s", i ? ", " : "", table->columns[i]);
    const tutti_status status = fail(TUTTI_INVALID, "%s has no column '%s': it has %s%s", path, text,
        names.data ? names.data : "", table->column_count > MOST_NAMED ? ", ..." : "");
    text_free(&names);
    return status;
}

/* ------------------------------------------------------------------------------------------- the first file ---- */

/* Sets the columns to those of a file. It takes the texts over, also on failure. */
static tutti_status set_columns(
    struct table *table, const char *path, const tutti_data_options *options, char **texts, int count, bool header)
{
    table->columns = texts;
    table->column_count = count;
    table->skipped = header && count > 1 && texts[0][0] == '\0' ? 0 : -1;
    tutti_status status = name_columns(path, texts, count, header);
    if (status == TUTTI_OK) status = find_target(table, path, options->target);
    if (status != TUTTI_OK) return status;
    if (table->target == table->skipped) table->skipped = -1;
    table->inputs = count - 1 - (table->skipped >= 0);
    if (table->inputs < 1)
        return fail(TUTTI_FORMAT, "%s has %d column%s: it needs one to predict, and others to predict it from", path,
            count, count == 1 ? "" : "s");
    if (table->skipped < 0 || !options->note) return TUTTI_OK;
    struct text line = { 0 };
    text_append(&line, "column 1 has no name: it is left out, as an index");
    note(options, path, &line);
    text_free(&line);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------- by the training's data ---- */

static tutti_status damaged(void)
{
    return fail(TUTTI_FORMAT, "the description of the table that the network was trained on is damaged");
}

/* Inputs in the order of the training, and the target after them. */
static tutti_status read_columns(struct table *table, const json_t *object)
{
    const json_t *columns = json_object_get(object, "columns");
    const char *target = json_string_value(json_object_get(object, "target"));
    const size_t inputs = json_array_size(columns);
    if (inputs < 1 || inputs >= CSV_MAX_COLUMNS || !target) return damaged();
    table->columns = memory_new(inputs + 1, sizeof *table->columns);
    if (!table->columns) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i <= inputs; i++) {
        const char *name = i < inputs ? json_string_value(json_array_get(columns, i)) : target;
        if (!name || !is_name(name)) return damaged();
        if (!(table->columns[i] = memory_copy_text(name))) return TUTTI_NO_MEMORY;
        table->column_count++;
    }
    table->inputs = (int)inputs;
    table->target = (int)inputs;
    table->skipped = -1;
    table->described = true;
    /* The name of a column of classes is followed by ":class". */
    char *text = table->columns[inputs];
    const size_t all = strlen(text), end = sizeof class_suffix - 1;
    table->by_class = json_array_size(json_object_get(object, "classes")) > 0;
    if (table->by_class && all > end && !strcmp(text + all - end, class_suffix)) text[all - end] = '\0';
    return TUTTI_OK;
}

tutti_status table_read_description(struct table *table, const char *text)
{
    if (!text) return TUTTI_OK;
    json_t *object = json_loads(text, 0, NULL);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    tutti_status status = TUTTI_OK;
    if (kind && !strcmp(kind, "table"))
        status = read_columns(table, object);
    else if (kind)
        status = fail(
            TUTTI_MISMATCH, "the network was trained on %s, but these data are a table", text_printable(kind).text);
    json_decref(object);
    return status;
}

/* ---------------------------------------------------------------------------------------------- other files ---- */

struct named {
    const char *name;
    int at;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *first = a, *second = b;
    const int order = strcmp(first->name, second->name);
    return order ? order : first->at - second->at;
}

static struct named *sort_names(char *const *names, int count)
{
    struct named *sorted = memory_new((size_t)count, sizeof *sorted);
    for (int i = 0; sorted && i < count; i++) sorted[i] = (struct named) { names[i], i };
    if (sorted) qsort(sorted, (size_t)count, sizeof *sorted, compare_named);
    return sorted;
}

/* Sets the fields of the columns by their names: the first, second, ... of equal names are the same columns in both.
 * taken: [count], whether the table has a column of the file. */
static tutti_status find_fields(struct table *table, char *const *texts, int count, bool *taken)
{
    for (int i = 0; i < table->column_count; i++) table->fields[i] = -1;
    for (int i = 0; i < count; i++) taken[i] = false;
    struct named *wanted = sort_names(table->columns, table->column_count), *found = sort_names(texts, count);
    for (int i = 0, k = 0; wanted && found && i < table->column_count && k < count;) {
        const int order = strcmp(wanted[i].name, found[k].name);
        if (order == 0) {
            table->fields[wanted[i].at] = found[k].at;
            taken[found[k].at] = true;
        }
        i += order <= 0;
        k += order >= 0;
    }
    const bool done = wanted && found;
    free(wanted);
    free(found);
    return done ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Columns that are not in the file fail; those that only the file has are left out. */
static tutti_status report_columns(
    const struct table *table, const char *path, const tutti_data_options *options, char **texts, const bool *taken)
{
    struct text missing = { 0 }, others = { 0 };
    int lacks = 0, more = 0;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < table->column_count; i++)
        if (table->fields[i] < 0 && i != table->skipped && ++lacks <= MOST_NAMED)
            text_append(&missing, "%s'%s'", lacks > 1 ? ", " : "", table->columns[i]);
    for (int i = 0; i < table->field_count; i++)
        if (!taken[i] && ++more <= MOST_NAMED) text_append(&others, "%s'%s'", more > 1 ? ", " : "", texts[i]);
    if (lacks > 0) {
        struct text names = { 0 };
        append_names(&names, texts, table->field_count);
        status = fail(table->described ? TUTTI_MISMATCH : TUTTI_FORMAT, "%s lacks the column%s %s%s of %s: it has %s",
            path, lacks == 1 ? "" : "s", missing.data ? missing.data : "", lacks > MOST_NAMED ? ", ..." : "",
            table->described ? "the training" : table->files.names[0], names.data ? names.data : "");
        text_free(&names);
    } else if (more > 0) {
        struct text line = { 0 };
        text_append(&line, "the column%s %s%s %s left out: %s %s not", more == 1 ? "" : "s",
            others.data ? others.data : "", more > MOST_NAMED ? ", ..." : "", more == 1 ? "is" : "are",
            table->described ? "the training" : table->files.names[0], table->described ? "had" : "has");
        text_append(&line, " %s", more == 1 ? "it" : "them");
        note(options, path, &line);
        text_free(&line);
    }
    text_free(&missing);
    text_free(&others);
    return status;
}

/* The caller may name the target's column in the file, where it is called otherwise than in the training. */
static tutti_status rename_target(
    struct table *table, const char *path, const tutti_data_options *options, char **texts, int count)
{
    bool by_class = false;
    char **name = &table->columns[table->target];
    if (!table->described || !options->target) return TUTTI_OK;
    const int found = find_column(texts, count, options->target, &by_class);
    if (found < 0 || !strcmp(texts[found], *name)) return TUTTI_OK; /* report_columns() tells if it is missing */
    if (column_named(texts, count, *name, strlen(*name)) >= 0)
        return fail(TUTTI_MISMATCH, "%s: the network was trained to predict '%s', not '%s'", path, *name, texts[found]);
    char *copy = memory_copy_text(texts[found]);
    if (!copy) return TUTTI_NO_MEMORY;
    free(*name);
    *name = copy;
    return TUTTI_OK;
}

/* The columns have no names of their own. */
static bool are_numbers(const struct table *table)
{
    for (int i = 0; i < table->column_count; i++)
        if (column_numbered(CSV_MAX_COLUMNS, table->columns[i], strlen(table->columns[i])) < 0) return false;
    return true;
}

/* Where a file has no names, columns are numbers, or those of the table's first file in its order. */
static tutti_status check_unnamed(const struct table *table, const char *path, int count)
{
    if (table->described && are_numbers(table)) return TUTTI_OK;
    if (table->described)
        return fail(TUTTI_MISMATCH,
            "%s has no names of columns in its first row, but the network was trained on columns with names, such as "
            "'%s'",
            path, table->columns[0]);
    if (count == table->column_count) return TUTTI_OK;
    return fail(
        TUTTI_FORMAT, "%s has %d columns, but %s has %d", path, count, table->files.names[0], table->column_count);
}

/* A first row that has the names of all inputs is no data, whatever the second row is. */
static tutti_status find_names(struct table *table, char **texts, int count, bool *taken, bool *header)
{
    const tutti_status status = find_fields(table, texts, count, taken);
    if (*header || status != TUTTI_OK || are_numbers(table)) return status;
    *header = true;
    for (int i = 0; i < table->column_count && *header; i++)
        *header = table->fields[i] >= 0 || i == table->skipped || i == table->target;
    return TUTTI_OK;
}

/* Finds the columns in another file than the one that they were set by. */
static tutti_status match_columns(
    struct table *table, const char *path, const tutti_data_options *options, char **texts, int count, bool *header)
{
    tutti_status status;
    bool *taken = memory_new((size_t)count, sizeof *taken);
    if (!taken) return TUTTI_NO_MEMORY;
    TRY(find_names(table, texts, count, taken, header));
    if (!*header) TRY(check_unnamed(table, path, count));
    if (!*header && !table->described) {
        for (int i = 0; i < count; i++) table->fields[i] = i;
        goto done;
    }
    TRY(name_columns(path, texts, count, *header));
    TRY(rename_target(table, path, options, texts, count));
    TRY(find_fields(table, texts, count, taken));
    TRY(report_columns(table, path, options, texts, taken));
done:
    free(taken);
    return status;
}

tutti_status table_set_columns(
    struct table *table, const char *path, const tutti_data_options *options, char **texts, int count, bool *header)
{
    const bool first = !table->columns;
    tutti_status status = TUTTI_OK;
    if (first) {
        status = set_columns(table, path, options, texts, count, *header);
        texts = NULL;
    }
    if (status == TUTTI_OK && !table->fields) {
        table->fields = memory_new((size_t)table->column_count, sizeof *table->fields);
        if (!table->fields) status = TUTTI_NO_MEMORY;
    }
    table->field_count = count;
    for (int i = 0; status == TUTTI_OK && first && i < count; i++) table->fields[i] = i;
    if (status == TUTTI_OK && !first) status = match_columns(table, path, options, texts, count, header);
    table_free_texts(texts, count);
    return status;
}
