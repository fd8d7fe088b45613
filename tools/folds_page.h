/* The report of a training with folds: one page of all folds, next to the files of each one. */
#ifndef TOOLS_FOLDS_PAGE_H
#define TOOLS_FOLDS_PAGE_H

#include "tools/folds.h"
#include "tools/report/report.h"
#include "tools/report/run_file.h"

enum { FOLDS_MISTAKES = 16 };

struct folds_page {
    const char *path;   /* NULL: no page is wanted */
    struct run *runs;   /* [folds] */
    int64_t *confusion; /* [classes][classes], of the folds that are complete; NULL: none */
    struct {
        double loss;
        json_t *figure;
    } worst[FOLDS_MISTAKES]; /* the largest loss first */
    int mistakes;
    char page[1024], log[1024], tensorboard[1024]; /* names of the fold at hand */
    double written;                                /* when the page was last written */
    bool reported;                                 /* a failure to write was reported */
};

/* Names the files of a fold: page.fold1.html, log.fold1.csv, DIR/fold1, and makes DIR. Returns false if a name is too
 * long. */
bool folds_page_begin(struct folds_page *page, int fold, struct report_options *options);
/* After an epoch of the present fold: writes the page, if that is due. A failure is reported once. */
void folds_page_epoch(struct folds_page *page, const struct folds *folds, int fold, const struct report *report);
/* After the fold is complete, with its results in `folds`: writes the page. Returns an exit status. */
int folds_page_complete(struct folds_page *page, const struct folds *folds, int fold, const struct report *report);
void folds_page_free(struct folds_page *page, const struct folds *folds);

#endif
