/* Data as sources of samples: folders of images, masks, tables, texts, arrays, recordings with classes or transcripts,
 * MNIST's and CIFAR's files. */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_data tutti_data;
/* ALL: the samples of all parts, in the order of the data, and those that no part has. */
typedef enum tutti_data_part { TUTTI_DATA_TRAIN, TUTTI_DATA_VAL, TUTTI_DATA_TEST, TUTTI_DATA_ALL } tutti_data_part;

typedef struct tutti_data_options {
    size_t size; /* sizeof(tutti_data_options), or 0 */
    /* Size of images as the network gets them. 0: 3 channels of 224 x 224; for recordings, the size that follows from
     * them. */
    int channels, height, width;
    double split;        /* part of each class that is held out where the data have no val/ or test/; 0: 0.2 */
    uint64_t seed;       /* for the choice of held-out samples, and for augmentation */
    const char *target;  /* tables: the column to predict; NULL: the last one */
    const char *augment; /* words of docs/augmentation.md, as "crop,flip,color=0.4"; NULL: none */
    int threads;         /* threads that decode; 0: one for each processor */
    int64_t cache;       /* bytes of decoded samples kept in memory; 0: 1 GiB, negative: none */
    /* Leave damaged files out, with a note, instead of failing: training reads another file of the class for each, or
     * fails if there is none, and evaluations are without them (tutti_source.is_replaced). */
    bool skip_damaged;
    bool oversample;                            /* training: draw each class equally often */
    void (*note)(void *user, const char *line); /* reports what was left out, and the like; NULL: nothing */
    void *user;
    /* Images: "imagenet", by ImageNet's mean and std; "measured", by those of the training part; "none"; or the
     * numbers of each channel, as "0.5,0.4,0.4/0.2,0.2,0.2". NULL: imagenet; for MNIST, CIFAR and digits: none.
     * Other data: "measured", "none" or numbers; NULL: measured, but none for arrays of numbers */
    const char *normalise;
    /* Targets that are numbers: "measured", by mean and std of each number in the training part; "none"; or the
     * numbers, as above. NULL: measured */
    const char *normalise_targets;
    int rate; /* recordings: samples a second, to which files of other rates are resampled; 0: that of the first file */
    bool numbers; /* MNIST, CIFAR and digits: labels are numbers to predict, floats [1], instead of classes */
    /* k-fold evaluation: the training samples in `folds` parts by the seed, with the same share of each class; number
     * `fold`, from 0, becomes the part val, and the data's own val and test are left out. 0: none */
    int folds, fold;
    /* What tutti_data_json() said of the data that a network was trained on, as tutti_weights_metadata(path, "data")
     * gives it: other data are prepared as these were. Columns of a table are found by their names, classes by theirs,
     * and have the numbers of the training; columns that the network does not know are left out, with a note. Seed,
     * and options above that are 0 or NULL, are those of the training. Where the network cannot take the data (another
     * kind, missing columns, unknown classes, other channels or normalisation), TUTTI_MISMATCH says each difference.
     * NULL: the data stand for themselves */
    const char *description;
    /* Tables: columns, by name or number, as "a,b": `drop` leaves these out, `only` all others but the target. NULL:
     * none. row_names: a column that names rows and is not an input; NULL: none. All are refused with a description */
    const char *drop, *only, *row_names;
    /* Tables: a missing number becomes the median, a missing text a category of its own, and another input says which
     * ones are missing; rows without a target are left out. false: missing values are refused */
    bool fill_missing;
    /* Tables, with a description: rows to predict may have no column for the target, or nothing in it. All are then the
     * part test, and their targets are 0, or -1 and tutti_data_info.classes 0 where the network gives classes, as of
     * pictures without classes */
    bool without_targets;
    /* Arrays whose samples have three axes: "nchw", channels first, or "nhwc", channels last, as Keras has them;
     * samples then come with channels first. NULL: nchw, but nhwc for bytes whose last axis has at most 4 */
    const char *layout;
    /* Tables, with a description: the target's column is not read, whatever is in it, as if it were not there */
    bool ignore_targets;
    /* Pictures, or recordings or texts if the description is of some: these files, [file_count], are the samples, all
     * of the part test and without classes. `path` is for messages then. NULL: path says what the samples are */
    const char *const *files;
    int64_t file_count;
    /* Tables: a column of more different texts than this is one input, a code to embed, instead of one for each text
     * (tutti_data_info.codes): at most 64 columns are, and none if `augment` is given. 0: none */
    int64_t codes_above;
    /* Texts: the column of a table, or of lines of JSON, that has them, or two as "a,b" for pairs of texts. `target`
     * names the class or number of each; other columns are left out. NULL: a table has numbers and categories */
    const char *text;
    /* Texts: what makes tokens of them, as tutti_tokenizer_open() takes it, or its JSON; or the kind of one that is
     * learned from these texts: "words", "wordpiece", "bpe" or "characters". NULL: words, of language models bytes */
    const char *tokenizer;
    /* Texts: the most tokens of a sample, longer ones are cut; of a language model, those of each. 0: 512, or those of
     * the longest text if it has fewer */
    int64_t length;
    /* Texts, with a description: these texts in memory, [text_count], are the samples, as `files` are */
    const char *const *texts;
    int64_t text_count;
} tutti_data_options;

typedef struct tutti_data_info {
    size_t size; /* sizeof(tutti_data_info), or 0; set it before the call */
    /* "images", "masks", "table", "text", "arrays", "recordings", "speech", "IDX", "CIFAR-10", "CIFAR-100", "digits",
     * "line" */
    const char *kind;
    /* Types and shapes of a sample and of its target: int32 class numbers, or floats. U8 samples are images, to be
     * normalised by mean and std with scale 1/255 (tutti_normalise()). Targets of mixed samples with classes are
     * probabilities, floats [classes]. */
    tutti_dtype dtype, target_dtype;
    tutti_shape shape, target_shape;
    int classes;                    /* 0: targets are numbers */
    const char *const *class_names; /* valid until tutti_data_free(), as all pointers here */
    const int64_t *class_counts;    /* training samples of each class */
    int channels;                   /* of mean and std */
    float mean[16], std[16];
    int64_t damaged; /* samples that were left out */
    /* Mean and std of targets that are numbers, [numbers of a target] each. A source gives (number - mean) / std, so
     * outputs times std plus mean are in the units of the data. NULL: targets are classes, or stay as they are */
    const double *target_mean, *target_std;
    /* The first class of tutti_data_options.description that these data do not have. NULL: they have all */
    const char *missing_class;
    bool column_names; /* a table whose first row has the names of its columns */
    /* The last numbers of a sample, [code_count], are codes: whole numbers from 0 to less than these. 0 is a text that
     * the training has not seen */
    const int64_t *codes;
    int code_count;
    /* Texts: `shape` is [length] of int32, the most tokens of a sample. Sources fill inputs whose shape is
     * [TUTTI_SEQUENCE], in batches of several lengths (tutti_source.batch_length and buckets): ids from 0 to less than
     * `vocabulary`, and -1 after the last one. If `pairs`, an input called "types" gets 0 for tokens of the first
     * text, 1 for those of the second and of padding, whose id is -1. If `tokens_are_classes`, samples are blocks of
     * one long text without padding, and targets the next token of each, [TUTTI_SEQUENCE]; `classes` is the
     * vocabulary then. 0 and false: other data */
    int64_t vocabulary, length;
    bool pairs, tokens_are_classes;
    const char *tokenizer; /* as JSON, for tutti_tokenizer_parse(); NULL: other data */
    /* Texts whose words have tags: targets are [TUTTI_SEQUENCE] of int32, the class of a word at its first token, -1 at
     * all other tokens, at words without a tag and at padding. Losses and scores exclude numbers below 0.
     * Speech: samples are [steps, numbers] of floats, for an input [TUTTI_SEQUENCE, numbers], in batches of several
     * lengths up to `length`. The last number of a step is 1, and 0 in padding. Targets are lists of labels for
     * tutti_ctc(), -1 after the last one: 0 is the blank, and i + 1 the token i of `tokenizer`. */
    bool tags;
} tutti_data_info;

/* Opens a folder or file and divides its samples into parts. docs/data.md describes its contents: data of your own,
 * or the files of MNIST and CIFAR. Images of these have their own size and are floats, x / 255 unless `normalise`
 * says otherwise. "-" is a table from standard input, "digits" is a set of 28 x 28 digits that are drawn, "line" a set
 * of points of y = 3 x + 2. Where a file or folder has such a name, "./digits" is the folder and "builtin:digits" the
 * set; "digits" is refused. Free it with tutti_data_free(). Returns NULL on failure.
 *
 * WebP, TIFF, HEIC and AVIF files, and recordings other than WAV, are decoded by child processes without rights, which
 * end with this process. A SIGCHLD handler of the program sees them end. They inherit the environment and no open file.
 */
TUTTI_API tutti_data *tutti_data_open(const char *path, const tutti_data_options *options);
TUTTI_API void tutti_data_free(tutti_data *data);
/* Errors: TUTTI_INVALID if the size is impossible. */
TUTTI_API tutti_status tutti_data_describe(const tutti_data *data, tutti_data_info *info);
/* Returns a part as a source, which is valid until tutti_data_free(); NULL if the part is empty. At least one of val
 * and test is not empty: tests during a training use val, or test if val is empty. Training samples are augmented as
 * for the epoch of the last tutti_data_epoch(). */
TUTTI_API const tutti_source *tutti_data_source(const tutti_data *data, tutti_data_part part);
/* Sets the epoch for which training samples are augmented. Use it as tutti_fitting.begin_epoch, with the data as
 * `user`. */
TUTTI_API void tutti_data_epoch(void *data, int64_t epoch);
/* Writes the name of a sample for messages: its file, or "row 17". Errors: TUTTI_INVALID if there is no such sample. */
TUTTI_API tutti_status tutti_data_name(
    const tutti_data *data, tutti_data_part part, int64_t index, char *text, size_t size);
/* Returns the class of a sample without reading it; -1 if its target is not one class: numbers, or a class for each
 * pixel. */
TUTTI_API int tutti_data_label(const tutti_data *data, tutti_data_part part, int64_t index);
/* Returns the row of a table that a sample is, in its file, from 1 on after the names of columns; 0: it is none. */
TUTTI_API int64_t tutti_data_row(const tutti_data *data, tutti_data_part part, int64_t index);
/* Returns the file that this row is in, valid until tutti_data_free(); NULL: the sample is not a row of a table. */
TUTTI_API const char *tutti_data_file(const tutti_data *data, tutti_data_part part, int64_t index);
/* Returns a word, from 0 on, of a sample whose words have tags (tutti_data_info.tags), valid until tutti_data_free();
 * NULL past the last one, and of other data. *token, unless NULL, is the position of its first token in the sample,
 * where the network's output is that of the word; -1: it has none, because the sample was cut or it has no characters.
 */
TUTTI_API const char *tutti_data_word(
    const tutti_data *data, tutti_data_part part, int64_t index, int64_t word, int64_t *token);
/* Returns, as one JSON object, what a program must know of the data to use a network that was trained on them: kind,
 * shape, class names, mean and std, those of targets, columns. Save it with the weights: tutti_set_metadata(trainer,
 * "data", text). Free it with free(). NULL: failure. */
TUTTI_API char *tutti_data_json(const tutti_data *data);
/* Returns, as one JSON object, what a person wants to know of data before a training: samples of each part and class,
 * what was ignored; of tables each column with its values and what becomes of it; of pictures their sizes and formats,
 * of recordings rates and lengths, of other data the range of their numbers (docs/data.md#before-a-training). `most`:
 * files or samples that are opened for it, evenly spaced; 0: all. Free it with free(). NULL: failure. */
TUTTI_API char *tutti_data_inspect(const tutti_data *data, int64_t most);

#ifdef __cplusplus
}
#endif
#endif
