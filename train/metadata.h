/* Texts that are saved with the weights, by key: what a program must know to use them, such as the classes' names. */
#ifndef TRAIN_METADATA_H
#define TRAIN_METADATA_H

#include "formats/safetensors.h"

/* Sorted by key, so that equal texts give equal files. Keys and values are owned. */
struct metadata {
    struct safetensors_metadata *entries;
    size_t count, room;
};

/* Replaces the key's value; NULL removes it. Errors: TUTTI_INVALID if a text is not UTF-8, or the key is empty or one
 * of the library's own. */
tutti_status metadata_set(struct metadata *metadata, const char *key, const char *value);
/* Takes the file's texts whose keys have no value yet; on failure, none. */
tutti_status metadata_adopt(struct metadata *metadata, const struct safetensors *file);
void metadata_free(struct metadata *metadata);

#endif
