/* Checkpoints: NAME.safetensors, the weights, and NAME.state.safetensors, what else resuming needs. Knows files and
 * arrays; not devices. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "graph/network.h"
#include "parallel/loss_scale.h"
#include "parallel/position.h"
#include "replica/optimizer.h"
#include "train/metadata.h"

struct safetensors_tensor; /* formats/safetensors.h */

struct checkpoint {
    const struct parameter *parameters;
    size_t count;
    struct parameter_arenas weights;
    float *states[OPTIMIZER_STATES]; /* the optimizer's, trained parameters only */
    const struct optimizer *optimizer;
    struct position position;
    struct loss_scale loss_scale;
    uint64_t seed;
    struct metadata *metadata; /* saved with the weights; loading adds what is not there yet. NULL: none */
    /* weights_save(): [count] what it writes instead of `weights`; NULL for a parameter that it leaves out. */
    const float *const *arrays;
    const char *prefix; /* weights_save(): of all names; NULL: none */
    int begun;          /* set by loading: parameters whose states begin, because they were frozen */
};

/* Refuses NULL, and names without a last component, whose files would be hidden ones. */
tutti_status checkpoint_check_name(const char *name);
/* Writes the pair. A kill at any moment leaves the older or the newer pair; a failure leaves the older. */
tutti_status checkpoint_save(const struct checkpoint *checkpoint, const char *name);
/* Checks that checkpoint_save() could write there now: creates a file and removes it. TUTTI_FILE names the path and
 * the reason. */
tutti_status checkpoint_try(const char *name);
/* Fills the arrays, position, seed and scale of the loss. On failure nothing is changed. TUTTI_MISMATCH names the first
 * difference. */
tutti_status checkpoint_load(struct checkpoint *checkpoint, const char *name);
/* Sets a state of a parameter as a training begins, because the parameter was frozen or the optimizer was another
 * one. An EMA begins as the parameter, which must be loaded before. */
void checkpoint_begin_state(struct checkpoint *checkpoint, const struct parameter *parameter, int state);
/* Call it if some parameters had no states: restarts the states of all parameters if the optimizer counts steps
 * (optimizer_counts_steps()), because its bias correction counts the steps of all together. */
void checkpoint_begin_states(struct checkpoint *checkpoint);
/* Copies an array of the parameter's elements, which was read, to where the parameter lies. */
void checkpoint_take(
    const struct parameter *parameter, const struct parameter_arenas *arenas, const struct safetensors_tensor *tensor);
/* The weights alone: uses parameters, count, weights and, for saving, position.steps and metadata. */
tutti_status weights_save(const struct checkpoint *checkpoint, const char *path);
tutti_status weights_load(const struct checkpoint *checkpoint, const char *path);
/* Returns whether the array of a file has the shape of the parameter; a scalar fits one of shape [1]. */
bool checkpoint_fits(const struct safetensors_tensor *tensor, const struct parameter *parameter);
/* Returns whether PyTorch's batch normalisations count their steps in an array of this name. */
bool checkpoint_is_counter(const char *name);

#endif
