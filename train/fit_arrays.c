/* Trainings over arrays, as a source that reads them. */
#include "base/options.h"
#include "parallel/ranks_notes.h"
#include "parallel/trainer.h"
#include "train/array_source.h"
#include "train/checks.h"
#include "train/fit.h"

tutti_status tutti_fit(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, const tutti_fitting *given)
{
    tutti_status status = TUTTI_OK;
    struct array_source arrays = { 0 };
    tutti_fitting fitting;
    tutti_source source;
    const tutti_status read = OPTIONS_READ(&fitting, given, tutti_fitting);
    if (!trainer) return trainer_check(trainer, true, samples);
    TRY(trainer_check_trains(trainer, "tutti_fit()"));
    status = read == TUTTI_OK ? trainer_check(trainer, true, samples) : read;
    if (status == TUTTI_OK)
        status = array_source_open(
            &arrays, &trainer->feeds, feeds, feed_count, samples, fitting.lengths, fitting.buckets, &source);
    TRY(ranks_report_failure(trainer, status));
    status = fit_run(trainer, &source, &fitting, TUTTI_OK, true);
done:
    array_source_close(&arrays);
    return status;
}
