/* Training and test samples of a command, as sources that the trainer reads. */
#ifndef TOOLS_DATA_H
#define TOOLS_DATA_H

#include "formats/dataset.h"
#include "tools/own_data.h"

struct samples {
    struct dataset images; /* empty for the line */
    int64_t count, first;  /* of the line: its first point's number */
    bool numbers;          /* targets are floats (mean squared error) */
    tutti_data_part part;  /* of data of one's own */
    tutti_source source;   /* reads from this struct: do not move it */
};

struct data {
    struct samples train, test;
    char name[64];
    int channels, height, width, classes;
    tutti_data *own;      /* NULL: one of the kinds above */
    tutti_data_info info; /* of `own` */
    bool numbers;         /* targets are floats */
};

/* Loads "digits", "line", a folder with the files of a published data set (formats/dataset_load.h), or data of one's
 * own (own_data.h). numbers: targets are floats, the labels as numbers; data of one's own say themselves what they are.
 * "line" is 1,000 points of y = 3 x + 2 and 200 for the test: what the linear model is tried on. */
tutti_status data_load(struct data *data, const char *where, bool numbers, const struct own_options *own);
/* Makes a part the one that is measured, of data of one's own: "test" (or what is there of it), "val" or "train".
 * Returns NULL if there is none. */
struct samples *data_part(struct data *data, const char *part);
/* Of a sample; what the network gives for it: classes, or numbers. */
tutti_shape data_shape(const struct data *data);
int data_outputs(const struct data *data);
/* What the network gives as a number of a sample, in the units of the data. */
double data_in_units(const struct data *data, int64_t number, double output);
/* Of data of one's own, else NULL: images that come as bytes; the shape of targets that are a class for each pixel. */
const tutti_data_info *data_pixels(const struct data *data);
const tutti_shape *data_masks(const struct data *data);
/* Images without classes, for inference: the network's classes become those of the data. */
bool data_is_unlabelled(const struct data *data);
/* Images are mixed, so that targets are probabilities, [classes] floats. */
bool data_mixes(const struct data *data);
/* They have a training part, one to look at, and classes or numbers. `where` is for the message. */
tutti_status data_check_training(const struct data *data, const char *where);
/* What is known of data of one's own goes into the saved weights. */
tutti_status data_keep(const struct data *data, tutti_trainer *trainer);
void data_free(struct data *data);

#endif
