/* WebDataset's tar files: key.jpg (or another image) next to key.cls, key.cls.txt or key.json, which has the class. One
 * pass over the headers finds where each image is; it is read from there when it is needed. */
#include "formats/tar.h"
#include "data/ignored.h"
#include "data/listing.h"
#include "data/pictures.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LABEL_MAX_BYTES = 1 << 16, CLASS_MAX = 1 << 20 };

/* One pass over the archives. */
struct walk {
    struct pictures *pictures;
    struct names labels; /* texts of the classes, one for each picture */
    size_t *label_of;    /* [pictures]: where its text begins */
    size_t label_room;
    const char *path; /* of this archive */
    size_t shard;     /* its name in pictures->names */
    int file, part;
    char key[TAR_NAME_BYTES]; /* of the sample that is being collected */
    struct picture picture;
    char label[300];
    int64_t incomplete;
    struct names alone; /* texts of classes without an image next to them */
    char *empty;        /* the first archive without a sample */
    struct ignored ignored;
};

/* Where a name's extension begins: after the first dot of its last part. */
static size_t key_length(const char *name)
{
    const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name, *dot = strchr(file, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static tutti_status read_content(const struct walk *walk, const struct tar_file *file, char *text)
{
    if (file->bytes > LABEL_MAX_BYTES)
        return fail(TUTTI_FORMAT, "%s: %s has %lld bytes: too many for a class", walk->path, file->name,
            (long long)file->bytes);
    const ssize_t got = pread(walk->file, text, (size_t)file->bytes, (off_t)file->offset);
    if (got != (ssize_t)file->bytes) return fail(TUTTI_FILE, "%s: %s cannot be read", walk->path, file->name);
    text[got] = '\0';
    return TUTTI_OK;
}

static void take_text(struct walk *walk, const char *text)
{
    const size_t space = strspn(text, " \t\r\n");
    size_t length = strlen(text + space);
    while (length > 0 && strchr(" \t\r\n", text[space + length - 1])) length--;
    snprintf(walk->label, sizeof(walk->label), "%.*s", (int)(length > 299 ? 299 : length), text + space);
}

static void take_json(struct walk *walk, const char *text)
{
    static const char *const keys[] = { "class", "cls", "label" };
    char number[32];
    json_t *object = json_loads(text, 0, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !walk->label[0]; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        if (json_is_string(value)) take_text(walk, json_string_value(value));
        if (!json_is_integer(value)) continue;
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        take_text(walk, number);
    }
    json_decref(object);
}

static tutti_status read_label(struct walk *walk, const struct tar_file *file, bool json)
{
    char *text = memory_new(LABEL_MAX_BYTES + 1, 1);
    if (!text) return TUTTI_NO_MEMORY;
    const tutti_status status = read_content(walk, file, text);
    if (status == TUTTI_OK && json) take_json(walk, text);
    if (status == TUTTI_OK && !json) take_text(walk, text);
    free(text);
    return status;
}

/* Ends the sample that was collected: adds it if it has both image and label. */
static tutti_status finish_sample(struct walk *walk)
{
    tutti_status status = TUTTI_OK;
    size_t at;
    const size_t count = (size_t)walk->pictures->collection.samples;
    const bool has_image = walk->picture.bytes > 0, has_label = walk->label[0] != '\0';
    if (has_image && has_label) {
        TRY(memory_grow((void **)&walk->label_of, &walk->label_room, count + 1, sizeof(*walk->label_of)));
        TRY(names_add(&walk->labels, walk->label, NULL, &walk->label_of[count]));
        TRY(pictures_add(walk->pictures, &walk->picture, walk->part, 0));
    } else if (has_image) {
        walk->incomplete++;
    } else if (has_label) {
        TRY(names_add(&walk->alone, walk->label, NULL, &at));
    }
    walk->picture = (struct picture) { .bytes = 0 };
    walk->label[0] = '\0';
done:
    return status;
}

static tutti_status visit(void *user, const struct tar_file *file)
{
    tutti_status status = TUTTI_OK;
    struct walk *walk = user;
    const size_t length = key_length(file->name);
    const char *end = file->name + length;
    if (strlen(walk->key) != length || strncmp(walk->key, file->name, length)) {
        TRY(finish_sample(walk));
        memcpy(walk->key, file->name, length);
        walk->key[length] = '\0';
    }
    if (image_has_name(file->name) && file->bytes > 0 && walk->picture.bytes == 0) {
        walk->picture = (struct picture) { .shard = walk->shard, .offset = file->offset, .bytes = file->bytes };
        TRY(names_add(&walk->pictures->names, file->name, NULL, &walk->picture.name));
    } else if (!strcmp(end, ".cls") || !strcmp(end, ".cls.txt")) {
        TRY(read_label(walk, file, false));
    } else if (!strcmp(end, ".json")) {
        if (!walk->label[0]) TRY(read_label(walk, file, true));
    } else {
        ignored_add(&walk->ignored, NULL, file->name, false);
    }
done:
    return status;
}

static tutti_status walk_archive(struct walk *walk, const char *path, int part)
{
    tutti_status status;
    const int64_t before = walk->pictures->collection.samples;
    walk->path = path;
    walk->part = part;
    walk->key[0] = '\0';
    walk->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (walk->file < 0) return fail(TUTTI_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    TRY(names_add(&walk->pictures->names, path, NULL, &walk->shard));
    TRY(tar_visit(path, visit, walk));
    TRY(finish_sample(walk));
    if (walk->empty || walk->pictures->collection.samples > before) goto done;
    walk->empty = memory_copy_text(path);
    if (!walk->empty) status = TUTTI_NO_MEMORY;
done:
    close(walk->file);
    return status;
}

static bool is_tar(const char *name)
{
    const size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".tar");
}

static tutti_status walk_folder(struct walk *walk, const char *path, int part)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, path);
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !is_tar(name)) continue;
        char *archive = memory_format("%s/%s", path, name);
        status = archive ? walk_archive(walk, archive, part) : TUTTI_NO_MEMORY;
        free(archive);
    }
    listing_free(&listing);
    return status;
}

/* A tar file, a folder of them, or train/, val/ and test/ with them. */
static tutti_status walk_path(struct walk *walk, const char *path)
{
    struct stat found;
    struct listing listing;
    struct part_folder parts[5];
    if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode))
        return is_tar(path) ? walk_archive(walk, path, PART_OPEN) : TUTTI_OK;
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    const int count = listing_parts(&listing, parts);
    if (count == 0) status = walk_folder(walk, path, PART_OPEN);
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        char *folder = memory_format("%s/%s", path, parts[i].name);
        status = folder ? walk_folder(walk, folder, parts[i].part) : TUTTI_NO_MEMORY;
        free(folder);
    }
    listing_free(&listing);
    return status;
}

/* -------------------------------------------------------------------------------------------------- classes ---- */

/* Returns the class number in a text, or -1 if the text is not one. */
static int64_t number_in(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9') return -1;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return *end || errno || value >= CLASS_MAX ? -1 : value;
}

/* Makes classes of the numbers 0 to the largest. */
static tutti_status number_by_numbers(struct walk *walk, int64_t largest)
{
    struct pictures *pictures = walk->pictures;
    for (int64_t i = 0; i <= largest; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%lld", (long long)i);
        const tutti_status status = pictures_append_class(pictures, name);
        if (status != TUTTI_OK) return status;
    }
    for (int64_t i = 0; i < pictures->collection.samples; i++)
        pictures->collection.labels[i] = (int32_t)number_in(names_at(&walk->labels, walk->label_of[i]));
    return TUTTI_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts of all samples' classes; NULL: no memory. */
static const char **sort_labels(const struct walk *walk)
{
    const size_t count = (size_t)walk->pictures->collection.samples;
    const char **sorted = memory_new(count, sizeof(*sorted));
    if (!sorted) return NULL;
    for (size_t i = 0; i < count; i++) sorted[i] = names_at(&walk->labels, walk->label_of[i]);
    qsort(sorted, count, sizeof(*sorted), compare_texts);
    return sorted;
}

/* A class whose images all cannot be read would be missing in silence. */
static tutti_status check_alone(const struct walk *walk, const char *path)
{
    const char **sorted = walk->alone.used ? sort_labels(walk) : NULL, *missing = NULL;
    if (!walk->alone.used) return TUTTI_OK;
    if (!sorted) return TUTTI_NO_MEMORY;
    for (size_t at = 0; at < walk->alone.used && !missing; at += strlen(walk->alone.text + at) + 1) {
        const char *label = names_at(&walk->alone, at);
        if (!bsearch(&label, sorted, (size_t)walk->pictures->collection.samples, sizeof(*sorted), compare_texts))
            missing = label;
    }
    free(sorted);
    if (!missing) return TUTTI_OK;
    const struct ignored_text list = ignored_list(&walk->ignored);
    return fail(TUTTI_FORMAT, "%s: class '%s' has no " IGNORED_PICTURES "%s%s", path, text_printable(missing).text,
        list.text[0] ? "; what cannot be read: " : "", list.text);
}

static tutti_status number_by_names(struct walk *walk)
{
    struct pictures *pictures = walk->pictures;
    const size_t count = (size_t)pictures->collection.samples;
    tutti_status status = TUTTI_OK;
    const char **sorted = sort_labels(walk);
    if (!sorted) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1])) status = pictures_append_class(pictures, sorted[i]);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        pictures->collection.labels[i] = pictures_class(pictures, names_at(&walk->labels, walk->label_of[i]));
    free(sorted);
    return status;
}

static tutti_status number_classes(struct walk *walk)
{
    int64_t largest = -1;
    for (int64_t i = 0; i < walk->pictures->collection.samples; i++) {
        const int64_t number = number_in(names_at(&walk->labels, walk->label_of[i]));
        if (number < 0) return number_by_names(walk);
        if (number > largest) largest = number;
    }
    return number_by_numbers(walk, largest);
}

static void report(const struct walk *walk, const tutti_data_options *options)
{
    if (walk->incomplete > 0)
        data_note(options, "images without a class next to them, which are ignored: %lld", (long long)walk->incomplete);
    ignored_note(&walk->ignored, options, &walk->pictures->collection.ignored);
}

tutti_status tar_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct walk *walk = memory_new(1, sizeof(*walk));
    if (!walk) return status;
    TRY(pictures_new(options, &walk->pictures));
    TRY(walk_path(walk, path));
    if (walk->pictures->collection.samples == 0) {
        if (walk->incomplete > 0)
            FAIL(TUTTI_FORMAT, "%s: its %lld images have no class next to them, such as KEY.cls", path,
                (long long)walk->incomplete);
        goto done;
    }
    if (walk->empty)
        FAIL(TUTTI_FORMAT, "%s: no " IGNORED_PICTURES " in this shard has a class next to it: fill or remove it",
            walk->empty);
    TRY(check_alone(walk, path));
    TRY(number_classes(walk));
    report(walk, options);
    TRY(pictures_finish(walk->pictures, options, "images"));
    *made = &walk->pictures->collection;
    walk->pictures = NULL;
done:
    pictures_free(walk->pictures);
    names_free(&walk->labels);
    names_free(&walk->alone);
    free(walk->empty);
    free(walk->label_of);
    free(walk);
    return status;
}
