/* Times of launches from events, as a table and as a Chrome trace. */
#ifndef RUNTIME_PROFILE_H
#define RUNTIME_PROFILE_H

#include "runtime/launch.h"

/* Runs the list once with an event for each launch and fills launch.seconds. */
tutti_status profile_run(struct launch_list *list);
/* chrome://tracing JSON of the last profile_run; names[i] labels node i. */
tutti_status profile_trace(const struct launch_list *list, const char *const *node_names, const char *path);

#endif
