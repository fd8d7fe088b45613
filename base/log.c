#include "base/log.h"

#include "base/numbers.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = { "", "error", "warn", "info", "debug" };

static void write_to_standard_error(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "tutti: %s: %s\n", level_names[level], line);
}

static tutti_log_level level_of_environment(void)
{
    const char *name = getenv("TUTTI_LOG");
    for (int level = TUTTI_LOG_ERROR; name && level <= TUTTI_LOG_DEBUG; level++)
        if (!strcmp(name, level_names[level])) return (tutti_log_level)level;
    return TUTTI_LOG_WARN;
}

void log_init(struct log *log, tutti_log_level level, void (*write)(void *, tutti_log_level, const char *), void *user)
{
    bool known = level >= TUTTI_LOG_ERROR && level <= TUTTI_LOG_DEBUG;
    atomic_store(&log->level, known ? level : level_of_environment());
    log->write = write ? write : write_to_standard_error;
    log->user = write ? user : NULL;
}

/* Programs are built and devices run on several threads; a callback sees one line at a time. It may call functions that
 * log, so its own thread may come here again. */
static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void log_silence(struct log *log)
{
    pthread_mutex_lock(&one_at_a_time);
    atomic_store(&log->level, TUTTI_LOG_DEFAULT);
    pthread_mutex_unlock(&one_at_a_time);
}

void log_line(const struct log *log, tutti_log_level level, const char *format, ...)
{
    if ((int)level > atomic_load(&log->level)) return;
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    number_print_list(line, sizeof(line), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&one_at_a_time);
    if ((int)level <= atomic_load(&log->level)) log->write(log->user, level, line);
    pthread_mutex_unlock(&one_at_a_time);
}
