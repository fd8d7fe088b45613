/* What a training prints at its end, and the lines of its epochs. */
#ifndef TOOLS_RESULTS_H
#define TOOLS_RESULTS_H

#include "formats/json_lines.h"
#include "tools/scores.h"
#include "tools/session.h"

struct results {
    double loss, accuracy, test_loss, test_accuracy; /* of the last epoch; NaN: not measured */
    int64_t epoch, steps, samples;
    int64_t timed_samples; /* in these seconds */
    double seconds;        /* training alone */
    const char *saved;     /* NAME, or NULL */
};

/* A line per epoch: epoch, loss, accuracy, test_loss, test_accuracy, samples_per_s, the scores of the test. */
tutti_status epoch_json(const tutti_progress *epoch, const struct judge *judge);
/* The last line: saved, devices, and the results again. */
tutti_status results_json(const struct session *session, const struct results *results, const struct judge *judge);
/* Prints what each device did; rank: of several processes, printed if it is not the first. */
void devices_text(const struct session *session, int rank);
void results_text(const struct session *session, const struct results *results, const struct judge *judge);
/* Lines for people: each device's share, and where the time of its steps went. */
void times_text(FILE *file, const struct session *session);
/* Appends the list "devices": index, name, samples, samples_per_s, share, compute_ms, transfer_ms and idle_ms of a
 * step, memory_bytes; with_ms and without_ms, a step with this device and without, if it is left out. */
void devices_json(struct json_line *line, const struct session *session);

#endif
