/* HTML pages that need no other files: the frame, the style, tables, and texts that may contain anything. */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include "base/text.h"

#include <stdint.h>

extern const char embedded_style[], embedded_page[]; /* style.css and page.css, which embed.py makes texts */

/* Appends a text, escaped for HTML, SVG and attributes; bytes that are not UTF-8 become U+FFFD. */
void page_text(struct text *page, const char *text);
/* Appends at most so many characters of a text, escaped; if there are more, the last one is an ellipsis. */
void page_text_cut(struct text *page, const char *text, int characters);
/* Appends everything before the first section. refresh: seconds after which a browser loads it again; 0: never. */
void page_begin(struct text *page, const char *title, int refresh);
void page_end(struct text *page);
/* Begins a part of the page, with a heading; half: two of them side by side if there is room. */
void page_section(struct text *page, const char *heading, bool half);
void page_section_end(struct text *page);
/* Begins a table, collapsed at first, after a picture. Headings are separated by '|'; those of numbers begin with
 * '#'. The caller writes rows and cells. */
void page_table(struct text *page, const char *summary, const char *headings);
void page_table_end(struct text *page);
/* Appends the style of pages, also for pictures that stand alone. */
void page_style(struct text *page);
/* Appends an object of JSON as data of the page. */
void page_json(struct text *page, const char *json);
/* 12,345,678; 3.4 M; 1:02:03; 12.3 MiB */
const char *format_count(double value, char *buffer, size_t size);
const char *format_seconds(double seconds, char *buffer, size_t size);
const char *format_bytes(double bytes, char *buffer, size_t size);

#endif
