#include "tools/find_lr.h"

#include "base/numbers.h"
#include "base/status.h"
#include "formats/json_lines.h"
#include "tools/report/chart.h"

#include <math.h>
#include <stdlib.h>

/* The largest loss of the picture: an explosion would hide what comes before it. */
static double limit_of(const tutti_rate_result *r)
{
    double least = r->smoothed[0], most = r->smoothed[0];
    for (int i = 1; i < r->count; i++) {
        least = fmin(least, fmin(r->smoothed[i], r->losses[i]));
        most = fmax(most, r->smoothed[i]);
    }
    const double first = r->smoothed[0];
    return first - least > 0.05 * fabs(first) ? fmin(most, 2 * first - least) : most;
}

static tutti_status draw(const tutti_rate_result *r, const char *model, const char *path)
{
    char title[160];
    const size_t count = (size_t)r->count;
    snprintf(title, sizeof(title), "%s: loss of learning rates", model);
    const struct chart chart = { .title = title,
        .x_label = "learning rate (logarithmic)",
        .most = limit_of(r),
        .x_logarithm = true,
        .series = { { NULL, r->rates, r->losses, count }, { "smoothed", r->rates, r->smoothed, count } },
        .count = 2,
        .marks = { { r->steepest > 0 ? "steepest" : NULL, r->steepest },
            { r->valley > 0 ? "suggested (valley)" : NULL, r->valley } } };
    return chart_write(&chart, path);
}

static tutti_status result_json(const tutti_rate_result *r)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "valley %g steepest %g steps [", r->valley, r->steepest);
    for (int i = 0; i < r->count; i++)
        json_line_print(&line, "{ rate %g loss %g smoothed %g }", r->rates[i], r->losses[i], r->smoothed[i]);
    return json_line_end(&line);
}

static tutti_status report_result(
    const struct session *session, const tutti_rate_result *r, const char *path, bool json)
{
    char suggestion[128];
    const tutti_status status = draw(r, session->model->name, path);
    if (status != TUTTI_OK) return status;
    if (r->valley > 0) {
        number_print(suggestion, sizeof(suggestion), "suggested --lr %.2g (valley); steepest descent at %.2g",
            r->valley, r->steepest);
        fprintf(stderr, "%s\n", suggestion);
    } else {
        fprintf(stderr, "the loss falls at no rate: no suggestion\n");
    }
    fprintf(stderr, "%d steps; the picture is %s; nothing was trained\n", r->count, path);
    return json ? result_json(r) : TUTTI_OK;
}

int find_lr_run(const struct session *session, const tutti_source *source, const char *path, bool json)
{
    tutti_rate_result result = { .size = sizeof(result) };
    tutti_status status =
        tutti_find_rate(session->trainer, source, &(tutti_rate_options) { .batch = session->training.batch }, &result);
    if (status != TUTTI_OK) return work_failed(session->command, status, tutti_message(session->runtime));
    if (session->rank == 0) status = report_result(session, &result, path, json);
    free(result.rates);
    free(result.losses);
    free(result.smoothed);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}
