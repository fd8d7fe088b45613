/* Inside of tables: text becomes numbers. */
#ifndef DATA_TABLE_H
#define DATA_TABLE_H

#include "data/collection.h"
#include "data/statistics.h"
#include "formats/csv.h"

struct table_class {
    char *name;
    int32_t number; /* in the order in which they appear; ranked at the end */
};

/* The texts of a target that is a class, sorted by name. */
struct table_classes {
    struct table_class *list;
    size_t count, capacity;
};
/* Finds the number of a class, which is added if it is new. Errors: TUTTI_FORMAT if there are too many. */
tutti_status table_class_of(struct table_classes *classes, const char *name, int32_t *number);
/* Changes labels to the ranks of their classes, numbers by size before texts. */
tutti_status table_rank_classes(struct table_classes *classes, int32_t *labels, size_t count);

struct table {
    struct collection collection; /* first: they are one */
    char **columns;               /* names of all columns of the files */
    int column_count;
    int target;  /* a column */
    int skipped; /* a column without a name, which pandas writes for the index; -1: none */
    bool by_class;
    struct table_classes classes;
    const char **class_names;
    /* Rows of all files: numbers until fit(), then standardised floats in the same memory. */
    int inputs;
    double *values, *targets;
    float *ready, *ready_targets;
    int64_t *numbers; /* of rows in their file, from 1 on */
    size_t values_room, targets_room, labels_room, parts_room, numbers_room;
    struct augment augment;
    struct standards of_inputs, of_targets; /* of_targets: of one number, or empty */
    struct table_files {
        char *names[3]; /* each with the rows from begins[i] on */
        int64_t begins[3];
        int count;
    } files;
    int64_t damaged;
};

/* table_file.c: appends the rows of a file. */
tutti_status table_read(struct table *table, const char *path, int part, const tutti_data_options *options);

#endif
