/* Commands that fail: one line on standard error, and an exit status. */
#ifndef TOOLS_FAILURE_H
#define TOOLS_FAILURE_H

#include "tutti.h"

/* Exit statuses of every command. */
enum {
    EXIT_DONE = 0,
    EXIT_WORK_FAILED = 1,
    EXIT_WRONG_USE = 2,
    EXIT_PARTLY_DONE = 3, /* infer: some files or rows could not be predicted */
    EXIT_HUNG_UP = 129,
    EXIT_INTERRUPTED = 130,
    EXIT_TERMINATED = 143
};

/* "tutti train: text", as one line; returns EXIT_WRONG_USE. */
int wrong_use(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "tutti COMMAND: message" as one line; returns the exit status that belongs to the library's status. */
int work_failed(const char *command, tutti_status status, const char *message);

#endif
