/* A column of a table: how its texts become numbers, and these the inputs of a network. */
#ifndef DATA_COLUMN_H
#define DATA_COLUMN_H

#include "data/statistics.h"

struct json_t; /* jansson's */

enum { COLUMN_KINDS = 7, COLUMN_FEATURES = 6, COLUMN_DATES = 6, COLUMN_CATEGORIES = 1000, COLUMN_TEXT = 1000 };
enum { COLUMN_CODES = 64 }; /* columns of a table that can be codes */

/* Different texts, sorted by name, each with its number: in the order in which they appear. */
struct table_class {
    char *name;
    int32_t number;
};
struct table_classes {
    struct table_class *list;
    size_t count, capacity;
};
/* Whole numbers have one name, however they are written: returns "1", in `number`, for 1.0; other texts as they are. */
enum { TABLE_NUMBER_NAME = 24 };
const char *table_class_name(const char *text, char number[]);
/* Finds the number of a class, which is added if it is new. Errors: TUTTI_FORMAT if there are too many. */
tutti_status table_class_of(struct table_classes *classes, const char *name, int32_t *number);
int32_t table_class_find(const struct table_classes *classes, const char *name); /* -1: it is not there */
/* Changes labels to the ranks of their classes, numbers by size before texts. */
tutti_status table_rank_classes(struct table_classes *classes, int32_t *labels, size_t count);
void table_classes_free(struct table_classes *classes); /* none are left */

enum column_role {
    COLUMN_INPUT,
    COLUMN_TARGET,
    COLUMN_NAME,    /* names the rows, and is not learned */
    COLUMN_LEFT_OUT /* nobody looks at it */
};

/* What is known of a column's texts before its kind is chosen. */
struct column_profile {
    int64_t filled, numbers;        /* texts that are not missing; of these, plain numbers */
    int64_t dates[COLUMN_DATES];    /* texts that are dates of each format, while most are dates */
    unsigned formats[COLUMN_KINDS]; /* that all of them have; 0: some are not of the kind */
    bool fractions;                 /* some numbers are not whole */
    bool points;                    /* some numbers have a point */
    bool many;                      /* there are more different texts than can be categories */
};

struct column {
    char *name;
    enum column_role role;
    const char *reason; /* of one that is left out; NULL: not known */
    const struct column_kind *kind;
    unsigned format; /* of a kind that has several: one bit */
    int field;       /* where it stands in a row of the present file; -1: not there */
    int cell;        /* of inputs, in a row of the table */
    int at;          /* of inputs: where its features begin in a sample */
    bool known;      /* it is as in the training of a network: fit() changes nothing */
    bool plain;      /* mean and std are given: fit() does not measure them */
    bool bounded;    /* categories beyond the most are taken as not seen, instead of being of another kind */
    bool indicator;  /* the last feature says whether the value is missing */
    bool controls;   /* texts had control characters, which are taken as blanks */
    double median;   /* of numbers: what a missing one becomes */
    double mean[COLUMN_FEATURES], std[COLUMN_FEATURES];
    struct table_classes categories;
    int32_t *slots;      /* the feature of each category; 0: not in the training part */
    int slot_count;      /* with that of texts that were not seen */
    int64_t codes_above; /* of categories: if the training part has more, the only feature is the slot; 0: never */
    bool code;           /* ... and it is so */
    struct column_profile profile;
};

/* The values of a column: one of `stride` doubles in each row, NaN where it is missing; which rows train. */
struct column_cells {
    const double *first;
    size_t stride;
    int64_t rows;
    const signed char *part;
};

struct column_kind {
    const char *name; /* in descriptions */
    const char *noun; /* in messages: "a number" */
    bool is_number;   /* a target is predicted as a number */
    bool mostly;      /* more than half of its texts must not be plain numbers */
    /* Returns the formats that a text has, a bit for each; 0: it is of another kind. */
    unsigned (*recognise)(const char *text);
    /* Errors: TUTTI_FORMAT without a message if the text is of another kind. */
    tutti_status (*read)(struct column *column, const char *text, double *value);
    /* Computes, from the rows that train, all that features need. */
    tutti_status (*fit)(struct column *column, const struct column_cells *cells);
    int (*width)(const struct column *column); /* features, after fit() or restore() */
    void (*write)(const struct column *column, double value, float *features);
    /* What fit() has computed, as JSON and back. describe() returns 0, or -1 on failure; restore() false if it is
     * damaged. */
    int (*describe)(const struct column *column, struct json_t *object);
    bool (*restore)(struct column *column, const struct json_t *object);
};

/* The numbers that a code can be. */
int64_t column_codes(const struct column *column);

/* The kinds, the one to prefer before others that take the same texts. The last one takes all texts. */
extern const struct column_kind *const column_kinds[COLUMN_KINDS];
extern const struct column_kind column_number, column_boolean, column_percent, column_thousands, column_comma,
    column_date, column_category;

/* Frees what the column has, but not the struct. */
void column_free(struct column *column);
/* Whether a text stands for a missing value. */
bool column_is_missing(const char *text);
/* Adds a text to the profile. */
tutti_status column_profile(struct column *column, const char *text);
/* Chooses the kind by the profile; `comma`: "1,234" is a fraction. NULL: none takes all texts that are not missing. */
const struct column_kind *column_choose(struct column *column, bool comma);
/* Whether all texts are plain numbers, but such as 999 and 1.234, where a point may stand before thousands. */
bool column_may_be_comma(const struct column *column);
/* Whether nine in ten texts or more, but not all, are dates of one format. */
bool column_is_mostly_dates(const struct column *column);
/* The formats of the column's kind that all texts of the profile have. */
unsigned column_formats(const struct column *column);

/* column_dates.c: takes the day as first where all texts may be dates with either order. */
void column_date_take_day_first(struct column *column);
/* Whether all texts are dates with either order; once they are read, whether a value has a day that cannot be a month.
 */
bool column_date_is_open(const struct column *column);
bool column_date_has_late_day(double value);
bool column_date_is_day_first(const struct column *column);
/* "2001-12-31", perhaps with the time; "14:30" in a column of times. */
void column_date_print(const struct column *column, double value, char *text, size_t size);

/* Takes the kind of this name; NULL: there is none. */
const struct column_kind *column_kind_named(const char *name);

/* Measures mean and deviation of `count` features of the values that train, and their median; tells whether some are
 * missing. split() makes features of a value; NULL: the value is the one. Errors: TUTTI_NO_MEMORY. */
tutti_status column_measure(
    struct column *column, const struct column_cells *cells, int count, void (*split)(double value, double *features));
/* (value - mean) / std of a feature; a value very far from the mean says no more than one nearer to it. */
float column_standardise(const struct column *column, int feature, double value);
/* What column_measure() has set, as JSON and back. */
int column_describe_measured(const struct column *column, int count, struct json_t *object);
bool column_restore_measured(struct column *column, int count, const struct json_t *object);

#endif
