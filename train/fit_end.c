/* Ends of a training before its last epoch: what is saved, and how to resume it. */
#include "parallel/faults.h"
#include "parallel/ranks_average.h"
#include "parallel/trainer.h"
#include "train/fit.h"
#include "train/parameters.h"

#include <stdio.h>

tutti_status fit_save(const struct fit *fit)
{
    return fit->fitting->save ? tutti_save(fit->trainer, fit->fitting->save) : TUTTI_OK;
}

/* No device is left. Saves the result of the last complete step, if it can be read: several devices share a copy on
 * the host; a single one has the only copy itself. */
static tutti_status stop_faulty(const struct fit *fit, tutti_status status)
{
    char message[1024];
    const char *name = fit->fitting->save;
    if (!name) return status_context(status, "no device is left and nothing was saved");
    snprintf(message, sizeof(message), "%s", status_message());
    const tutti_status saved = fit_save(fit);
    status_set(status, message);
    if (saved != TUTTI_OK)
        return status_context(
            status, "no device is left, and the training since '%s' was saved is lost; resume from it", name);
    return status_context(status, "no device is left; resume from '%s', saved after step %lld", name,
        (long long)fit->trainer->state.position.steps);
}

tutti_status fit_stop_cancelled(const struct fit *fit)
{
    const tutti_status status = fit_save(fit);
    if (status != TUTTI_OK) return status;
    return fail(TUTTI_CANCELLED, "cancelled after step %lld, in epoch %lld%s%s",
        (long long)fit->trainer->state.position.steps, (long long)fit->trainer->state.position.epoch + 1,
        fit->fitting->save ? "; saved as " : "", fit->fitting->save ? fit->fitting->save : "");
}

/* A rank is lost. If gradients are summed, rank 0 has the complete result of the last step. */
static tutti_status stop_without_hosts(const struct fit *fit, tutti_status status)
{
    char message[1024];
    const char *name = fit->fitting->save;
    if (!name) return status_context(status, "nothing was saved");
    if (fit->trainer->ranks->comm->rank != 0 || ranks_average_mode(fit->trainer))
        return status_context(status, "the training since '%s' was saved is lost; resume from it", name);
    snprintf(message, sizeof(message), "%s", status_message());
    const tutti_status saved = trainer_save(fit->trainer, name);
    status_set(status, message);
    if (saved != TUTTI_OK) return status_context(status, "what was learnt since '%s' was saved is lost", name);
    return status_context(
        status, "resume from '%s', saved after step %lld", name, (long long)fit->trainer->state.position.steps);
}

tutti_status fit_stop_failed(const struct fit *fit, tutti_status status)
{
    if (status == TUTTI_HOST_LOST) return stop_without_hosts(fit, status);
    return is_device_fault(status) ? stop_faulty(fit, status) : status;
}
