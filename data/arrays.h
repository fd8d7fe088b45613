/* Inside of arrays: which file or member is what. */
#ifndef DATA_ARRAYS_H
#define DATA_ARRAYS_H

#include "data/collection.h"
#include "data/statistics.h"
#include "formats/npy_rows.h"

/* An array in a file, read row by row, or in memory. */
struct array_rows {
    char *name;                    /* for messages; NULL: there is none */
    struct npy_rows *rows;         /* or NULL */
    const struct npz_array *array; /* type and shape */
    bool channels_last;            /* rows are read with their last axis first */
};
tutti_status array_rows_read(const struct array_rows *from, int64_t first, int64_t count, void *elements);

/* Slots: without a part, then those of tutti_data_part. */
enum { ARRAYS_SLOTS = 4 };
struct array_pairs {
    struct npz *npz; /* or NULL */
    struct array_rows inputs[ARRAYS_SLOTS], targets[ARRAYS_SLOTS];
};
/* Finds the arrays of a .npz file, a .npy file with others next to it, or a folder of .npy files, and checks that each
 * slot has both or none, with equally many samples. *found is false where the path is of another kind. */
tutti_status array_pairs_open(const char *path, struct array_pairs *pairs, bool *found);
void array_pairs_close(struct array_pairs *pairs);

/* array_targets.c: targets that are numbers to predict. */
struct array_targets {
    enum npz_type type;
    size_t count;               /* numbers of a target */
    struct standards standards; /* count 0: they stay as they are */
};
/* Sets what the info says of targets. `targets` is zero; free its standards also on failure. */
tutti_status array_targets_open(struct array_targets *targets, const struct npz_array *array,
    const tutti_data_options *options, tutti_data_info *info);
/* Mean and deviation of training samples, evenly spaced ones if there are many. from: [ARRAYS_SLOTS], with the samples
 * from begins[slot] on. */
tutti_status array_targets_measure(
    struct array_targets *targets, const struct array_rows *from, const int64_t *begins, const signed char *part);
/* The target of a row, [count]. Errors: TUTTI_FORMAT if it is not finite. */
tutti_status array_targets_read(
    const struct array_targets *targets, const struct array_rows *from, int64_t row, float *target);

/* array_classes.c: classes by name, in the order of their numbers, else of strcmp(). */
enum { ARRAYS_CLASSES = 1 << 16 }; /* at most */
struct array_classes {
    struct array_class {
        int64_t number; /* 0: it is a text */
        char *name;
    } * list;
    size_t count, room;
    const char **names; /* of the list */
};
/* Finds the classes of all targets, and the class of each sample. `classes` is zero; free it also on failure. The other
 * arguments are those of array_targets_measure(). */
tutti_status array_classes_read(
    struct array_classes *classes, const struct array_rows *from, const int64_t *begins, int32_t *labels);
void array_classes_free(struct array_classes *classes);

/* array_inputs.c: samples of numbers that are standardised: each number of a sample with one axis by itself, else each
 * channel, the first axis. */
struct array_inputs {
    struct standards standards; /* count 0: samples stay as they are */
    size_t elements, run;       /* numbers of a sample; of a channel */
};
/* Reads tutti_data_options.normalise, where NULL means none. `inputs` is zero; free its standards also on failure. */
tutti_status array_inputs_open(struct array_inputs *inputs, const tutti_shape *shape, size_t elements, const char *how);
/* Measures as array_targets_measure() does. */
tutti_status array_inputs_measure(
    struct array_inputs *inputs, const struct array_rows *from, const int64_t *begins, const signed char *part);
/* Standardises a row as it is stored. *finite is false if a number is not. */
tutti_status array_inputs_apply(
    const struct array_inputs *inputs, enum npz_type type, const void *row, float *sample, bool *finite);

/* Convert elements; bytes become 0 to 1. Return false if one is not finite. */
bool array_to_floats(enum npz_type type, const void *elements, size_t count, float *numbers);
bool array_to_doubles(enum npz_type type, const void *elements, size_t count, double *numbers);
/* Converts integers; false if one is not within 0 to `most`. */
bool array_to_labels(enum npz_type type, const void *elements, size_t count, int32_t most, int32_t *labels);

#endif
