/* Transcripts in tables: LJSpeech's metadata.csv, Common Voice's train.tsv, tables with names of columns, and lines of
 * JSON. Fields between tabs or bars have no quotes, as in those two. */
#include "data/speech/speech.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/listing.h"
#include "formats/csv.h"
#include "formats/lines.h"
#include "formats/sound.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FIELDS = 256, PATH_BYTES = 4096 };

static const char *const ends[] = { "csv", "tsv", "jsonl", "ndjson", "csv.gz", "tsv.gz", "jsonl.gz", NULL };
static const char *const path_names[] = { "path", "file_name", "filename", "file", "audio", "audio_path",
    "audio_filepath", "wav", "wav_filename", "wav_path", "id", NULL };
static const char *const text_names[] = { "sentence", "transcript", "transcription", "text", "normalized_text",
    "normalised_text", NULL };
static const char *const folders[] = { "", "clips/", "wavs/", "wav/", "audio/" };
static const char *const sounds[] = { "", ".wav", ".flac", ".mp3", ".ogg", ".opus" };

/* A table while it is read. */
struct reading {
    struct speech *speech;
    const char *path;
    char *folder; /* of the table, with a slash at its end, or "" */
    int part, audio, text;
    size_t found_folder, found_sound; /* those of the recording before */
    int64_t row;                      /* from 1 on, without the names of columns */
    bool header, first, other;        /* other: the table has no transcripts */
};

static int find_name(const char *const *names, const char *field)
{
    for (int i = 0; names[i]; i++)
        if (!strcasecmp(names[i], field)) return i;
    return -1;
}

/* The field with the best of these names; -1: there is none. */
static int find_column(const char *const *names, char **fields, int count)
{
    int best = -1, rank = -1;
    for (int i = 0; i < count; i++) {
        const int found = find_name(names, fields[i]);
        if (found >= 0 && (rank < 0 || found < rank)) rank = found, best = i;
    }
    return best;
}

static int find_exact(const char *name, char **fields, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(name, fields[i])) return i;
    return -1;
}

/* Writes the path of a recording that a table names; false: there is no such file. */
static bool resolve(struct reading *r, const char *name, char path[PATH_BYTES])
{
    const size_t all_folders = sizeof folders / sizeof *folders, all_sounds = sizeof sounds / sizeof *sounds;
    for (size_t i = 0; i < all_folders * all_sounds; i++) { /* those of the recording before come first */
        const size_t f = (r->found_folder + i / all_sounds) % all_folders;
        const size_t s = (r->found_sound + i % all_sounds) % all_sounds;
        if (*name == '/' && *folders[f]) continue;
        const int size =
            snprintf(path, PATH_BYTES, "%s%s%s%s", *name == '/' ? "" : r->folder, folders[f], name, sounds[s]);
        if (size < 0 || size >= PATH_BYTES || !sound_has_name(path) || access(path, F_OK) != 0) continue;
        r->found_folder = f;
        r->found_sound = s;
        return true;
    }
    return false;
}

/* Finds the columns by the first row. */
static tutti_status set_columns(struct reading *r, char **fields, int count)
{
    const char *asked = r->speech->column;
    r->audio = find_column(path_names, fields, count);
    r->header = r->audio >= 0;
    r->text = !r->header ? count - 1
        : asked          ? find_exact(asked, fields, count)
                         : find_column(text_names, fields, count);
    if (!r->header) r->audio = 0;
    if (r->header && r->text < 0 && asked && find_column(text_names, fields, count) >= 0)
        return fail(TUTTI_INVALID, "%s: it has no column '%s' for --text", r->path, text_printable(asked).text);
    r->other = r->text < 0 || r->text == r->audio || (asked && !r->header);
    return TUTTI_OK;
}

static tutti_status use_row(struct reading *r, const char *name, const char *text)
{
    char path[PATH_BYTES];
    const bool found = *name && resolve(r, name, path), first = r->first;
    r->first = false;
    r->row++;
    if (found) return speech_add(r->speech, path, text, r->part, r->row);
    if (first && !r->speech->described) r->other = true;
    if (r->other) return TUTTI_OK;
    r->speech->counts.unreadable++;
    if (!r->speech->problem)
        r->speech->problem = memory_format("%s: row %lld names the recording '%s', which is not there", r->path,
            (long long)r->row, text_printable(name).text);
    return TUTTI_OK;
}

static tutti_status use_fields(struct reading *r, char **fields, int count, bool *named)
{
    if (!*named) {
        *named = true;
        const tutti_status status = set_columns(r, fields, count);
        if (status != TUTTI_OK || r->other || r->header) return status;
    }
    if (count > r->audio && count > r->text) return use_row(r, fields[r->audio], fields[r->text]);
    return use_row(r, count > r->audio ? fields[r->audio] : "", "");
}

/* Splits a line in place. A field in quotes, with others in it doubled, is what is in them. */
static int split(char *line, char separator, char **fields)
{
    int count = 0;
    for (char *at = line; at && count < MOST_FIELDS; count++) {
        char *end = strchr(at, separator);
        if (end) *end = '\0';
        const size_t size = strlen(at);
        if (size > 1 && at[0] == '"' && at[size - 1] == '"') {
            at[size - 1] = '\0';
            char *to = ++at;
            for (const char *from = at; *from; from += 1 + (from[0] == '"' && from[1] == '"')) *to++ = *from;
            *to = '\0';
        }
        fields[count] = at;
        at = end ? end + 1 : NULL;
    }
    return count;
}

static tutti_status read_plain(struct reading *r, char separator)
{
    struct lines *lines = NULL;
    const char *line;
    size_t bytes;
    bool named = false;
    char *fields[MOST_FIELDS];
    tutti_status status = lines_open(r->path, &lines);
    if (status != TUTTI_OK) return status;
    while (!r->other && (status = lines_next(lines, &line, &bytes)) == TUTTI_OK && line) {
        if (!named && bytes > 3 && !strncmp(line, "\xef\xbb\xbf", 3)) line += 3, bytes -= 3;
        if (strlen(line) != bytes) {
            if (r->first) r->other = true;
            if (!r->first) status = fail(TUTTI_FORMAT, "%s: a byte of row %lld is 0", r->path, (long long)r->row + 1);
            break;
        }
        char *copy = memory_copy_text(line);
        if (!copy) status = TUTTI_NO_MEMORY;
        if (copy) copy[strcspn(copy, "\r")] = '\0';
        if (copy && *copy) status = use_fields(r, fields, split(copy, separator, fields), &named);
        free(copy);
        if (status != TUTTI_OK) break;
    }
    lines_close(lines);
    return status;
}

static tutti_status read_csv(struct reading *r, struct csv *csv)
{
    struct csv_row row;
    bool named = false;
    tutti_status status = TUTTI_OK;
    while (!r->other && (status = csv_next(csv, &row)) == TUTTI_OK && row.count > 0)
        if ((status = use_fields(r, row.fields, row.count, &named)) != TUTTI_OK) break;
    if (status == TUTTI_FORMAT && r->first) r->other = true; /* it is of another kind */
    return r->other ? TUTTI_OK : status;
}

static const char *find_text(const json_t *object, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        const char *text = json_string_value(json_object_get(object, names[i]));
        if (text) return text;
    }
    return NULL;
}

static tutti_status read_json(struct reading *r)
{
    struct lines *lines = NULL;
    const char *line;
    size_t bytes;
    const char *const asked[] = { r->speech->column, NULL };
    tutti_status status = lines_open(r->path, &lines);
    if (status != TUTTI_OK) return status;
    while (!r->other && (status = lines_next(lines, &line, &bytes)) == TUTTI_OK && line) {
        json_t *object = json_loadb(line, bytes, 0, NULL);
        const char *name = find_text(object, path_names);
        const char *text = find_text(object, r->speech->column ? asked : text_names);
        if (r->first && (!name || !text))
            r->other = true;
        else if (bytes > 0)
            status = use_row(r, name ? name : "", text ? text : "");
        json_decref(object);
        if (status != TUTTI_OK) break;
    }
    lines_close(lines);
    return status;
}

/* A tab or a bar if the first line has one: a text may have more commas than that. 0: neither. */
static char find_separator(const char *path)
{
    struct lines *lines = NULL;
    const char *line = NULL;
    size_t bytes;
    char separator = 0;
    if (lines_open(path, &lines) != TUTTI_OK) return 0;
    if (lines_next(lines, &line, &bytes) == TUTTI_OK && line)
        separator = strchr(line, '\t') ? '\t' : strchr(line, '|') ? '|' : 0;
    lines_close(lines);
    return separator;
}

static tutti_status read_table(struct speech *speech, const char *path, int part)
{
    const char *slash = strrchr(path, '/');
    struct csv *csv = NULL;
    struct reading r = { .speech = speech, .path = path, .part = part, .first = true };
    r.folder = memory_format("%.*s", slash ? (int)(slash - path) + 1 : 0, path);
    if (!r.folder) return TUTTI_NO_MEMORY;
    tutti_status status = TUTTI_OK;
    if (lines_has_json_name(path)) {
        status = read_json(&r);
        goto done;
    }
    const char separator = find_separator(path);
    if (separator)
        status = read_plain(&r, separator);
    else if (csv_open(path, &csv) == TUTTI_OK) /* else it is refused by those that read tables */
        status = read_csv(&r, csv);
done:
    csv_close(csv);
    free(r.folder);
    return status;
}

static tutti_status read_metadata(struct speech *speech, const char *path)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; ends[i] && status == TUTTI_OK && speech->collection.samples == 0; i++) {
        char *table = memory_format("%s/metadata.%s", path, ends[i]);
        if (!table) return TUTTI_NO_MEMORY;
        if (access(table, R_OK) == 0) status = read_table(speech, table, PART_OPEN);
        free(table);
    }
    return status;
}

tutti_status speech_read_tables(struct speech *speech, const char *path, bool folder)
{
    struct part_files found = { .count = 0 };
    if (!folder)
        return lines_has_json_name(path) || csv_has_name(path) ? read_table(speech, path, PART_OPEN) : TUTTI_OK;
    tutti_status status = read_metadata(speech, path);
    if (status != TUTTI_OK || speech->collection.samples > 0) return status;
    if (part_files_find(path, ends, &found) == TUTTI_OK)
        for (int i = 0; i < found.count && status == TUTTI_OK; i++) {
            status = read_table(speech, found.files[i].path, found.files[i].part);
            if (speech->collection.samples == 0) break;
        }
    part_files_free(&found);
    return status;
}
