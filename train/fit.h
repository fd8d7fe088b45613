/* A training over epochs, for the files fit*.c. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "train/schedule.h"
#include "tutti.h"

struct fit {
    tutti_trainer *trainer;
    const tutti_source *source;
    const tutti_fitting *fitting;
    int64_t batch, epochs;
    int64_t steps;         /* of this call */
    int64_t samples;       /* of this call */
    bool unsaved;          /* the last save failed */
    int64_t epoch_samples; /* of this call's part of the epoch, and the seconds that training them took */
    double epoch_seconds;
    struct schedule schedule;
    bool over_arrays; /* of tutti_fit(), whose source is not the caller's */
};

/* Does what tutti_fit_source() does. `read`: the status of reading the options; `over_arrays`: for tutti_fit(). */
tutti_status fit_run(tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *fitting,
    tutti_status read, bool over_arrays);

/* Checks the options, sets the numbers that follow from them, agrees on them with all ranks, and sets the position to
 * begin at: that of the checkpoint, or the start. */
tutti_status fit_begin(struct fit *fit);
int64_t fit_steps_of_epoch(const struct fit *fit);
int64_t fit_steps_done(const struct fit *fit); /* in this training, without those of earlier ones */

tutti_status fit_save(const struct fit *fit); /* if asked to */
/* After a failure or tutti_cancel(): saves what can be saved, and returns the failure, whose message says how to
 * resume. */
tutti_status fit_stop_cancelled(const struct fit *fit);
tutti_status fit_stop_failed(const struct fit *fit, tutti_status status);

#endif
