/* A collection of pictures, whatever lists them: folders, masks or tar files. */
#ifndef DATA_PICTURES_H
#define DATA_PICTURES_H

#include "data/cache.h"
#include "data/collection.h"
#include "data/names.h"

#include <pthread.h>

struct picture {
    size_t name;           /* its file, or its name within a tar file */
    size_t mask;           /* file of its mask; used where pictures.masks */
    size_t shard;          /* bytes > 0: the tar file, which has it at `offset` */
    int64_t offset, bytes; /* bytes 0: a file of its own */
};

struct pictures {
    struct collection collection; /* first: they are one */
    struct names names;
    struct picture *list;
    size_t picture_room, part_room, label_room; /* of list, parts and labels */
    char **class_names;
    size_t classes, class_room;
    bool masks;
    int32_t mask_classes[256]; /* of a mask's numbers; negative: left out of the loss */
    struct augment augment;
    bool random; /* training samples are drawn, not always the same */
    int channels, height, width;
    bool measured; /* mean and std are those of the training part */
    struct cache *cache;
    pthread_mutex_t lock;
    struct reader *readers; /* that nobody uses now */
};

/* An empty collection, for options that were checked here. */
tutti_status pictures_new(const tutti_data_options *options, struct pictures **pictures);
void pictures_free(struct pictures *pictures); /* takes NULL */
tutti_status pictures_add(struct pictures *pictures, const struct picture *picture, int part, int32_t label);
/* Appends a class; callers do so in the order of strcmp(). Then classes are found by name: -1 if there is no such
 * class. */
tutti_status pictures_append_class(struct pictures *pictures, const char *name);
int32_t pictures_class(const struct pictures *pictures, const char *name);
/* After the last picture: fills collection.info and makes the cache. `kind` is "images" or "masks". */
tutti_status pictures_finish(struct pictures *pictures, const tutti_data_options *options, const char *kind);
/* Reads a picture whole, or its mask, with 1 or 3 channels, into memory of the caller. */
tutti_status pictures_decode(struct pictures *pictures, int64_t index, bool mask, int channels, struct image *image);

/* Members of the collection, for pictures_finish(): reads a sample; measures mean and std of the training part. */
tutti_status pictures_read(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target);
tutti_status pictures_measure(struct collection *collection, const signed char *part);
void pictures_free_readers(struct pictures *pictures);
int pictures_inspect(const struct collection *collection, int64_t most, struct json_t *object); /* pictures_inspect.c */

/* Calls note() of the options, if there is one. */
void data_note(const tutti_data_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
