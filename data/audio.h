/* Inside of recordings: the files of a folder. */
#ifndef DATA_AUDIO_H
#define DATA_AUDIO_H

#include "data/collection.h"
#include "data/mel.h"
#include "data/names.h"
#include "formats/sound.h"

struct audio_file {
    size_t name;
    int64_t frames; /* at the rate of all; 0: its header is damaged, or its rate too far from theirs */
};

struct audio {
    struct collection collection; /* first: they are one */
    struct names names;
    struct audio_file *files;
    size_t file_room, part_room, label_room;
    char **class_names;
    size_t classes, class_room;
    int rate;       /* of all samples, whatever the files have */
    int64_t length; /* samples of a piece */
    struct mel *mel;
    bool measure, random; /* training samples are augmented */
    struct augment augment;
};

/* audio_files.c: finds the classes and their files in a folder. A recording, or a folder that has some but no
 * classes, is a test part without classes. No samples: there are no recordings. */
tutti_status audio_list(struct audio *audio, const char *path, bool folder, const tutti_data_options *options);
/* Adds the files of the options, without classes. */
tutti_status audio_list_files(struct audio *audio, const tutti_data_options *options);
/* audio_inspect.c: collection.inspect */
int audio_inspect(const struct collection *collection, int64_t most, struct json_t *object);

#endif
