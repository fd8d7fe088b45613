/* Small changes to a graph that keep it valid: what passes and patterns have in common. */
#ifndef GRAPH_EDIT_H
#define GRAPH_EDIT_H

#include "graph/graph.h"

bool edit_reads(const struct node *node, int value); /* as an input, or to add it */
/* How many nodes read the value (a node that reads it twice counts twice), and whether the host or an arena does. */
int edit_uses(const struct graph *graph, int value);
bool edit_is_kept(const struct graph *graph, int value); /* output of the plan, or gradient of a parameter */
/* Makes every node from `first` on read `to` where it read `from`. */
void edit_replace(struct graph *graph, int from, int to, size_t first);
/* What a node reads: its inputs, then the value that it adds. NO_VALUE where it has none; i < edit_read_count(). */
int edit_read_count(const struct node *node);
int edit_read(const struct node *node, int i);
/* Appends a copy of node n, with outputs of its own. Returns false, and sets graph->status, without memory. */
bool edit_append_copy(struct graph *graph, size_t n);
/* Moves the last node to this place; later nodes move one up. */
void edit_move_last(struct graph *graph, size_t place);
/* Drops nodes whose operation was set to NULL, and updates the producers of values. */
void edit_compact(struct graph *graph);

#endif
