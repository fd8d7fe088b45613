/* The one list of what a plan does, in the order in which it is enqueued. */
#ifndef PLAN_COMMANDS_H
#define PLAN_COMMANDS_H

#include "base/text.h"
#include "plan/types.h"

/* Fills plan->commands from the feeds, and the launches and sync points that were emitted. In training the
 * BUCKET commands together cover the gradients' arena once, and the PIECE commands the parameters'. */
tutti_status commands_make(struct plan *plan);
/* Returns the next command of this kind from plan->commands[*position] on, and sets *position after it; or NULL. */
const struct command *command_next(const struct plan *plan, enum command_kind kind, size_t *position);
/* Prints the command as one line for people, without a line end. */
void command_print(const struct plan *plan, const struct command *command, struct text *text);
void commands_print(const struct plan *plan, struct text *text);
/* The layer of a node of the plan's graph, or "". */
const char *layer_of(const struct plan *plan, int node);

#endif
