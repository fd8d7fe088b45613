/* Poison in the memory of a plan whose options have `guards`: each value has PLAN_GUARD_BYTES of it after its own. */
#ifndef TESTS_LAYERS_GUARDS_H
#define TESTS_LAYERS_GUARDS_H

#include "plan/pipeline.h"

/* Fills the arena with NaN, before the uploads. */
tutti_status guards_poison(struct plan *plan);
/* Checks that the guards still hold it. */
tutti_status guards_check(struct plan *plan);

#endif
