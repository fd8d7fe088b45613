/* A folder with a folder of images for each class, perhaps below train/, val/ and test/. */
#include "data/listing.h"
#include "data/pictures.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What was found and is not used. */
struct ignored {
    int64_t hidden, others;
    size_t example; /* among the names */
};

static void report_ignored(
    const struct pictures *pictures, const tutti_data_options *options, const struct ignored *ignored)
{
    if (ignored->hidden > 0)
        data_note(options, "hidden files and folders that are ignored: %lld", (long long)ignored->hidden);
    if (ignored->others > 0)
        data_note(options, "other files and folders that are ignored: %lld, such as %s", (long long)ignored->others,
            names_at(&pictures->names, ignored->example));
}

static tutti_status ignore(struct pictures *pictures, struct ignored *ignored, const char *folder, const char *name)
{
    if (ignored->others++ > 0) return TUTTI_OK;
    return names_add(&pictures->names, folder, name, &ignored->example);
}

/* The images of one folder, without those in folders below it. */
static tutti_status add_images(
    struct pictures *pictures, const char *path, int part, int32_t label, struct ignored *ignored)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    ignored->hidden += listing.hidden;
    for (size_t i = 0; i < listing.count; i++) {
        struct picture picture = { .bytes = 0 };
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !image_has_name(name)) {
            TRY(ignore(pictures, ignored, path, name));
            continue;
        }
        TRY(names_add(&pictures->names, path, name, &picture.name));
        TRY(pictures_add(pictures, &picture, part, label));
    }
done:
    listing_free(&listing);
    return status;
}

static tutti_status find_image(const char *path, bool *found)
{
    struct listing listing;
    const tutti_status status = listing_read(&listing, path);
    *found = false;
    for (size_t i = 0; i < listing.count && !*found; i++)
        *found = !listing.entries[i].folder && image_has_name(listing_name(&listing, i));
    listing_free(&listing);
    return status;
}

/* A folder with an image in it is a class. */
static tutti_status add_class(struct names *classes, const char *path, const char *name)
{
    bool found;
    size_t at;
    char *folder = memory_format("%s/%s", path, name);
    if (!folder) return TUTTI_NO_MEMORY;
    tutti_status status = find_image(folder, &found);
    free(folder);
    return status == TUTTI_OK && found ? names_add(classes, name, NULL, &at) : status;
}

/* Classes are numbered in the order of their names, whatever part has them: the first of two walks finds the classes,
 * the second one, with classes NULL, adds their images. */
static tutti_status walk_classes(
    struct pictures *pictures, const char *path, int part, struct names *classes, struct ignored *ignored)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    if (!classes) ignored->hidden += listing.hidden;
    for (size_t i = 0; i < listing.count; i++) {
        const char *name = listing_name(&listing, i);
        const bool is_class = !classes && listing.entries[i].folder && pictures_class(pictures, name) >= 0;
        if (classes) {
            if (listing.entries[i].folder) TRY(add_class(classes, path, name));
            continue;
        }
        if (!is_class) {
            TRY(ignore(pictures, ignored, path, name));
            continue;
        }
        char *folder = memory_format("%s/%s", path, name);
        status = folder ? add_images(pictures, folder, part, pictures_class(pictures, name), ignored) : TUTTI_NO_MEMORY;
        free(folder);
        TRY(status);
    }
done:
    listing_free(&listing);
    return status;
}

static tutti_status walk_parts(struct pictures *pictures, const char *path, const struct part_folder *parts, int count,
    struct names *classes, struct ignored *ignored)
{
    tutti_status status = TUTTI_OK;
    if (count == 0) return walk_classes(pictures, path, PART_OPEN, classes, ignored);
    for (int i = 0; i < count; i++) {
        char *folder = memory_format("%s/%s", path, parts[i].name);
        if (!folder) return TUTTI_NO_MEMORY;
        status = walk_classes(pictures, folder, parts[i].part, classes, ignored);
        free(folder);
        if (status != TUTTI_OK) break;
    }
    return status;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The classes of all parts, each once, sorted. */
static tutti_status number_classes(struct pictures *pictures, const struct names *names)
{
    tutti_status status = TUTTI_OK;
    size_t count = 0, used = 0;
    for (size_t at = 0; at < names->used; at += strlen(names->text + at) + 1) count++;
    const char **sorted = memory_new(count + 1, sizeof(*sorted));
    if (!sorted) return TUTTI_NO_MEMORY;
    for (size_t at = 0; at < names->used; at += strlen(names->text + at) + 1) sorted[used++] = names->text + at;
    qsort(sorted, used, sizeof(*sorted), compare_texts);
    for (size_t i = 0; i < used && status == TUTTI_OK; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1])) status = pictures_append_class(pictures, sorted[i]);
    free(sorted);
    return status;
}

static tutti_status read_folder(
    struct pictures *pictures, const char *path, const tutti_data_options *options, bool *found)
{
    struct listing listing;
    struct part_folder parts[5];
    struct names classes = { 0 };
    struct ignored ignored = { 0 };
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    const int count = listing_parts(&listing, parts);
    TRY(walk_parts(pictures, path, parts, count, &classes, &ignored));
    TRY(number_classes(pictures, &classes));
    TRY(walk_parts(pictures, path, parts, count, NULL, &ignored));
    *found = pictures->collection.samples > 0;
    if (*found) report_ignored(pictures, options, &ignored);
done:
    names_free(&classes);
    listing_free(&listing);
    return status;
}

static tutti_status open_with(const char *path, const tutti_data_options *options, struct collection **made,
    tutti_status (*read)(struct pictures *, const char *, const tutti_data_options *, bool *))
{
    tutti_status status;
    bool found = false;
    struct pictures *pictures = NULL;
    TRY(pictures_new(options, &pictures));
    TRY(read(pictures, path, options, &found));
    if (!found) goto done;
    TRY(pictures_finish(pictures, options, "images"));
    *made = &pictures->collection;
    pictures = NULL;
done:
    pictures_free(pictures);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

tutti_status folder_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    return is_folder(path) ? open_with(path, options, made, read_folder) : TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- photos ---- */

static tutti_status read_photos(
    struct pictures *pictures, const char *path, const tutti_data_options *options, bool *found)
{
    tutti_status status;
    struct ignored ignored = { 0 };
    if (is_folder(path)) {
        TRY(add_images(pictures, path, TUTTI_DATA_TEST, -1, &ignored));
        *found = pictures->collection.samples > 0;
        if (*found) report_ignored(pictures, options, &ignored);
        return TUTTI_OK;
    }
    if (!image_has_name(path)) return TUTTI_OK;
    struct picture picture = { .bytes = 0 };
    TRY(names_add(&pictures->names, path, NULL, &picture.name));
    TRY(pictures_add(pictures, &picture, TUTTI_DATA_TEST, -1));
    *found = true;
done:
    return status;
}

tutti_status photos_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    return open_with(path, options, made, read_photos);
}
