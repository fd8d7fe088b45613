/* What a training says when it is over, and the lines of its epochs. */
#ifndef TOOLS_RESULTS_H
#define TOOLS_RESULTS_H

#include "formats/json_lines.h"
#include "tools/session.h"

struct results {
    double loss, accuracy, test_loss, test_accuracy; /* of the last epoch; NaN: not measured */
    int64_t epoch, steps, samples;
    int64_t timed_samples; /* in these seconds */
    double seconds;        /* training alone */
    const char *saved;     /* NAME, or NULL */
};

/* A line per epoch: epoch, loss, accuracy, test_loss, test_accuracy, samples_per_s. */
tutti_status epoch_json(const tutti_progress *epoch);
/* The last line: saved, devices, and the results again. */
tutti_status results_json(const struct session *session, const struct results *results);
void results_text(const struct session *session, const struct results *results);
/* Appends the list "devices": index, name, samples, samples_per_s, share, memory_bytes. */
void devices_json(struct json_line *line, const struct session *session);

#endif
