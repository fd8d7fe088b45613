/* Samples of one kind of data: what data.c divides into parts and reads on several threads. */
#ifndef DATA_COLLECTION_H
#define DATA_COLLECTION_H

#include "data/augment.h"
#include "data/ignored.h"
#include "tutti_data.h"

struct json_t; /* jansson's */

enum { DATA_MAX_CHANNELS = 16 };

struct collection {
    tutti_data_info info;       /* without damaged and class_counts, which data.c counts */
    int64_t samples;            /* of all parts */
    enum augment_kind augments; /* which words of augmentation there are */
    bool floats;                /* images are bytes here, but are told as floats, normalised when read */
    /* [samples]: a tutti_data_part as the data say it, or PART_OPEN: a part is drawn by the seed. */
    signed char *parts;
    int32_t *labels;        /* [samples] where there are classes, else NULL */
    const int64_t *rows;    /* [samples] where they are rows of files, from 1 on, else NULL */
    struct ignored ignored; /* files that lie among the data and were not read */
    /* Writes a sample and its target as `info` says. Several threads call it at a time. Errors: TUTTI_FORMAT or
     * TUTTI_FILE with the file's name: the sample is damaged. */
    tutti_status (*read)(
        struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target);
    /* The length of one of samples of different lengths, which are sequences of tokens: `read` pads them to the length
     * of `info`, `read_tokens` to that of a batch. NULL: all are equally long. */
    int64_t (*length)(const struct collection *collection, int64_t index);
    /* Writes the tokens of a sample and padding, [length], which is not less than that of the sample; the types of
     * them, unless NULL; and its target, unless NULL. Without the function, samples are not tokens. */
    tutti_status (*read_tokens)(
        struct collection *collection, int64_t index, int64_t length, int32_t *ids, int32_t *types, void *target);
    /* Writes a sample of several steps and padding, [length] of them, which are not fewer than those of the sample, and
     * its target, as `read` does. NULL: samples are tokens, or all equally long. */
    tutti_status (*read_steps)(struct collection *collection, int64_t index, const struct draw *draw, int64_t length,
        float *sample, void *target);
    /* What a person calls the sample: its file, or "row 17". */
    void (*name)(const struct collection *collection, int64_t index, char *text, size_t size);
    /* The file that a row is in; NULL: samples are not rows. */
    const char *(*file)(const struct collection *collection, int64_t index);
    /* Replaces each class of `labels` or of targets with more of them by numbers[class]; NULL: of labels. */
    void (*renumber)(struct collection *collection, const int32_t *numbers);
    /* A word of a sample whose words have tags; NULL past the last. *token: its first token, -1: none. NULL: there are
     * no words. */
    const char *(*word)(const struct collection *collection, int64_t index, int64_t word, int64_t *token);
    /* Computes statistics of the training part once the parts are drawn, to standardise columns, say. NULL: none.
     * `part` is [samples]. */
    tutti_status (*fit)(struct collection *collection, const signed char *part);
    /* Adds what tutti_data_json() says beyond `info`, such as columns; 0, or -1 on failure. NULL: nothing. */
    int (*describe)(const struct collection *collection, struct json_t *object);
    /* Adds what tutti_data_inspect() says of this kind of data, such as the sizes of pictures; 0, or -1 on failure.
     * Files are opened for it, `most` of them. NULL: what samples have in them is measured. */
    int (*inspect)(const struct collection *collection, int64_t most, struct json_t *object);
    void (*free)(struct collection *collection);
};
enum { PART_OPEN = -1 };

/* Each opens one kind of data; *made stays NULL, with TUTTI_OK, where the path is of another kind. */
tutti_status line_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status sets_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status folder_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status masks_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status tar_open(const char *path, const tutti_data_options *options, struct collection **made);
/* A picture, or a folder of pictures without classes: for inference. audio_open() knows such recordings, text_open()
 * such texts, too. They take the files of the options, text_open() also its texts; the path is NULL then. */
tutti_status photos_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status table_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status arrays_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status audio_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status text_open(const char *path, const tutti_data_options *options, struct collection **made);
/* Recordings with transcripts: in tables, or the files of the options; and next to the recordings. */
tutti_status speech_open(const char *path, const tutti_data_options *options, struct collection **made);
tutti_status speech_pairs_open(const char *path, const tutti_data_options *options, struct collection **made);

#endif
