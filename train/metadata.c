#include "train/metadata.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Returns the place of the key, or where it would be inserted. */
static size_t place_of(const struct metadata *metadata, const char *key, bool *found)
{
    size_t at = 0;
    while (at < metadata->count && strcmp(metadata->entries[at].key, key) < 0) at++;
    *found = at < metadata->count && !strcmp(metadata->entries[at].key, key);
    return at;
}

static void remove_at(struct metadata *metadata, size_t at)
{
    free((char *)metadata->entries[at].key);
    free((char *)metadata->entries[at].value);
    metadata->count--;
    memmove(metadata->entries + at, metadata->entries + at + 1, (metadata->count - at) * sizeof(*metadata->entries));
}

/* Inserts an entry, for which there is room, and takes over its texts. */
static void put(struct metadata *metadata, size_t at, const struct safetensors_metadata *entry)
{
    memmove(metadata->entries + at + 1, metadata->entries + at, (metadata->count - at) * sizeof(*metadata->entries));
    metadata->entries[at] = *entry;
    metadata->count++;
}

static tutti_status insert(struct metadata *metadata, size_t at, const char *key, const char *value)
{
    char *own_key = memory_copy_text(key), *own_value = memory_copy_text(value);
    tutti_status status = own_key && own_value ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK)
        status =
            memory_grow((void **)&metadata->entries, &metadata->room, metadata->count + 1, sizeof(*metadata->entries));
    if (status != TUTTI_OK) {
        free(own_key);
        free(own_value);
        return status;
    }
    put(metadata, at, &(struct safetensors_metadata) { .key = own_key, .value = own_value });
    return TUTTI_OK;
}

tutti_status metadata_set(struct metadata *metadata, const char *key, const char *value)
{
    bool found;
    if (!*key || !strcmp(key, "format")) return fail(TUTTI_INVALID, "the key '%s' of a text cannot be set", key);
    if (!text_is_utf8(key) || (value && !text_is_utf8(value)))
        return fail(TUTTI_INVALID, "the text '%s' is not UTF-8", key);
    const size_t at = place_of(metadata, key, &found);
    const tutti_status status = value ? insert(metadata, at, key, value) : TUTTI_OK;
    if (status == TUTTI_OK && found) remove_at(metadata, value ? at + 1 : at);
    return status;
}

tutti_status metadata_adopt(struct metadata *metadata, const struct safetensors *file)
{
    tutti_status status = TUTTI_OK;
    struct metadata added = { 0 };
    const char *key = NULL;
    bool found, twice;
    while ((key = safetensors_metadata_key(file, key))) {
        (void)place_of(metadata, key, &found);
        const size_t at = place_of(&added, key, &twice);
        if (*key && !found && !twice && strcmp(key, "format"))
            TRY(insert(&added, at, key, safetensors_metadata(file, key)));
    }
    TRY(memory_grow(
        (void **)&metadata->entries, &metadata->room, metadata->count + added.count, sizeof(*metadata->entries)));
    for (size_t i = 0; i < added.count; i++)
        put(metadata, place_of(metadata, added.entries[i].key, &found), &added.entries[i]);
    added.count = 0;
done:
    metadata_free(&added);
    return status;
}

void metadata_free(struct metadata *metadata)
{
    while (metadata->count > 0) remove_at(metadata, metadata->count - 1);
    free(metadata->entries);
}

char *tutti_weights_metadata(const char *path, const char *key)
{
    struct safetensors *file = NULL;
    char *copy = NULL;
    if (!path || !key) {
        fail(TUTTI_INVALID, "the path or the key is NULL: pass both");
        return NULL;
    }
    if (safetensors_open(path, &file) != TUTTI_OK) return NULL;
    const char *value = safetensors_metadata(file, key);
    if (value)
        copy = memory_copy_text(value);
    else
        fail(TUTTI_MISMATCH, "'%s' has no text '%s' next to its weights", path, key);
    safetensors_close(file);
    return copy;
}
