#include "tools/results.h"
#include "tutti_inspect.h"

#include <math.h>

tutti_status epoch_json(const tutti_progress *epoch, const struct judge *judge)
{
    struct json_line line;
    bool tested = epoch->test.samples > 0;
    json_line_begin(&line, stdout);
    json_line_print(&line, "epoch %lld loss %g accuracy %g test_loss %g test_accuracy %g", (long long)epoch->epoch,
        epoch->train.loss, epoch->train.accuracy, tested ? epoch->test.loss : NAN, tested ? epoch->test.accuracy : NAN);
    json_line_print(&line, "samples_per_s %g samples %lld steps %lld", epoch->samples_per_s,
        (long long)epoch->train.samples, (long long)epoch->total_steps);
    judge_json(&line, judge);
    return json_line_end(&line);
}

/* Milliseconds of a step, on average. */
static double per_step(const tutti_device_times *times, double seconds)
{
    return times->steps > 0 ? 1000 * seconds / (double)times->steps : 0;
}

static void times_json(struct json_line *line, const struct session *session, int position)
{
    tutti_device_times times = { .size = sizeof(times) };
    if (tutti_report_times(session->trainer, position, &times) != TUTTI_OK) return;
    json_line_print(line, "compute_ms %g transfer_ms %g idle_ms %g data_ms %g", per_step(&times, times.compute_s),
        per_step(&times, times.transfer_s), per_step(&times, times.idle_s), per_step(&times, times.data_s));
    json_line_print(line, "sent_bytes %g received_bytes %g",
        times.steps > 0 ? times.sent_bytes / (double)times.steps : 0,
        times.steps > 0 ? times.received_bytes / (double)times.steps : 0);
    if (times.without_s > 0)
        json_line_print(line, "with_ms %g without_ms %g", 1000 * times.with_s, 1000 * times.without_s);
}

/* Prints how the batch is divided, so that the division can be repeated. */
static void shares_text(FILE *file, const struct session *session)
{
    tutti_device_report report;
    fprintf(file, "shares by speed; to repeat this division: --shares ");
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++)
        fprintf(file, "%s%lld", i ? "," : "", (long long)report.share);
    fprintf(file, "\n");
}

void times_text(FILE *file, const struct session *session)
{
    tutti_device_report report;
    tutti_device_times times = { .size = sizeof(times) };
    int64_t batch = 0;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++) batch += report.share;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK &&
         tutti_report_times(session->trainer, i, &times) == TUTTI_OK && times.steps > 0;
         i++) {
        fprintf(file, "device %d  share %lld of %lld; a step of %.3f ms: compute %.3f, transfer %.3f, idle %.3f ms\n",
            report.index, (long long)report.share, (long long)batch, per_step(&times, times.step_s),
            per_step(&times, times.compute_s), per_step(&times, times.transfer_s), per_step(&times, times.idle_s));
        if (times.without_s > 0)
            fprintf(file, "device %d  left out: a step takes %.3f ms with it and %.3f ms without\n", report.index,
                1000 * times.with_s, 1000 * times.without_s);
    }
    if (times.data_s > 0.005 * (times.step_s + times.data_s))
        fprintf(
            file, "steps waited for data %.1f %% of the time\n", 100 * times.data_s / (times.step_s + times.data_s));
    if (times.automatic) shares_text(file, session);
}

void devices_json(struct json_line *line, const struct session *session)
{
    json_line_print(line, "devices [");
    tutti_device_report report;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++) {
        json_line_print(line, "{ index %d name %s samples %lld samples_per_s %g share %lld", report.index, report.name,
            (long long)report.samples, report.samples_per_s, (long long)report.share);
        times_json(line, session, i);
        json_line_print(line, "memory_bytes %llu }", (unsigned long long)report.memory_bytes);
    }
    json_line_print(line, "]");
}

tutti_status results_json(const struct session *session, const struct results *results, const struct judge *judge)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_text(&line, "saved", results->saved);
    devices_json(&line, session);
    json_line_print(&line, "model %s epoch %lld steps %lld samples %lld samples_per_s %g", session->model->name,
        (long long)results->epoch, (long long)results->steps, (long long)results->samples,
        results->seconds > 0 ? (double)results->timed_samples / results->seconds : NAN);
    json_line_print(
        &line, "loss %g test_loss %g test_accuracy %g", results->loss, results->test_loss, results->test_accuracy);
    if (judge->tokens) json_line_number(&line, "test_perplexity", judge_perplexity(judge, results->test_loss));
    judge_json_all(&line, judge);
    return json_line_end(&line);
}

void devices_text(const struct session *session, int rank)
{
    tutti_device_report report;
    char name[32] = "";
    if (rank > 0) snprintf(name, sizeof(name), "rank %d: ", rank);
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++)
        fprintf(stderr, "%sdevice %d  %s: %lld samples, %.0f samples/s\n", name, report.index, report.name,
            (long long)report.samples, report.samples_per_s);
}

void results_text(const struct session *session, const struct results *results, const struct judge *judge)
{
    if (isfinite(results->test_accuracy))
        fprintf(stderr, "test accuracy %.2f %%, test loss %.4f\n", 100 * results->test_accuracy, results->test_loss);
    else
        fprintf(stderr, "test loss %.6g\n", results->test_loss);
    if (judge->tokens) fprintf(stderr, "test perplexity %.6g\n", judge_perplexity(judge, results->test_loss));
    judge_line(stderr, judge);
    devices_text(session, 0);
    times_text(stderr, session);
    if (results->seconds > 0)
        fprintf(stderr, "together: %lld samples, %.0f samples/s\n", (long long)results->samples,
            (double)results->timed_samples / results->seconds);
    if (results->saved)
        fprintf(stderr, "saved %s.safetensors and %s.state.safetensors\n", results->saved, results->saved);
    else
        fprintf(stderr, "the model was not saved: use --save NAME to save it\n");
}
