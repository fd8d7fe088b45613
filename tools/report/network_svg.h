/* A network as a picture: boxes from top to bottom, with shapes, kernels and times. */
#ifndef TOOLS_NETWORK_SVG_H
#define TOOLS_NETWORK_SVG_H

#include "formats/json_lines.h"
#include "tools/report/costs.h"

/* Appends the picture; costs may be NULL. alone: it is a file of its own, with its style. */
tutti_status network_svg(
    struct text *page, const tutti_network *network, const struct costs *costs, const char *title, bool alone);
/* Adds the picture and a list of all layers to the facts of a page, as "network". */
tutti_status network_facts(
    struct json_line *facts, const tutti_network *network, const struct costs *costs, const char *title);

#endif
