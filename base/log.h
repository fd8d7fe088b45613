/* Log lines of a runtime go to its callback. The library itself never prints: the default callback writes to stderr. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "tutti.h"

#include <stdatomic.h>

struct log {
    atomic_int level; /* tutti_log_level */
    void (*write)(void *user, tutti_log_level level, const char *line);
    void *user;
};

/* Fills the log from the options, else from TUTTI_LOG, else warnings to standard error. */
void log_init(struct log *log, tutti_log_level level, void (*write)(void *, tutti_log_level, const char *), void *user);
/* From now on nothing is written, and no call of the callback is under way. */
void log_silence(struct log *log);
void log_line(const struct log *log, tutti_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define log_error(log, ...) log_line((log), TUTTI_LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_line((log), TUTTI_LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) log_line((log), TUTTI_LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_line((log), TUTTI_LOG_DEBUG, __VA_ARGS__)

#endif
