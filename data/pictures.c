#include "data/pictures.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "data/statistics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_CHANNELS = 3, DEFAULT_SIDE = 224, MAX_SIDE = 1 << 14 };
#define DEFAULT_CACHE ((int64_t)1 << 30)

void data_note(const tutti_data_options *options, const char *format, ...)
{
    char line[1200];
    va_list arguments;
    if (!options->note) return;
    va_start(arguments, format);
    number_print_list(line, sizeof(line), format, arguments);
    va_end(arguments);
    options->note(options->user, line);
}

/* ---------------------------------------------------------------------------------------------------- list ---- */

static tutti_status set_size(struct pictures *pictures, const tutti_data_options *options)
{
    pictures->channels = options->channels ? options->channels : DEFAULT_CHANNELS;
    pictures->height = options->height ? options->height : DEFAULT_SIDE;
    pictures->width = options->width ? options->width : DEFAULT_SIDE;
    if (pictures->channels != 1 && pictures->channels != 3)
        return fail(TUTTI_INVALID, "images have 1 or 3 channels, not %d", pictures->channels);
    if (pictures->height < 1 || pictures->height > MAX_SIDE || pictures->width < 1 || pictures->width > MAX_SIDE)
        return fail(TUTTI_INVALID, "images of %d x %d pixels are not possible: each side has 1 to %d", pictures->height,
            pictures->width, MAX_SIDE);
    return TUTTI_OK;
}

tutti_status pictures_new(const tutti_data_options *options, struct pictures **made)
{
    tutti_status status;
    struct pictures *pictures = memory_new(1, sizeof(*pictures));
    if (!pictures) return TUTTI_NO_MEMORY;
    pthread_mutex_init(&pictures->lock, NULL);
    TRY(set_size(pictures, options));
    tutti_data_info *info = &pictures->collection.info;
    info->channels = pictures->channels;
    const char *how = options->normalise ? options->normalise : "imagenet";
    TRY(statistics_read_images(how, info->channels, info->mean, info->std, &pictures->measured));
    *made = pictures;
    return TUTTI_OK;
done:
    pictures_free(pictures);
    return status;
}

tutti_status pictures_add(struct pictures *pictures, const struct picture *picture, int part, int32_t label)
{
    tutti_status status;
    struct collection *collection = &pictures->collection;
    const size_t count = (size_t)collection->samples + 1;
    TRY(memory_grow((void **)&pictures->list, &pictures->picture_room, count, sizeof(*pictures->list)));
    TRY(memory_grow((void **)&collection->parts, &pictures->part_room, count, sizeof(*collection->parts)));
    TRY(memory_grow((void **)&collection->labels, &pictures->label_room, count, sizeof(*collection->labels)));
    pictures->list[count - 1] = *picture;
    collection->parts[count - 1] = (signed char)part;
    collection->labels[count - 1] = label;
    collection->samples++;
done:
    return status;
}

tutti_status pictures_append_class(struct pictures *pictures, const char *name)
{
    const size_t count = pictures->classes;
    if (count >= INT32_MAX) return fail(TUTTI_FORMAT, "there are more classes than a number can count");
    const tutti_status status =
        memory_grow((void **)&pictures->class_names, &pictures->class_room, count + 1, sizeof(*pictures->class_names));
    if (status != TUTTI_OK) return status;
    pictures->class_names[count] = memory_copy_text(name);
    if (!pictures->class_names[count]) return TUTTI_NO_MEMORY;
    pictures->classes++;
    return TUTTI_OK;
}

static int compare_class(const void *name, const void *class_name)
{
    return strcmp(name, *(char *const *)class_name);
}

int32_t pictures_class(const struct pictures *pictures, const char *name)
{
    char **found = pictures->classes == 0
        ? NULL
        : bsearch(name, pictures->class_names, pictures->classes, sizeof(*pictures->class_names), compare_class);
    return found ? (int32_t)(found - pictures->class_names) : -1;
}

static void name_picture(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct pictures *pictures = (const struct pictures *)collection;
    snprintf(text, size, "%s", names_at(&pictures->names, pictures->list[index].name));
}

static void free_pictures(struct collection *collection)
{
    pictures_free((struct pictures *)collection);
}

tutti_status pictures_finish(struct pictures *pictures, const tutti_data_options *options, const char *kind)
{
    struct collection *collection = &pictures->collection;
    tutti_data_info *info = &collection->info;
    const int64_t cache = options->cache == 0 ? DEFAULT_CACHE : options->cache;
    const tutti_status status = augment_parse(options->augment, AUGMENT_IMAGES, &pictures->augment);
    if (status != TUTTI_OK) return status;
    pictures->random = augment_is_random(&pictures->augment);
    info->kind = kind;
    info->dtype = TUTTI_DTYPE_U8;
    info->target_dtype = TUTTI_DTYPE_I32;
    info->shape = (tutti_shape) { .rank = 3, .sizes = { pictures->channels, pictures->height, pictures->width } };
    if (pictures->masks)
        info->target_shape = (tutti_shape) { .rank = 2, .sizes = { pictures->height, pictures->width } };
    info->classes = (int)pictures->classes;
    info->class_names = (const char *const *)pictures->class_names;
    collection->read = pictures_read;
    collection->name = name_picture;
    collection->fit = pictures_measure;
    collection->inspect = pictures_inspect;
    collection->free = free_pictures;
    return cache_new(&pictures->cache, 2 * (size_t)collection->samples, cache);
}

void pictures_free(struct pictures *pictures)
{
    if (!pictures) return;
    for (size_t i = 0; i < pictures->classes; i++) free(pictures->class_names[i]);
    free(pictures->class_names);
    free(pictures->list);
    free(pictures->collection.parts);
    free(pictures->collection.labels);
    names_free(&pictures->names);
    cache_free(pictures->cache);
    pictures_free_readers(pictures);
    pthread_mutex_destroy(&pictures->lock);
    free(pictures);
}
