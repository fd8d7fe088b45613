#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 256 };

/* Names the host and its namespace of process numbers: containers count their own. */
static void describe_host(char host[HOST])
{
    char name[128] = "", space[96] = "";
    if (gethostname(name, sizeof(name) - 1) != 0 || !*name) strcpy(name, "?");
    (void)!readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    snprintf(host, HOST, "%s/%s", name, space);
}

/* Returns when a process started, in clock ticks since the system's start: word 22 of its stat file, whose word 2 is
 * a name in brackets. Returns 0 where that cannot be told, and for a process that has ended and for which its parent
 * has not waited (word 3). */
static unsigned long long started(long process)
{
    char path[64], line[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof(path), "/proc/%ld/stat", process);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const char *at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    fclose(file);
    if (at && (!strncmp(at, ") Z", 3) || !strncmp(at, ") X", 3))) return 0;
    for (int word = 2; at && word < 22; word++) at = strchr(at + 1, ' ');
    return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}

void process_describe(char text[PROCESS_TEXT])
{
    char host[HOST];
    describe_host(host);
    snprintf(text, PROCESS_TEXT, "%s %ld %llu", host, (long)getpid(), started(getpid()));
}

enum process_state process_state(const char *text)
{
    char host[HOST], here[HOST];
    long process = 0;
    unsigned long long start = 0;
    if (sscanf(text, "%255s %ld %llu", host, &process, &start) != 3 || process <= 0) return PROCESS_ENDED;
    describe_host(here);
    if (strcmp(host, here) != 0) return PROCESS_ELSEWHERE;
    const bool there = kill((pid_t)process, 0) == 0 || errno == EPERM;
    return there && started(process) == start ? PROCESS_LIVES : PROCESS_ENDED;
}
