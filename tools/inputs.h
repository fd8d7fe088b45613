/* Files to predict, as the arguments name them: files, folders with what is below them, and lists of names. */
#ifndef TOOLS_INPUTS_H
#define TOOLS_INPUTS_H

#include "tutti.h"

#include <stdbool.h>

/* What the network was trained on. */
enum inputs_kind { INPUTS_ANY, INPUTS_PICTURES, INPUTS_RECORDINGS, INPUTS_TABLES, INPUTS_TEXTS };

struct inputs {
    const char *command;
    enum inputs_kind kind;
    bool each; /* recordings are opened one by one, as their length says their size */
    /* [count]: `path` in memory of this struct; a sample of its own, or else data that are opened by themselves. A bad
     * one was named in a line, and keeps its place among pictures and recordings. */
    struct input {
        char *path;
        bool sample, bad;
    } * list;
    size_t count, room;
    int64_t bad;     /* named in a line */
    int64_t ignored; /* files of other kinds in a folder */
};

/* Whether a file is a table of texts: rows, or lines of JSON. */
bool inputs_is_text_table(const char *name);
/* Adds what an argument names. Files that are not there, or of another kind than the network's data, are named in a
 * line and are bad. "-" reads names from standard input, one a line. Errors: TUTTI_NO_MEMORY, TUTTI_FILE. */
tutti_status inputs_add(struct inputs *inputs, const char *argument);
/* Counts a file that turns out to be bad, with the last message as its line. */
void inputs_leave_out(struct inputs *inputs);
void inputs_free(struct inputs *inputs);

#endif
