/* Training and test samples of a command, as sources that the trainer reads. */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "tools/own_data.h"

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

/* Opens the data (tutti_data.h). numbers: labels of digits and of published data sets become numbers to predict. */
tutti_status data_load(struct data *data, const char *where, bool numbers, const struct own_options *own);
/* Makes a part the one that is measured: "train", "val" or "test"; of the last two, the one that there is. Returns NULL
 * if there is none. */
struct samples *data_part(struct data *data, const char *part);
/* What the network gives for a sample: classes, or numbers. */
int data_outputs(const struct data *data);
/* What the network gives as a number of a sample, in the units of the data. */
double data_in_units(const struct data *data, int64_t number, double output);
/* How many digits that has: those of a float, and more where its mean is far from 0. */
int data_digits(const struct data *data, int64_t number);
/* Else NULL: images that come as bytes; the shape of targets that are a class for each pixel. */
const tutti_data_info *data_pixels(const struct data *data);
const tutti_shape *data_masks(const struct data *data);
/* Images or recordings without classes, for inference: the network's classes become those of the data. */
bool data_is_unlabelled(const struct data *data);
/* Images are mixed, so that targets are probabilities, [classes] floats. */
bool data_mixes(const struct data *data);
/* They have a training part, one to look at, and classes or numbers. `where` is for the message. */
tutti_status data_check_training(const struct data *data, const char *where);
/* What is known of the data goes into the saved weights. */
tutti_status data_keep(const struct data *data, tutti_trainer *trainer);
void data_free(struct data *data);

#endif
