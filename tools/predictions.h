/* infer --output: predictions as a table, which appears under its name when it is complete. */
#ifndef TOOLS_PREDICTIONS_H
#define TOOLS_PREDICTIONS_H

#include "base/text.h"
#include "formats/csv.h"
#include "tools/data.h"

struct predictions {
    const char *path; /* NULL: none is written, and the functions below do nothing */
    bool several;     /* rows of several tables: the first column is their file */
    struct atomic_file *file;
    struct text text; /* not yet written */
    int64_t count;    /* rows with a prediction */
    char **waiting;   /* [waiting_count]: names of bad files before the first sample */
    size_t waiting_count, waiting_room;
    bool begun;     /* the names of columns are written */
    char **columns; /* of the tables, [column_count]; 0: samples have a column for their file */
    int column_count;
    int fields;    /* after those columns */
    int *field_of; /* of each column in the table whose rows are written, -1: none; NULL: they are in the same order */
    /* The table whose rows are written. */
    const char *table;
    struct csv *csv;
    bool whole; /* rows without a prediction are written, too */
    int64_t row;
};

/* What the predictions of some samples are. */
struct predicted {
    const struct data *data;
    const char *table; /* the file whose rows the samples are, or NULL */
    bool whole;
    const char *const *names; /* of the classes; NULL: they have numbers */
    int64_t count;            /* classes, or numbers */
    bool numbers, shares;
};

/* Checks the path. Prints a line and returns an exit status. */
int predictions_check(const struct predictions *predictions, const char *command);

/* Adds the columns of a table, whose rows are to come with those of others: they are found by name. names: its first
 * row has some. Before predictions_begin(). */
tutti_status predictions_add_columns(struct predictions *predictions, const char *table, bool names);
/* Opens the file at the first call. Errors: TUTTI_MISMATCH if a table has other columns than the one before. */
tutti_status predictions_begin(struct predictions *predictions, const struct predicted *predicted);
/* Adds a sample: its row in the table, which may change with predictions_add_columns(), or its name; probabilities of
 * the classes, or numbers. NULL: it has no prediction. */
tutti_status predictions_add(struct predictions *predictions, const struct predicted *predicted, int64_t row,
    const char *name, const double *values);
/* Adds a file that cannot be opened. Its row waits for the first predictions_begin(), which says how many fields there
 * are. */
tutti_status predictions_add_bad(struct predictions *predictions, const char *name);
/* After the last sample of predictions_begin(). */
tutti_status predictions_end(struct predictions *predictions, const struct predicted *predicted);
/* Shows the file under its name, if it was begun. */
tutti_status predictions_commit(struct predictions *predictions);
void predictions_free(struct predictions *predictions);

#endif
