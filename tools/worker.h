/* A child process that measures for `tutti tune`: a hang or crash in a driver ends the child, but not the command,
 * which never uses OpenCL itself. */
#ifndef TOOLS_WORKER_H
#define TOOLS_WORKER_H

#include "tools/session.h"

#include <sys/types.h>

/* What is measured, and where. */
struct task {
    const struct model *model;
    tutti_shape shape;
    int64_t classes;
    bool train;
    int device;                     /* position among the opened ones */
    struct session_options session; /* its tuning table is a file, or "off" */
};

enum { ANSWER_FIELDS = 8 };

struct worker {
    pid_t process; /* 0: none */
    int to, from;
    int status; /* exit status, when it has ended */
    char *line; /* what was read so far */
    size_t size, capacity;
    char *answer;
    char *fields[ANSWER_FIELDS]; /* of the last answer: its word, then its values; an empty text where there is none */
};

/* Answers to requests, one line each, fields between tabs:
 *   at the start       device NAME DRIVER COUNT, candidate PROBLEM LAYER KERNEL USES PRESENT REFUSAL ..., ready
 *   refer N            ok | failed MESSAGE
 *   try N              trial LEAST MEDIAN PRESENT_LEAST PRESENT_MEDIAN NOISE GAIN | wrong MESSAGE | failed MESSAGE
 *   step               ms MILLISECONDS | failed MESSAGE */
enum worker_kind { WORKER_KERNELS, WORKER_STEPS };

bool worker_start(struct worker *worker, enum worker_kind kind, const struct task *task);
bool worker_ask(struct worker *worker, const char *request, int number);
/* Reads the next line into `fields`. Returns NULL, or why there is none: what became of the process, which is then
 * gone. */
const char *worker_answer(struct worker *worker, double limit_s, char *why, size_t size);
void worker_end(struct worker *worker);

#endif
