/* Progress of a training for people, on standard error: a bar on a terminal, plain lines elsewhere. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include "tutti_scores.h"

/* From this number on, epochs are not shown: the training ends by steps. */
#define PROGRESS_ENDLESS ((int64_t)1 << 40)

struct progress {
    bool terminal, bar_shown;
    int columns;        /* of the terminal */
    int64_t step_limit; /* of this call; 0: none */
    int64_t first_step; /* total steps before this call; -1: not known yet */
    double started, shown;
    const tutti_trainer *trainer; /* whose devices have lines of their own, where there are several; or NULL */
    int lines;                    /* of devices, below the bar */
    const tutti_scores *scores;   /* of the test data, filled when an epoch ends; or NULL */
};

/* trainer: NULL, or its devices are shown below the bar. */
void progress_begin(struct progress *progress, const tutti_trainer *trainer, int64_t step_limit);
/* Shows a step, or the end of an epoch; steps are shown a few times a second on a terminal, else every ten seconds. */
void progress_show(struct progress *progress, const tutti_progress *step);
/* Shows how many programs are built: a line that moves, or plain lines now and then. */
void progress_building(struct progress *progress, int built, int total);
/* Shows a line of work that takes a while: it moves on a terminal, elsewhere it comes now and then. */
void progress_line(struct progress *progress, const char *text);
/* Removes the bar, before other lines are written. */
void progress_clear(struct progress *progress);

#endif
