/* Kinds of axes, and the layouts that they allow. An operation finds its axes by their positions. The kinds pass from
 * one value to the next, so that layouts extend over the nodes between operations on images. */
#ifndef GRAPH_AXES_H
#define GRAPH_AXES_H

#include "base/status.h"

enum axis_kind {
    AXIS_NONE, /* not known, or none of the kinds below */
    AXIS_BATCH,
    AXIS_CHANNEL, /* channels or features */
    AXIS_SPACE,   /* height, width, ... */
    AXIS_SEQUENCE
};

/* The enum axis_kind of each axis. `batched` of the value marks the batch axis instead: see value_axis(). */
struct axes {
    uint8_t kinds[TUTTI_MAX_RANK];
};

/* Positions of axes in operations with channels: the samples, the channels, then any number of spatial axes. */
enum { CHANNEL_AXIS = 1, SPACE_AXIS = 2 };
struct axes axes_with_channels(int rank);
/* Returns the axes with every axis of size TUTTI_SEQUENCE marked as a sequence. */
struct axes axes_with_sequences(struct axes axes, const tutti_shape *shape);

struct value;
struct graph;
struct node;
enum axis_kind value_axis(const struct value *value, int axis);
/* Returns the axes of x with features as the last of `rank` axes and no other channels. */
struct axes axes_with_features(const struct value *x, int rank);
/* Whether the value can have layouts besides the plain one: channels, spatial axes after them, and nothing else. */
bool value_has_layouts(const struct value *value);
bool value_has_channels_last(const struct value *value); /* whether it can have that layout */
/* Whether both have as many axes and none is a parameter: a node's values with one common layout. */
bool value_has_axes_of(const struct value *value, const struct value *other);

/* A value as [n][c][pixels]: the axes before one axis, this axis, and those after it. */
struct planes {
    int64_t n, c, pixels;
};
struct planes value_planes(const struct value *value, int axis);

/* Sets the axes of an output of known shape, for infer() of elementwise operations. They are those of the first input
 * that can have layouts and has as many axes. Otherwise each axis has the kind that the first input gives for it;
 * inputs are aligned at the last axis. */
void infer_axes(const struct graph *graph, const struct node *node, struct value *output);

#endif
