/* Kernels compiled ahead of the plan that launches them, see runtime/builder.h. */
#ifndef PLAN_AHEAD_H
#define PLAN_AHEAD_H

#include "plan/types.h"

struct verify_items;
/* Compiles everything that the plan, whose passes have run, will launch, and the programs of the first-use check of
 * its kernels. Chooses this check, with nodes of the small plan where they are cheaper. small may be NULL: no check.
 * Costs time only where it saves more. *refused: programs of some implementations end the driver's compiler, so the
 * choice must be made again. Fails where there is no other implementation. */
tutti_status plan_build_ahead(struct plan *plan, struct plan *small, struct verify_items *items, bool *refused);
/* Begins to load the kernels of the plan for these options, if all of them have been compiled and checked before. The
 * plan's memory need not exist. */
void plan_load_ahead(struct device *device, const tutti_network *network, const struct plan_options *options);
/* Appends the launches of a plan whose passes have run, with handles that stand for its buffers. */
tutti_status plan_emit_ahead(struct plan *plan, struct launch_list *list);

#endif
