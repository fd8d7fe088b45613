#include "tools/results.h"

#include <math.h>

tutti_status epoch_json(const tutti_progress *epoch)
{
    struct json_line line;
    bool tested = epoch->test.samples > 0;
    json_line_begin(&line, stdout);
    json_line_integer(&line, "epoch", epoch->epoch);
    json_line_number(&line, "loss", epoch->train.loss);
    json_line_number(&line, "accuracy", epoch->train.accuracy);
    json_line_number(&line, "test_loss", tested ? epoch->test.loss : NAN);
    json_line_number(&line, "test_accuracy", tested ? epoch->test.accuracy : NAN);
    json_line_number(&line, "samples_per_s", epoch->samples_per_s);
    json_line_integer(&line, "samples", epoch->train.samples);
    json_line_integer(&line, "steps", epoch->total_steps);
    return json_line_end(&line);
}

void devices_json(struct json_line *line, const struct session *session)
{
    json_line_list(line, "devices");
    tutti_device_report report;
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++) {
        json_line_object(line, NULL);
        json_line_integer(line, "index", report.index);
        json_line_text(line, "name", report.name);
        json_line_integer(line, "samples", report.samples);
        json_line_number(line, "samples_per_s", report.samples_per_s);
        json_line_integer(line, "share", report.share);
        json_line_unsigned(line, "memory_bytes", report.memory_bytes);
        json_line_close(line);
    }
    json_line_close(line);
}

tutti_status results_json(const struct session *session, const struct results *results)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_text(&line, "saved", results->saved);
    devices_json(&line, session);
    json_line_text(&line, "model", session->model->name);
    json_line_integer(&line, "epoch", results->epoch);
    json_line_integer(&line, "steps", results->steps);
    json_line_integer(&line, "samples", results->samples);
    json_line_number(
        &line, "samples_per_s", results->seconds > 0 ? (double)results->timed_samples / results->seconds : NAN);
    json_line_number(&line, "loss", results->loss);
    json_line_number(&line, "test_loss", results->test_loss);
    json_line_number(&line, "test_accuracy", results->test_accuracy);
    return json_line_end(&line);
}

void results_text(const struct session *session, const struct results *results)
{
    tutti_device_report report;
    if (isfinite(results->test_accuracy))
        fprintf(stderr, "test accuracy %.2f %%, test loss %.4f\n", 100 * results->test_accuracy, results->test_loss);
    else
        fprintf(stderr, "test loss %.6g\n", results->test_loss);
    for (int i = 0; tutti_report(session->trainer, i, &report) == TUTTI_OK; i++)
        fprintf(stderr, "device %d  %s: %lld samples, %.0f samples/s\n", report.index, report.name,
            (long long)report.samples, report.samples_per_s);
    if (results->seconds > 0)
        fprintf(stderr, "together: %lld samples, %.0f samples/s\n", (long long)results->samples,
            (double)results->timed_samples / results->seconds);
    if (results->saved)
        fprintf(stderr, "saved %s.safetensors and %s.state.safetensors\n", results->saved, results->saved);
    else
        fprintf(stderr, "not saved: --save NAME would have kept the model\n");
}
