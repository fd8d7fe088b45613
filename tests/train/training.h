/* Small networks, data and runs that the device tests of training share. */
#ifndef TESTS_TRAIN_TRAINING_H
#define TESTS_TRAIN_TRAINING_H

#include <check.h>
#undef fail

#include "parallel/trainer.h"

enum { SAMPLES = 70, CLASSES = 5, PIXELS = 2 * 7 * 7, STEP_SAMPLES = 16 };

extern float images[SAMPLES * PIXELS];
extern int32_t labels[SAMPLES];
void data_make(void);
/* Cases of the suite, each between the two functions, which may be NULL. No time limit but the whole program's. */
TCase *cases_new(Suite *suite, const char *name, void (*setup)(void), void (*teardown)(void));
/* Every case of a loop test; where the environment has TUTTI_TESTS=few, each third and the last. */
void add_cases(TCase *cases, const TTest *test, int count);

/* Devices and divisions with which every training comes to the same end, up to rounding. */
enum { WAYS = 5 };
extern const struct way {
    const char *devices;
    bool apart;
    tutti_training training;
} training_ways[WAYS];

enum kind {
    KIND_PLAIN,    /* convolution, pooling, dense: any division of the batch gives the same gradient */
    KIND_DROPOUT,  /* the same with dropout */
    KIND_GROUPS,   /* the same with dropout, and groups that have their own rate and decay */
    KIND_NORM,     /* the same with batch normalisation: running statistics; the division matters */
    KIND_RESIDUAL, /* blocks with shortcuts, batch normalisation everywhere, after a dense layer too. Smooth: no
                      value lies near the kink of an activation */
    KIND_WIDE,     /* dense layers of more than a million weights each, which travel in several ranges */
    KIND_APART,   /* depthwise and pointwise convolutions with batch normalisation, a shortcut, the mean of the image */
    KIND_SIAMESE, /* two layers that share a batch normalisation */
    KIND_POINTWISE, /* pointwise convolutions and dense layers, smooth activations: any division, and no kinks */
};

/* A runtime on these devices (a string literal); `apart`: they are taken for ones with memory of their own, so that
 * samples are staged and gradients leave in buckets. session_close() closes it. */
tutti_runtime *session_runtime(const char *devices, bool apart);
/* From now on there is one such runtime for all sessions on the same devices, so that programs are built once;
 * sessions_end() closes it. */
void sessions_share_runtimes(void);
void sessions_end(void);

/* A runtime on some devices, a network, a trainer. */
struct session {
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_trainer *trainer;
};
#define ASSERT_OK(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))
/* Fails unless a call's status is the wanted one and its message has `message`. */
void fails_with(tutti_status status, tutti_status wanted, const char *message);
/* `training` has the options that differ from SGD with momentum 0.9, rate 0.05, batch STEP_SAMPLES, seed 7. */
void session_open(struct session *session, const char *devices, enum kind kind, const tutti_training *training);
/* Opens a session with a limit of memory; the trainer is NULL if compiling failed. */
void session_try(
    struct session *session, const tutti_runtime_options *options, enum kind kind, const tutti_training *training);
/* Does what follows opening: the session's runtime exists. */
void session_compile(struct session *session, enum kind kind, const tutti_training *training);
/* Opens a session on devices that are treated as ones with memory of their own. */
void session_open_apart(struct session *session, const char *devices, enum kind kind, const tutti_training *training);
/* Opens a session with automatic shares; in all others, shares that are not given are equal. */
void session_open_automatic(
    struct session *session, const char *devices, enum kind kind, const tutti_training *training);
/* Opens a session with automatic shares on devices treated as ones with memory of their own. */
void session_open_automatic_apart(
    struct session *session, const char *devices, enum kind kind, const tutti_training *training);
void session_close(struct session *session);
/* `steps` steps on consecutive batches of the data. */
void session_steps(struct session *session, int steps);

/* All parameters and running statistics one after another, or their gradients; freed by free(). */
float *session_parameters(const struct session *session, int64_t *count);
float *session_gradients(const struct session *session, int64_t *count);
/* Fails unless two sessions' parameters are the same bytes; or within the tolerance, relative to the largest. */
void same_bytes(struct session *a, struct session *b);
void close_to(struct session *a, struct session *b, double tolerance);

#endif
