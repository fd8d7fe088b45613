#include "tools/worker.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "tools/made_samples.h"
#include "tutti_advanced.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------- in the child ---- */

/* A message as one field. */
static const char *one_line(const char *message)
{
    static char line[600];
    snprintf(line, sizeof(line), "%s", message);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\t' || *c == '\r') *c = ' ';
    return line;
}

static int open_session(struct session *session, const struct task *task)
{
    int result = session_open(session, "tune", &task->session);
    session->reading.any_ports = true;
    session->training.learning_rate = 1e-3f;
    if (result == EXIT_DONE) result = session_build(session, task->model, task->shape, (int)task->classes);
    if (result == EXIT_DONE) session->training.loss = task->train ? measured_loss(session) : TUTTI_LOSS_NONE;
    return result;
}

static void list_candidates(FILE *out, const struct session *session, tutti_tuner *tuner, int device)
{
    tutti_device_info info;
    tutti_candidate c = { .size = sizeof(c) };
    if (tutti_device_get(session->runtime, device, &info) != TUTTI_OK) return;
    fprintf(out, "device\t%s\t%s\t%d\n", info.name, info.driver, tutti_device_count(session->runtime));
    for (int i = 0; tuner && tutti_tuner_candidate(tuner, i, &c) == TUTTI_OK; i++)
        fprintf(out, "candidate\t%s\t%s\t%s\t%d\t%d\t%s\n", c.problem, c.layer, c.kernel, c.uses, c.present,
            c.refusal ? one_line(c.refusal) : "");
    fprintf(out, "ready\n");
    fflush(out);
}

static void answer_try(FILE *out, tutti_tuner *tuner, int candidate)
{
    tutti_trial t;
    const tutti_status status = tutti_tuner_try(tuner, candidate, &t);
    if (status == TUTTI_OK)
        fprintf(out, "trial\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\t%.9g\n", t.least, t.median, t.present_least,
            t.present_median, t.noise, t.gain);
    else
        fprintf(out, "%s\t%s\n", status == TUTTI_WRONG_RESULT ? "wrong" : "failed", one_line(tutti_message(NULL)));
}

static int serve_kernels(FILE *in, FILE *out, struct session *session, const struct task *task)
{
    char line[64];
    int candidate = 0;
    session_add_loss(session);
    tutti_tuner *tuner = tutti_tuner_new(session->network, session->output, &session->training, task->device);
    if (!tuner) return work_failed("tune", TUTTI_INTERNAL, tutti_message(session->runtime));
    list_candidates(out, session, tuner, task->device);
    while (fgets(line, sizeof(line), in)) {
        if (sscanf(line, "refer %d", &candidate) == 1) {
            if (tutti_tuner_refer(tuner, candidate) == TUTTI_OK)
                fprintf(out, "ok\n");
            else
                fprintf(out, "failed\t%s\n", one_line(tutti_message(NULL)));
        } else if (sscanf(line, "try %d", &candidate) == 1) {
            answer_try(out, tuner, candidate);
        }
        fflush(out);
    }
    tutti_tuner_free(tuner);
    return EXIT_DONE;
}

static int serve_steps(FILE *in, FILE *out, struct session *session, const struct task *task)
{
    const int64_t batch = session->training.batch;
    char line[64];
    struct made_samples samples;
    session->shares[task->device] = 1; /* the others have 0 */
    session->training.shares = session->shares;
    const tutti_status made = made_samples_new(session, &samples);
    if (made != TUTTI_OK) return work_failed("tune", made, status_message());
    const int result = session_compile(session);
    if (result == EXIT_DONE) list_candidates(out, session, NULL, task->device);
    while (result == EXIT_DONE && fgets(line, sizeof(line), in)) {
        tutti_metrics metrics;
        const double start = clock_seconds();
        const tutti_status status = task->train
            ? tutti_train_step(session->trainer, samples.feeds, samples.input_count + 1, batch, &metrics)
            : tutti_infer(session->trainer, samples.feeds, samples.input_count, batch, &samples.fetch, 1);
        if (status == TUTTI_OK)
            fprintf(out, "ms\t%.9g\n", 1000 * (clock_seconds() - start));
        else
            fprintf(out, "failed\t%s\n", one_line(tutti_message(NULL)));
        fflush(out);
    }
    made_samples_free(&samples);
    return result;
}

static int serve(enum worker_kind kind, const struct task *task, int requests, int answers)
{
    struct session session = { 0 };
    FILE *in = fdopen(requests, "r"), *out = fdopen(answers, "w");
    signal(SIGINT, SIG_IGN); /* a terminal sends it to both: the command decides */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int result = in && out ? open_session(&session, task) : EXIT_WORK_FAILED;
    if (result == EXIT_DONE)
        result = kind == WORKER_KERNELS ? serve_kernels(in, out, &session, task) : serve_steps(in, out, &session, task);
    session_close(&session);
    return result;
}

/* ------------------------------------------------------------------------------------------ in the command ---- */

bool worker_start(struct worker *worker, enum worker_kind kind, const struct task *task)
{
    int requests[2], answers[2];
    *worker = (struct worker) { 0 };
    if (pipe(requests) != 0) return false;
    if (pipe(answers) != 0) {
        close(requests[0]);
        close(requests[1]);
        return false;
    }
    fflush(NULL); /* else the child would write it again */
    worker->process = fork();
    if (worker->process == 0) {
        close(requests[1]);
        close(answers[0]);
        _exit(serve(kind, task, requests[0], answers[1]));
    }
    close(requests[0]);
    close(answers[1]);
    worker->to = requests[1];
    worker->from = answers[0];
    if (worker->process > 0) return true;
    worker_end(worker);
    return false;
}

void worker_end(struct worker *worker)
{
    if (worker->process > 0) {
        kill(worker->process, SIGKILL); /* it has nothing to clean up, and has reported what it found */
        while (waitpid(worker->process, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (worker->process) {
        close(worker->to);
        close(worker->from);
    }
    free(worker->line);
    free(worker->answer);
    *worker = (struct worker) { 0 };
}

bool worker_ask(struct worker *worker, const char *request, int number)
{
    char line[64];
    const int size = snprintf(line, sizeof(line), "%s %d\n", request, number);
    return write(worker->to, line, (size_t)size) == size;
}

/* Takes the first line out of what was read, as fields. */
static bool take_line(struct worker *worker, char *end)
{
    static char empty[1];
    *end = '\0';
    free(worker->answer);
    worker->answer = memory_copy_text(worker->line);
    if (!worker->answer) return false;
    worker->size -= (size_t)(end + 1 - worker->line);
    memmove(worker->line, end + 1, worker->size);
    char *rest = worker->answer;
    for (int i = 0; i < ANSWER_FIELDS; i++) worker->fields[i] = rest ? strsep(&rest, "\t") : empty;
    return true;
}

/* Returns how the process ended; it is gone afterwards. */
static const char *obituary(struct worker *worker, bool late, double limit_s, char *why, size_t size)
{
    int status = 0;
    if (late) kill(worker->process, SIGKILL);
    while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR) continue;
    worker->process = -1; /* it was waited for */
    if (late)
        number_print(why, size, "no result within %g s", limit_s);
    else if (WIFSIGNALED(status))
        snprintf(why, size, "its process died: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(why, size, "its process ended with status %d", WEXITSTATUS(status));
    worker_end(worker);
    worker->status = !late && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return why;
}

const char *worker_answer(struct worker *worker, double limit_s, char *why, size_t size)
{
    const double until = clock_seconds() + limit_s;
    for (;;) {
        char *end = worker->size ? memchr(worker->line, '\n', worker->size) : NULL;
        if (end) return take_line(worker, end) ? NULL : "the host is out of memory";
        const double left = until - clock_seconds();
        struct pollfd ready = { .fd = worker->from, .events = POLLIN };
        const int polled = left > 0 ? poll(&ready, 1, (int)ceil(1000 * fmin(left, 1e6))) : 0;
        if (polled < 0 && errno == EINTR) continue;
        if (polled <= 0) return obituary(worker, true, limit_s, why, size);
        void *array = worker->line;
        if (memory_grow(&array, &worker->capacity, worker->size + 4097, 1) != TUTTI_OK)
            return "the host is out of memory";
        worker->line = array;
        const ssize_t got = read(worker->from, worker->line + worker->size, 4096);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return obituary(worker, false, limit_s, why, size);
        worker->size += (size_t)got;
    }
}
