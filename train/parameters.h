/* Parameters as checkpoints, files and arrays of the caller. */
#ifndef TRAIN_PARAMETERS_H
#define TRAIN_PARAMETERS_H

#include "train/checkpoint.h"

struct tutti_trainer;

/* Find a parameter by its name, one that trains for trainer_find_trained(). The host has the newest then. `values` is
 * where its kept gradient or its state are. */
tutti_status trainer_find_trained(struct tutti_trainer *trainer, const char *name, const struct parameter **parameter);
tutti_status trainer_find_parameter(
    struct tutti_trainer *trainer, const char *name, const struct parameter **parameter);
tutti_status trainer_find_gradient(
    struct tutti_trainer *trainer, const char *name, const struct parameter **parameter, float **values);
tutti_status trainer_find_state(struct tutti_trainer *trainer, const char *name, const char *state,
    const struct parameter **parameter, float **values);
/* Checks that an array of the caller's has the parameter's size. */
tutti_status trainer_check_array(const struct parameter *parameter, const float *values, int64_t count);
/* Declares that the caller has changed a parameter. */
void trainer_parameter_changed(struct tutti_trainer *trainer, const struct parameter *parameter);
/* Gives the training as a checkpoint, with the newest values on the host. `ema`, for files: if the parameters have an
 * EMA, it is the weights, and the trained parameters are a state. Otherwise the weights are the trained parameters.
 * `states`: the optimizer's, too, unless the trainer has no loss. It can fail on one rank alone. */
tutti_status trainer_checkpoint(struct tutti_trainer *trainer, bool ema, bool states, struct checkpoint *checkpoint);
/* Does what tutti_resume() does. */
tutti_status trainer_resume(struct tutti_trainer *trainer, const char *name);
/* Does what tutti_save() does, but without the other ranks: saves this rank's parameters and states if it is the one
 * that writes. */
tutti_status trainer_save(struct tutti_trainer *trainer, const char *name);
/* Begins a call of all ranks that reads or writes files of this name, unless `status` is a failure. */
tutti_status trainer_begin_file(struct tutti_trainer *trainer, const char *name, tutti_status status);
bool trainer_writes(const struct tutti_trainer *trainer); /* rank 0 has the files */

#endif
