/* tutti tune: finds the fastest kernels of a network on each device, in child processes. It starts from the shipped
 * choice, and keeps kernels that are correct and faster by more than chance, both by themselves and in a whole
 * step. */
#include "base/clock.h"
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "tools/table.h"
#include "tools/worker.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds for a candidate, or for a step; opening devices and building a whole network's kernels may take so many times
 * as long. */
enum { DEFAULT_LIMIT = 120, LIMITS_TO_START = 10 };
/* Turns of whole steps: at least, at most, and the seconds after which no further one begins. */
enum { LEAST_STEPS = 5, MOST_STEPS = 40 };
#define STEPS_SECONDS 15.0

struct settings {
    const char *model, *mode, *input, *output;
    int64_t classes;
    double limit_s;
    bool json;
    struct session_options session;
};

struct found {
    char *problem, *layer, *kernel, *refusal;
    int uses;
    bool present;
    double least, gain; /* seconds; share of the present choice's time */
};

struct tuning {
    const struct settings *settings;
    struct task task;
    struct worker worker;
    struct progress progress;
    char *path, device[160], driver[160];
    int devices, start_status; /* exit status of a process that could not begin */
    struct found *list;
    size_t count, capacity;
    struct finding *findings;
    size_t finding_count, finding_capacity;
};

static const char *const modes[] = { "train", "infer", NULL };

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static enum parsed parse(struct settings *s, int argc, char **argv)
{
    const struct option options[] = {
        { "batch", OPTION(s->session.training.batch), "N", "samples of a step (default the model's)", 1, 1e9 },
        { "time-limit", OPTION(s->limit_s), "S", "seconds after which a candidate counts as hanging", 1, 1e6 },
        { "mode", OPTION(s->mode), "MODE", "kind of step", .choices = modes },
        { "input", OPTION(s->input), "CxHxW", "shape of a sample (default the model's)" },
        { "classes", OPTION(s->classes), "N", "number of outputs (default the model's)", 1, 1e6 },
        { "output", OPTION(s->output), "FILE", "table to write (default the one that every run reads)",
            .file = OPTION_WRITES },
        { "json", OPTION(s->json), NULL, "print a JSON object per candidate" },
        DEVICE_OPTION(s->session.runtime),
        { "exact", OPTION(s->session.training.exact), NULL, "find kernels for runs with --exact" },
        { "precision", OPTION(s->session.training.precision), "TYPE",
            "find kernels for runs with this --precision (default fp32)", .choices = session_precisions },
        ONNX_OPTIONS(s->session.onnx),
    };
    const struct usage usage = { .command = "tune",
        .summary = "Finds the fastest kernels of MODEL on each device",
        MODEL_ARGUMENT,
        .details = "Each candidate runs in a process of its own. Its results are compared with those of the plain\n"
                   "kernel, and its time with that of the kernel chosen by the shipped tables, in turns. A candidate\n"
                   "that hangs, crashes or is wrong is recorded as refused. One that is faster by more than the noise\n"
                   "is written to a small text file, unless the whole step is slower with it. One file can hold the\n"
                   "results of several models, batches and devices.",
        OPTION_ROWS(options) };
    return options_parse(&usage, argc, argv, &s->model);
}

/* ---------------------------------------------------------------------------------------------- candidates ---- */

static bool answers(const struct worker *worker, const char *word)
{
    return !strcmp(worker->fields[0], word);
}

static tutti_status add_candidate(struct tuning *t)
{
    char *const *f = t->worker.fields;
    void *array = t->list;
    tutti_status status = memory_grow(&array, &t->capacity, t->count + 1, sizeof(*t->list));
    if (status != TUTTI_OK) return status;
    t->list = array;
    struct found *found = &t->list[t->count++];
    *found = (struct found) { .problem = memory_copy_text(f[1]),
        .layer = memory_copy_text(f[2]),
        .kernel = memory_copy_text(f[3]),
        .refusal = *f[6] ? memory_copy_text(f[6]) : NULL,
        .uses = atoi(f[4]),
        .present = atoi(f[5]) };
    return found->problem && found->layer && found->kernel ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Starts the process that measures, unless it runs, and reads its first answers. */
static tutti_status start(struct tuning *t, struct worker *worker, enum worker_kind kind)
{
    char why[128];
    const bool again = t->count > 0;
    if (worker->process) return TUTTI_OK;
    if (!worker_start(worker, kind, &t->task)) return fail(TUTTI_INTERNAL, "cannot start a process");
    for (;;) {
        const char *gone = worker_answer(worker, LIMITS_TO_START * t->settings->limit_s, why, sizeof(why));
        t->start_status = worker->status;
        if (gone) return fail(TUTTI_INTERNAL, "cannot measure the kernels: %s", gone);
        if (answers(worker, "ready")) return TUTTI_OK;
        if (answers(worker, "device")) {
            snprintf(t->device, sizeof(t->device), "%s", worker->fields[1]);
            snprintf(t->driver, sizeof(t->driver), "%s", worker->fields[2]);
            t->devices = atoi(worker->fields[3]);
        } else if (!again && kind == WORKER_KERNELS) {
            const tutti_status status = add_candidate(t);
            if (status != TUTTI_OK) return status;
        }
    }
}

static tutti_status note(struct tuning *t, const char *problem, char *entry)
{
    void *array = t->findings;
    tutti_status status = memory_grow(&array, &t->finding_capacity, t->finding_count + 1, sizeof(*t->findings));
    if (status != TUTTI_OK) {
        free(entry);
        return status;
    }
    t->findings = array;
    t->findings[t->finding_count] = (struct finding) { .problem = memory_copy_text(problem), .entry = entry };
    return t->findings[t->finding_count].problem ? (t->finding_count++, TUTTI_OK) : TUTTI_NO_MEMORY;
}

static void report_result(struct tuning *t, const struct found *found, const char *verdict, double noise)
{
    struct json_line line;
    progress_clear(&t->progress);
    if (!t->settings->json) {
        printf("%s  %s: %s\n", found->problem, found->kernel, verdict);
        fflush(stdout);
        return;
    }
    json_line_begin(&line, stdout);
    json_line_print(&line, "device %s problem %s layer %s uses %d kernel %s verdict %s", t->device, found->problem,
        found->layer, found->uses, found->kernel, verdict);
    if (found->least > 0) json_line_print(&line, "ms %g gain %g noise %g", 1e3 * found->least, found->gain, noise);
    (void)json_line_end(&line); /* a full disk behind standard output is noticed at the end */
}

/* Records that a kernel is not to be used for this problem, because it is wrong or crashed its process. */
static tutti_status refuse(struct tuning *t, struct found *found, const char *reason)
{
    char *verdict = memory_format("refused: %s", reason);
    free(found->refusal);
    found->refusal = memory_copy_text(reason);
    if (verdict) report_result(t, found, verdict, 0);
    free(verdict);
    return note(t, found->problem, memory_format("!%s %s", found->kernel, reason));
}

static void judge(struct tuning *t, struct found *found, struct found *present)
{
    char verdict[128];
    double v[7];
    for (int i = 1; i < 7; i++) v[i] = number_read(t->worker.fields[i], NULL);
    const double noise = v[5];
    found->least = v[1];
    found->gain = v[6];
    if (present->least == 0 || v[3] < present->least) present->least = v[3];
    const bool better = found->gain > noise;
    number_print(verdict, sizeof(verdict), "%.3f ms, %s %.3f ms: %.0f %% %s%s", 1e3 * v[1], present->kernel, 1e3 * v[3],
        100 * fabs(found->gain), found->gain > 0 ? "faster" : "slower",
        better                ? ""
            : found->gain > 0 ? ", which is within the noise"
                              : "");
    report_result(t, found, verdict, noise);
    if (!better) found->gain = 0;
}

/* Tries one candidate. Prints and records the result. */
static tutti_status try_candidate(struct tuning *t, size_t i, size_t present, bool *referred)
{
    char why[128];
    struct found *found = &t->list[i];
    tutti_status status = start(t, &t->worker, WORKER_KERNELS);
    if (status != TUTTI_OK) return status;
    if (!*referred) {
        worker_ask(&t->worker, "refer", (int)i);
        const char *gone = worker_answer(&t->worker, t->settings->limit_s, why, sizeof(why));
        *referred = !gone && answers(&t->worker, "ok");
        if (!*referred) {
            char *verdict =
                memory_format("not measured, because the plain kernel fails: %s", gone ? gone : t->worker.fields[1]);
            if (verdict) report_result(t, found, verdict, 0);
            free(verdict);
            return TUTTI_OK;
        }
    }
    worker_ask(&t->worker, "try", (int)i);
    const char *gone = worker_answer(&t->worker, t->settings->limit_s, why, sizeof(why));
    if (gone) *referred = false; /* the process had the reference results */
    if (gone) return refuse(t, found, gone);
    if (answers(&t->worker, "wrong")) return refuse(t, found, t->worker.fields[1]);
    if (answers(&t->worker, "trial"))
        judge(t, found, &t->list[present]);
    else
        report_result(t, found, t->worker.fields[1], 0); /* it may be a lack of memory: nothing against the kernel */
    return TUTTI_OK;
}

/* Records the fastest of a problem's candidates, first to next - 1. */
static tutti_status note_best(struct tuning *t, size_t first, size_t next)
{
    struct text entry = { 0 };
    size_t best = first;
    for (size_t i = first + 1; i < next; i++)
        if (t->list[i].gain > t->list[best].gain) best = i;
    if (best == first) return note(t, t->list[first].problem, NULL);
    text_append(&entry, "%s %.3f", t->list[best].kernel, 1e3 * t->list[best].least);
    for (size_t i = first; i < next; i++)
        if (i != best && t->list[i].least > 0)
            text_append(&entry, " %s %.3f", t->list[i].kernel, 1e3 * t->list[i].least);
    char *line = text_take(&entry);
    return line ? note(t, t->list[first].problem, line) : TUTTI_NO_MEMORY;
}

static tutti_status try_all(struct tuning *t)
{
    tutti_status status = start(t, &t->worker, WORKER_KERNELS);
    for (size_t first = 0, next; status == TUTTI_OK && first < t->count && !interrupted; first = next) {
        bool referred = false;
        for (next = first + 1; next < t->count && !t->list[next].present;) next++;
        for (size_t i = first + 1; status == TUTTI_OK && i < next && !interrupted; i++) {
            char line[512];
            if (t->list[i].refusal) continue;
            snprintf(line, sizeof(line), "device %d: candidate %zu of %zu, %s of %s", t->task.device, i + 1, t->count,
                t->list[i].kernel, t->list[i].problem);
            progress_line(&t->progress, line);
            status = try_candidate(t, i, first, &referred);
        }
        if (status == TUTTI_OK) status = note_best(t, first, next);
    }
    progress_clear(&t->progress);
    worker_end(&t->worker);
    return status;
}

/* -------------------------------------------------------------------------------------------- whole steps ---- */

static tutti_status one_step(struct worker *worker, double limit_s, double *ms)
{
    char why[128];
    worker_ask(worker, "step", 0);
    const char *gone = worker_answer(worker, limit_s, why, sizeof(why));
    if (gone) return fail(TUTTI_DEVICE, "%s", gone);
    if (!answers(worker, "ms")) return fail(TUTTI_DEVICE, "%s", worker->fields[1]);
    *ms = number_read(worker->fields[1], NULL);
    return TUTTI_OK;
}

/* Measures the least and the median time of steps with the shipped and the found kernels, in turns. */
static tutti_status time_steps(struct worker *workers, double limit_s, double least[2], double median[2])
{
    double times[2][MOST_STEPS], warm;
    int turns = 0;
    for (int i = 0; i < 4; i++) {
        const tutti_status status = one_step(&workers[i % 2], limit_s, &warm);
        if (status != TUTTI_OK) return status;
    }
    const double begin = clock_seconds();
    for (; turns < MOST_STEPS && (turns < LEAST_STEPS || clock_seconds() < begin + STEPS_SECONDS); turns++)
        for (int i = 0; i < 2; i++) {
            const tutti_status status = one_step(&workers[(turns + i) % 2], limit_s, &times[(turns + i) % 2][turns]);
            if (status != TUTTI_OK) return status;
        }
    for (int i = 0; i < 2; i++) {
        qsort(times[i], (size_t)turns, sizeof(double), number_compare);
        least[i] = times[i][0];
        median[i] = times[i][turns / 2];
    }
    return TUTTI_OK;
}

static size_t choices(const struct tuning *t)
{
    size_t count = 0;
    for (size_t i = 0; i < t->finding_count; i++) count += t->findings[i].entry && *t->findings[i].entry != '!';
    return count;
}

static void drop_choices(struct tuning *t)
{
    for (size_t i = 0; i < t->finding_count; i++) {
        if (!t->findings[i].entry || *t->findings[i].entry == '!') continue;
        free(t->findings[i].entry);
        t->findings[i].entry = NULL;
    }
}

static tutti_status make_table(struct tuning *t, const char *path, struct text *table)
{
    char comment[256], day[32];
    const time_t now = time(NULL);
    strftime(day, sizeof(day), "%Y-%m-%d", gmtime(&now));
    snprintf(comment, sizeof(comment), "%s, driver %s, tutti %s: %s %s", day, t->driver, tutti_version(),
        t->settings->model, t->settings->mode);
    return table_update(path, t->device, t->findings, t->finding_count, comment, table);
}

/* A kernel that is faster by itself may leave the caches in a worse state for its neighbours: the whole step
 * decides. */
static tutti_status check_steps(struct tuning *t)
{
    tutti_status status = TUTTI_OK;
    struct worker workers[2] = { { 0 }, { 0 } };
    struct text table = { 0 };
    double least[2], median[2];
    char path[] = "/tmp/tutti-tuning-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0) return fail(TUTTI_FILE, "cannot create a file in /tmp");
    close(file);
    progress_line(&t->progress, "comparing whole steps");
    TRY(make_table(t, "", &table));
    TRY(table_write(path, &table));
    for (int i = 0; i < 2 && status == TUTTI_OK; i++) {
        t->task.session.runtime.tuning = i ? path : "off";
        status = start(t, &workers[i], WORKER_STEPS);
    }
    if (status == TUTTI_OK) status = time_steps(workers, t->settings->limit_s, least, median);
    progress_clear(&t->progress);
    if (status != TUTTI_OK) goto done;
    const bool kept = least[1] <= least[0] && median[1] <= median[0];
    fprintf(t->settings->json ? stderr : stdout,
        "step: %.3f ms (min), %.3f ms (median) with the shipped choice; %.3f, %.3f with the kernels found: %s\n",
        least[0], median[0], least[1], median[1], kept ? "kept" : "not kept");
    if (!kept) drop_choices(t);
done:
    t->task.session.runtime.tuning = "off";
    for (int i = 0; i < 2; i++) worker_end(&workers[i]);
    unlink(path);
    text_free(&table);
    return status;
}

/* ------------------------------------------------------------------------------------------------- devices ---- */

static void free_tuning(struct tuning *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i].problem);
        free(t->list[i].layer);
        free(t->list[i].kernel);
        free(t->list[i].refusal);
    }
    for (size_t i = 0; i < t->finding_count; i++) {
        free(t->findings[i].problem);
        free(t->findings[i].entry);
    }
    t->count = t->finding_count = 0;
}

static tutti_status tune_device(struct tuning *t)
{
    tutti_status status = TUTTI_OK;
    struct text table = { 0 };
    FILE *people = t->settings->json ? stderr : stdout;
    TRY(start(t, &t->worker, WORKER_KERNELS));
    fprintf(people, "device %d  %s, driver %s: %zu candidates\n", t->task.device, t->device, t->driver, t->count);
    TRY(try_all(t));
    if (choices(t) > 0 && check_steps(t) != TUTTI_OK) {
        fprintf(
            people, "the kernels found are not kept, because whole steps cannot be compared: %s\n", status_message());
        drop_choices(t);
    }
    TRY(make_table(t, t->path, &table));
    TRY(table_write(t->path, &table));
    fprintf(people, "device %d  faster kernels for %zu problems, in %s\n", t->task.device, choices(t), t->path);
done:
    worker_end(&t->worker);
    text_free(&table);
    return status;
}

static int tune(struct tuning *t, struct settings *s)
{
    const struct model *model = session_model(s->model);
    t->settings = s;
    t->task = (struct task) { .model = model,
        .shape = model->input,
        .classes = s->classes ? s->classes : model->classes,
        .train = !strcmp(s->mode, "train"),
        .session = s->session };
    t->task.session.runtime.tuning = "off";
    if (!t->task.session.training.batch) t->task.session.training.batch = model->batch;
    const int result = s->input ? parse_shape("tune", s->input, &t->task.shape) : EXIT_DONE;
    if (result != EXIT_DONE) return result;
    t->path = s->output ? memory_copy_text(s->output) : table_default_path();
    if (!t->path)
        return wrong_use("tune", "no folder for settings is known, because HOME is not set: use --output FILE");
    sigaction(SIGINT, &(struct sigaction) { .sa_handler = interrupt }, NULL);
    signal(SIGPIPE, SIG_IGN); /* a process that died is noticed because it does not answer */
    progress_begin(&t->progress, NULL, 0);
    t->devices = 1;
    for (; t->task.device < t->devices && !interrupted; t->task.device++) {
        const tutti_status status = tune_device(t);
        free_tuning(t);
        if (status == TUTTI_OK) continue;
        if (t->start_status == EXIT_WRONG_USE || t->start_status == EXIT_WORK_FAILED) return t->start_status;
        return work_failed("tune", status, status_message());
    }
    return interrupted ? EXIT_INTERRUPTED : EXIT_DONE;
}

int command_tune(int argc, char **argv)
{
    struct settings settings = { .mode = "train", .limit_s = DEFAULT_LIMIT };
    struct tuning tuning = { 0 };
    const enum parsed parsed = parse(&settings, argc, argv);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    const int result = tune(&tuning, &settings);
    free(tuning.list);
    free(tuning.findings);
    free(tuning.path);
    return result;
}
