/* Options of `tutti train` for networks that are nearly right: weights with another head, what trains from when on and
 * how fast, and what the loss makes of labels. */
#ifndef TOOLS_FINETUNE_H
#define TOOLS_FINETUNE_H

#include "tools/labels.h"

struct finetune {
    const char *weights, *freeze, *unfreeze, *rates, *class_weights, *find_rate;
    int64_t unfreeze_after;
    int folds;
    tutti_loss_options loss; /* without class weights */
    bool thawed;
    float *weight_of; /* each class */
};

/* Lines of a table of options. */
#define FINETUNE_OPTIONS(f)                                                                                            \
    OPTION_HEADING("Fine-tuning"),                                                                                     \
        { "weights", OPTION((f).weights), "FILE",                                                                      \
            "begin with the weights of a safetensors file, as far as names and shapes fit; the rest is listed",        \
            .file = OPTION_READS_WEIGHTS },                                                                            \
        { "freeze", OPTION((f).freeze), "PATTERN,...",                                                                 \
            "do not train parameters whose names are like a PATTERN, such as \"features.*\": * is any text, ? a "      \
            "character" },                                                                                             \
        { "unfreeze-after", OPTION((f).unfreeze_after), "EPOCH", "train what is frozen, too, after so many epochs", 1, \
            1e9 },                                                                                                     \
        { "unfreeze", OPTION((f).unfreeze), "PATTERN,...",                                                             \
            "of that, only parameters whose names are like a PATTERN" },                                               \
        { "rate", OPTION((f).rates), "PATTERN=X,...",                                                                  \
            "multiply the learning rate by X for parameters whose names are like PATTERN" },                           \
        OPTION_HEADING("Losses"),                                                                                      \
        { "label-smoothing", OPTION((f).loss.label_smoothing), "X",                                                    \
            "divide X of each label's weight among all classes", 0, 0.999 },                                           \
        { "class-weights", OPTION((f).class_weights), "LIST",                                                          \
            "multiply losses by the class's weight: balanced (by the classes' numbers of samples), or a number for "   \
            "each class" },                                                                                            \
        { "ignore-label", OPTION((f).loss.ignored), "N", "samples, or pixels, with the label N do not count", 0,       \
            2147483647, .given = &(f).loss.has_ignored },                                                              \
        OPTION_HEADING("Instead of one training"),                                                                     \
        { "find-lr", OPTION((f).find_rate), "FILE",                                                                    \
            "try learning rates, suggest one and draw their losses as an SVG file", .file = OPTION_WRITES },           \
    {                                                                                                                  \
        "folds", OPTION((f).folds), "K",                                                                               \
            "divide the training data by K and train K times, each time with another part as the test", 2, 100         \
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
int finetune_thaw(struct finetune *finetune, struct session *session);
void finetune_free(struct finetune *finetune);

#endif
