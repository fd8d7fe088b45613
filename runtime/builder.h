/* Compiling ahead, in helper processes. Some drivers compile one kernel at a time however many threads ask, and keep
 * what they compiled in a cache of their own on disk: several processes fill that cache side by side, and this one
 * loads from it. What a helper did not do (it is missing, it was ended, the program does not build) is compiled in this
 * process later. A program that crashes the compiler, or takes more time or memory than a limit, costs a helper: it is
 * remembered as refused, and no process builds it.
 *
 * The helper is found next to the library (libexec), or by TUTTI_HELPER: a path, or "off". Starting one takes half a
 * second, so builder_keep() lets them wait for more. Helpers are children of this process: an embedding program with a
 * SIGCHLD handler sees them end, and may reap them. They inherit the environment, /dev/null as standard streams, and no
 * other descriptor. One that waits for BUILDER_IDLE_S seconds ends by itself. */
#ifndef RUNTIME_BUILDER_H
#define RUNTIME_BUILDER_H

#include "runtime/launch.h"

/* Limits of one program and its kernels: seconds of processor time, and memory. A member of 0 stands for the default.
 * For tests. */
struct builder_limits {
    uint32_t seconds, mebibytes;
};
void builder_set_limits(struct builder_limits wanted);

/* Returns why the launch's program must not be built: what it did to the driver's compiler, in a text that the checks
 * own. NULL if it may be built. */
const char *builder_refusal(struct device *device, const struct launch *launch);
/* Compiles what these launches need and this driver has not compiled before. Does nothing on other drivers. Never
 * fails. Buffers of the launches need not exist: only NULL and not NULL are told apart. */
void builder_prepare(const struct launch_list *list, void (*progress)(void *user, int built, int total), void *user);
/* Keeps helpers from now on, until this is called with false, which ends them, unless another thread compiles: they
 * wait in vain then. At first they end with each call of builder_prepare(). */
void builder_keep(struct tutti_runtime *runtime, bool keep);
void builder_close(struct tutti_runtime *runtime);
/* Whether all kernels of the list are in the driver's own cache, as far as is known: they need no warming up. */
bool builder_knows(const struct launch_list *list);
/* Begins to load the list's programs from the driver's own cache, in the order of its launches, if all of them are
 * there. A thread of its own loads them, since the driver loads one at a time; meanwhile this one allocates and fills
 * memory and begins with the first launches. */
void builder_load(const struct launch_list *list);
/* Notes, on disk, that the list's kernels were compiled. */
void builder_note(const struct launch_list *list);

/* ---- what goes over the socket: a greeting, then units, each of which is answered by one byte ---- */

#define BUILDER_MAGIC "TUTTIB2"
enum { BUILDER_NAME = 128, BUILDER_PATIENCE_S = 120, BUILDER_IDLE_S = 10 };
enum { BUILDER_WAITING = 5 }; /* a unit's limit of elapsed time, as a multiple of that of processor time */
enum { BUILDER_OUT_OF_MEMORY = 42, BUILDER_OUT_OF_TIME = 43 }; /* exit statuses of helpers */

struct builder_greeting {
    char magic[8];
    struct builder_limits limits;
    char platform[BUILDER_NAME], device[BUILDER_NAME];
};

/* Followed by the text, the options (both with their NUL) and the launches. */
struct builder_unit {
    uint32_t text_bytes, options_bytes, launches;
};

struct builder_launch {
    char kernel[BUILDER_NAME];
    int32_t dimensions, arguments;
    uint64_t global[3], local[3];
    struct builder_argument {
        uint32_t kind, size; /* of struct launch_argument; a buffer's size: 0 where it is NULL */
        uint64_t value;      /* the bytes */
    } argument[LAUNCH_ARGUMENTS];
};

enum builder_answer { BUILDER_READY = 'r', BUILDER_DONE = 'd', BUILDER_FAILED = 'f' };

#endif
