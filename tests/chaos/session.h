/* Shared by the runs of the chaos test: devices, data, networks, and the results of a run that nothing disturbs. */
#ifndef TESTS_CHAOS_SESSION_H
#define TESTS_CHAOS_SESSION_H

#include "parallel/trainer.h"

#include "tests/chaos/case.h"

enum { CLASSES = 5, PIXELS = 2 * 7 * 7, MOST_PARAMETERS = 1 << 12 };

extern float images[SAMPLES * PIXELS];
extern int32_t labels[SAMPLES];
extern tutti_hosts *hosts;   /* NULL: this process alone */
extern char checkpoint[256]; /* its name */
extern double patience;      /* times the usual limits, where something hangs */

/* What the log has reported since this was last set to 0. */
struct reports {
    int late;      /* devices that took too long */
    bool nonsense; /* a warning with numbers that cannot be */
    char lines[4096];
};
extern struct reports reports;

struct session {
    const struct chaos_case *it;
    tutti_network *network;
    tutti_trainer *trainer;
    double losses[EPOCHS + 1]; /* of the epochs */
};

struct parameters {
    int64_t count;
    float values[MOST_PARAMETERS];
    bool trained[MOST_PARAMETERS]; /* or a running statistic */
};

/* Results of the first device alone: before the first step, at the end, and after one more epoch. */
struct reference {
    bool made;
    double losses[EPOCHS + 1];
    struct parameters start, end, epoch_later;
};

/* NULL, or what is missing. */
const char *sessions_begin(const char *name, int ranks);
void sessions_end(void);
int session_rank(void);

/* All three devices, opened once for each kind; NULL where there are fewer. */
tutti_runtime *session_runtime(enum memory_kind memory);
/* NULL: the first device alone, with nothing of the case but its network and optimizer. */
tutti_status session_compile(struct session *session, tutti_runtime *runtime);
void session_close(struct session *session);
/* To be called by the progress of a fit. */
void session_note(struct session *session, const tutti_progress *progress);
/* All data in the order of their indices, to be evaluated. */
tutti_source session_source(void);

tutti_status parameters_get(const struct session *session, struct parameters *parameters);
/* NULL, or the first difference that is larger than `limit` times the largest parameter; or, where `from` is not NULL,
 * times the largest change of a trained parameter since then. The text is valid until the next call. */
const char *parameters_compare(
    const struct parameters *found, const struct parameters *wanted, const struct parameters *from, double limit);

/* NULL on failure. */
const struct reference *session_reference(const struct chaos_case *it);
/* Continues from the checkpoint on the first device to the end of the reference's additional epoch, so that the
 * optimizer's states count, too. */
tutti_status session_resume(const struct chaos_case *it, struct parameters *parameters);
void checkpoint_remove(void);
bool checkpoint_exists(void);

#endif
