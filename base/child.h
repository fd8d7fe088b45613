/* Helper processes, which lie next to the library and work at the other end of a socket. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Returns the first of these programs that can be run, which the caller frees; NULL if there is none. Paths that are
 * not absolute begin at the folder of the library. */
char *child_find(const char *const *places, size_t count);
/* Starts a program with ordinary signals, as if from a shell, whatever the embedding program has set, and with a
 * process group of its own: keys that end the embedding program are not meant for it. `socket` becomes its standard
 * input, `errors`, -1: none, its standard error. Returns 0 or an error number. */
int child_start(const char *path, char *const *arguments, int socket, int errors, pid_t *process);
/* Waits for a process to end by itself for `patience_ms`, then kills it. Returns how it ended, as waitpid() tells it;
 * -1 if somebody else has reaped it. */
int child_reap(pid_t process, int patience_ms);

#endif
