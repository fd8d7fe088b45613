/* The reports of a training, written while it goes on: a page (--report), event files of TensorBoard, and a table of
 * all metrics (--log). */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "formats/json_lines.h"
#include "tools/report/costs.h"
#include "tools/report/history.h"
#include "tools/report/metrics_log.h"
#include "tools/report/tensorboard.h"
#include "tools/session.h"
#include "tutti_data.h"

#include <jansson.h>

struct report_options {
    const char *page, *tensorboard, *log;
};

#define REPORT_OPTIONS(r)                                                                                          \
    { "report", OPTION((r).page), "FILE.html",                                                                     \
        "write a page with curves, samples, mistakes, devices and the network, while training goes on",            \
        .file = OPTION_WRITES },                                                                                   \
        { "log", OPTION((r).log), "FILE.csv", "write all metrics of each step and epoch", .file = OPTION_WRITES }, \
    {                                                                                                              \
        "tensorboard", OPTION((r).tensorboard), "DIR",                                                             \
            "write the metrics of each step and epoch into an event file of TensorBoard in this folder"            \
    }

/* What is known of the training before it begins; all of it must outlive the report. */
struct report_facts {
    const char *model, *data;
    char **command; /* argv */
    int64_t batch, train_samples, test_samples;
    const tutti_scores *scores;       /* of the test data, filled by each evaluation */
    int classes;                      /* 0: targets are numbers */
    const char *const *class_names;   /* NULL: they have numbers */
    const tutti_source *train, *test; /* `test` may be NULL */
    tutti_shape shape;                /* of a sample */
    tutti_dtype dtype, target_dtype;  /* of samples: F32 or U8 */
    size_t target_bytes;
    tutti_data *opened; /* where the samples are from: names those of `part`; NULL: they have numbers */
    tutti_data_part part;
};

struct report {
    struct report_options options;
    struct report_facts facts;
    const struct session *session;
    struct history history;
    struct tensorboard *board;
    FILE *log;
    struct costs costs; /* of device 0, once training is over */
    json_t *samples;    /* what the network sees; NULL: no pictures */
    json_t *results;    /* confusion and mistakes after the last epoch; NULL: none */
    double written;     /* when the page was last written */
    double least_pause; /* seconds until it is written again, so that writing takes little of the time */
    tutti_progress last;
    bool reported; /* a failure to write was reported */
};

/* Opens what the options ask for, if anything. Returns an exit status. */
int report_open(struct report *report, const struct report_options *options, const struct report_facts *facts,
    const struct session *session);
/* Call it for each step and epoch, as tutti_fitting.progress. A failure is reported once; the training goes on. */
void report_progress(struct report *report, const tutti_progress *progress);
/* Writes the last page, with the time of each operation. Returns an exit status. */
int report_finish(struct report *report);
void report_close(struct report *report);

/* The facts of the page as it is now, and of its parts (report_page.c, report_results.c, report_samples.c), which the
 * caller frees; NULL: there are none. */
tutti_status report_page(const struct report *report, bool finished, json_t **facts);
tutti_status report_results(const struct report *report, json_t **facts);
tutti_status report_samples(const struct report *report, json_t **facts);
/* Add facts to other pages: the confusion matrix, [classes][classes]; a mistake, which must be read from its source, or
 * NULL if it cannot be shown; the epochs, as `tutti report` reads them; what made the page. */
void report_confusion(struct json_line *line, const struct report_facts *facts, const int64_t *counts);
tutti_status report_figure(const struct report_facts *facts, const tutti_mistake *mistake, json_t **figure);
void report_epochs(struct json_line *line, const struct history *history);
void report_made_by(struct json_line *line, const struct report *report);
/* "7" or the class's name. */
const char *report_class(const struct report_facts *facts, int64_t number, char *buffer, size_t size);

#endif
