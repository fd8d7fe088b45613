/* A folder of recordings for each class, perhaps below train/, val/ and test/; or, for inference, files without
 * classes.
 */
#include "data/audio.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/ignored.h"
#include "data/listing.h"

#include <stdlib.h>
#include <string.h>

/* Calls `visit` for each recording of each folder that is a class. */
struct walk {
    struct audio *audio;
    int part;
    tutti_status (*visit)(struct audio *audio, const char *class_name, const char *path, int part);
    char *without; /* the first folder without a recording, which may be a class that cannot be read */
    struct ignored ignored;
};

static tutti_status walk_class(struct walk *walk, const char *folder, const char *class_name)
{
    struct listing listing;
    bool any = false;
    tutti_status status = listing_read(&listing, folder);
    if (status != TUTTI_OK) return status;
    walk->ignored.hidden += listing.hidden;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder || !sound_has_name(name)) {
            ignored_add(&walk->ignored, folder, name, listing.entries[i].folder);
            continue;
        }
        char *path = memory_format("%s/%s", folder, name);
        status = path ? walk->visit(walk->audio, class_name, path, walk->part) : TUTTI_NO_MEMORY;
        free(path);
        any = true;
    }
    listing_free(&listing);
    if (any || walk->without || status != TUTTI_OK) return status;
    walk->without = memory_copy_text(folder);
    return walk->without ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status walk_part(struct walk *walk, const char *folder)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    if (status != TUTTI_OK) return status;
    walk->ignored.hidden += listing.hidden;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        if (!listing.entries[i].folder) {
            ignored_add(&walk->ignored, folder, listing_name(&listing, i), false);
            continue;
        }
        char *path = memory_format("%s/%s", folder, listing_name(&listing, i));
        status = path ? walk_class(walk, path, listing_name(&listing, i)) : TUTTI_NO_MEMORY;
        free(path);
    }
    listing_free(&listing);
    return status;
}

static tutti_status walk_all(struct walk *walk, const char *path)
{
    struct listing listing;
    struct part_folder parts[5];
    tutti_status status = listing_read(&listing, path);
    if (status != TUTTI_OK) return status;
    const int count = listing_parts(&listing, parts);
    listing_free(&listing);
    walk->part = PART_OPEN;
    if (count == 0) return walk_part(walk, path);
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        char *folder = memory_format("%s/%s", path, parts[i].name);
        walk->part = parts[i].part;
        status = folder ? walk_part(walk, folder) : TUTTI_NO_MEMORY;
        free(folder);
    }
    return status;
}

/* Returns the position of the class in the sorted list, or where it belongs. */
static size_t find_class(const struct audio *audio, const char *name, bool *found)
{
    size_t low = 0, high = audio->classes;
    *found = false;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(name, audio->class_names[middle]);
        if (order == 0) *found = true;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tutti_status add_class(struct audio *audio, const char *class_name, const char *path, int part)
{
    bool found;
    const size_t at = find_class(audio, class_name, &found);
    (void)path, (void)part;
    if (found) return TUTTI_OK;
    const tutti_status status =
        memory_grow((void **)&audio->class_names, &audio->class_room, audio->classes + 1, sizeof *audio->class_names);
    char *name = status == TUTTI_OK ? memory_copy_text(class_name) : NULL;
    if (!name) return TUTTI_NO_MEMORY;
    memmove(audio->class_names + at + 1, audio->class_names + at, (audio->classes - at) * sizeof *audio->class_names);
    audio->class_names[at] = name;
    audio->classes++;
    return TUTTI_OK;
}

static tutti_status add_sample(struct audio *audio, const char *path, int part, int32_t label)
{
    struct collection *collection = &audio->collection;
    const size_t count = (size_t)collection->samples + 1;
    tutti_status status;
    TRY(memory_grow((void **)&audio->files, &audio->file_room, count, sizeof *audio->files));
    TRY(memory_grow((void **)&collection->parts, &audio->part_room, count, sizeof *collection->parts));
    TRY(memory_grow((void **)&collection->labels, &audio->label_room, count, sizeof *collection->labels));
    TRY(names_add(&audio->names, path, NULL, &audio->files[count - 1].name));
    collection->parts[count - 1] = (signed char)part;
    collection->labels[count - 1] = label;
    collection->samples++;
done:
    return status;
}

static tutti_status add_file(struct audio *audio, const char *class_name, const char *path, int part)
{
    bool found;
    const size_t label = find_class(audio, class_name, &found);
    if (!found) return TUTTI_OK; /* a file that has come since the classes were listed */
    return add_sample(audio, path, part, (int32_t)label);
}

static tutti_status add_unlabelled(struct audio *audio, const char *class_name, const char *path, int part)
{
    (void)class_name;
    return add_sample(audio, path, part, -1);
}

/* The first of two walks finds the classes, the second one their files. */
static tutti_status list_classes(struct audio *audio, const char *path, const tutti_data_options *options)
{
    tutti_status status;
    struct walk walk = { .audio = audio, .visit = add_class };
    TRY(walk_all(&walk, path));
    if (audio->classes == 0) goto done;
    if (walk.without) TRY(ignored_refuse(walk.without, IGNORED_RECORDINGS));
    walk.visit = add_file;
    walk.ignored = (struct ignored) { 0 };
    TRY(walk_all(&walk, path));
    ignored_note(&walk.ignored, options, &audio->collection.ignored);
done:
    free(walk.without);
    return status;
}

tutti_status audio_list_files(struct audio *audio, const tutti_data_options *options)
{
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < options->file_count && status == TUTTI_OK; i++)
        status = add_unlabelled(audio, NULL, options->files[i], TUTTI_DATA_TEST);
    return status;
}

tutti_status audio_list(struct audio *audio, const char *path, bool folder, const tutti_data_options *options)
{
    struct walk walk = { .audio = audio, .part = TUTTI_DATA_TEST, .visit = add_unlabelled };
    if (!folder) return sound_has_name(path) ? add_unlabelled(audio, NULL, path, TUTTI_DATA_TEST) : TUTTI_OK;
    tutti_status status = list_classes(audio, path, options);
    if (status != TUTTI_OK || audio->classes > 0) return status;
    status = walk_class(&walk, path, NULL);
    if (audio->collection.samples > 0) ignored_note(&walk.ignored, options, &audio->collection.ignored);
    free(walk.without);
    return status;
}
