/* Between the steps: gradients without an update, an update by gradients that the program has changed, the optimizer's
 * states, and the position of the training, in memory. For optimizers and trainings of one's own, such as adversarial
 * training and reinforcement learning. docs/training.md has an example. */
#ifndef TUTTI_STEPS_H
#define TUTTI_STEPS_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Computes losses and gradients as tutti_train_step() does, on all devices and ranks, and keeps the gradients on the
 * host: the mean over the whole batch, until the next step or tutti_backward(). Nothing is updated, and the step is not
 * counted: tutti_apply() does both, and tutti_backward() and tutti_apply() together are a tutti_train_step(), up to
 * rounding. Several calls without tutti_apply() drop the same elements (tutti_dropout()). With TUTTI_FP16, computes
 * again with a lower scale of the loss while gradients overflow. Times of devices (tutti_device_times) do not include
 * it; with several ranks, automatic shares stay as they are. `metrics` may be NULL.
 * Errors: as tutti_train_step(); TUTTI_UNSUPPORTED if ranks average parameters. No gradients are kept then. */
TUTTI_API tutti_status tutti_backward(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics);
/* Replaces the kept gradient of a parameter: `count` floats in PyTorch's order. tutti_get_gradient() reads it. With
 * several ranks, all set the same. Errors: TUTTI_INVALID if there is no such parameter, it does not train, `count` is
 * not its number of elements, or no gradients are kept that tutti_apply() has not used. */
TUTTI_API tutti_status tutti_set_gradient(tutti_trainer *trainer, const char *name, const float *values, int64_t count);
/* Reads the gradient of the mean loss of the last tutti_backward() with respect to an input, one of
 * tutti_training.gradient_inputs: `count` floats, [samples][shape of a sample], of this rank's samples. Errors:
 * TUTTI_INVALID if the input is another one, `count` is another number, or no tutti_backward() has succeeded since the
 * last tutti_train_step(). */
TUTTI_API tutti_status tutti_get_input_gradient(
    tutti_trainer *trainer, tutti_tensor input, float *values, int64_t count);
/* Updates parameters, optimizer states, running statistics and moving averages by the kept gradients, once, with the
 * learning rate of the moment, and counts a step. tutti_training.clip_norm holds. All is updated, or nothing. With
 * several ranks, all call it. Errors: TUTTI_INVALID if there are no gradients to be applied; TUTTI_NOT_FINITE
 * if one of them, or with clip_norm their norm, is NaN or infinite. */
TUTTI_API tutti_status tutti_apply(tutti_trainer *trainer);

/* Returns the name of one of the optimizer's states, as checkpoints have it ("momentum_buffer", "exp_avg", ...), a
 * static string; NULL for positions past the last, counted from 0, and for a trainer without a loss. */
TUTTI_API const char *tutti_state_name(const tutti_trainer *trainer, int position);
/* Read or write the state of this name for a parameter that trains: `count` floats in PyTorch's order. States begin
 * as 0, a moving average (tutti_training.ema_decay) as its parameter. With several ranks, all set the same. Errors:
 * TUTTI_INVALID if there is no such state or parameter, it does not train, or `count` is not its number of elements. */
TUTTI_API tutti_status tutti_get_state(
    tutti_trainer *trainer, const char *parameter, const char *state, float *values, int64_t count);
TUTTI_API tutti_status tutti_set_state(
    tutti_trainer *trainer, const char *parameter, const char *state, const float *values, int64_t count);

/* What a view shows. */
typedef enum tutti_view_kind {
    TUTTI_VIEW_PARAMETER, /* a parameter or running statistic */
    TUTTI_VIEW_GRADIENT,  /* a gradient that tutti_backward() keeps */
    TUTTI_VIEW_STATE,     /* one of the optimizer's states */
    TUTTI_VIEW_OUTPUT,    /* an output that tutti_infer_keep() has computed */
} tutti_view_kind;
/* The trainer's own numbers, on the host: a program reads and writes them in place, without a copy of its own; outputs
 * it only reads. */
typedef struct tutti_view {
    size_t size;                  /* sizeof(tutti_view); set it before the call */
    const tutti_trainer *trainer; /* whose numbers they are */
    tutti_view_kind kind;
    const char *name;  /* of the parameter, until the network is freed; NULL for an output */
    float *values;     /* in PyTorch's order; the trainer's */
    int64_t count;     /* of values */
    tutti_shape shape; /* of an output: [samples][shape of a sample] */
    /* Counts changes of all parameters and states: unless it has grown, they are the same. It does not count changes of
     * gradients. */
    uint64_t generation;
    uint64_t number; /* from 1; identifies the view for tutti_view_close(): copies have the same number */
} tutti_view;
/* Open a view: of a parameter, of its gradient, or of a state by its name (tutti_state_name). If a device has newer
 * numbers, they are copied to the host first. Until the view is closed, every call that computes, saves or loads with
 * this trainer is refused with TUTTI_INVALID; so are those of its readers (parameters_of), unless the view is of a
 * gradient. Several views may be open, also two of the same numbers.
 * Errors: TUTTI_INVALID if there is no such parameter, gradient or state; TUTTI_DEVICE_LOST. */
TUTTI_API tutti_status tutti_view_parameter(tutti_trainer *trainer, const char *name, tutti_view *view);
TUTTI_API tutti_status tutti_view_gradient(tutti_trainer *trainer, const char *name, tutti_view *view);
TUTTI_API tutti_status tutti_view_state(tutti_trainer *trainer, const char *name, const char *state, tutti_view *view);
/* Computes outputs as tutti_infer() does, and keeps them, as float32, for tutti_view_output(): until the trainer
 * computes something else, as training, evaluation, inference and profiles do. Errors: as tutti_infer(); TUTTI_INVALID
 * for a tensor that is no output, or one twice; nothing is kept then. */
TUTTI_API tutti_status tutti_infer_keep(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count,
    int64_t samples, const tutti_tensor *outputs, int output_count);
/* Opens a view of such an output. If the trainer has one device, which shares the host's memory and has computed all
 * samples at once, the view shows the device's memory, without a copy. Otherwise, and with step_limit_s or ranks that
 * sum gradients, it shows a copy of the trainer's. It is to be read: what is written to it is lost. While it is open,
 * calls are refused as for other views. Errors: TUTTI_INVALID if the output is not kept; TUTTI_DEVICE_LOST. */
TUTTI_API tutti_status tutti_view_output(tutti_trainer *trainer, tutti_tensor output, tutti_view *view);
/* Closes a view, whose values must not be used any more. `changed`: the program has written to them; with several
 * ranks, all write the same. Freeing the trainer closes all. Errors: TUTTI_INVALID if it is not an open view of this
 * trainer. Closing a view also closes its copies. */
TUTTI_API tutti_status tutti_view_close(tutti_trainer *trainer, tutti_view *view, bool changed);

/* How far a training has come. */
typedef struct tutti_position {
    size_t size;   /* sizeof(tutti_position); set it before the call */
    int64_t steps; /* since the training began: dropout and random numbers depend on it */
    /* Steps that the optimizer's states include, at most `steps`: bias corrections depend on it. Smaller where steps
     * updated nothing (TUTTI_FP16). */
    int64_t updates;
    int64_t epoch; /* epochs that are complete */
} tutti_position;
/* Writes the position to *position, whose size is set. TUTTI_INVALID: it is NULL, or the size is wrong. */
TUTTI_API tutti_status tutti_get_position(const tutti_trainer *trainer, tutti_position *position);
/* Sets the position, at the beginning of an epoch: the next tutti_fit() continues there, as after tutti_resume(). With
 * several ranks, all set the same. Errors: TUTTI_INVALID if a number is negative, updates are more than steps, or a
 * tutti_fit() of this trainer runs. */
TUTTI_API tutti_status tutti_set_position(tutti_trainer *trainer, const tutti_position *position);

#ifdef __cplusplus
}
#endif

#endif
