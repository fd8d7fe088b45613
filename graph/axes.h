/* What the axes of a value are of, and which layouts that allows. An operation finds its axes by their places; what
 * they are of goes from one value to the next, so that layouts reach what lies between operations on images. */
#ifndef GRAPH_AXES_H
#define GRAPH_AXES_H

#include "base/status.h"

enum axis_kind {
    AXIS_NONE, /* not known, or of nothing below */
    AXIS_BATCH,
    AXIS_CHANNEL, /* channels or features */
    AXIS_SPACE,   /* height, width, ... */
    AXIS_SEQUENCE
};

/* enum axis_kind for each axis; but AXIS_BATCH is what `batched` of a value says: value_axis() looks at both. */
struct axes {
    uint8_t kinds[TUTTI_MAX_RANK];
};

/* Where operations with channels have them: behind the samples; and behind the channels any number of axes of space. */
enum { CHANNEL_AXIS = 1, SPACE_AXIS = 2 };
struct axes axes_with_channels(int rank);
/* The axes, but those of size TUTTI_SEQUENCE are of a sequence. */
struct axes axes_with_sequences(struct axes axes, const tutti_shape *shape);

struct value;
struct graph;
struct node;
enum axis_kind value_axis(const struct value *value, int axis);
/* The axes of x, but features as the last of `rank` axes, and no other channels. */
struct axes axes_with_features(const struct value *x, int rank);
/* Whether it can have layouts beside the plain one: it has channels, behind them space, and nothing else. */
bool value_has_layouts(const struct value *value);
bool value_has_channels_last(const struct value *value); /* whether it can have that layout */
/* Whether both have as many axes and none is a parameter: a node's values with one common layout. */
bool value_has_axes_of(const struct value *value, const struct value *other);

/* A value as [n][c][pixels]: the axes in front of one, this one, and those behind it. */
struct planes {
    int64_t n, c, pixels;
};
struct planes value_planes(const struct value *value, int axis);

/* For infer functions of operations on elements: the axes of an output of known shape. They are those of the first
 * input with layouts that has as many, else what the first input says of each; inputs are aligned at the last one. */
void infer_axes(const struct graph *graph, const struct node *node, struct value *output);

#endif
