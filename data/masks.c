/* images/ next to masks/, perhaps below train/, val/ and test/: the mask of images/x.jpg is masks/x.png, a grey picture
 * or one with a palette, which has the class of each pixel. With two values, 0 and 255, these are two classes; else
 * 255 is left out of the loss. classes.txt may name the classes, one a line. */
#include "data/ignored.h"
#include "data/listing.h"
#include "data/pictures.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LEFT_OUT = 255, NAMES_MAX_BYTES = 1 << 16 };

static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

/* Finds the mask with the stem of a picture, from the first name in the sorted listing that is not before the
 * stem. */
static const char *mask_of(const struct listing *masks, const char *name)
{
    const size_t length = stem_length(name);
    size_t low = 0, high = masks->count;
    while (low < high) { /* the first name that is not before the stem */
        const size_t middle = low + (high - low) / 2;
        if (strncmp(listing_name(masks, middle), name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < masks->count; low++) {
        const char *found = listing_name(masks, low);
        if (strncmp(found, name, length)) break;
        if (stem_length(found) == length && image_has_name(found)) return found;
    }
    return NULL;
}

/* What was found and is not used. */
struct unused {
    int64_t without;
    size_t example; /* a picture without a mask, among the names */
    struct ignored ignored;
};

/* What is in masks/ and cannot be read. */
static void count_masks(const char *path, const struct listing *masks, struct unused *unused)
{
    for (size_t i = 0; i < masks->count; i++) {
        const char *name = listing_name(masks, i);
        if (masks->entries[i].folder || !image_has_name(name))
            ignored_add(&unused->ignored, path, name, masks->entries[i].folder);
    }
}

static tutti_status add_pairs(struct pictures *pictures, const char *images_path, const char *masks_path,
    const struct listing *images, const struct listing *masks, int part, struct unused *unused)
{
    tutti_status status = TUTTI_OK;
    unused->ignored.hidden += images->hidden + masks->hidden;
    count_masks(masks_path, masks, unused);
    for (size_t i = 0; i < images->count; i++) {
        struct picture picture = { .bytes = 0 };
        const char *name = listing_name(images, i), *mask = mask_of(masks, name);
        if (images->entries[i].folder || !image_has_name(name)) {
            ignored_add(&unused->ignored, images_path, name, images->entries[i].folder);
            continue;
        }
        if (!mask) {
            if (unused->without++ == 0) TRY(names_add(&pictures->names, images_path, name, &unused->example));
            continue;
        }
        TRY(names_add(&pictures->names, images_path, name, &picture.name));
        TRY(names_add(&pictures->names, masks_path, mask, &picture.mask));
        TRY(pictures_add(pictures, &picture, part, 0));
    }
done:
    return status;
}

static tutti_status walk_pairs(struct pictures *pictures, const char *path, int part, struct unused *unused)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct listing images = { 0 }, masks = { 0 };
    const int64_t before = pictures->collection.samples;
    char *images_path = memory_format("%s/images", path), *masks_path = memory_format("%s/masks", path);
    if (!images_path || !masks_path) goto done;
    TRY(listing_read(&images, images_path));
    TRY(listing_read(&masks, masks_path));
    TRY(add_pairs(pictures, images_path, masks_path, &images, &masks, part, unused));
    if (pictures->collection.samples > before) goto done;
    const struct ignored_text list = ignored_list(&unused->ignored);
    FAIL(TUTTI_FORMAT, "%s: no image in images/ has a mask of the same name in masks/%s%s", path,
        list.text[0] ? "; what cannot be read there: " : "", list.text);
done:
    listing_free(&images);
    listing_free(&masks);
    free(images_path);
    free(masks_path);
    return status;
}

static bool has_pairs(const char *path, const char *below)
{
    struct stat found;
    bool both = true;
    for (int i = 0; i < 2; i++) {
        char *folder = memory_format("%s%s/%s", path, below, i ? "masks" : "images");
        both = both && folder && stat(folder, &found) == 0 && S_ISDIR(found.st_mode);
        free(folder);
    }
    return both;
}

static tutti_status walk_parts(struct pictures *pictures, const char *path, struct unused *unused)
{
    struct listing listing;
    struct part_folder parts[5];
    if (has_pairs(path, "")) return walk_pairs(pictures, path, PART_OPEN, unused);
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    const int count = listing_parts(&listing, parts);
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        char *folder = memory_format("%s/%s", path, parts[i].name);
        status = folder ? walk_pairs(pictures, folder, parts[i].part, unused) : TUTTI_NO_MEMORY;
        free(folder);
    }
    listing_free(&listing);
    return status;
}

/* ------------------------------------------------------------------------------------------------- classes ---- */

/* Finds out which values the masks have. They are read once, on all threads, to know the number of classes. */
struct scan {
    struct pictures *pictures;
    const tutti_data_options *options;
    pthread_mutex_t lock;
    bool seen[256];
    int failed; /* the first mask that could not be read */
    tutti_status status;
    char message[1024];
};

static tutti_status scan_mask(struct scan *scan, int task, bool *seen)
{
    struct image mask = { 0 };
    tutti_status status = pictures_decode(scan->pictures, task, true, 3, &mask);
    const size_t pixels = status == TUTTI_OK ? (size_t)mask.width * (size_t)mask.height : 0;
    for (size_t i = 0; i < pixels && status == TUTTI_OK; i++) {
        const unsigned char *pixel = mask.pixels + 3 * i;
        seen[pixel[0]] = true;
        if (pixel[0] != pixel[1] || pixel[0] != pixel[2])
            status = fail(TUTTI_FORMAT,
                "%s: a mask is a grey picture, or a PNG file with a palette, with the number of a class in each pixel, "
                "but this one has colours",
                names_at(&scan->pictures->names, scan->pictures->list[task].mask));
    }
    image_free(&mask);
    return status;
}

static void scan_task(void *argument, int task)
{
    struct scan *scan = argument;
    bool seen[256] = { false };
    const tutti_status status = scan_mask(scan, task, seen);
    const bool skip = scan->options->skip_damaged && (status == TUTTI_FORMAT || status == TUTTI_FILE);
    pthread_mutex_lock(&scan->lock);
    for (int i = 0; i < 256; i++) scan->seen[i] = scan->seen[i] || (seen[i] && status == TUTTI_OK);
    if (status != TUTTI_OK && !skip && task < scan->failed) {
        scan->failed = task;
        scan->status = status;
        snprintf(scan->message, sizeof(scan->message), "%s", status_message());
    }
    pthread_mutex_unlock(&scan->lock);
}

static tutti_status scan_masks(struct scan *scan)
{
    struct thread_pool *pool = NULL;
    const int64_t samples = scan->pictures->collection.samples;
    if (samples > INT32_MAX) return fail(TUTTI_INVALID, "there are too many masks");
    const tutti_status status = thread_pool_new(&pool, scan->options->threads);
    if (status != TUTTI_OK) return status;
    pthread_mutex_init(&scan->lock, NULL);
    scan->failed = INT32_MAX;
    thread_pool_run(pool, (int)samples, scan_task, scan);
    thread_pool_free(pool);
    pthread_mutex_destroy(&scan->lock);
    if (scan->failed == INT32_MAX) return TUTTI_OK;
    status_set(scan->status, scan->message);
    return scan->status;
}

/* Masks of one value teach nothing, unless classes.txt says which classes there are. */
static tutti_status check_values(const char *path, const bool *seen)
{
    int count = 0, last = 0;
    for (int i = 0; i <= LEFT_OUT; i++) {
        count += seen[i];
        if (seen[i]) last = i;
    }
    if (count != 1) return TUTTI_OK;
    return fail(TUTTI_FORMAT,
        "%s: all pixels of all masks have the value %d: a network needs at least two classes; name them in classes.txt",
        path, last);
}

/* Fills mask_classes; returns the number of classes. */
static int map_values(struct pictures *pictures, const bool *seen)
{
    int largest = -1, others = 0;
    for (int i = 0; i < LEFT_OUT; i++) {
        pictures->mask_classes[i] = i;
        if (seen[i]) largest = i;
        others += i > 0 && seen[i];
    }
    const bool two = seen[LEFT_OUT] && others == 0;
    pictures->mask_classes[LEFT_OUT] = two ? 1 : -1;
    return two || largest < 1 ? 2 : largest + 1;
}

/* Names of classes.txt, as many as there are lines; *count 0 without the file. */
static tutti_status read_names(struct pictures *pictures, const char *path, int *count)
{
    tutti_status status = TUTTI_OK;
    unsigned char *text = NULL;
    size_t bytes;
    struct stat found;
    char *file = memory_format("%s/classes.txt", path), *rest, *line;
    if (!file) return TUTTI_NO_MEMORY;
    if (stat(file, &found) != 0) goto done;
    TRY(file_read(file, NAMES_MAX_BYTES, &text, &bytes));
    char *copy = memory_format("%.*s", (int)bytes, (const char *)text);
    if (!copy) FAIL(TUTTI_NO_MEMORY, "no memory for the names of classes");
    for (line = strtok_r(copy, "\r\n", &rest); line && status == TUTTI_OK; line = strtok_r(NULL, "\r\n", &rest)) {
        status = pictures_append_class(pictures, line);
        ++*count;
    }
    free(copy);
done:
    free(file);
    free(text);
    return status;
}

static tutti_status name_classes(
    struct pictures *pictures, const char *path, const bool *seen, const tutti_data_options *options)
{
    int named = 0;
    const int classes = map_values(pictures, seen);
    tutti_status status = read_names(pictures, path, &named);
    if (status == TUTTI_OK && named == 0 && !options->description) status = check_values(path, seen);
    if (status == TUTTI_OK && named > 0 && named < classes)
        return fail(TUTTI_FORMAT, "%s/classes.txt names %d classes, but the masks have numbers up to %d", path, named,
            classes - 1);
    for (int i = named; i < classes && status == TUTTI_OK; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        status = pictures_append_class(pictures, name);
    }
    return status;
}

static tutti_status find_classes(struct pictures *pictures, const char *path, const tutti_data_options *options)
{
    struct scan *scan = memory_new(1, sizeof(*scan));
    if (!scan) return TUTTI_NO_MEMORY;
    scan->pictures = pictures;
    scan->options = options;
    tutti_status status = scan_masks(scan);
    if (status == TUTTI_OK) status = name_classes(pictures, path, scan->seen, options);
    free(scan);
    return status;
}

static void report(struct pictures *pictures, const tutti_data_options *options, const struct unused *unused)
{
    ignored_note(&unused->ignored, options, &pictures->collection.ignored);
    if (unused->without > 0)
        data_note(options, "images without a mask, which are ignored: %lld, such as %s", (long long)unused->without,
            names_at(&pictures->names, unused->example));
}

tutti_status masks_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    tutti_status status;
    struct pictures *pictures = NULL;
    struct unused unused = { 0 };
    if (!has_pairs(path, "") && !has_pairs(path, "/train")) return TUTTI_OK;
    TRY(pictures_new(options, &pictures));
    pictures->masks = true;
    TRY(walk_parts(pictures, path, &unused));
    report(pictures, options, &unused);
    TRY(find_classes(pictures, path, options));
    free(pictures->collection.labels); /* a class for each pixel, none for an image */
    pictures->collection.labels = NULL;
    TRY(pictures_finish(pictures, options, "masks"));
    *made = &pictures->collection;
    pictures = NULL;
done:
    pictures_free(pictures);
    return status;
}
