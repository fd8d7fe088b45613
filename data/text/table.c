/* Texts in tables: rows of CSV and TSV, and lines of JSON objects. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/listing.h"
#include "formats/conll.h"
#include "formats/csv.h"
#include "formats/lines.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST, SECOND, TARGET, FIELDS, MOST_TOLD = 3 };

/* A row: what is in the columns that are asked for; NULL: there is no such column, or in JSON nothing in it; an empty
 * field of CSV is "". */
struct row {
    const char *fields[FIELDS];
    int64_t number, line;
    bool damaged; /* the message says why */
};

struct reading {
    struct texts *texts;
    int file;
    tutti_status (*use)(struct reading *reading, const struct row *row);
    bool enough, no_targets; /* no more rows are wanted; the target's column is not read */
    int64_t damaged;
    struct text left_out;
};

bool text_table_has_name(const char *path)
{
    return lines_has_json_name(path) || csv_has_name(path);
}

bool text_table_has_rows(const struct texts *texts)
{
    for (int i = 0; i < texts->file_count; i++)
        if (lines_has_json_name(texts->files[i].path) || conll_has_name(texts->files[i].path)) return false;
    return texts->file_count > 0;
}

/* ---------------------------------------------------------------------------------------------------- files ---- */

static tutti_status add_file(struct texts *texts, const char *path, int part)
{
    char *copy = memory_copy_text(path);
    if (!copy) return TUTTI_NO_MEMORY;
    texts->files[texts->file_count++] = (struct text_file) { .path = copy, .part = part };
    return TUTTI_OK;
}

/* Finds train.tsv, say, with val.tsv and test.tsv next to it. */
static tutti_status find_parts(struct texts *texts, const char *folder)
{
    static const char *const ends[] = { "csv", "tsv", "jsonl", "ndjson", "csv.gz", "tsv.gz", "jsonl.gz", "ndjson.gz",
        NULL };
    struct part_files found;
    tutti_status status = part_files_find(folder, ends, &found);
    for (int i = 0; i < found.count && status == TUTTI_OK; i++)
        status = add_file(texts, found.files[i].path, found.files[i].part);
    part_files_free(&found);
    return status;
}

tutti_status text_table_find(struct texts *texts, const char *path)
{
    struct stat found;
    if (!strcmp(path, "-")) return add_file(texts, CSV_STANDARD_INPUT, PART_OPEN);
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) return find_parts(texts, path);
    return text_table_has_name(path) ? add_file(texts, path, PART_OPEN) : TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- columns ---- */

/* The number of a column that is named by it, from 1 on; 0: it is a name. */
static int number_of(const char *name)
{
    char *end = NULL;
    const long number = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;
    return end && !*end && number <= CSV_MAX_COLUMNS ? (int)number : 0;
}

static int find_name(const struct csv_row *row, const char *name)
{
    for (int i = 0; i < row->count; i++)
        if (!strcmp(row->fields[i], name)) return i;
    return -1;
}

static tutti_status refuse_column(const char *path, const struct csv_row *row, const char *name)
{
    struct text list = { 0 };
    for (int i = 0; i < row->count && i < 10; i++)
        text_append(&list, "%s'%s'", i ? ", " : "", text_printable(row->fields[i]).text);
    const tutti_status status = fail(TUTTI_INVALID, "%s: there is no column '%s': its first row has %s%s", path,
        text_printable(name).text, list.data ? list.data : "nothing", row->count > 10 ? ", ..." : "");
    text_free(&list);
    return status;
}

/* Says which columns of a training's table are neither texts nor targets. */
static void note_unused(const struct texts *texts, const struct csv_row *row, const int at[FIELDS], bool header)
{
    enum { MOST_NAMED = 5 };
    struct text list = { 0 };
    int unused = 0;
    for (int i = 0; i < row->count; i++) {
        if (i == at[FIRST] || i == at[SECOND] || i == at[TARGET] || ++unused > MOST_NAMED) continue;
        text_append(&list, "%s", unused > 1 ? ", " : "");
        if (header)
            text_append(&list, "'%s'", text_printable(row->fields[i]).text);
        else
            text_append(&list, "%d", i + 1);
    }
    if (list.data)
        texts_note(texts,
            memory_format("left out: column%s %s%s: only texts and the target are read", unused == 1 ? "" : "s",
                list.data, unused > MOST_NAMED ? ", ..." : ""));
    text_free(&list);
}

/* Refuses a column that is meant twice, and a name that two columns have. */
static tutti_status check_columns(const char *path, const struct csv_row *row, const int at[FIELDS], bool header)
{
    for (int i = 0; i < FIELDS; i++) {
        if (at[i] < 0) continue;
        const char *name = row->fields[at[i]];
        for (int k = 0; k < i; k++)
            if (at[k] == at[i])
                return fail(TUTTI_INVALID, "%s: column %d is named twice by --text and --target", path, at[i] + 1);
        for (int k = at[i] + 1; header && k < row->count; k++)
            if (!strcmp(name, row->fields[k]))
                return fail(TUTTI_FORMAT, "%s: columns %d and %d are both called '%s': give them names of their own",
                    path, at[i] + 1, k + 1, text_printable(name).text);
    }
    return TUTTI_OK;
}

/* Sets where the columns are in a row. The first row has names, unless those of texts are numbers: then columns are
 * meant by their positions, and all rows are samples. */
static tutti_status find_columns(
    struct reading *reading, const char *path, const struct csv_row *row, int at[FIELDS], bool *header)
{
    struct texts *texts = reading->texts;
    const char *names[FIELDS] = { texts->columns[0], texts->columns[1], reading->no_targets ? NULL : texts->target };
    const bool may_miss = texts->described && texts->options->without_targets;
    *header = number_of(names[FIRST]) == 0 || (names[SECOND] && number_of(names[SECOND]) == 0);
    for (int i = 0; i < FIELDS; i++) {
        at[i] = -1;
        if (!names[i]) continue;
        const int number = number_of(names[i]);
        at[i] = *header ? find_name(row, names[i]) : -1;
        if (at[i] < 0 && number > 0 && number <= row->count) at[i] = number - 1;
        if (at[i] < 0 && !(i == TARGET && may_miss)) return refuse_column(path, row, names[i]);
    }
    if (texts->target || texts->described) return TUTTI_OK;
    for (at[TARGET] = row->count - 1; at[TARGET] == at[FIRST] || at[TARGET] == at[SECOND]; at[TARGET]--) continue;
    if (at[TARGET] < 0) return fail(TUTTI_INVALID, "%s: all columns are texts: there is no target to predict", path);
    texts->target = *header ? memory_copy_text(row->fields[at[TARGET]]) : memory_format("%d", at[TARGET] + 1);
    return texts->target ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* ----------------------------------------------------------------------------------------------------- rows ---- */

static tutti_status use_csv_row(
    struct reading *reading, const struct csv_row *fields, int columns, int64_t number, const int at[FIELDS])
{
    struct row row = { .number = number, .line = fields->line, .damaged = fields->count != columns };
    if (row.damaged)
        (void)fail(TUTTI_FORMAT,
            "%d field%s, but there are %d columns: correct the row, or leave such rows out by "
            "--skip-damaged",
            fields->count, fields->count == 1 ? "" : "s", columns);
    for (int i = 0; i < FIELDS && !row.damaged; i++) row.fields[i] = at[i] >= 0 ? fields->fields[at[i]] : NULL;
    return reading->use(reading, &row);
}

static tutti_status walk_csv(struct reading *reading, const char *path)
{
    struct csv *csv = NULL;
    struct csv_row row;
    int at[FIELDS];
    bool header = false;
    tutti_status status = csv_open(path, &csv);
    if (status != TUTTI_OK) return status;
    TRY(csv_next(csv, &row));
    if (row.count == 0) FAIL(TUTTI_FORMAT, "%s: the file is empty: name one that has rows", path);
    const int columns = row.count;
    TRY(find_columns(reading, path, &row, at, &header));
    TRY(check_columns(path, &row, at, header));
    reading->texts->collection.info.column_names = header;
    if (!reading->texts->described && reading->file == 0) note_unused(reading->texts, &row, at, header);
    if (header) TRY(csv_next(csv, &row));
    for (int64_t number = 1; row.count > 0 && !reading->enough; number++) {
        TRY(use_csv_row(reading, &row, columns, number, at));
        TRY(csv_next(csv, &row));
    }
done:
    csv_close(csv);
    return status;
}

static tutti_status leave_out(struct reading *reading, const struct row *row, bool allowed)
{
    const char *path = reading->texts->files[reading->file].path;
    (void)status_context(TUTTI_FORMAT, "%s: row %" PRId64 " (line %" PRId64 ")", path, row->number, row->line);
    if (!allowed) return TUTTI_FORMAT;
    if (reading->damaged++ < MOST_TOLD)
        text_append(&reading->left_out, "%s%s", reading->damaged > 1 ? "; " : "", status_message());
    return TUTTI_OK;
}

/* Texts of a JSON object: strings, and numbers and truth values as they are written. The caller frees the copies. */
static bool read_json(
    const struct texts *texts, bool no_targets, const json_t *object, char *copies[FIELDS], struct row *row)
{
    const char *names[FIELDS] = { texts->columns[0], texts->columns[1], no_targets ? NULL : texts->target };
    for (int i = 0; i < FIELDS; i++) {
        const json_t *value = names[i] ? json_object_get(object, names[i]) : NULL;
        if (!value || json_is_null(value)) continue;
        if (json_is_object(value) || json_is_array(value) || (i != TARGET && !json_is_string(value))) {
            (void)fail(
                TUTTI_FORMAT, "the value of '%s' is not %s", names[i], i == TARGET ? "a class or number" : "a text");
            return false;
        }
        if (!json_is_string(value)) copies[i] = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        row->fields[i] = json_is_string(value) ? json_string_value(value) : copies[i];
    }
    return true;
}

/* Fails where a sentence is not a list of words with as many tags; `wanted`: there must be tags. */
static bool are_words(const struct texts *texts, const json_t *words, const json_t *tags, bool wanted)
{
    size_t i;
    const json_t *value;
    if (wanted && json_array_size(tags) != json_array_size(words)) {
        (void)fail(TUTTI_FORMAT, "'%s' has %zu words, but '%s' has %zu tags", texts->columns[0], json_array_size(words),
            texts->target, json_array_size(tags));
        return false;
    }
    if (!json_is_array(words)) (void)fail(TUTTI_FORMAT, "the value of '%s' is not a list of words", texts->columns[0]);
    json_array_foreach(words, i, value)
    {
        if (json_is_string(value) && *json_string_value(value)) continue;
        (void)fail(TUTTI_FORMAT, "word %zu of '%s' is not a text, or empty", i + 1, texts->columns[0]);
        return false;
    }
    json_array_foreach(wanted ? tags : NULL, i, value)
    {
        if (json_is_string(value) || json_is_integer(value) || json_is_null(value)) continue;
        (void)fail(TUTTI_FORMAT, "tag %zu of '%s' is not a text or a whole number", i + 1, texts->target);
        return false;
    }
    return json_is_array(words);
}

/* A tag as a text; NULL: there is none. Numbers below 0 are none, as in datasets for transformers. */
static const char *tag_of(const json_t *value, char number[24])
{
    if (!json_is_integer(value)) return json_string_value(value);
    snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return json_integer_value(value) >= 0 ? number : NULL;
}

static tutti_status use_words(struct reading *reading, const json_t *object, int64_t line)
{
    struct texts *texts = reading->texts;
    const bool wanted = texts->target && !reading->no_targets;
    const json_t *words = json_object_get(object, texts->columns[0]);
    const json_t *tags = wanted ? json_object_get(object, texts->target) : NULL;
    tutti_status status = TUTTI_OK;
    char number[24];
    const struct row row = { .number = line, .line = line };
    if (texts->pairs) return fail(TUTTI_INVALID, "--text names two columns, but words with tags are in one");
    if (!json_is_object(object) || !are_words(texts, words, tags, wanted))
        return leave_out(reading, &row, texts->options->skip_damaged);
    for (size_t i = 0; i < json_array_size(words) && status == TUTTI_OK; i++) {
        const char *tag = wanted ? tag_of(json_array_get(tags, i), number) : NULL;
        texts->counts.no_target += wanted && !tag;
        status = tags_add_word(texts, json_string_value(json_array_get(words, i)), tag);
    }
    if (status != TUTTI_OK) return status;
    return tags_end_sentence(texts, wanted ? texts->files[reading->file].part : TUTTI_DATA_TEST, line, NULL);
}

static tutti_status use_json_line(struct reading *reading, const char *line, size_t bytes, int64_t number)
{
    char *copies[FIELDS] = { NULL };
    json_error_t error;
    struct row row = { .number = number, .line = number };
    json_t *object = json_loadb(line, bytes, 0, &error);
    if (!json_is_object(object))
        (void)fail(TUTTI_FORMAT, "this is not a JSON object%s%s", object ? "" : ": ", object ? "" : error.text);
    struct text_tags *tags = &reading->texts->targets.tags;
    if (!reading->texts->described && reading->texts->collection.samples == 0)
        tags->on |= json_is_array(json_object_get(object, reading->texts->columns[0]));
    if (tags->on) {
        const tutti_status used = use_words(reading, object, number);
        json_decref(object);
        return used;
    }
    row.damaged = !json_is_object(object) || !read_json(reading->texts, reading->no_targets, object, copies, &row);
    const tutti_status status = reading->use(reading, &row);
    for (int i = 0; i < FIELDS; i++) free(copies[i]);
    json_decref(object);
    return status;
}

static tutti_status walk_json(struct reading *reading, const char *path)
{
    struct lines *lines = NULL;
    const char *line;
    size_t bytes;
    if (!reading->texts->target && !reading->texts->described)
        return fail(TUTTI_INVALID, "%s: name the key of classes or numbers by --target", path);
    tutti_status status = lines_open(path, &lines);
    if (status != TUTTI_OK) return status;
    TRY(lines_next(lines, &line, &bytes));
    for (int64_t number = 1; line && !reading->enough; number++) {
        if (strspn(line, " \t") < bytes) TRY(use_json_line(reading, line, bytes, number));
        TRY(lines_next(lines, &line, &bytes));
    }
done:
    lines_close(lines);
    return status;
}

static tutti_status walk(struct reading *reading)
{
    const char *path = reading->texts->files[reading->file].path;
    return lines_has_json_name(path) ? walk_json(reading, path) : walk_csv(reading, path);
}

/* --------------------------------------------------------------------------------------------------- samples ---- */

/* Checks what a row needs to be a sample; the message says what it lacks. *allowed: it may be left out. */
static bool is_usable(struct reading *reading, const struct row *row, bool wants_target, bool *allowed)
{
    struct texts *texts = reading->texts;
    const tutti_data_options *options = texts->options;
    *allowed = options->skip_damaged;
    if (row->damaged) return false;
    const char *first = row->fields[FIRST], *second = row->fields[SECOND];
    if (wants_target && (!row->fields[TARGET] || column_is_missing(row->fields[TARGET]))) {
        *allowed |= options->fill_missing;
        texts->counts.no_target++;
        (void)fail(TUTTI_FORMAT, "column '%s': the value is missing", texts->target);
        return false;
    }
    if ((first && *first) || (second && *second)) return true;
    *allowed = true;
    texts->counts.empty++;
    (void)fail(TUTTI_FORMAT, "column '%s': the text is empty", texts->columns[0]);
    return false;
}

static bool is_broken(const char *text)
{
    return text && !text_is_utf8(text);
}

static tutti_status use_row(struct reading *reading, const struct row *row)
{
    struct texts *texts = reading->texts;
    const bool wants_target = texts->target && !reading->no_targets;
    bool allowed;
    if (!is_usable(reading, row, wants_target, &allowed)) return leave_out(reading, row, allowed);
    const char *first = row->fields[FIRST] ? row->fields[FIRST] : "";
    const char *second = row->fields[SECOND] ? row->fields[SECOND] : "";
    const int part = wants_target ? texts->files[reading->file].part : TUTTI_DATA_TEST;
    texts->counts.broken += is_broken(first) || is_broken(second);
    tutti_status status = texts_add_sample(texts, part, row->number, NULL);
    if (status == TUTTI_OK && wants_target) status = texts_set_target(texts, row->fields[TARGET]);
    if (status != TUTTI_OK) return status;
    return texts_queue(texts, first, strlen(first), texts->pairs ? second : NULL, texts->pairs ? strlen(second) : 0);
}

static tutti_status look_at_target(struct reading *reading, const struct row *row)
{
    reading->enough |= !row->damaged && row->fields[TARGET] && !column_is_missing(row->fields[TARGET]);
    return TUTTI_OK;
}

/* Rows to predict may have nothing in the target's column. */
static tutti_status find_targets(struct reading *reading)
{
    const struct texts *texts = reading->texts;
    tutti_status status = TUTTI_OK;
    reading->no_targets = texts->described &&
        (texts->options->ignore_targets || (texts->targets.tags.on && texts->options->without_targets));
    if (reading->no_targets || !texts->described || !texts->options->without_targets) return TUTTI_OK;
    reading->use = look_at_target;
    for (reading->file = 0; reading->file < texts->file_count && status == TUTTI_OK; reading->file++)
        status = walk(reading);
    reading->no_targets = !reading->enough;
    reading->enough = false;
    return status;
}

tutti_status text_table_read(struct texts *texts)
{
    struct reading reading = { .texts = texts };
    tutti_status status = TUTTI_OK;
    if (texts->targets.tags.on && text_table_has_rows(texts))
        FAIL(TUTTI_MISMATCH,
            "%s: the network gives words tags: name a file of words (.conll, .conllu, .jsonl) or texts",
            texts->files[0].path);
    TRY(find_targets(&reading));
    reading.use = use_row;
    for (reading.file = 0; reading.file < texts->file_count; reading.file++) {
        const int64_t before = texts->files[reading.file].begins = texts->collection.samples;
        TRY(walk(&reading));
        if (texts->collection.samples == before)
            FAIL(TUTTI_FORMAT, "%s has no rows that can be used%s%s", texts->files[reading.file].path,
                reading.left_out.data ? ": " : "", reading.left_out.data ? reading.left_out.data : "");
    }
    texts->collection.info.damaged += reading.damaged;
    if (reading.damaged > 0)
        texts_note(texts,
            memory_format("left out %" PRId64 " row%s: %s%s", reading.damaged, reading.damaged == 1 ? "" : "s",
                reading.left_out.data ? reading.left_out.data : "", reading.damaged > MOST_TOLD ? "; ..." : ""));
done:
    text_free(&reading.left_out);
    return status;
}
