#include "tools/inputs.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/conll.h"
#include "formats/csv.h"
#include "formats/image.h"
#include "formats/lines.h"
#include "formats/sound.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folders above the present one, so that links cannot lead in a circle. */
struct folder {
    const struct folder *above;
    dev_t device;
    ino_t number;
};

void inputs_leave_out(struct inputs *inputs)
{
    fprintf(stderr, "tutti %s: %s\n", inputs->command, status_message());
    inputs->bad++;
}

bool inputs_is_text_table(const char *name)
{
    return csv_has_name(name) || lines_has_json_name(name) || conll_has_name(name);
}

static bool is_text(const char *name)
{
    return text_has_extension(name, ".txt");
}

static tutti_status add(struct inputs *inputs, const char *path, bool sample)
{
    const tutti_status status =
        memory_grow((void **)&inputs->list, &inputs->room, inputs->count + 1, sizeof *inputs->list);
    char *copy = status == TUTTI_OK ? memory_copy_text(path) : NULL;
    if (!copy) return TUTTI_NO_MEMORY;
    inputs->list[inputs->count++] = (struct input) { .path = copy, .sample = sample };
    return TUTTI_OK;
}

/* Names a file that cannot be predicted, by the last message. A table has no rows then, and no place. */
static tutti_status add_bad(struct inputs *inputs, const char *path)
{
    inputs_leave_out(inputs);
    if (inputs->kind == INPUTS_TABLES) return TUTTI_OK;
    const tutti_status status = add(inputs, path, false);
    if (status == TUTTI_OK) inputs->list[inputs->count - 1].bad = true;
    return status;
}

/* Whether a file in a folder is of the network's kind. */
static bool is_wanted(const struct inputs *inputs, const char *name)
{
    switch (inputs->kind) {
    case INPUTS_PICTURES: return image_has_name(name);
    case INPUTS_RECORDINGS: return sound_has_name(name);
    case INPUTS_TABLES: return csv_has_name(name);
    case INPUTS_TEXTS: return is_text(name) || inputs_is_text_table(name);
    default: return image_has_name(name) || sound_has_name(name);
    }
}

static bool is_sample(const struct inputs *inputs, const char *name)
{
    if (inputs->kind == INPUTS_TABLES) return false;
    if (inputs->kind == INPUTS_TEXTS) return is_text(name);
    return sound_has_name(name) ? inputs->kind == INPUTS_RECORDINGS && !inputs->each : image_has_name(name);
}

/* Fails if a file that was named cannot be of the network's kind. */
static tutti_status check_kind(const struct inputs *inputs, const char *path)
{
    if (inputs->kind == INPUTS_TABLES && !csv_has_name(path))
        return fail(
            TUTTI_MISMATCH, "%s: this is not a table (.csv, .tsv, .csv.gz), but the network was trained on one", path);
    if (inputs->kind == INPUTS_TEXTS && !is_wanted(inputs, path))
        return fail(TUTTI_MISMATCH,
            "%s: this is not a text (.txt) or a table (.csv, .tsv, .jsonl, .conll), but the network was trained on "
            "texts",
            path);
    if (inputs->kind == INPUTS_RECORDINGS && image_has_name(path))
        return fail(TUTTI_MISMATCH, "%s: the network was trained on recordings, but these are images", path);
    if (inputs->kind == INPUTS_PICTURES && sound_has_name(path))
        return fail(TUTTI_MISMATCH, "%s: this is a recording, but the network was not trained on recordings", path);
    return TUTTI_OK;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static tutti_status add_folder(struct inputs *inputs, const char *path, const struct folder *above);

static tutti_status add_entry(struct inputs *inputs, const char *folder, const char *name, const struct folder *above)
{
    struct stat found;
    const size_t length = strlen(folder);
    char *path = memory_format("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    tutti_status status = TUTTI_OK;
    if (!path) return TUTTI_NO_MEMORY;
    if (stat(path, &found) != 0) {
        fail(TUTTI_FILE, "%s: this cannot be opened: %s", path, strerror(errno));
        status = add_bad(inputs, path);
    } else if (S_ISDIR(found.st_mode)) {
        status = add_folder(inputs, path, above);
    } else if (is_wanted(inputs, name)) {
        status = add(inputs, path, is_sample(inputs, name));
    } else {
        inputs->ignored++;
    }
    free(path);
    return status;
}

/* Adds what is wanted in a folder and below it, sorted by name; hidden files are left out. */
static tutti_status add_folder(struct inputs *inputs, const char *path, const struct folder *above)
{
    struct dirent **entries = NULL;
    struct stat found;
    tutti_status status = TUTTI_OK;
    if (stat(path, &found) != 0) return TUTTI_OK;
    const struct folder here = { above, found.st_dev, found.st_ino };
    for (const struct folder *at = above; at; at = at->above)
        if (at->device == here.device && at->number == here.number) return TUTTI_OK;
    const int count = scandir(path, &entries, is_visible, compare);
    if (count < 0) {
        fail(TUTTI_FILE, "%s: this folder cannot be read: %s", path, strerror(errno));
        inputs_leave_out(inputs);
    }
    for (int i = 0; i < count; i++) {
        if (status == TUTTI_OK) status = add_entry(inputs, path, entries[i]->d_name, &here);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static bool is_built_in(const char *name)
{
    return !strcmp(name, "digits") || !strcmp(name, "line") || !strncmp(name, "builtin:", strlen("builtin:"));
}

static tutti_status add_named(struct inputs *inputs, const char *path)
{
    struct stat found;
    const size_t before = inputs->count;
    const int64_t bad = inputs->bad;
    tutti_status status = TUTTI_OK;
    if (is_built_in(path)) return add(inputs, path, false);
    if (stat(path, &found) != 0)
        status = fail(TUTTI_FILE, "%s: this cannot be opened: %s", path, strerror(errno));
    else if (!S_ISDIR(found.st_mode))
        status = check_kind(inputs, path);
    if (status != TUTTI_OK) return add_bad(inputs, path);
    if (!S_ISDIR(found.st_mode)) return add(inputs, path, is_sample(inputs, path));
    inputs->ignored = 0;
    status = add_folder(inputs, path, NULL);
    if (inputs->count > before && inputs->ignored > 0)
        fprintf(stderr, "%s: %lld file%s left out, of other kinds than the network's\n", path,
            (long long)inputs->ignored, inputs->ignored == 1 ? " is" : "s are");
    if (status != TUTTI_OK || inputs->count > before || inputs->bad > bad) return status;
    if (inputs->kind != INPUTS_TABLES) return add(inputs, path, false); /* perhaps a data set */
    fail(TUTTI_FILE, "%s: there is no table in this folder (.csv, .tsv, .csv.gz)", path);
    inputs_leave_out(inputs);
    return TUTTI_OK;
}

static tutti_status add_list(struct inputs *inputs)
{
    char *line = NULL;
    size_t room = 0;
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK && getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line) status = add_named(inputs, line);
    }
    if (status == TUTTI_OK && ferror(stdin))
        status = fail(TUTTI_FILE, "the list of files on standard input cannot be read: %s", strerror(errno));
    free(line);
    return status;
}

tutti_status inputs_add(struct inputs *inputs, const char *argument)
{
    return strcmp(argument, "-") ? add_named(inputs, argument) : add_list(inputs);
}

void inputs_free(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) free(inputs->list[i].path);
    free(inputs->list);
    *inputs = (struct inputs) { 0 };
}
