#include "tools/report/run_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28, MOST_EPOCHS = 1 << 20, MOST_FIELDS = 64 };

static const char *const column_names[RUN_COLUMNS] = { "epoch", "loss", "accuracy", "test_loss", "test_accuracy",
    "learning_rate", "seconds", "samples_per_s", "f1", "r2", "mae" };

static tutti_status add_row(struct run *run, const double *row)
{
    if (run->count == MOST_EPOCHS) return fail(TUTTI_FORMAT, "%s has more than %d epochs", run->name, MOST_EPOCHS);
    for (int i = 0; i < RUN_COLUMNS; i++) {
        size_t room = run->room;
        void *values = run->values[i];
        const tutti_status status = memory_grow(&values, &room, run->count + 1, sizeof(double));
        run->values[i] = values;
        if (status != TUTTI_OK) return status;
        if (i == RUN_COLUMNS - 1) run->room = room;
        run->values[i][run->count] = row[i];
    }
    run->count++;
    return TUTTI_OK;
}

/* "a/b.html": "b" */
static char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = memory_copy_text(slash && slash[1] ? slash + 1 : path), *dot = name ? strrchr(name, '.') : NULL;
    if (dot && dot != name) *dot = 0;
    return name;
}

/* ---------------------------------------------------------------------------------------------------- page ---- */

tutti_status run_epochs(struct run *run, const json_t *epochs)
{
    for (size_t i = 0; i < json_array_size(epochs); i++) {
        double row[RUN_COLUMNS];
        for (int c = 0; c < RUN_COLUMNS; c++) {
            const json_t *value = json_object_get(json_array_get(epochs, i), column_names[c]);
            row[c] = json_is_number(value) ? json_number_value(value) : NAN;
        }
        const tutti_status status = isfinite(row[RUN_EPOCH]) ? add_row(run, row) : TUTTI_OK;
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

static tutti_status read_page(struct run *run, const char *path, const char *text)
{
    static const char opener[] = "<script type=\"application/json\" id=\"tutti\">";
    const char *begin = strstr(text, opener), *end = begin ? strstr(begin, "</script>") : NULL;
    if (!end) return fail(TUTTI_FORMAT, "%s is not a report of tutti train: it has no data in it", path);
    begin += sizeof(opener) - 1;
    json_error_t error;
    json_t *root = json_loadb(begin, (size_t)(end - begin), 0, &error);
    if (!root) return fail(TUTTI_FORMAT, "%s: its data are damaged: %s", path, text_printable(error.text).text);
    tutti_status status = TUTTI_OK;
    if (!json_is_array(json_object_get(root, "epochs")))
        status = fail(TUTTI_FORMAT, "%s: its data have no list of epochs", path);
    else
        status = run_epochs(run, json_object_get(root, "epochs"));
    const json_t *command = json_object_get(root, "command"), *parameters = json_object_get(root, "parameters");
    if (json_is_string(command)) run->command = memory_copy_text(json_string_value(command));
    if (json_is_number(parameters)) run->parameters = json_number_value(parameters);
    json_decref(root);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- CSV ---- */

static size_t field_length(const char *at)
{
    return strcspn(at, ",\r\n");
}

/* Finds which column each field of the first line is; -1: another. Returns the number of fields. */
static int read_header(const char *text, int *columns, int *kind)
{
    int count = 0;
    *kind = -1;
    for (const char *at = text;; at++) {
        const size_t length = field_length(at);
        if (count == MOST_FIELDS) return count;
        columns[count] = -1;
        for (int c = 0; c < RUN_COLUMNS; c++)
            if (strlen(column_names[c]) == length && !strncmp(at, column_names[c], length)) columns[count] = c;
        if (length == 4 && !strncmp(at, "kind", 4)) *kind = count;
        count++;
        at += length;
        if (*at != ',') return count;
    }
}

static tutti_status read_line(struct run *run, const char *at, const int *columns, int count, int kind)
{
    double row[RUN_COLUMNS];
    bool epoch = kind < 0;
    for (int c = 0; c < RUN_COLUMNS; c++) row[c] = NAN;
    for (int i = 0; i < count; i++, at++) {
        const size_t length = field_length(at);
        char *end;
        if (i == kind) epoch = length == 5 && !strncmp(at, "epoch", 5);
        if (columns[i] >= 0 && length > 0) {
            const double value = number_read(at, &end);
            if (end == at + length) row[columns[i]] = value;
        }
        at += length;
        if (*at != ',') break;
    }
    return epoch && isfinite(row[RUN_EPOCH]) ? add_row(run, row) : TUTTI_OK;
}

static tutti_status read_table(struct run *run, const char *path, const char *text)
{
    int columns[MOST_FIELDS], kind, known = 0;
    const int count = read_header(text, columns, &kind);
    for (int i = 0; i < count; i++) known += columns[i] == RUN_EPOCH;
    if (!known)
        return fail(
            TUTTI_FORMAT, "%s is neither a report nor a table of tutti train: it has no column \"epoch\"", path);
    for (const char *at = strchr(text, '\n'); at && at[1]; at = strchr(at + 1, '\n')) {
        const tutti_status status = read_line(run, at + 1, columns, count, kind);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

tutti_status run_read(struct run *run, const char *path)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    *run = (struct run) { .parameters = NAN, .name = short_name(path) };
    if (!run->name) return TUTTI_NO_MEMORY;
    tutti_status status = file_read(path, MOST_BYTES, &bytes, &size);
    if (status != TUTTI_OK) return status;
    char *text = memory_new(size + 1, 1);
    if (!text) {
        free(bytes);
        return TUTTI_NO_MEMORY;
    }
    memcpy(text, bytes, size);
    free(bytes);
    status = strstr(text, "<!DOCTYPE html>") == text ? read_page(run, path, text) : read_table(run, path, text);
    free(text);
    if (status == TUTTI_OK && run->count == 0) status = fail(TUTTI_FORMAT, "%s has no epoch in it yet", path);
    return status;
}

void run_free(struct run *run)
{
    free(run->name);
    free(run->command);
    for (int i = 0; i < RUN_COLUMNS; i++) free(run->values[i]);
    memset(run, 0, sizeof(*run));
}
