/* The columns of a table, and where they stand in each of its files: found by name. */
#include "data/table.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 20 };

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

/* The number of a column from 1 on, unless another one has it as its name. */
static char *number_of(char *const *texts, int count, int column)
{
    char *name = memory_format("%d", column + 1);
    for (int i = 0; i < count && name; i++) {
        if (strcmp(texts[i], name)) continue;
        free(name);
        return memory_format("column %d", column + 1);
    }
    return name;
}

/* Gives columns without names their numbers. */
static tutti_status name_columns(const char *path, char **texts, int count, bool header)
{
    for (int i = 0; i < count; i++) {
        if (!header || !texts[i][0]) {
            char *name = header ? number_of(texts, count, i) : memory_format("%d", i + 1);
            if (!name) return TUTTI_NO_MEMORY;
            free(texts[i]);
            texts[i] = name;
        }
        const tutti_status status = table_check_text(path, texts[i]);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

static const char *name_of(const struct table *table, int column)
{
    return table->columns[column].name;
}

void table_note(const struct table *table, const char *file, const struct text *line)
{
    const tutti_data_options *options = table->reading.options;
    struct text whole = { 0 };
    if (table->reading.quiet || !options->note || line->failed || !line->data) return;
    text_append(&whole, "%s%s%s", file ? file : "", file ? ": " : "", line->data);
    if (whole.data) options->note(options->user, whole.data);
    text_free(&whole);
}

/* Appends names of columns: all, or those of which flags[i] is as wanted. Returns how many there are. */
static int append_names(struct text *text, char *const *names, int count, const bool *flags, bool wanted)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        if ((!flags || flags[i] == wanted) && ++found <= MOST_NAMED)
            text_append(text, "%s'%s'", found > 1 ? ", " : "", names[i]);
    if (found > MOST_NAMED) text_append(text, " and %d more", found - MOST_NAMED);
    return found;
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
    static const char suffix[] = ":class";
    const size_t all = strlen(text), end = sizeof suffix - 1;
    const bool suffixed = all > end && !strcmp(text + all - end, suffix);
    int found = column_named(names, count, text, all);
    if (found >= 0) return found;
    if (suffixed && (found = column_named(names, count, text, all - end)) < 0)
        found = column_numbered(count, text, all - end);
    if (suffixed && found >= 0) *by_class = true;
    return suffixed ? found : column_numbered(count, text, all);
}

/* "; did you mean NAME?" where a name that may be taken is near. `taken` may be NULL. */
static struct suggestion suggest(char *const *names, int count, const bool *taken, const char *text)
{
    struct suggestion suggestion = { "" };
    const char **choices = memory_new((size_t)count + 1, sizeof *choices);
    for (int i = 0, used = 0; choices && i < count; i++)
        if (!taken || !taken[i]) choices[used++] = names[i];
    if (choices) suggestion = text_suggest(text, choices);
    free(choices);
    return suggestion;
}

static tutti_status no_column(const char *path, char *const *names, int count, const char *text)
{
    struct text list = { 0 };
    const struct suggestion suggestion = suggest(names, count, NULL, text);
    for (int i = 0; i < count && i < MOST_NAMED; i++) text_append(&list, "%s%s", i ? ", " : "", names[i]);
    const tutti_status status = fail(TUTTI_INVALID, "%s has no column '%s'%s %s %s%s", path, text_printable(text).text,
        suggestion.text[0] ? suggestion.text : ":", suggestion.text[0] ? "It has" : "it has",
        list.data ? list.data : "", count > MOST_NAMED ? ", ..." : "");
    text_free(&list);
    return status;
}

/* "y" and "y:class" name the column y. */
static bool is_name_of_target(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return !strncmp(text, name, length) && (!text[length] || !strcmp(text + length, ":class"));
}

/* The target cannot be chosen by a name that several columns have. */
static tutti_status check_target(const char *path, char *const *names, int count, const char *text, int target)
{
    const char *name = names[target];
    for (int i = target + 1; i < count && text && is_name_of_target(text, name); i++)
        if (!strcmp(names[i], name))
            return fail(TUTTI_INVALID,
                "%s: columns %d and %d are both called '%s': name the target by its number, such as --target %d", path,
                target + 1, i + 1, name, i + 1);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------- the first file ---- */

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

static struct named *sort_names(char *const *names, const struct column *columns, int count)
{
    struct named *sorted = memory_new((size_t)count, sizeof *sorted);
    for (int i = 0; sorted && i < count; i++) sorted[i] = (struct named) { names ? names[i] : columns[i].name, i };
    if (sorted) qsort(sorted, (size_t)count, sizeof *sorted, compare_named);
    return sorted;
}

/* Tells which names several columns have. */
static tutti_status report_equal(const struct table *table, const char *path)
{
    struct text line = { 0 }, names = { 0 };
    int found = 0;
    struct named *sorted = sort_names(NULL, table->columns, table->column_count);
    if (!sorted) return TUTTI_NO_MEMORY;
    for (int i = 1; i < table->column_count; i++) {
        const char *name = sorted[i].name;
        if (strcmp(name, sorted[i - 1].name) != 0 || (i > 1 && !strcmp(name, sorted[i - 2].name))) continue;
        if (++found <= MOST_NAMED) text_append(&names, "%s'%s'", found > 1 ? ", " : "", name);
    }
    free(sorted);
    text_append(&line, "several columns are called %s%s: in other tables they are found by their order",
        names.data ? names.data : "", found > MOST_NAMED ? " and so on" : "");
    if (found > 0) table_note(table, path, &line);
    text_free(&names);
    text_free(&line);
    return TUTTI_OK;
}

/* Calls a column and, where it was asked for by its name, all others of this name `wanted`. */
static void want(char *const *names, int count, const char *text, int column, bool *wanted)
{
    wanted[column] = true;
    for (int i = column + 1; i < count && !strcmp(names[column], text); i++)
        if (!strcmp(names[i], text)) wanted[i] = true;
}

tutti_status table_find_listed(const char *path, char *const *names, int count, const char *list, bool *wanted)
{
    bool ignored;
    int found = list ? column_named(names, count, list, strlen(list)) : -1;
    if (found >= 0) want(names, count, list, found, wanted);
    for (const char *at = found < 0 ? list : NULL; at && *at;) {
        const size_t length = strcspn(at, ",");
        char *name = memory_format("%.*s", (int)length, at);
        if (!name) return TUTTI_NO_MEMORY;
        found = find_column(names, count, name, &ignored);
        if (found >= 0) want(names, count, name, found, wanted);
        const tutti_status status = found < 0 ? no_column(path, names, count, name) : TUTTI_OK;
        free(name);
        if (status != TUTTI_OK) return status;
        at += length + (at[length] == ',');
    }
    return TUTTI_OK;
}

/* A column that is called as the target most likely has the same values. */
static void leave_out_twin(const struct table *table, const char *path, int column)
{
    struct text line = { 0 };
    table->columns[column].role = COLUMN_LEFT_OUT;
    table->columns[column].reason = "it is called as the target";
    text_append(
        &line, "column %d is left out: it is called '%s', as the target is", column + 1, name_of(table, column));
    table_note(table, path, &line);
    text_free(&line);
}

/* Sets what the columns are for, but for the target. */
static tutti_status set_roles(struct table *table, const char *path, char *const *names, int count, bool no_name)
{
    const tutti_data_options *options = table->reading.options;
    tutti_status status = TUTTI_NO_MEMORY;
    bool *drop = memory_new((size_t)count, sizeof *drop), *only = memory_new((size_t)count, sizeof *only);
    bool *row_names = memory_new((size_t)count, sizeof *row_names);
    if (!drop || !only || !row_names) goto done;
    TRY(table_find_listed(path, names, count, options->drop, drop));
    TRY(table_find_listed(path, names, count, options->only, only));
    TRY(table_find_listed(path, names, count, options->row_names, row_names));
    if (drop[table->target] || only[table->target] || row_names[table->target])
        FAIL(TUTTI_INVALID, "%s: column '%s' is the target, and not of %s: name another one by --target", path,
            names[table->target],
            drop[table->target]       ? "--drop"
                : only[table->target] ? "--only"
                                      : "--id");
    for (int i = 0; i < count; i++) {
        struct column *column = &table->columns[i];
        if (column->role == COLUMN_TARGET) continue;
        if (row_names[i])
            column->role = COLUMN_NAME;
        else if (drop[i] || (options->only ? !only[i] : i == 0 && no_name))
            column->role = COLUMN_LEFT_OUT;
        column->reason = drop[i] ? "--drop names it"
            : options->only      ? "--only does not name it"
                                 : "it has no name, as an index";
        if (column->role == COLUMN_INPUT && !options->only && !strcmp(names[i], names[table->target]))
            leave_out_twin(table, path, i);
    }
done:
    free(drop);
    free(only);
    free(row_names);
    return status;
}

/* Sets the columns to those of a file. */
static tutti_status set_columns(struct table *table, const char *path, char **texts, int count, bool header)
{
    const tutti_data_options *options = table->reading.options;
    const bool no_name = header && count > 1 && texts[0][0] == '\0';
    tutti_status status = name_columns(path, texts, count, header);
    if (status != TUTTI_OK) return status;
    table->columns = memory_new((size_t)count, sizeof *table->columns);
    if (!table->columns) return TUTTI_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        table->columns[i].field = i;
        table->columns[i].name = memory_copy_text(texts[i]);
        if (!table->columns[i].name) return TUTTI_NO_MEMORY;
        table->column_count++;
    }
    table->target =
        options->target ? find_column(texts, count, options->target, &table->reading.class_asked) : count - 1;
    if (table->target < 0) return no_column(path, texts, count, options->target);
    table->columns[table->target].role = COLUMN_TARGET;
    status = check_target(path, texts, count, options->target, table->target);
    if (status == TUTTI_OK) status = set_roles(table, path, texts, count, no_name);
    if (status == TUTTI_OK) status = report_equal(table, path);
    if (status != TUTTI_OK) return status;
    int inputs = 0;
    bool index = no_name && !options->only && table->columns[0].role == COLUMN_LEFT_OUT;
    for (int i = 0; i < count; i++) inputs += table->columns[i].role == COLUMN_INPUT;
    if (inputs == 0 && index && !options->drop) { /* all that there is to predict from */
        table->columns[0].role = COLUMN_INPUT;
        inputs = 1;
        index = false;
    }
    if (inputs < 1 && count > 1)
        return fail(TUTTI_FORMAT, "%s: no column is left to predict '%s' from: %s", path, name_of(table, table->target),
            options->drop || options->only || options->row_names ? "--drop, --only or --id take all others"
                                                                 : "all others are left out");
    if (inputs < 1)
        return fail(TUTTI_FORMAT, "%s has %d column%s: it needs one to predict, and others to predict it from", path,
            count, count == 1 ? "" : "s");
    if (!index) return TUTTI_OK;
    struct text line = { 0 };
    text_append(&line, "column 1 has no name: it is left out, as an index");
    table_note(table, path, &line);
    text_free(&line);
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------- other files ---- */

/* A file that has the target's name once has the target, although the training left a column of this name out. */
static void find_single_target(struct table *table)
{
    struct column *target = &table->columns[table->target];
    for (int i = 0; i < table->column_count && target->field < 0; i++) {
        struct column *column = &table->columns[i];
        if (column->role != COLUMN_LEFT_OUT || column->field < 0 || strcmp(column->name, target->name) != 0) continue;
        target->field = column->field;
        column->field = -1;
    }
}

/* Sets the fields of the columns by their names: the first, second, ... of equal names are the same columns in both.
 * taken: [count], whether the table has a column of the file. */
static tutti_status find_fields(struct table *table, char *const *texts, int count, bool *taken)
{
    for (int i = 0; i < table->column_count; i++) table->columns[i].field = -1;
    for (int i = 0; i < count; i++) taken[i] = false;
    struct named *wanted = sort_names(NULL, table->columns, table->column_count);
    struct named *found = sort_names(texts, NULL, count);
    for (int i = 0, k = 0; wanted && found && i < table->column_count && k < count;) {
        const int order = strcmp(wanted[i].name, found[k].name);
        if (order == 0) {
            table->columns[wanted[i].at].field = found[k].at;
            taken[found[k].at] = true;
        }
        i += order <= 0;
        k += order >= 0;
    }
    find_single_target(table);
    const bool done = wanted && found;
    free(wanted);
    free(found);
    return done ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static bool is_needed(const struct table *table, int column)
{
    const enum column_role role = table->columns[column].role;
    return role == COLUMN_INPUT || (role == COLUMN_TARGET && !table->unlabelled);
}

static const char *what_others(const struct table *table)
{
    return table->described ? "the training" : table->files[0].path;
}

static tutti_status report_missing(struct table *table, const char *path, char **texts, const bool *taken)
{
    struct text missing = { 0 }, names = { 0 };
    struct suggestion suggestion = { "" };
    const int fields = table->reading.field_count;
    int count = 0;
    if (table->described && table->reading.options->without_targets && table->columns[table->target].field < 0)
        table->unlabelled = true;
    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i].field < 0 && is_needed(table, i) && ++count <= MOST_NAMED) {
            const bool other = column_named(texts, fields, name_of(table, i), strlen(name_of(table, i))) >= 0;
            text_append(&missing, "%s'%s'%s", count > 1 ? ", " : "", name_of(table, i),
                other ? " (one more of this name)" : "");
            if (!suggestion.text[0]) suggestion = suggest(texts, fields, taken, name_of(table, i));
        }
    if (count == 0) return TUTTI_OK;
    if (count > MOST_NAMED) text_append(&missing, " and %d more", count - MOST_NAMED);
    (void)append_names(&names, texts, fields, NULL, true);
    const tutti_status status = fail(table->described ? TUTTI_MISMATCH : TUTTI_FORMAT,
        "%s lacks the column%s %s of %s: it has %s%s%s", path, count == 1 ? "" : "s", missing.data ? missing.data : "",
        what_others(table), names.data ? names.data : "", suggestion.text, suggestion.text[0] ? " Rename it" : "");
    text_free(&missing);
    text_free(&names);
    return status;
}

static void report_others(const struct table *table, const char *path, char **texts, const bool *taken)
{
    struct text names = { 0 }, line = { 0 };
    const int count = append_names(&names, texts, table->reading.field_count, taken, false);
    if (count > 0) {
        text_append(&line, "the column%s %s %s left out: %s %s not have %s", count == 1 ? "" : "s",
            names.data ? names.data : "", count == 1 ? "is" : "are", what_others(table),
            table->described ? "did" : "does", count == 1 ? "it" : "them");
        table_note(table, path, &line);
    }
    text_free(&names);
    text_free(&line);
}

/* The caller may name the target's column in the file, where it is called otherwise than in the training. */
static tutti_status rename_target(struct table *table, const char *path, char **texts, int count)
{
    const char *wanted = table->reading.options->target;
    char **name = &table->columns[table->target].name;
    bool by_class = false;
    if (!table->described || !wanted) return TUTTI_OK;
    const int found = find_column(texts, count, wanted, &by_class);
    if (found < 0 && !is_name_of_target(wanted, *name)) return no_column(path, texts, count, wanted);
    if (found < 0 || !strcmp(texts[found], *name)) return TUTTI_OK; /* report_missing() tells if it is missing */
    if (column_named(texts, count, *name, strlen(*name)) >= 0)
        return fail(TUTTI_MISMATCH, "%s: the network was trained to predict '%s', not '%s'", path, *name, texts[found]);
    const tutti_status status = check_target(path, texts, count, wanted, found);
    char *copy = status == TUTTI_OK ? memory_copy_text(texts[found]) : NULL;
    if (!copy) return status == TUTTI_OK ? TUTTI_NO_MEMORY : status;
    free(*name);
    *name = copy;
    return TUTTI_OK;
}

/* The columns have no names of their own, but 1, 2, 3 and so on; older weights have some of these. */
static bool are_numbers(const struct table *table)
{
    const bool whole = !table->described || table->whole;
    for (int i = 0; i < table->column_count; i++) {
        const int number = column_numbered(CSV_MAX_COLUMNS, name_of(table, i), strlen(name_of(table, i)));
        if (number < 0 || (whole && number != i)) return false;
    }
    return true;
}

/* Where a file has no names, columns are those of the training or of the table's first file in its order. Rows to
 * predict may lack the target. */
static tutti_status check_unnamed(const struct table *table, const char *path, int count)
{
    const bool targets = !table->described || !table->reading.options->without_targets;
    if (table->described && are_numbers(table)) {
        if (!table->whole || count == table->column_count || (!targets && count == table->column_count - 1))
            return TUTTI_OK;
        return fail(TUTTI_MISMATCH, "%s has %d columns without names, but the training had %d, with the target '%s'",
            path, count, table->column_count, name_of(table, table->target));
    }
    int input = 0;
    while (table->columns[input].role != COLUMN_INPUT) input++;
    if (table->described)
        return fail(TUTTI_MISMATCH,
            "%s has no names of columns in its first row, but the network was trained on columns with names, such as "
            "'%s'",
            path, name_of(table, input));
    if (count == table->column_count) return TUTTI_OK;
    return fail(
        TUTTI_FORMAT, "%s has %d columns, but %s has %d", path, count, table->files[0].path, table->column_count);
}

/* Columns of a file without names, which perhaps lacks the target. */
static void place_unnamed(struct table *table, const char *path, int count)
{
    const bool lacks = count < table->column_count;
    struct text line = { 0 };
    if (lacks) {
        text_append(&line, "columns have no names: they are taken as those of the training without the target '%s'",
            name_of(table, table->target));
        table_note(table, path, &line);
        text_free(&line);
    }
    for (int i = 0; i < table->column_count; i++) table->columns[i].field = i - (lacks && i > table->target);
    if (lacks) table->columns[table->target].field = -1;
    table->unlabelled |= lacks;
}

/* A first row that has the names of all inputs is a header, whatever the second row is. */
static tutti_status find_names(struct table *table, char **texts, int count, bool *taken, bool *header)
{
    const tutti_status status = find_fields(table, texts, count, taken);
    if (*header || status != TUTTI_OK || are_numbers(table)) return status;
    *header = true;
    for (int i = 0; i < table->column_count && *header; i++)
        *header = table->columns[i].field >= 0 || table->columns[i].role != COLUMN_INPUT;
    return TUTTI_OK;
}

/* Finds the columns in another file than the one that they were set by. */
static tutti_status match_columns(struct table *table, const char *path, char **texts, int count, bool *header)
{
    tutti_status status;
    bool *taken = memory_new((size_t)count, sizeof *taken);
    if (!taken) return TUTTI_NO_MEMORY;
    TRY(find_names(table, texts, count, taken, header));
    if (!*header) TRY(check_unnamed(table, path, count));
    TRY(name_columns(path, texts, count, *header));
    TRY(rename_target(table, path, texts, count));
    if (!*header && (!table->described || table->whole)) {
        place_unnamed(table, path, count);
        goto done;
    }
    TRY(find_fields(table, texts, count, taken));
    TRY(report_missing(table, path, texts, taken));
    report_others(table, path, texts, taken);
done:
    if (table->reading.no_targets) table->columns[table->target].field = -1;
    table->unlabelled |= table->reading.no_targets;
    free(taken);
    return status;
}

tutti_status table_set_columns(struct table *table, const char *path, char **texts, int count, bool *header)
{
    table->reading.field_count = count;
    const tutti_status status = table->columns ? match_columns(table, path, texts, count, header)
                                               : set_columns(table, path, texts, count, *header);
    table_free_texts(texts, count);
    return status;
}
