/* What `tutti inspect` says of data, from one object of facts: that of tutti_data_inspect(), with "path", "notes"
 * (texts), "problem" (why a training would refuse the data), "next" (a command, if they can train) and "models" (those
 * that take the data). */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "base/text.h"
#include "tools/data.h"

#include <jansson.h>

/* inspect_text.c: prints the facts for people; `all`: every column and class. */
void inspect_print(const json_t *facts, bool all);
/* What the data are, in a few words; the values of a column, in at most `width` characters. */
void inspect_append_title(struct text *text, const json_t *facts);
void inspect_append_values(struct text *text, const json_t *column, int width);
/* "a 12, b 3", up to `most`, and how many more there are; `counted` is the key of the number. */
void inspect_append_list(struct text *text, const json_t *list, const char *counted, size_t most);
/* The lines of the summary, by number from 0 on: name and text. Returns NULL after the last one. */
const char *inspect_line(int number, const json_t *facts, bool all, struct text *text);

/* inspect_page.c: writes the page. `data` are open, for their pictures. */
tutti_status inspect_page(const json_t *facts, const struct data *data, const char *path, bool all);

#endif
