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
/* Whole numbers have one name, however they are written: returns "1", in `number`, for 1.0; other texts as they are. */
enum { TABLE_NUMBER_NAME = 24 };
const char *table_class_name(const char *text, char number[TABLE_NUMBER_NAME]);
/* Finds the number of a class, which is added if it is new. Errors: TUTTI_FORMAT if there are too many. */
tutti_status table_class_of(struct table_classes *classes, const char *name, int32_t *number);
/* Changes labels to the ranks of their classes, numbers by size before texts. */
tutti_status table_rank_classes(struct table_classes *classes, int32_t *labels, size_t count);

/* Elements for which there is memory. */
struct table_room {
    size_t values, targets, labels, parts, numbers;
};

struct table {
    struct collection collection; /* first: they are one */
    char **columns;               /* names: those of the first file, or inputs and target of the training */
    int column_count;
    int target;     /* a column */
    int skipped;    /* a column without a name, which pandas writes for the index; -1: none */
    bool described; /* columns and classes are those of the training */
    bool by_class;
    int *fields;     /* [column_count]: where they stand in a row of the present file */
    int field_count; /* of a row */
    struct table_classes classes;
    const char **class_names;
    /* Rows of all files: numbers until fit(), then standardised floats in the same memory. */
    int inputs;
    double *values, *targets;
    float *ready, *ready_targets;
    int64_t *numbers; /* of rows in their file, from 1 on */
    struct table_room room;
    struct augment augment;
    struct standards of_inputs, of_targets; /* of_targets: of one number, or empty */
    struct table_files {
        char *names[3]; /* each with the rows from begins[i] on */
        int64_t begins[3];
        int count;
    } files;
    int64_t damaged;
};

/* table_columns.c: sets columns to those that a network was trained on; NULL, or other data: no change. */
tutti_status table_read_description(struct table *table, const char *description);
/* Sets the fields of the columns in a file by its first row, which it frees. The first file sets the columns, too. In
 * others, columns are found by name, and others than those of the table are left out with a note; *header becomes true
 * if the row turns out to have names. Errors: TUTTI_FORMAT, TUTTI_MISMATCH if some are missing. */
tutti_status table_set_columns(
    struct table *table, const char *path, const tutti_data_options *options, char **texts, int count, bool *header);
void table_free_texts(char **texts, int count);
/* Checks that a text can be a name. */
tutti_status table_check_text(const char *path, const char *text);

/* table_file.c: appends the rows of a file. */
tutti_status table_read(struct table *table, const char *path, int part, const tutti_data_options *options);

#endif
