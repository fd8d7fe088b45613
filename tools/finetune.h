/* Options of `tutti train` for networks that are nearly right: weights with another head, what trains from when on and
 * how fast, and what the loss makes of labels. */
#ifndef TOOLS_FINETUNE_H
#define TOOLS_FINETUNE_H

#include "tools/labels.h"

struct finetune {
    const char *weights, *freeze, *unfreeze, *rates, *class_weights, *find_rate;
    int64_t unfreeze_after, folds, ignored;
    double label_smoothing;
    bool ignored_given, thawed;
    float *weight_of; /* each class */
};

/* Lines of a table of options. */
#define FINETUNE_OPTIONS(f)                                                                                           \
    OPTION_HEADING("Fine-tuning"),                                                                                    \
        { .name = "weights",                                                                                          \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).weights,                                                                                    \
            .noun = "FILE",                                                                                           \
            .help =                                                                                                   \
                "begin with the weights of a safetensors file, as far as names and shapes fit; the rest is listed" }, \
        { .name = "freeze",                                                                                           \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).freeze,                                                                                     \
            .noun = "PATTERN,...",                                                                                    \
            .help =                                                                                                   \
                "do not train parameters whose names are like a PATTERN, such as \"features.*\": * is any text, ? "   \
                "a character" },                                                                                      \
        { .name = "unfreeze-after",                                                                                   \
            .kind = OPTION_INTEGER,                                                                                   \
            .value = &(f).unfreeze_after,                                                                             \
            .noun = "EPOCH",                                                                                          \
            .low = 1,                                                                                                 \
            .high = 1e9,                                                                                              \
            .help = "train what is frozen, too, after so many epochs" },                                              \
        { .name = "unfreeze",                                                                                         \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).unfreeze,                                                                                   \
            .noun = "PATTERN,...",                                                                                    \
            .help = "of that, only parameters whose names are like a PATTERN" },                                      \
        { .name = "rate",                                                                                             \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).rates,                                                                                      \
            .noun = "PATTERN=X,...",                                                                                  \
            .help = "multiply the learning rate by X for parameters whose names are like PATTERN" },                  \
        OPTION_HEADING("Losses"),                                                                                     \
        { .name = "label-smoothing",                                                                                  \
            .kind = OPTION_NUMBER,                                                                                    \
            .value = &(f).label_smoothing,                                                                            \
            .noun = "X",                                                                                              \
            .low = 0,                                                                                                 \
            .high = 0.999,                                                                                            \
            .help = "divide X of each label's weight among all classes" },                                            \
        { .name = "class-weights",                                                                                    \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).class_weights,                                                                              \
            .noun = "LIST",                                                                                           \
            .help = "multiply losses by the class's weight: balanced (by the classes' numbers of samples), or a "     \
                    "number for each class" },                                                                        \
        { .name = "ignore-label",                                                                                     \
            .kind = OPTION_INTEGER,                                                                                   \
            .value = &(f).ignored,                                                                                    \
            .noun = "N",                                                                                              \
            .low = 0,                                                                                                 \
            .high = 2147483647,                                                                                       \
            .given = &(f).ignored_given,                                                                              \
            .help = "samples, or pixels, with the label N do not count" },                                            \
        OPTION_HEADING("Instead of one training"),                                                                    \
        { .name = "find-lr",                                                                                          \
            .kind = OPTION_TEXT,                                                                                      \
            .value = &(f).find_rate,                                                                                  \
            .noun = "FILE",                                                                                           \
            .help = "try learning rates, suggest one and draw their losses as an SVG file" },                         \
    {                                                                                                                 \
        .name = "folds", .kind = OPTION_INTEGER, .value = &(f).folds, .noun = "K", .low = 2, .high = 100,             \
        .help = "divide the training data by K and train K times, each time with another part as the test"            \
    }

/* Checks that the options fit each other and --resume. Returns an exit status, as do all functions that return
 * int. */
int finetune_check(const struct finetune *finetune, const char *resume);
/* Determines whether the training resumes after the thaw. All ranks call it before anything that may fail on one of
 * them. */
void finetune_begin(struct finetune *finetune, const char *resume, tutti_hosts *hosts);
/* Before compiling: freezes parameters of the session's network, and sets the rates of patterns. */
int finetune_network(struct finetune *finetune, const struct session *session);
/* Sets the options of the session's loss, if targets are not numbers. Reads the labels of the source if class weights
 * need them. */
int finetune_loss(
    struct finetune *finetune, struct session *session, const struct data *data, const tutti_source *source);
/* After compiling: loads the weights, and lists on standard error which of them did not fit. */
int finetune_load(const struct finetune *finetune, const struct session *session);
/* The epochs after which finetune_thaw() has work to do; 0: never. */
int64_t finetune_pause(const struct finetune *finetune);
/* Unfreezes what was frozen: the session gets a new trainer, which goes on where the old one stopped. */
int finetune_thaw(struct finetune *finetune, struct session *session, tutti_training *training);
void finetune_free(struct finetune *finetune);

#endif
