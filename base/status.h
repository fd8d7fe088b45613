/* Failures: every internal function that can fail returns a tutti_status and leaves a message for people. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "tutti.h"

/* Records the message of this thread's last failure and returns the status. A message says what was asked, what was
 * found and what to do about it; it ends without a full stop. */
#define fail(status, ...) status_fail((status), __FILE__, __LINE__, __VA_ARGS__)
tutti_status status_fail(tutti_status status, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "text: " before the last message: context that only the caller knows. Returns the status given. */
tutti_status status_context(tutti_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The status and the message of this thread's last failure; TUTTI_OK and "" before the first. */
tutti_status status_last(void);
const char *status_message(void);
/* Messages belong to threads: a thread that hands its failure to another copies status and message with these. */
void status_set(tutti_status status, const char *message);

/* For functions with a `tutti_status status` and a clean-up label `done`. */
#define TRY(call)                          \
    do {                                   \
        status = (call);                   \
        if (status != TUTTI_OK) goto done; \
    } while (0)
#define FAIL(...)                   \
    do {                            \
        status = fail(__VA_ARGS__); \
        goto done;                  \
    } while (0)

#endif
