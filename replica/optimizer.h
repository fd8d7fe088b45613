/* The optimizers over whole arenas. Their rules are the table of clkernels/optimizer_rules.h, where parameters of a
 * group have a factor of the rate and a decay of their own.
 * Running statistics lie after the trained parameters: p = (1 - momentum) p + momentum g.
 * With ema_decay, a state after the rule's own is the exponential moving average (EMA) of the trained parameters:
 * a += (1 - ema_decay)(p - a), as timm's ModelEma, from their initial values on. With clip_norm, gradients are clipped
 * first (clip.h). There are two forms of each rule, equal up to rounding: loops on the host's threads (several devices
 * share one master copy; tutti_apply()), and launches of a device that updates itself, in a list after the plan's
 * (device_update.c). */
#ifndef REPLICA_OPTIMIZER_H
#define REPLICA_OPTIMIZER_H

#include "base/threads.h"
#include "graph/network.h"
#include "graph/operation.h"

#include <stdalign.h>

#define OPTIMIZER_STATES 4 /* up to three of a rule, and the EMA */

/* Options of tutti_group(); kernels read it as a float2. */
struct optimizer_group {
    float rate_factor, weight_decay;
};

struct optimizer {
    tutti_optimizer kind;
    float learning_rate, momentum, weight_decay, beta1, beta2, epsilon;
    bool nesterov, centered, amsgrad;
    float clip_norm, ema_decay; /* 0: gradients are not clipped; parameters have no EMA */
    /* For each parameter, the number of nodes that read it and on which the output depends. A running statistic is
     * updated that often. NULL: one. */
    const int *uses;
    /* One for each PARAMETER_ALIGNMENT floats of the trained parameters; such a range never belongs to two
     * parameters. NULL: all have the learning rate and the weight decay above. */
    struct optimizer_group *groups;
    size_t group_count;
    uint64_t group_changes; /* of the table, so far */
};

/* Fills in the defaults; refuses what is out of range. */
tutti_status optimizer_init(struct optimizer *optimizer, const tutti_training *training);
/* Makes the table of the groups; NULL and 0 if the network has no groups. The caller frees it. */
tutti_status optimizer_groups(
    const struct optimizer *optimizer, const tutti_network *network, struct optimizer_group **groups, size_t *count);
/* Changes the groups of the parameters whose names match the pattern. */
tutti_status optimizer_set_group(struct optimizer *optimizer, const tutti_network *network, const char *pattern,
    const struct tutti_group_options *options);
/* Number of states: arrays as long as the trained parameters that are kept from step to step. Their names are
 * PyTorch's. */
int optimizer_states(const struct optimizer *optimizer);
int optimizer_ema_state(const struct optimizer *optimizer); /* which of them is the EMA; -1: none */
const char *optimizer_state_name(const struct optimizer *optimizer, int state);
/* Whether updates depend on the number of the step, as bias corrections do: states then must begin all together. */
bool optimizer_counts_steps(const struct optimizer *optimizer);
/* Sets the learning rate and the bias corrections of update `step`, counted from 0. Sets `unscale` to 1;
 * loss_scale_constants() replaces it. */
void optimizer_constants(
    const struct optimizer *optimizer, float learning_rate, int64_t step, struct step_constants *constants);

/* An update on the host. Arenas have network->total_floats; states only network->trained_floats. */
struct host_update {
    const struct optimizer *optimizer;
    const tutti_network *network;
    const struct step_constants *constants;
    const float *clip; /* factor of gradients, except those of running statistics; NULL: 1 */
};
/* Updates whole arenas in place. */
void optimizer_update(const struct host_update *update, struct thread_pool *pool, float *parameters,
    const float *gradients, float *const *states);

struct optimizer_arrays {
    float *parameters, *states[OPTIMIZER_STATES];
};
/* Number of floats for which all arrays, old and new, stay in a core's first-level cache. */
enum { OPTIMIZER_CHUNK = 512 };
/* The results of a chunk. */
struct optimizer_chunk {
    alignas(64) float parameters[OPTIMIZER_CHUNK];
    float states[OPTIMIZER_STATES][OPTIMIZER_CHUNK];
};
/* Updates only the floats first .. first + count - 1 of the arenas, at most a chunk, and returns how many of them are
 * trained, and so have states. `gradients` begin at `first`. Writes to `updated` what an update in place would write to
 * `arrays`. Any division of the arenas into ranges gives the same bytes. */
int64_t optimizer_update_chunk(const struct host_update *update, int64_t first, int64_t count,
    const struct optimizer_arrays *arrays, const float *gradients, struct optimizer_chunk *updated);

/* On a device: what the launches read and write. */
struct optimizer_buffers {
    cl_mem parameters, gradients, states[OPTIMIZER_STATES];
    cl_mem constants;  /* struct step_constants */
    cl_mem losses;     /* float[2] per micro-batch: if the first one of any is not finite, nothing is updated */
    cl_mem statistics; /* the table below; NULL if the network has no running statistics */
    cl_mem groups;     /* optimizer->groups; NULL if that is NULL */
    cl_mem norms;      /* float[CLIP_NORMS]; NULL: gradients are not clipped */
};
/* A row of the table that the launch over running statistics reads: one for each statistic. */
struct statistic_row {
    int64_t first, count;
    float momentum;
    int32_t reserved;
};
tutti_status optimizer_statistics(
    const struct optimizer *optimizer, const tutti_network *network, struct statistic_row **rows, int *count);
void optimizer_emit(const struct optimizer *optimizer, const tutti_network *network,
    const struct optimizer_buffers *buffers, int statistics, struct launch_list *list);
/* Emit it before optimizer_emit(): sets constants->not_finite if gradients are not finite; the update then does
 * nothing. */
void optimizer_emit_check(const tutti_network *network, cl_mem gradients, cl_mem constants, struct launch_list *list);

#endif
