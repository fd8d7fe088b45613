/* Runs node tests of the onnx package, which nodes.py wrote, and prints a line for each:
 *
 *   conform FOLDER NAME...      NAME FORWARD GRADIENTS DIFFERENCE DIFFERENCE REASON
 *
 * Tests run one after another in a process that is started again when a test crashes or takes too long. */
#include "tests/onnx/conform.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 240 };
static const char *const verdicts[] = { "pass", "fail", "refused", "none" };

struct run {
    const char *folder;
    char **names;
    int count;
};

static void run_test(tutti_runtime *runtime, const char *folder, const char *name, FILE *to)
{
    struct conform_test test;
    struct outcome forward = { 0 }, gradients = { .verdict = VERDICT_NONE };
    alarm(SECONDS);
    if (conform_open(&test, folder, name) == TUTTI_OK)
        conform_forward(runtime, &test, &forward);
    else
        outcome_set(&forward, VERDICT_FAIL, "%s", tutti_message(NULL));
    if (forward.verdict == VERDICT_PASS) conform_gradients(runtime, &test, &gradients);
    fprintf(to, "%s %s %s %.2g %.2g %s%s%s\n", name, verdicts[forward.verdict], verdicts[gradients.verdict],
        forward.difference, gradients.difference, forward.text, *gradients.text ? " gradients: " : "", gradients.text);
    fflush(to);
    conform_close(&test);
}

/* The process that runs tests; what it writes is read by the one that watches. */
static void run_from(const struct run *run, int next, FILE *to)
{
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0", .log_level = TUTTI_LOG_ERROR });
    if (!runtime) fprintf(stderr, "conform: %s\n", tutti_message(NULL));
    for (; runtime && next < run->count; next++) run_test(runtime, run->folder, run->names[next], to);
    tutti_close(runtime);
    exit(runtime ? 0 : 2);
}

/* Returns how many tests gave a line. */
static int read_lines(FILE *from)
{
    char line[2 * CONFORM_TEXT + CONFORM_NAME];
    int count = 0;
    while (fgets(line, sizeof line, from)) {
        count += strchr(line, '\n') != NULL;
        fputs(line, stdout);
    }
    fflush(stdout);
    return count;
}

static int watch(const struct run *run)
{
    for (int next = 0; next < run->count;) {
        int ends[2], result = 0;
        if (pipe(ends)) return 2;
        const pid_t child = fork();
        if (child < 0) return 2;
        if (child == 0) {
            FILE *to = fdopen(ends[1], "w");
            close(ends[0]);
            if (!to) exit(2);
            run_from(run, next, to);
        }
        close(ends[1]);
        FILE *from = fdopen(ends[0], "r");
        next += from ? read_lines(from) : 0;
        if (from) fclose(from);
        if (waitpid(child, &result, 0) != child || (WIFEXITED(result) && WEXITSTATUS(result) == 2)) return 2;
        if (next == run->count) break;
        printf("%s fail none 0 0 the process ended: %s %d\n", run->names[next++],
            WIFSIGNALED(result) ? "signal" : "status", WIFSIGNALED(result) ? WTERMSIG(result) : WEXITSTATUS(result));
        fflush(stdout);
    }
    return 0;
}

int main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "usage: conform FOLDER NAME...\n");
        return 2;
    }
    return watch(&(struct run) { words[1], words + 2, count - 2 });
}
