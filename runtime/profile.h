/* Times of launches from events, and as a Chrome trace. */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "runtime/launch.h"
#include "runtime/peak.h"

/* What a launch belongs to, for people. */
struct profile_label {
    const char *layer, *operation, *implementation;
};

/* Runs the list once with an event for each launch and fills launch.begin and .seconds. */
tutti_status profile_run(struct launch_list *list);
/* Runs it `runs` times and fills launch.fastest too: the machine's other work only ever adds. */
tutti_status profile_fastest(struct launch_list *list, int runs);
/* Returns the least time that this work takes at these rates; 0 where they are not known. */
double profile_floor(double flops, double bytes, const struct peak *peak);
/* chrome://tracing JSON of the last profile_run, with work and least times as arguments of each event, and the device's
 * peak as "otherData"; labels[i] is that of node i. NULL: no labels. */
tutti_status profile_trace(
    const struct launch_list *list, const struct profile_label *labels, const struct peak *peak, const char *path);

#endif
