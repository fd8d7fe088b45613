/* The user's data (tutti_data.h), as the command's options name them, and what saved weights record of their data. */
#ifndef TOOLS_USER_DATA_H
#define TOOLS_USER_DATA_H

#include "tools/options.h"
#include "tutti_data.h"

struct user_data_options {
    tutti_data_options data;
    int64_t cache_mib; /* if it is given */
    bool cache_given;
    bool quiet;     /* does not print notes: another rank does */
    bool defaulted; /* nobody has named the data */
    const char *missing;
    const char *input;
    tutti_shape shape; /* of images if `input` is NULL: the model's, or that of saved weights */
};

/* Lines of a table of options. */
#define OWN_OPTIONS(o)                                                                                                \
    { "input", OPTION((o).input), "CxHxW",                                                                            \
        "size of images for the network (default that of the weights, or the model's)" },                             \
        { "split", OPTION((o).data.split), "X",                                                                       \
            "part of each class that is held out, where the data have no val/ or test/ (default 0.2)", 1e-6,          \
            0.999999 },                                                                                               \
        { "cache", OPTION((o).cache_mib), "MIB", "MiB of decoded images that are kept in memory (default 1024)", 0,   \
            1e9, .given = &(o).cache_given },                                                                         \
        { "skip-damaged", OPTION((o).data.skip_damaged), NULL,                                                        \
            "leave out files that cannot be read, and name them, instead of failing" },                               \
        { "target", OPTION((o).data.target), "COLUMN", "of a table: the column to predict (default the last)" },      \
        { "missing", OPTION((o).missing), "HOW", "of a table: fill in missing values, or refuse them (default fill)", \
            .choices = own_missing },                                                                                 \
        { "layout", OPTION((o).data.layout), "ORDER",                                                                 \
            "of arrays [n, ...]: where channels are, as PyTorch or Keras has them (default nchw)",                    \
            .choices = own_layouts },                                                                                 \
    {                                                                                                                 \
        "data-threads", OPTION((o).data.threads), "N", "threads that read and decode (default one per processor)", 1, \
            1024                                                                                                      \
    }
/* Options of `tutti train`, after the others. */
#define OWN_TRAINING_OPTIONS(o)                                                                                \
    { "augment", OPTION((o).data.augment), "LIST",                                                             \
        "change training samples at random, such as crop,flip,color=0.4 (docs/augmentation.md)" },             \
        { "normalise", OPTION((o).data.normalise), "HOW",                                                      \
            "mean and standard deviation of samples (default by their kind, see docs/data.md)",                \
            .choices = own_normalisations },                                                                   \
        { "drop", OPTION((o).data.drop), "COL,...", "of a table: columns that are not inputs" },               \
        { "only", OPTION((o).data.only), "COL,...", "of a table: the columns that are inputs" },               \
        { "id", OPTION((o).data.row_names), "COL", "of a table: a column that names rows, not an input" },     \
        { "text", OPTION((o).data.text), "COL[,COL]",                                                          \
            "of a table: the column of texts to read, or two for pairs (docs/text.md), or of transcripts" },   \
        { "tokenizer", OPTION((o).data.tokenizer), "FILE",                                                     \
            "of texts: a tokenizer's file or folder, bytes, or words, wordpiece, bpe or characters, which "    \
            "are learned from the texts (default words, of language models bytes, of transcripts characters)", \
            .file = OPTION_READS },                                                                            \
        { "length", OPTION((o).data.length), "N",                                                              \
            "of texts: the most tokens of a sample (default 512, or fewer if all have fewer)", 1, 1048576 },   \
    {                                                                                                          \
        "oversample", OPTION((o).data.oversample), NULL, "draw each class equally often"                       \
    }

extern const char *const own_normalisations[], *const own_missing[], *const own_layouts[];

/* Opens the data; notes go to standard error. */
tutti_status user_data_open(
    const char *where, const struct user_data_options *options, tutti_data **data, tutti_data_info *info);

/* What weights record of the data that they were trained on: the text that tutti_data_json() gave. */
struct user_data_saved {
    char *text; /* tutti_data_options.description */
    char *kind; /* tutti_data_info.kind; NULL: it does not say */
    tutti_shape shape;
    char **classes;
    int class_count, target_count; /* targets: that are numbers */
    int rate;                      /* of recordings; 0: other data */
};
/* The text, which the caller frees, of weights or of an ONNX file; NULL: the file has none. */
char *user_data_saved_text(const char *weights);
/* *saved is NULL if the file has no such text. Errors: TUTTI_FORMAT if the text is damaged. */
tutti_status user_data_saved_read(const char *weights, struct user_data_saved **saved);
/* Reads it from the weights of the checkpoint NAME. */
tutti_status user_data_saved_read_checkpoint(const char *name, struct user_data_saved **saved);
void user_data_saved_free(struct user_data_saved *saved); /* takes NULL */
/* Has data prepared as those of the training were, and sets the size of images if it was not given. `saved` must
 * outlive the options. */
void user_data_saved_apply(const struct user_data_saved *saved, struct user_data_options *options);
/* Checks, to continue a training, that the data have all classes of the weights. `weights` is for the message. Errors:
 * TUTTI_MISMATCH names the first one that is missing. */
tutti_status user_data_saved_check(
    const struct user_data_saved *saved, const char *weights, const tutti_data_info *info);
/* Prints one line if a training that begins with weights has other columns of a table than that of the weights had, or
 * in another order. */
void user_data_warn_columns(const char *weights, const tutti_data *data);
/* Has a training of texts that begins with weights use the tokenizer of these, or checks that the given one is the
 * same. *json is what the options then refer to; the caller frees it. Errors: TUTTI_MISMATCH: it is another one, or the
 * weights have none and none was given. */
tutti_status user_data_take_tokenizer(const char *weights, struct user_data_options *options, char **json);
/* Has texts that are only read learn no tokenizer: without a description they are bytes. */
void user_data_keep_tokenizer(struct user_data_options *options);
/* Prints a line for each column of texts that nodes of an ONNX file do not know as they are in the table. */
void user_data_warn_texts(const struct user_data_saved *saved); /* takes NULL */
/* Prints a line on what an ONNX file with preparation takes of recordings, for a network with samples of this shape,
 * and what it leaves to the program. */
void user_data_report_waveform(const struct user_data_saved *saved, const tutti_shape *shape); /* takes NULL */

#endif
