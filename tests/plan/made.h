/* Plans of tests, on one made-up device: no driver is asked. */
#ifndef TESTS_PLAN_MADE_H
#define TESTS_PLAN_MADE_H

#include <check.h>
#undef fail /* of Check; base/status.h has its own */

#include "plan/passes.h"
#include "plan/pipeline.h"
#include "runtime/device.h"

extern struct device device;
extern struct tutti_runtime runtime;
extern bool bf16, recompute; /* of the plans that are made */

void make_device(enum device_class class, size_t allocation_max);
/* Forgets what plans asked of the device's verdicts and tables; called after each test, too. */
void free_device(void);

/* A network for the plan tests: a residual block with everything that fuses, and a dense end. */
tutti_tensor residual(tutti_network *net);
/* Dense layers of rows. */
tutti_tensor perceptron(tutti_network *net);
/* Pooled twice, the second time next to another use of what is pooled. */
tutti_tensor pooled(tutti_network *net);
/* A depthwise convolution between batch normalisations, of which two are of one tensor. */
tutti_tensor separable(tutti_network *net);

struct made {
    tutti_network *network;
    struct plan *plan;
    struct memory_plan memory;
};
/* All passes, validated after each, and the memory. */
void make(struct made *made, enum plan_mode mode, tutti_tensor (*build)(tutti_network *));
void drop(struct made *made);

#endif
