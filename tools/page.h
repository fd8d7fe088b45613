/* Pages that need no other files: report.html, filled with facts; texts and numbers in them. */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include "formats/json_lines.h"

#include <jansson.h>

extern const char embedded_report[], embedded_style[]; /* report.html and style.css: embed.py makes them texts */

/* Ends an object of facts and frees the line. Returns NULL without memory. */
json_t *page_facts(struct json_line *line);
/* Adds a text, such as a picture, to facts, and frees it. */
void page_member(struct json_line *line, const char *key, struct text *text);
/* Writes the page of the facts, and frees them; NULL: there was no memory for them. */
tutti_status page_write(json_t *facts, const char *path);
/* Appends a text, escaped for HTML, SVG and attributes; bytes that are not UTF-8 become U+FFFD. */
void page_text(struct text *page, const char *text);
/* Appends at most so many characters of a text, escaped; if there are more, the last one is an ellipsis. */
void page_text_cut(struct text *page, const char *text, int characters);
/* 12,345,678; 3.4 M; 1:02:03; 12.3 MiB */
const char *format_count(double value, char *buffer, size_t size);
const char *format_seconds(double seconds, char *buffer, size_t size);
const char *format_bytes(double bytes, char *buffer, size_t size);

#endif
