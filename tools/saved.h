/* What eval and infer share: a network with saved weights, and one part of the data. */
#ifndef TOOLS_SAVED_H
#define TOOLS_SAVED_H

#include "tools/data.h"
#include "tools/saved_model.h"
#include "tools/session.h"

struct saved_options {
    const char *model, *weights, *data, *part;
    bool json, part_given;
    struct session_options session;
    struct user_data_options own;
    struct saved_model network;    /* as the weights say */
    struct user_data_saved *known; /* of the weights, once they are opened; freed by saved_free() */
};
#define SAVED_DEFAULTS                                \
    {                                                 \
        .part = "test", .session.training.batch = 100 \
    }

extern const char *const saved_parts[];

/* Lines of a table of options. */
#define SAVED_OPTIONS(s)                                                                                       \
    { "weights", OPTION((s).weights), "FILE", "safetensors file with the weights, written by train --save",    \
        .file = OPTION_READS_WEIGHTS },                                                                        \
    {                                                                                                          \
        "batch", OPTION((s).session.training.batch), "N", "samples computed at once, over all devices", 1, 1e9 \
    }
/* Options after the command's own ones. */
#define SAVED_MORE_OPTIONS(s)                                                                                         \
    OPTION_HEADING("Data"),                                                                                           \
        { "data", OPTION((s).data), "DIR",                                                                            \
            "folder or file of the data, - for a table from standard input, digits or line (default digits; for "     \
            "linear: line)",                                                                                          \
            .file = OPTION_READS },                                                                                   \
        { "part", OPTION((s).part), "PART", "part of the data, as the training divided them", .choices = saved_parts, \
            .given = &(s).part_given },                                                                               \
        OWN_OPTIONS((s).own), SESSION_OPTIONS((s).session)

/* Takes the model of the weights if none was given, and refuses another one. Returns an exit status. */
int saved_choose(const char *command, struct saved_options *options);
/* Reads what the weights, or an ONNX file, record of their data into options->known. Returns an exit status. */
int saved_read_known(const char *command, struct saved_options *options);
/* Loads the data, opens the devices, builds and compiles the model and loads its weights, which an ONNX file has
 * itself; with_loss: as for training. Fills options->data where it was not given. Returns an exit status. */
int saved_open(const char *command, struct saved_options *options, bool with_loss, struct session *session,
    struct data *data, struct samples **part);

/* The steps of it: reads what the weights say; loads data, also others for the same network; compiles for batches of
 * at most so many samples. */
int saved_begin(const char *command, struct saved_options *options, bool with_loss);
int saved_compile(const char *command, struct saved_options *options, bool with_loss, struct session *session,
    const struct data *data, int64_t samples);
tutti_status saved_load_data(struct saved_options *options, struct data *data, struct samples **part);
void saved_free(struct saved_options *options);

/* Opens the devices and builds the model as it is: a file with all its inputs and outputs. `input` is the shape of a
 * sample as text, `classes` the number of outputs, and `arrays` a file with arrays for the inputs, which say the sizes
 * that a file leaves open; NULL and 0: those that the weights say, else the model's. Returns an exit status. */
int saved_build(const char *command, const struct saved_options *options, const char *input, int64_t classes,
    const char *arrays, struct session *session);
/* The file that may record the data of the training: of weights, or an ONNX file. NULL: there is none. */
const char *saved_weights(const struct saved_options *options);
/* Loads the weights into the compiled network, if there are some. Returns an exit status. */
int saved_load(const char *command, const struct saved_options *options, struct session *session);

#endif
