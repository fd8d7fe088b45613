#include "base/child.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char *child_find(const char *const *places, size_t count)
{
    Dl_info library;
    if (!dladdr((const void *)&child_find, &library) || !library.dli_fname) return NULL;
    const char *slash = strrchr(library.dli_fname, '/');
    for (size_t i = 0; slash && i < count; i++) {
        char *path = places[i][0] == '/'
            ? memory_copy_text(places[i])
            : memory_format("%.*s/%s", (int)(slash - library.dli_fname), library.dli_fname, places[i]);
        if (path && access(path, X_OK) == 0) return path;
        free(path);
    }
    return NULL;
}

int child_start(const char *path, char *const *arguments, int socket, int errors, pid_t *process)
{
    extern char **environ;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    if (posix_spawn_file_actions_init(&files)) return ENOMEM;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = errors >= 0 ? posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO)
                            : posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!error) error = posix_spawnattr_setpgroup(&attributes, 0);
    if (!error)
        error = posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (!error) error = posix_spawn(process, path, &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

int child_reap(pid_t process, int patience_ms)
{
    enum { STEP_MS = 2 };
    pid_t found = 0;
    int how = -1;
    for (int waited = 0; waited < patience_ms && (found = waitpid(process, &how, WNOHANG)) == 0; waited += STEP_MS)
        poll(NULL, 0, STEP_MS);
    if (found == 0) {
        kill(process, SIGKILL);
        while ((found = waitpid(process, &how, 0)) < 0 && errno == EINTR) continue;
    }
    return found > 0 ? how : -1;
}
