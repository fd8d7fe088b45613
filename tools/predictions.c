#include "tools/predictions.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "tools/files.h"
#include "tools/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERED = 1 << 16, NUMBER = 40, CLASS_DIGITS = 9 };

/* ---------------------------------------------------------------------------------------------------- check ---- */

static bool has_tabs(const struct predictions *p)
{
    return text_has_extension(p->path, ".tsv");
}

int predictions_check(const struct predictions *p, const char *command)
{
    if (!p->path) return EXIT_DONE;
    if (!text_has_extension(p->path, ".csv") && !has_tabs(p))
        return wrong_use(command, "--output %s: predictions are written as a table: name a .csv or .tsv file", p->path);
    return files_check_output(command, "output", p->path);
}

/* ----------------------------------------------------------------------------------------------------- text ---- */

static tutti_status flush(struct predictions *p, size_t most)
{
    if (p->text.failed) return fail(TUTTI_NO_MEMORY, "no memory for a row of '%s'", p->path);
    if (p->text.size <= most) return TUTTI_OK;
    const tutti_status status = atomic_file_write(p->file, p->text.data, p->text.size);
    p->text.size = 0;
    return status;
}

/* Appends a field, in quotes where it needs them (RFC 4180). */
static void append_field(struct predictions *p, const char *text, bool first)
{
    const char separator = has_tabs(p) ? '\t' : ',';
    const char special[] = { separator, '"', '\r', '\n', '\0' };
    const size_t length = strlen(text);
    const bool spaces =
        length > 0 && (text[0] == ' ' || text[0] == '\t' || text[length - 1] == ' ' || text[length - 1] == '\t');
    if (!first) text_append(&p->text, "%c", separator);
    if (!spaces && !text[strcspn(text, special)]) {
        text_append(&p->text, "%s", text);
        return;
    }
    text_append(&p->text, "\"");
    for (const char *at = text; *at;) {
        const size_t plain = strcspn(at, "\"");
        text_append(&p->text, "%.*s%s", (int)plain, at, at[plain] ? "\"\"" : "");
        at += plain + (at[plain] != '\0');
    }
    text_append(&p->text, "\"");
}

static const char *class_of(const struct predicted *of, int64_t number, char digits[NUMBER])
{
    if (of->names) return of->names[number];
    snprintf(digits, NUMBER, "%lld", (long long)number);
    return digits;
}

/* ---------------------------------------------------------------------------------------------------- names ---- */

static bool is_column(const struct predictions *p, const char *name)
{
    for (int i = 0; i < p->column_count; i++)
        if (!strcmp(p->columns[i], name)) return true;
    return false;
}

/* Names the column of the prediction (field 0), or that of a class or number. `turn` makes names unlike those of the
 * table, which may have been written here. The caller frees it. */
static char *name_field(const struct predicted *of, int64_t field, int turn)
{
    char digits[NUMBER], end[NUMBER] = "";
    if (turn > 1) snprintf(end, sizeof end, "_%d", turn);
    if (of->numbers && of->count > 1) return memory_format("prediction_%lld%s", (long long)field + 1, end);
    if (field == 0) return memory_format("prediction%s", end);
    return memory_format("%s_%s%s", of->shares ? "share" : "probability", class_of(of, field - 1, digits), end);
}

static tutti_status check_names(const struct predictions *p, const struct predicted *of, int turn, bool *fit)
{
    *fit = true;
    for (int i = 0; i < p->fields && *fit; i++) {
        char *name = name_field(of, i, turn);
        if (!name) return TUTTI_NO_MEMORY;
        *fit = !is_column(p, name);
        free(name);
    }
    return TUTTI_OK;
}

/* Whether samples are files of their own. */
static bool has_files(const struct data *data)
{
    const char *kind = data->info.kind;
    return !strcmp(kind, "images") || !strcmp(kind, "masks") || !strcmp(kind, "recordings");
}

static tutti_status write_names(struct predictions *p, const struct predicted *of)
{
    bool fit = false;
    int turn = 0;
    tutti_status status = TUTTI_OK;
    while (!fit && status == TUTTI_OK) status = check_names(p, of, ++turn, &fit);
    if (status != TUTTI_OK) return status;
    const bool named = !of->table || p->several;
    if (named) append_field(p, p->several || has_files(of->data) ? "file" : "sample", true);
    for (int i = 0; i < p->column_count; i++) append_field(p, p->columns[i], i == 0 && !named);
    for (int i = 0; i < p->fields; i++) {
        char *name = name_field(of, i, turn);
        if (!name) return TUTTI_NO_MEMORY;
        append_field(p, name, false);
        free(name);
    }
    text_append(&p->text, "\n");
    return flush(p, BUFFERED);
}

/* ---------------------------------------------------------------------------------------------------- table ---- */

static void free_columns(char **columns, int count)
{
    for (int i = 0; columns && i < count; i++) free(columns[i]);
    free(columns);
}

/* Reads the names of the table's columns, or numbers them. */
static tutti_status read_columns(struct csv *csv, const char *path, bool names, char ***columns, int *count)
{
    struct csv_row row;
    struct csv *other = NULL;
    tutti_status status = names ? TUTTI_OK : csv_open(path, &other); /* its first row is data */
    if (status == TUTTI_OK) status = csv_next(names ? csv : other, &row);
    *columns = status == TUTTI_OK ? memory_new((size_t)row.count + 1, sizeof **columns) : NULL;
    *count = 0;
    if (status == TUTTI_OK && !*columns) status = TUTTI_NO_MEMORY;
    for (int i = 0; status == TUTTI_OK && i < row.count; i++) {
        (*columns)[i] = names ? memory_copy_text(row.fields[i]) : memory_format("%d", i + 1);
        if (!(*columns)[i]) status = TUTTI_NO_MEMORY;
        *count = i + 1;
    }
    csv_close(other);
    return status;
}

/* The position of the name's occurrence, the first one being 0; -1: there is none. */
static int find_name(char *const *names, int count, const char *name, int occurrence)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name) && occurrence-- == 0) return i;
    return -1;
}

/* How often a name stands before a position. */
static int occurrences(char *const *names, int position)
{
    int count = 0;
    for (int i = 0; i < position; i++) count += !strcmp(names[i], names[position]);
    return count;
}

/* Adds the columns that are not there yet, and takes their names. */
static tutti_status add_columns(struct predictions *p, char **columns, int count)
{
    const size_t all = (size_t)p->column_count + (size_t)count;
    char **joined = memory_new(all + 1, sizeof *joined);
    int *field_of = memory_new(all + 1, sizeof *field_of);
    free(p->field_of);
    p->field_of = field_of;
    if (!joined || !field_of) {
        free(joined);
        return TUTTI_NO_MEMORY;
    }
    for (int i = 0; i < p->column_count; i++) joined[i] = p->columns[i];
    free(p->columns);
    p->columns = joined;
    for (int i = 0; i < count; i++) {
        if (find_name(p->columns, p->column_count, columns[i], occurrences(columns, i)) >= 0) continue;
        if (!(p->columns[p->column_count] = memory_copy_text(columns[i]))) return TUTTI_NO_MEMORY;
        p->column_count++;
    }
    return TUTTI_OK;
}

tutti_status predictions_add_columns(struct predictions *p, const char *table, bool names)
{
    struct csv *csv = NULL;
    char **columns = NULL;
    int count = 0;
    if (!p->path) return TUTTI_OK;
    p->several = true;
    tutti_status status = csv_open(table, &csv);
    if (status == TUTTI_OK) status = read_columns(csv, table, names, &columns, &count);
    if (status == TUTTI_OK) status = add_columns(p, columns, count);
    free_columns(columns, count);
    csv_close(csv);
    return status;
}

/* Finds the table's columns by name, or compares them with those before. */
static bool take_columns(struct predictions *p, char *const *columns, int count)
{
    bool equal = p->field_of || count == p->column_count;
    for (int i = 0; i < p->column_count && p->field_of; i++)
        p->field_of[i] = find_name(columns, count, p->columns[i], occurrences(p->columns, i));
    for (int i = 0; i < count && equal && !p->field_of; i++) equal = !strcmp(columns[i], p->columns[i]);
    return equal;
}

static tutti_status open_table(struct predictions *p, const struct predicted *of)
{
    char **columns = NULL;
    int count = 0;
    tutti_status status = csv_open(of->table, &p->csv);
    if (status == TUTTI_OK) status = read_columns(p->csv, of->table, of->data->info.column_names, &columns, &count);
    p->table = of->table;
    p->whole = of->whole;
    p->row = 0;
    if (status == TUTTI_OK && !p->begun && !p->field_of) {
        p->columns = columns;
        p->column_count = count;
        return TUTTI_OK;
    }
    const bool equal = status == TUTTI_OK && take_columns(p, columns, count);
    free_columns(columns, count);
    if (equal) return TUTTI_OK;
    csv_close(p->csv);
    p->csv = NULL;
    if (status != TUTTI_OK) return status;
    return fail(TUTTI_MISMATCH,
        "%s: its columns are not those of the table before, so that --output cannot have both: "
        "predict it by itself",
        of->table);
}

/* Writes the fields of a row; one that is too short is filled up. */
static void append_row(struct predictions *p, const struct csv_row *row)
{
    if (p->several) append_field(p, p->table, true);
    for (int i = 0; i < p->column_count; i++) {
        const int field = p->field_of ? p->field_of[i] : i;
        append_field(p, field >= 0 && field < row->count ? row->fields[field] : "", i == 0 && !p->several);
    }
}

static tutti_status end_row(struct predictions *p, const struct predicted *of, const double *values)
{
    char digits[NUMBER];
    int64_t best = 0;
    for (int64_t i = 1; values && !of->numbers && i < of->count; i++)
        if (values[i] > values[best]) best = i;
    if (!of->numbers) append_field(p, values ? class_of(of, best, digits) : "", false);
    for (int64_t i = 0; i < p->fields - !of->numbers; i++) {
        if (values)
            number_print(
                digits, sizeof digits, "%.*g", of->numbers ? data_digits(of->data, i) : CLASS_DIGITS, values[i]);
        append_field(p, values ? digits : "", false);
    }
    text_append(&p->text, "\n");
    p->count += values != NULL;
    return flush(p, BUFFERED);
}

/* Writes the rows before this one that have no prediction, if they are wanted, and the beginning of this one. */
static tutti_status find_row(struct predictions *p, const struct predicted *of, int64_t wanted)
{
    struct csv_row row;
    while (p->row < wanted) {
        tutti_status status = csv_next(p->csv, &row);
        if (status != TUTTI_OK) return status;
        if (row.count == 0)
            return wanted == INT64_MAX ? TUTTI_OK : fail(TUTTI_FILE, "%s has changed while it was read", p->table);
        p->row++;
        if (p->row < wanted && !p->whole) continue;
        append_row(p, &row);
        if (p->row < wanted) status = end_row(p, of, NULL);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------ use ---- */

static tutti_status append_bad(struct predictions *p, const char *name)
{
    append_field(p, name, true);
    for (int i = 0; i < p->fields; i++) append_field(p, "", false);
    text_append(&p->text, "\n");
    return flush(p, BUFFERED);
}

tutti_status predictions_begin(struct predictions *p, const struct predicted *of)
{
    tutti_status status = TUTTI_OK;
    if (!p->path) return TUTTI_OK;
    p->fields = (int)of->count + !of->numbers;
    if (of->table) TRY(open_table(p, of));
    if (p->begun) return TUTTI_OK;
    TRY(atomic_file_open(&p->file, p->path));
    TRY(write_names(p, of));
    p->begun = true;
    for (size_t i = 0; i < p->waiting_count; i++) TRY(append_bad(p, p->waiting[i]));
done:
    return status;
}

tutti_status predictions_add(
    struct predictions *p, const struct predicted *of, int64_t row, const char *name, const double *values)
{
    tutti_status status = TUTTI_OK;
    if (!p->path) return TUTTI_OK;
    if (p->field_of && p->table != of->table) {
        status = predictions_end(p, of);
        if (status == TUTTI_OK) status = open_table(p, of);
    }
    if (status == TUTTI_OK && p->csv) status = find_row(p, of, row);
    if (status != TUTTI_OK) return status;
    if (!p->csv) {
        append_field(p, name, true);
    }
    return end_row(p, of, values);
}

tutti_status predictions_add_bad(struct predictions *p, const char *name)
{
    if (!p->path) return TUTTI_OK;
    if (p->begun) return append_bad(p, name);
    tutti_status status = memory_grow((void **)&p->waiting, &p->waiting_room, p->waiting_count + 1, sizeof *p->waiting);
    char *copy = status == TUTTI_OK ? memory_copy_text(name) : NULL;
    if (!copy) return TUTTI_NO_MEMORY;
    p->waiting[p->waiting_count++] = copy;
    return TUTTI_OK;
}

tutti_status predictions_end(struct predictions *p, const struct predicted *of)
{
    tutti_status status = TUTTI_OK;
    if (p->csv && p->whole) status = find_row(p, of, INT64_MAX);
    csv_close(p->csv);
    p->csv = NULL;
    return status;
}

tutti_status predictions_commit(struct predictions *p)
{
    if (!p->begun) return TUTTI_OK;
    tutti_status status = flush(p, 0);
    if (status != TUTTI_OK) return status;
    status = atomic_file_commit(p->file);
    p->file = NULL;
    return status;
}

void predictions_free(struct predictions *p)
{
    atomic_file_abandon(p->file);
    csv_close(p->csv);
    free_columns(p->columns, p->column_count);
    free(p->field_of);
    for (size_t i = 0; i < p->waiting_count; i++) free(p->waiting[i]);
    free(p->waiting);
    text_free(&p->text);
}
