/* The chaos test: tiny networks train on three devices of two vendors while calls of OpenCL fail, hang, are slow or
 * write NaN, shares change and plans are made. Each run ends like the undisturbed run on one device, or with a status
 * that docs/faults.md describes and a checkpoint from which another device reaches the same end.
 *
 *   chaos [--runs N] [--from S] [--seconds T] [--jobs J]   runs with the seeds S .. S + N - 1, in J processes
 *   chaos --seed S [--runs N]                              one run, with its warnings; or the same one N times
 *   chaos --known ...                                      before these, the runs that once failed
 *   chaos --list ...                                       tells what the runs are
 *   chaos --ranks ...                                      runs of two ranks, started by mpirun
 *
 * Needs three devices (tests/vendors/two-vendors, POCL_DEVICES="pthread pthread") and the layer (OPENCL_LAYERS). Runs
 * are done by child processes, many in each because drivers take time to start; one that crashes or does not end is a
 * failed run, and the others go on. */
#include "tests/chaos/run.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

enum { MOST_JOBS = 16, CHUNK = 40 };
#define WARM_UP_S 1200.0
/* The time that a run may take, and the time that drivers need to start. */
#define SILENCE_S (RUN_LIMIT_S + 60)
/* For a run in which a device that does not hang was too slow for the limits. */
#define PATIENCE 12.0
#define RANKS_PATIENCE 4.0

/* Seeds of runs that failed once. What a seed stands for is decided by case.c: a change there makes them others. */
static const uint64_t known[] = { 29, 1050, 1117, 1354, 2844, 20052 };

struct options {
    uint64_t first, count;
    double seconds;
    int jobs;
    bool one, known, list;
    int ranks;
};
static struct options options = { .first = 1, .count = 100, .jobs = 1, .ranks = 1 };
static char root[] = "/tmp/tutti-chaos-XXXXXX";
static char *program;
static uint64_t rank_begin, rank_end; /* of a process that mpirun has started: its runs */
static long passed, failed;

enum { KNOWN = sizeof(known) / sizeof(*known) };

static uint64_t seed_at(uint64_t index)
{
    if (options.one) return options.first;
    if (options.known && index < KNOWN) return known[index];
    return options.first + index - (options.known ? KNOWN : 0);
}

/* ---------------------------------------------------------------------------------------------- in the child ---- */

static int report_pipe = STDOUT_FILENO;

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof(line) - 1) length = (int)sizeof(line) - 2;
    for (int i = 0; i < length; i++)
        if (line[i] == '\n') line[i] = ' ';
    line[length++] = '\n';
    if (write(report_pipe, line, (size_t)length) != length) _exit(3);
}

static void print_stack(int number)
{
#ifdef __GLIBC__
    void *frames[64];
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
#endif
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) signal(numbers[i], print_stack);
#ifdef __GLIBC__
    void *frame[1];
    (void)backtrace(frame, 1); /* loads what it needs now */
#endif
}

static const char *begin_runs(uint64_t begin, int ranks)
{
    char name[64];
    snprintf(name, sizeof(name), "%s/saved-%llu", root, (unsigned long long)begin);
    return runs_begin(name, ranks);
}

static void serve(uint64_t begin, uint64_t end)
{
    const char *text = begin_runs(begin, 1);
    if (text) {
        report("none %s", text);
        return;
    }
    for (uint64_t i = begin; i < end; i++) {
        const struct chaos_case it = case_of(seed_at(i), options.ranks);
        report("begin %llu", (unsigned long long)i);
        text = run_case(&it, 1);
        if (text && run_may_be_late(&it)) {
            fprintf(stderr, "seed %llu again with longer limits: %s\n", (unsigned long long)it.seed, text);
            report("again");
            text = run_case(&it, PATIENCE);
        }
        if (options.count == 1 || text) fprintf(stderr, "%s", run_log());
        report("%s %s", text ? "bad" : "good", text ? text : "");
    }
    runs_end();
}

/* Exchanges with the other rank how the run ended on each. False: the other rank does not end. */
static bool exchange(uint64_t index, const char *text, bool *go_on, char *other, size_t size)
{
    char path[128], part[140];
    const int rank = run_rank();
    snprintf(path, sizeof(path), "%s/verdict-%llu-%d", root, (unsigned long long)index, rank);
    snprintf(part, sizeof(part), "%s.part", path);
    FILE *file = fopen(part, "w");
    if (!file) return false;
    fprintf(file, "%d%s%s", *go_on, text ? "rank " : "", text ? text : "");
    if (fclose(file) || rename(part, path)) return false;
    snprintf(path, sizeof(path), "%s/verdict-%llu-%d", root, (unsigned long long)index, 1 - rank);
    for (int i = 0; i < 6000 && !(file = fopen(path, "r")); i++) poll(NULL, 0, 10);
    if (!file) return false;
    other[fread(other, 1, size - 1, file)] = '\0';
    fclose(file);
    *go_on &= other[0] == '1';
    return true;
}

/* As serve(), in each of the processes that mpirun starts. After a failure the ranks cannot agree on anything more. */
static void serve_ranks(uint64_t begin, uint64_t end)
{
    char other[1024];
    const char *text = begin_runs(begin, RANKS);
    if (text) report("none %s", text);
    bool go_on = !text;
    for (uint64_t i = begin; i < end && go_on; i++) {
        const struct chaos_case it = case_of(seed_at(i), RANKS);
        if (run_rank() == 0) report("begin %llu", (unsigned long long)i);
        text = run_case(&it, RANKS_PATIENCE);
        if (options.one || text) fprintf(stderr, "rank %d:\n%s", run_rank(), run_log());
        go_on = runs_go_on();
        if (!exchange(i, text, &go_on, other, sizeof(other)))
            go_on = false, strcpy(other, "0the other rank does not end");
        if (!text && other[1]) text = other + 1;
        if (run_rank() == 0) report("%s %s", text ? "bad" : "good", text ? text : "");
    }
    fflush(NULL);
    if (!go_on) _exit(0);
    runs_end();
}

/* The child becomes mpirun, whose ranks speak by the pipe. */
static void start_ranks(uint64_t begin, uint64_t end)
{
    char first[32], last[32];
    snprintf(first, sizeof(first), "%llu", (unsigned long long)begin);
    snprintf(last, sizeof(last), "%llu", (unsigned long long)end);
    char *words[32] = { "mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", program, "--ranks", "--rank-of",
        root, first, last };
    int count = 12;
    char from[32];
    snprintf(from, sizeof(from), "%llu", (unsigned long long)options.first);
    words[count++] = options.one ? "--seed" : "--from";
    words[count++] = from;
    if (options.known) words[count++] = "--known";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    dup2(report_pipe, STDOUT_FILENO);
    execvp(words[0], words);
    report("none mpirun cannot be started: %s", strerror(errno));
}

static void warm_up(void)
{
    const char *text = begin_runs(0, 1);
    if (!text) text = runs_warm_up();
    if (text) fprintf(stderr, "%s", run_log());
    if (text) report("none without faults, %s", text);
    runs_end();
}

/* --------------------------------------------------------------------------------------------- in the parent ---- */

struct job {
    pid_t child; /* 0: none */
    int pipe;
    uint64_t next, end; /* runs of its chunk that have not begun */
    uint64_t first;     /* `next` as the child started */
    bool running;       /* the one before `next` */
    double heard, limit_s;
    char text[2048];
    size_t length;
};

static void judge(uint64_t index, const char *text)
{
    char what[1024];
    const struct chaos_case it = case_of(seed_at(index), options.ranks);
    *(text ? &failed : &passed) += 1;
    if (!text) return;
    case_describe(&it, what, sizeof(what));
    const char *folder = getenv("TUTTI_BUILD");
    printf("FAILED seed %llu: %s: %s\n  again: meson test -C %s '%s' -v --test-args='--seed %llu'\n",
        (unsigned long long)it.seed, what, text, folder ? folder : "FOLDER",
        options.ranks > 1 ? "chaos of ranks, few" : "chaos, few", (unsigned long long)it.seed);
}

static bool start(struct job *job, void (*work)(uint64_t begin, uint64_t end), double limit_s)
{
    int ends[2];
    if (pipe(ends)) return false;
    fflush(NULL);
    job->child = fork();
    if (job->child < 0) return false;
    if (job->child == 0) {
        close(ends[0]);
        report_pipe = ends[1];
        watch_signals();
        work(job->next, job->end);
        fflush(NULL);
        _exit(0); /* does not wait for what hangs in a driver */
    }
    close(ends[1]);
    job->pipe = ends[0];
    job->first = job->next;
    job->heard = clock_seconds();
    job->limit_s = limit_s;
    job->length = 0;
    job->running = false;
    return true;
}

static void hear_line(struct job *job, const char *line)
{
    job->heard = clock_seconds();
    if (!strncmp(line, "begin ", 6)) {
        job->next = strtoull(line + 6, NULL, 10) + 1;
        job->running = true;
        job->limit_s = SILENCE_S;
    } else if (!strcmp(line, "again")) {
        job->limit_s = PATIENCE * SILENCE_S;
    } else if (!strncmp(line, "none ", 5)) {
        printf("FAILED: %s\n", line + 5);
        failed++;
        job->next = job->end;
    } else {
        judge(job->next - 1, strncmp(line, "bad ", 4) ? NULL : line + 4);
        job->running = false;
    }
}

/* False at the end of what the child says. */
static bool hear(struct job *job)
{
    const ssize_t count = read(job->pipe, job->text + job->length, sizeof(job->text) - 1 - job->length);
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    job->length += (size_t)count;
    job->text[job->length] = '\0';
    char *line = job->text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        hear_line(job, line);
    }
    job->length = strlen(line);
    memmove(job->text, line, job->length + 1);
    return true;
}

static void end(struct job *job, bool late)
{
    int status = 0;
    char text[128];
    if (late) kill(job->child, options.ranks > 1 ? SIGTERM : SIGABRT); /* it tells where it is */
    for (int i = 0; i < 100 && waitpid(job->child, &status, WNOHANG) == 0; i++) {
        if (late && i == 50) kill(job->child, SIGKILL);
        poll(NULL, 0, 20);
        if (i == 99) kill(job->child, SIGKILL);
    }
    close(job->pipe);
    job->child = 0;
    snprintf(text, sizeof(text), "%s", late ? "it does not end" : "the process ended early");
    if (!late && WIFSIGNALED(status)) snprintf(text, sizeof(text), "it crashed: %s", strsignal(WTERMSIG(status)));
    if (job->running)
        judge(job->next - 1, text);
    else if (job->next == job->first && job->next < job->end) { /* another child would not begin it, either */
        printf("FAILED: runs %llu to %llu were not begun: %s, with status %d\n", (unsigned long long)job->first,
            (unsigned long long)job->end, text, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        failed++;
        job->next = job->end;
    } else if (late || (options.ranks == 1 && (WIFSIGNALED(status) || WEXITSTATUS(status)))) {
        printf("FAILED: between two runs, before run %llu of %llu: %s\n", (unsigned long long)job->next,
            (unsigned long long)options.count, text);
        failed++;
    }
    job->running = false;
}

/* Hears all children for a moment. */
static void attend(struct job *jobs, int count)
{
    struct pollfd polls[MOST_JOBS];
    for (int i = 0; i < count; i++)
        polls[i] = (struct pollfd) { .fd = jobs[i].child ? jobs[i].pipe : -1, .events = POLLIN };
    poll(polls, (nfds_t)count, 100);
    for (int i = 0; i < count; i++) {
        if (!jobs[i].child) continue;
        const bool silent = polls[i].revents && !hear(&jobs[i]);
        const bool late = clock_seconds() - jobs[i].heard > jobs[i].limit_s;
        if (silent || late) end(&jobs[i], late);
    }
}

static void warm_up_child(uint64_t begin, uint64_t end)
{
    (void)begin, (void)end;
    warm_up();
}

/* Faults leave verdicts about kernels and the like in Tutti's cache: no other test and no other run may read them. */
/* Other tests use the cache meanwhile: their locks and half-written files come and go. */
static bool copy_cache(void)
{
    char command[1024];
    const char *cache = getenv("TUTTI_CACHE_DIR");
    if (!cache) return true;
    snprintf(command, sizeof(command),
        "mkdir -p '%s' '%s/cache' && find '%s' -maxdepth 1 -type f ! -name '*.tmp' ! -name lock -exec cp {} '%s/cache' "
        "\\;",
        cache, root, cache, root);
    if (system(command)) return false;
    snprintf(command, sizeof(command), "%s/cache", root);
    return setenv("TUTTI_CACHE_DIR", command, 1) == 0;
}

static void run_all(void)
{
    struct job jobs[MOST_JOBS] = { 0 };
    uint64_t given = 0;
    const double begun = clock_seconds();
    bool busy = true;
    while (busy) {
        busy = false;
        for (int i = 0; i < options.jobs; i++) {
            struct job *job = &jobs[i];
            const bool over = options.seconds > 0 && clock_seconds() - begun > options.seconds;
            if (!job->child && job->next == job->end && given < options.count && !over) {
                job->next = given;
                job->end = given = given + CHUNK < options.count ? given + CHUNK : options.count;
            }
            if (!job->child && job->next < job->end && !over &&
                !start(job, options.ranks > 1 ? start_ranks : serve, SILENCE_S)) {
                printf("FAILED: no process: %s\n", strerror(errno));
                failed++;
                return;
            }
            busy |= job->child != 0;
        }
        if (busy) attend(jobs, options.jobs);
    }
}

static void list(void)
{
    char text[1024];
    for (uint64_t i = 0; i < options.count; i++) {
        const struct chaos_case it = case_of(seed_at(i), options.ranks);
        case_describe(&it, text, sizeof(text));
        printf("%llu: %s\n", (unsigned long long)it.seed, text);
    }
}

/* -------------------------------------------------------------------------------------------------- options ---- */

static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = text ? strtoull(text, &end, 10) : 0;
    return text && end != text && !*end && !errno;
}

static bool read_options(char **words)
{
    for (; *words; words++) {
        const char *word = *words;
        uint64_t number = 0;
        if (!strcmp(word, "--known")) {
            options.known = true;
            continue;
        }
        if (!strcmp(word, "--ranks")) {
            options.ranks = RANKS;
            continue;
        }
        if (!strcmp(word, "--rank-of") && words[1] && strlen(words[1]) < sizeof(root) &&
            read_number(words[2], &rank_begin) && read_number(words[3], &rank_end)) {
            strcpy(root, words[1]);
            words += 3;
            continue;
        }
        if (!strcmp(word, "--list")) {
            options.list = true;
            continue;
        }
        if (!read_number(*++words, &number)) {
            fprintf(stderr, "chaos: '%s' is not an option, or has no number after it\n", word);
            return false;
        }
        if (!strcmp(word, "--runs"))
            options.count = number;
        else if (!strcmp(word, "--from"))
            options.first = number;
        else if (!strcmp(word, "--seconds"))
            options.seconds = (double)number;
        else if (!strcmp(word, "--jobs") && number >= 1 && number <= MOST_JOBS)
            options.jobs = (int)number;
        else if (!strcmp(word, "--seed")) {
            options.first = number;
            options.count = 1;
            options.one = true;
        } else {
            fprintf(stderr, "chaos: there is no option '%s' with the number %llu\n", word, (unsigned long long)number);
            return false;
        }
    }
    return true;
}

int main(int count, char **words)
{
    char command[64];
    const double begun = clock_seconds();
    (void)count;
    program = words[0];
    if (!read_options(words + 1)) return 2;
    if (options.one) options.known = false;
    if (options.known) options.count += KNOWN;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (options.list) {
        list();
        return 0;
    }
    if (rank_end > 0) {
        watch_signals();
        serve_ranks(rank_begin, rank_end);
        return 0;
    }
    if (!mkdtemp(root)) return 2;
    struct job first = { 0 };
    if (!start(&first, warm_up_child, WARM_UP_S)) return 2;
    while (first.child) attend(&first, 1);
    printf("warm after %.0f s\n", clock_seconds() - begun);
    if (!copy_cache()) {
        printf("FAILED: the cache cannot be copied\n");
        failed++;
    }
    if (failed == 0) run_all();
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command)) printf("cannot remove %s\n", root);
    printf("%.0f s\n%ld passed, %ld failed\n", clock_seconds() - begun, passed, failed);
    return failed || passed == 0 ? 1 : 0;
}
