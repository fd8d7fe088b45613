/* A network as boxes: one box for a layer and those that only follow it, and one block for blocks that repeat. */
#ifndef TOOLS_NETWORK_BOXES_H
#define TOOLS_NETWORK_BOXES_H

#include "tools/report/costs.h"
#include "tutti_inspect.h"

enum { BOX_SOURCES = 8, BOX_INPUT = -1 };

struct box {
    int first, last;          /* layers; those in between that belong to it have `box` in `owners` */
    int layers;               /* how many */
    int sources[BOX_SOURCES]; /* boxes, or BOX_INPUT */
    int source_count;
    int64_t parameters;
    double seconds;
    int repeats, length; /* in the first box of a repeated block: how often, and its boxes; else 1, 0 */
    int scope;           /* of a block that repeats: the parts of its name, as "layer3.1" has two */
    int stands_for;      /* the same box in the first of the repeated blocks; itself if it is shown */
};

struct boxes {
    struct box *boxes;
    int count;
    tutti_layer_info *layers;
    int *owners; /* the box of each layer */
    int layer_count;
};

/* costs may be NULL. Free with boxes_free(), also after a failure. */
tutti_status boxes_make(struct boxes *boxes, const tutti_network *network, const struct costs *costs);
/* Writes the first `depth` parts of a box's name. */
void boxes_scope(const struct boxes *boxes, int box, int depth, char *name, size_t size);
void boxes_free(struct boxes *boxes);

#endif
