#include "tools/report/metrics_log.h"

#include "base/numbers.h"
#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <string.h>

tutti_status metrics_log_open(FILE **file, const char *path)
{
    *file = fopen(path, "w");
    if (!*file) return fail(TUTTI_FILE, "cannot write %s: %s", path, strerror(errno));
    fputs("kind,epoch,step,seconds,learning_rate,samples_per_s,loss,accuracy,test_loss,test_accuracy,top_accuracy,"
          "precision,recall,f1,iou,r2,mae,rmse\n",
        *file);
    return fflush(*file) == 0 ? TUTTI_OK : fail(TUTTI_FILE, "cannot write %s: %s", path, strerror(errno));
}

/* Writes nothing for a number that is missing. */
static void number(FILE *file, double value, char after)
{
    char text[40] = "";
    if (isfinite(value)) number_print(text, sizeof(text), "%.9g", value);
    fprintf(file, "%s%c", text, after);
}

void metrics_log_step(FILE *file, const struct moment *step)
{
    fputs("step,", file);
    number(file, step->epoch, ',');
    fprintf(file, "%lld,", (long long)step->step);
    const double values[] = { step->seconds, step->rate, step->samples_per_s, step->loss, step->accuracy };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) number(file, values[i], ',');
    fputs(",,,,,,,,,\n", file);
}

tutti_status metrics_log_epoch(FILE *file, const struct epoch *epoch, const char *path)
{
    const bool tested = epoch->test.samples > 0, scored = epoch->scores.samples > 0;
    const tutti_scores_summary *s = &epoch->scores;
    const double values[] = { epoch->seconds, epoch->rate, epoch->samples_per_s, epoch->train.loss,
        epoch->train.accuracy, tested ? epoch->test.loss : NAN, tested ? epoch->test.accuracy : NAN },
                 scores[] = { s->top_accuracy, s->precision, s->recall, s->f1, s->iou, s->r2, s->mae, s->rmse };
    fprintf(file, "epoch,%lld,%lld,", (long long)epoch->epoch, (long long)epoch->step);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) number(file, values[i], ',');
    for (size_t i = 0; i < 8; i++) number(file, scored ? scores[i] : NAN, i == 7 ? '\n' : ',');
    if (fflush(file) == 0 && !ferror(file)) return TUTTI_OK;
    return fail(TUTTI_FILE, "cannot write %s: %s", path, strerror(errno));
}
