/* Options of a command, as a table from which both the parser and --help are made. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "tools/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Texts, then numbers. OPTION_CHOICE sets an enumeration. */
enum option_kind {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_TEXTS,
    OPTION_CHOICE,
    OPTION_INT,
    OPTION_INTEGER,
    OPTION_FLOAT,
    OPTION_NUMBER
};

/* What a command does with the file that an option names: it is checked that nothing is written over what is read
 * (overwrite.h). The variable of weights gets the file that files_weights() finds; a checkpoint, NAME, has two files,
 * and --save may write those of --resume; arrays are a list of NAME=FILE. */
enum option_file {
    OPTION_NO_FILE,
    OPTION_READS, /* a file or folder; -: standard input */
    OPTION_READS_WEIGHTS,
    OPTION_READS_CHECKPOINT,
    OPTION_READS_ARRAYS,
    OPTION_WRITES,
    OPTION_WRITES_CHECKPOINT
};

/* The variable of OPTION_TEXTS, which may be given several times. */
enum { OPTION_MOST_TEXTS = 16 };
struct texts {
    const char *list[OPTION_MOST_TEXTS];
    int count;
};

struct option {
    const char *name; /* "batch" for --batch */
    enum option_kind kind;
    void *value;      /* the variable: holds the default, gets what was given */
    const char *noun; /* of the value, for --help: "N" */
    const char *help; /* one line */
    double low, high; /* bounds of numbers, both included; equal: none */
    /* Accepted texts, ended by NULL; NULL: any but an empty text. A variable of an enumeration gets the position of the
     * chosen one, from `low` on. */
    const char *const *choices;
    enum option_file file;
    bool *given;         /* set if the option was given; NULL: not needed */
    const char *heading; /* heading of the options after it, for --help; replaces all other members */
};
/* Kind and value of a row, by the type of the variable: often a member of a struct that the library takes. */
/* clang-format off */
#define OPTION(variable)                                                                             \
    _Generic((variable), bool: OPTION_FLAG, const char *: OPTION_TEXT, struct texts: OPTION_TEXTS,   \
        unsigned: OPTION_CHOICE, int: OPTION_INT, int64_t: OPTION_INTEGER, uint64_t: OPTION_INTEGER, \
        float: OPTION_FLOAT, double: OPTION_NUMBER), &(variable)
#define OPTION_HEADING(text) { .name = "", .heading = (text) }
/* clang-format on */
/* The rows of a command, for `options` and `count`. */
#define OPTION_ROWS(rows) .options = (rows), .count = sizeof(rows) / sizeof((rows)[0])

struct usage {
    const char *command;  /* "train" */
    const char *summary;  /* one line */
    const char *argument; /* the noun of the one positional argument ("MODEL"), or NULL */
    bool argument_optional;
    const char *from_options[2];  /* options that say the argument, which may be left out with one of them; or NULL */
    const char *const *arguments; /* what it may be, ended by NULL; NULL: anything */
    const char *arguments_take;   /* a line on what they take, or NULL */
    const char *suffix;           /* of files that it may be, too (".onnx"), or NULL */
    /* The noun of arguments that may follow it ("PHOTO"), or NULL. With one of from_options, the first one may be of
     * these. */
    const char *more;
    int *more_count;     /* gets their number; they are moved to argv[1 ...] */
    const char *table;   /* lines after the options that stay as they are, or NULL */
    const char *details; /* text after these, or NULL: lines are broken anew, but for empty ones */
    const struct option *options;
    int count;
};

/* What the caller does next. */
enum parsed { PARSED_RUN, PARSED_HELP, PARSED_WRONG };

/* Reads argv[1 ...]: "--name value", "--name=value", flags, and the positional argument into *argument. --help prints
 * the help to standard output; a wrong use prints one line to standard error. */
enum parsed options_parse(const struct usage *usage, int argc, char **argv, const char **argument);
/* Has options_parse() call `visit` with the usage of a command, and return PARSED_HELP; NULL: it reads words again. */
typedef void options_visitor(const struct usage *usage, void *user);
void options_visit(options_visitor *visit, void *user);
/* PARSED_HELP and PARSED_WRONG as exit statuses. */
int parsed_exit(enum parsed parsed);

#endif
