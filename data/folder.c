/* A folder with a folder of images for each class, perhaps below train/, val/ and test/. */
#include "data/ignored.h"
#include "data/listing.h"
#include "data/pictures.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Classes are numbered in the order of their names, whatever part has them: the first of two walks finds the classes,
 * the second one adds their images. */
struct walk {
    struct pictures *pictures;
    bool finds_classes;
    struct names classes;
    char *without;          /* the first folder without an image, which may be a class that cannot be read */
    struct ignored ignored; /* by the second walk */
};

/* Adds the images of one folder, without those in folders below it. */
static tutti_status add_images(struct walk *walk, const char *path, int part, int32_t label)
{
    struct listing listing;
    struct names *names = &walk->pictures->names;
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    walk->ignored.hidden += listing.hidden;
    for (size_t i = 0; i < listing.count; i++) {
        struct picture picture = { .bytes = 0 };
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !image_has_name(name)) {
            ignored_add(&walk->ignored, path, name, listing.entries[i].folder);
            continue;
        }
        TRY(names_add(names, path, name, &picture.name));
        TRY(pictures_add(walk->pictures, &picture, part, label));
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
static tutti_status find_class(struct walk *walk, const char *path, const char *name)
{
    bool found;
    size_t at;
    char *folder = memory_format("%s/%s", path, name);
    if (!folder) return TUTTI_NO_MEMORY;
    tutti_status status = find_image(folder, &found);
    if (status == TUTTI_OK && !found && !walk->without) {
        walk->without = folder;
        return status;
    }
    free(folder);
    return status == TUTTI_OK && found ? names_add(&walk->classes, name, NULL, &at) : status;
}

static tutti_status add_class(struct walk *walk, const char *path, const char *name, int part)
{
    char *folder = memory_format("%s/%s", path, name);
    if (!folder) return TUTTI_NO_MEMORY;
    const tutti_status status = add_images(walk, folder, part, pictures_class(walk->pictures, name));
    free(folder);
    return status;
}

static tutti_status walk_classes(struct walk *walk, const char *path, int part)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    if (!walk->finds_classes) walk->ignored.hidden += listing.hidden;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        const bool is_folder = listing.entries[i].folder;
        if (walk->finds_classes)
            status = is_folder ? find_class(walk, path, name) : TUTTI_OK;
        else if (is_folder && pictures_class(walk->pictures, name) >= 0)
            status = add_class(walk, path, name, part);
        else
            ignored_add(&walk->ignored, path, name, is_folder);
    }
    listing_free(&listing);
    return status;
}

static tutti_status walk_parts(struct walk *walk, const char *path, const struct part_folder *parts, int count)
{
    tutti_status status = TUTTI_OK;
    if (count == 0) return walk_classes(walk, path, PART_OPEN);
    for (int i = 0; i < count; i++) {
        char *folder = memory_format("%s/%s", path, parts[i].name);
        if (!folder) return TUTTI_NO_MEMORY;
        status = walk_classes(walk, folder, parts[i].part);
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
    struct walk walk = { .pictures = pictures, .finds_classes = true };
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    const int count = listing_parts(&listing, parts);
    TRY(walk_parts(&walk, path, parts, count));
    if (walk.classes.used == 0) goto done;
    if (walk.without) TRY(ignored_refuse(walk.without, IGNORED_PICTURES));
    TRY(number_classes(pictures, &walk.classes));
    walk.finds_classes = false;
    TRY(walk_parts(&walk, path, parts, count));
    *found = pictures->collection.samples > 0;
    if (*found) ignored_note(&walk.ignored, options, &pictures->collection.ignored);
done:
    names_free(&walk.classes);
    free(walk.without);
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

static tutti_status add_files(struct pictures *pictures, const tutti_data_options *options, bool *found)
{
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < options->file_count; i++) {
        struct picture picture = { .bytes = 0 };
        TRY(names_add(&pictures->names, options->files[i], NULL, &picture.name));
        TRY(pictures_add(pictures, &picture, TUTTI_DATA_TEST, -1));
    }
    *found = true;
done:
    return status;
}

static tutti_status read_photos(
    struct pictures *pictures, const char *path, const tutti_data_options *options, bool *found)
{
    tutti_status status;
    struct walk walk = { .pictures = pictures };
    if (options->files) return add_files(pictures, options, found);
    if (is_folder(path)) {
        TRY(add_images(&walk, path, TUTTI_DATA_TEST, -1));
        *found = pictures->collection.samples > 0;
        if (*found) ignored_note(&walk.ignored, options, &pictures->collection.ignored);
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
