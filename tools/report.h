/* The reports of a training, written while it goes on: a page (--report), event files of TensorBoard, and a table of
 * all metrics (--log). */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "base/text.h"
#include "tools/costs.h"
#include "tools/history.h"
#include "tools/metrics_log.h"
#include "tools/session.h"
#include "tools/tensorboard.h"
#include "tutti_data.h"

struct report_options {
    const char *page, *tensorboard, *log;
};

#define REPORT_OPTIONS(r)                                                                                         \
    { .name = "report",                                                                                           \
        .kind = OPTION_TEXT,                                                                                      \
        .value = &(r).page,                                                                                       \
        .noun = "FILE.html",                                                                                      \
        .help = "write a page with curves, samples, mistakes, devices and the network, while training goes on" }, \
        { .name = "log",                                                                                          \
            .kind = OPTION_TEXT,                                                                                  \
            .value = &(r).log,                                                                                    \
            .noun = "FILE.csv",                                                                                   \
            .help = "write all metrics of each step and epoch" },                                                 \
    {                                                                                                             \
        .name = "tensorboard", .kind = OPTION_TEXT, .value = &(r).tensorboard, .noun = "DIR",                     \
        .help = "write the metrics of each step and epoch into an event file of TensorBoard in this folder"       \
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
    char *samples;      /* what the network sees, as HTML */
    char *results;      /* confusion and mistakes after the last epoch, as HTML */
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

/* The page as it is now, and its parts (report_page.c, report_results.c, report_samples.c). */
tutti_status report_page(const struct report *report, bool finished, struct text *page);
tutti_status report_results(const struct report *report, struct text *page);
tutti_status report_samples(const struct report *report, struct text *page);
/* Append parts of it to other pages: the confusion matrix, [classes][classes]; a mistake, which must be read from its
 * source, or nothing if it cannot be shown; the command that made it. */
void report_confusion(struct text *page, const struct report_facts *facts, const int64_t *counts);
tutti_status report_figure(const struct report_facts *facts, const tutti_mistake *mistake, struct text *page);
void report_command(struct text *page, char **words);
/* "7" or the class's name. */
const char *report_class(const struct report_facts *facts, int64_t number, char *buffer, size_t size);
/* Appends the run as an object of JSON, which `tutti report` reads. */
void report_json(const struct report *report, struct text *page);

#endif
