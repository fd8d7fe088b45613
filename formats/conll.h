/* Files with a word on each line and an empty line between sentences: columns as CoNLL-2003 has them, and CoNLL-U. */
#ifndef FORMATS_CONLL_H
#define FORMATS_CONLL_H

#include "tutti.h"

enum { CONLL_MOST_COLUMNS = 64 };

struct conll_row {
    int64_t line; /* of the file, from 1 on */
    int count;    /* fields; 0: the file has ended */
    const char *fields[CONLL_MOST_COLUMNS];
    bool begins; /* it is the first word of a sentence */
};

/* Whether files of this name are such: .conll, .conllu, .iob, .iob2 and .bio, also with .gz after it. */
bool conll_has_name(const char *path);
struct conll;
/* Errors: TUTTI_FILE. */
tutti_status conll_open(const char *path, struct conll **conll);
/* Reads the next word; the row is valid until the next call. Tabs separate fields if the first row has some, else
 * blanks. Left out are lines of comments, -DOCSTART-, and, of CoNLL-U, ranges of words and empty nodes. Lines before a
 * sentence that begin with # are comments in CoNLL-U, and where the file begins with such a line. Errors: TUTTI_FORMAT
 * with file and line if a row has another number of fields than the first one. */
tutti_status conll_next(struct conll *conll, struct conll_row *row);
/* The number of a column by its name (of CoNLL-U, whose columns have names) or by its number, from 1 on, as a text; -1:
 * there is none. NULL: that of words, or with `tag` that of tags: the first and the last, FORM and UPOS of CoNLL-U.
 * Call it after conll_next(). */
int conll_column(const struct conll *conll, const char *name, bool tag);
/* Whether the file is CoNLL-U, where _ says that a value is not given. */
bool conll_is_universal(const struct conll *conll);
void conll_close(struct conll *conll); /* takes NULL */

#endif
