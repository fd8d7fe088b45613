/* Training and test samples of a command, as sources that the trainer reads. */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "models/models.h"
#include "tools/user_data.h"

struct samples {
    int64_t count;
    tutti_data_part part;
    tutti_source source;
};

struct data {
    struct samples train, test;
    tutti_data *opened; /* where the samples are from */
    tutti_data_info info;
    int classes;
    bool numbers; /* targets are floats */
};

/* The built-in data that a command uses without --data; whatever lies in the folder, they are not a path. */
const char *data_default(bool numbers);
/* Opens the data (tutti_data.h). */
tutti_status data_load(struct data *data, const char *where, const struct user_data_options *own);
/* Selects the part that is measured: "train", "val", "test" or "all"; if only one of val and test exists, that one.
 * Returns NULL if there is none. */
struct samples *data_part(struct data *data, const char *part);
/* Returns the number of outputs for a sample: classes, or numbers. */
int data_outputs(const struct data *data);
/* Returns what networks depend on. */
struct model_facts data_facts(const struct data *data);
/* Whether samples are texts: tokens of several lengths; whether they are recordings with transcripts. */
bool data_is_text(const struct data *data);
bool data_is_speech(const struct data *data);
/* Converts an output to the units of the data. */
double data_in_units(const struct data *data, int64_t number, double output);
/* Returns how many digits such a number has: those of a float, more if its mean is far from 0. */
int data_digits(const struct data *data, int64_t number);
/* Returns the description of images that come as bytes; returns the shape of targets with a class for each pixel.
 * NULL for other data. */
const tutti_data_info *data_pixels(const struct data *data);
const tutti_shape *data_masks(const struct data *data);
/* Images or recordings without classes, for inference: the network's classes become those of the data. */
bool data_is_unlabelled(const struct data *data);
/* Images are mixed, so that targets are probabilities, [classes] floats. */
bool data_mixes(const struct data *data);
/* Checks that there are samples to train with and to test with. `where` is for the message. */
tutti_status data_check_training(const struct data *data, const char *where);
/* Reads the first sample of each class, or the first one of all, so that a kind of file that cannot be read is found
 * before networks are compiled. Errors: those of the source, which name the file. */
tutti_status data_check_first(const struct data *data, const struct samples *samples);
/* Says in a line how many damaged samples a measurement has left out, if any. */
void data_report_left_out(const struct samples *samples, int64_t measured);
/* Adds what is known of the data to the saved weights. */
tutti_status data_keep(const struct data *data, tutti_trainer *trainer);
void data_free(struct data *data);

#endif
