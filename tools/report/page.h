/* Pages that need no other files: report.html, filled with facts. */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include "formats/json_lines.h"
#include "tools/report/page_text.h"

#include <jansson.h>

extern const char embedded_report[], embedded_style[]; /* report.html and style.css: embed.py makes them texts */

/* Ends an object of facts and frees the line. Returns NULL without memory. */
json_t *page_facts(struct json_line *line);
/* Adds a text, such as a picture, to facts, and frees it. */
void page_member(struct json_line *line, const char *key, struct text *text);
/* Writes the page of the facts, and frees them; NULL: there was no memory for them. */
tutti_status page_write(json_t *facts, const char *path);

#endif
