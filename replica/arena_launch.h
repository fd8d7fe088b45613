/* Launches of kernels over a range of an arena's floats, as clkernels/arena.h divides it. */
#ifndef REPLICA_ARENA_LAUNCH_H
#define REPLICA_ARENA_LAUNCH_H

#include "runtime/launch.h"

enum { ARENA_RANGE = 1 << 16 }; /* the most floats of a task, on devices of CPU class and on the host */

/* Adds a launch of a kernel that includes arena.h. options: build options, or "". */
struct launch *arena_launch(struct launch_list *list, const char *source, const char *kernel, const char *options);
/* Returns the argument `floats` of such a kernel, for a range of `floats` floats: the floats of a work-item. */
int64_t arena_floats_of_item(const struct device *device, int64_t floats);
/* Sets the grid of a launch over `floats` floats. */
void arena_launch_grid(struct launch *launch, const struct device *device, int64_t floats);
/* Completes a launch after its other arguments: adds `floats`, and sets the grid. */
void arena_launch_range(struct launch *launch, const struct device *device, int64_t floats);
/* Returns the size of the kernels' groups on devices of GPU class. */
size_t arena_group_size(const struct device *device);

#endif
