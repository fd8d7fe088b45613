/* The optimizer's rule, as one kernel; arena.cl has the kernels around it. It updates every trained parameter of a
 * single device, whatever its layer, in one launch, because parameters, gradients and states are one contiguous arena
 * each.
 *
 * Options: RULE, the rule of optimizer_rules.h, which is the kernel's name, too; STATES, the number of its states;
 * GROUPED 1: groups has a factor of the rate, and a weight decay instead of the argument's, for each 256 floats.
 * Arguments: parameters, gradients and the states: arenas of n floats, n a multiple of 16. constants: of this step;
 * gradients are multiplied by constants->unscale. losses: as update_wanted.h has it.
 * Launched by replica/optimizer_emit.c at the end of a step, as arena.h has it; the host's loops: optimizer_host.c. */
#include "parameters.h"
#include "arguments/optimizer.h"
#include "step.h"
#include "arena.h"
#include "update_wanted.h"
#include "optimizer_rules.h"

#if GROUPED
#define GROUPS GROUPS_ARGUMENTS(PARAMETER)
#define GROUP_AT(i) ((float2)(groups[(i) / 256].x * constants->learning_rate, groups[(i) / 256].y))
#else
#define GROUPS
#define GROUP_AT(i) ((float2)(constants->learning_rate, weight_decay)) /* rate and decay of the floats from i on */
#endif

#define EACH_STATE CONCATENATE(RULE_STATES_, STATES)
#define STATE_PARAMETER(state) , global float *restrict state##_of
#define STATE_LOAD(state) state = VLOAD(0, state##_of + i);
#define STATE_STORE(state) VSTORE(state, 0, state##_of + i);

#define positive(x) fmax(x, 0.0f)
/* The branch that is compiled. */
#define NUMBER(rule, KIND, name, options, states, names, default1, default2, default3, decay, corrections, update) \
    NUMBER_##rule,
enum { OPTIMIZER_RULES(NUMBER) };
/* Where a gradient is 0, these rules leave the parameter and its states as they are, unless the parameter decays. Most
 * gradients of a table are 0 in a step that reads few of its rows. */
enum {
    LEAVES = CONCATENATE(NUMBER_, RULE) == NUMBER_sgd || CONCATENATE(NUMBER_, RULE) == NUMBER_adagrad,
};
#define UPDATE(rule, KIND, name, options, states, names, default1, default2, default3, decay, corrections, update) \
    if (CONCATENATE(NUMBER_, RULE) == NUMBER_##rule) {                                                             \
        const float keep = decay == RULE_DECOUPLED ? 1.0f - rate * group.y : 1.0f;                                 \
        const VF g = raw + (decay == RULE_DECOUPLED ? 0.0f : group.y) * p;                                         \
        update;                                                                                                    \
    }

KERNEL void RULE(OPTIMIZER_ARGUMENTS(PARAMETER) EACH_STATE(STATE_PARAMETER) GROUPS)
{
    if (!update_wanted(constants, losses)) return;
    const float unscale = constants->unscale, correction = constants->bias_correction1;
    const float root = sqrt(constants->bias_correction2), rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
    FOR_RANGE(i)
    {
        const float2 group = GROUP_AT(i);
        const float rate = group.x, corrected = rate / correction;
        const VF raw = unscale * VLOAD(0, gradients + i);
        if (LEAVES && group.y == 0.0f && !any(raw != 0.0f)) continue;
        VF p = VLOAD(0, parameters + i), a = 0, b = 0, c = 0;
        EACH_STATE(STATE_LOAD)
        OPTIMIZER_RULES(UPDATE)
        EACH_STATE(STATE_STORE)
        VSTORE(p, 0, parameters + i);
    }
}
