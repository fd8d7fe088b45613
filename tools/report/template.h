/* Texts with named places, which an object of JSON fills (the syntax is a part of Mustache's):
 *
 *     {{name}}                  a text, escaped for HTML, or a number; nothing where it is null or missing
 *     {{name|24}}               a text of at most 24 characters
 *     {{name|.4f}}              a number by "%.4f", "%.4g" or, times 100 with a percent sign, ".2%"
 *     {{name|count}}            a number by format_count(), format_bytes() ("bytes") or format_seconds() ("seconds")
 *     {{{name}}}                a text as it is
 *     {{name|json}}             an object as data of a page
 *     {{#name}} ... {{/name}}   for each element of a list; once where it is not a list, null or false
 *     {{^name}} ... {{/name}}   where {{#name}} writes nothing
 *
 * Names in a section are those of its object, then of those around it; {{.}} is the section's value. */
#ifndef TOOLS_TEMPLATE_H
#define TOOLS_TEMPLATE_H

#include "base/text.h"

#include <jansson.h>

/* Appends the template, whose sections must be closed: embed.py checks it. */
void template_fill(struct text *page, const char *template, const json_t *facts);

#endif
