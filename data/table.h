/* Inside of tables: text becomes numbers. */
#ifndef DATA_TABLE_H
#define DATA_TABLE_H

#include "base/text.h"
#include "data/collection.h"
#include "data/column.h"
#include "data/names.h"
#include "formats/csv.h"

enum { TABLE_FILES = 3 };

struct table_file {
    char *path;
    int part;       /* PART_OPEN: the rows of the file are divided */
    int64_t begins; /* its first row among those of all files */
    bool header;    /* its first row has names */
    char separator;
};

/* What is known while files are read. */
struct table_reading {
    const tutti_data_options *options;
    int field_count;      /* of a row of the present file */
    bool class_asked;     /* the caller wants the target's texts to be classes */
    bool comma;           /* "1,234" is a fraction */
    bool chosen;          /* kinds are those of all rows: what is of another kind is damaged */
    bool enough;          /* no more rows are asked for */
    bool no_targets;      /* the target's column is empty in all rows to predict: it counts as not there */
    bool misfit;          /* ... else something was found that is of another kind than the first rows */
    bool quiet;           /* files are read again: notes have been given */
    struct text left_out; /* the first rows that are left out, and why */
};

struct table_rows {
    double *values, *targets; /* [rows][cells], [rows] */
    int64_t *numbers;         /* in their file, from 1 on */
    struct names names;       /* where a column has them */
    size_t *name_at;
    size_t values_room, targets_room, labels_room, parts_room, numbers_room, names_room;
};

struct table {
    struct collection collection; /* first: they are one */
    struct column *columns;       /* those of the first file, or of the training */
    int column_count, target;
    bool described; /* columns and classes are those of the training */
    bool whole;     /* ... and columns that are not inputs are among them */
    bool by_class;
    bool unlabelled;             /* a file has no column for the target */
    int cells, width;            /* numbers of a row, and features of a sample */
    int64_t codes[COLUMN_CODES]; /* the last features: how many numbers each can be */
    struct table_rows rows;
    struct table_classes classes;
    const char **class_names;
    struct augment augment;
    struct standards of_targets; /* of one number, or empty */
    struct table_file files[TABLE_FILES];
    int file_count;
    int64_t damaged;
    struct table_reading reading;
};

/* table_files.c: finds the files of a path, none if it is of another kind. */
tutti_status table_find_files(struct table *table, const char *path);

/* table_describe.c: sets columns to those that a network was trained on; NULL: no change.
 * Errors: TUTTI_MISMATCH if it was trained on other data, TUTTI_INVALID if options choose columns otherwise. */
tutti_status table_restore(struct table *table, const char *description);
/* collection.describe */
int table_describe(const struct collection *collection, struct json_t *object);

/* table_inspect.c: collection.inspect */
int table_inspect(const struct collection *collection, int64_t most, struct json_t *object);

/* table_columns.c: sets the fields of the columns in a file by its first row, which it frees. The first file sets the
 * columns, too. In others, columns are found by name, and others than those of the table are left out with a note;
 * *header becomes true if the row turns out to have names. Errors: TUTTI_FORMAT, TUTTI_MISMATCH if some are
 * missing. */
tutti_status table_set_columns(struct table *table, const char *path, char **texts, int count, bool *header);
void table_free_texts(char **texts, int count);
/* Finds the columns of a list such as "a,b", and calls these `wanted`. A name with commas stands by itself. `path`: who
 * has the columns. Errors: TUTTI_INVALID if one is not there. */
tutti_status table_find_listed(const char *path, char *const *names, int count, const char *list, bool *wanted);
/* Checks that a text can be a name. */
tutti_status table_check_text(const char *path, const char *text);
/* Tells a line, which may have failed, to the caller; file NULL: none. */
void table_note(const struct table *table, const char *file, const struct text *line);

/* table_profile.c: chooses the kinds of columns by the first rows of all files, or by all rows. */
tutti_status table_choose_kinds(struct table *table, bool all);
/* Leaves out inputs that turn out to say nothing once all rows are read. Errors: TUTTI_FORMAT if none is left. */
tutti_status table_check_inputs(struct table *table);

/* table_file.c: calls a function for the rows of a file that are not empty, `number` from 1 on, until it fails, for
 * the first `most` rows, or until it sets reading.enough. */
tutti_status table_walk(struct table *table, int file, int64_t most,
    tutti_status (*row)(struct table *table, int file, const struct csv_row *row, int64_t number));
/* table_rows.c: reads the rows of all files; those that it had are forgotten. */
tutti_status table_read(struct table *table);
/* Finds whether the target's column is empty in all rows to predict: reading.no_targets. */
tutti_status table_look_for_targets(struct table *table);

#endif
