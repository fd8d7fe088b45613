/* Texts and numbers in pages and pictures. */
#ifndef TOOLS_PAGE_TEXT_H
#define TOOLS_PAGE_TEXT_H

#include "base/text.h"
#include "tutti.h"

/* Appends a text, escaped for HTML, SVG and attributes; bytes that are not UTF-8 become U+FFFD. */
void page_text(struct text *page, const char *text);
/* Appends at most so many characters of a text, escaped; if there are more, the last one is an ellipsis. */
void page_text_cut(struct text *page, const char *text, int characters);
/* 12,345,678; 3.4 M; 1:02:03; 12.3 MiB */
const char *format_count(double value, char *buffer, size_t size);
const char *format_seconds(double seconds, char *buffer, size_t size);
const char *format_bytes(double bytes, char *buffer, size_t size);
/* [3, 224, 224] */
const char *format_shape(const tutti_shape *shape, char *buffer, size_t size);

#endif
