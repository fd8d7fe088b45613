/* Shared libraries of others that are loaded when they are first needed: a program starts without them, and what needs
 * a missing one is refused. A header lists the functions in use, makes a table of them by
 * LOADED_TABLE, and defines each name as its entry: calls look as if the library were linked, and its own header gives
 * their types. A build that links a library does without the table (`load` in meson_options.txt). */
#ifndef BASE_LOADED_H
#define BASE_LOADED_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

struct loaded_library {
    const char *file, *package; /* as the loader and Debian 12 know it; NULL: it is linked */
    const char *purpose;        /* "reading JPEG files" */
    const char *const *names;   /* of the table's entries */
    void *table;
    size_t count;
    bool is_global; /* it loads parts that look up its functions */
    atomic_int state;
    char refusal[320];
};

/* Loads a library if that has not been tried. Returns NULL, or why it cannot be used. From any thread. */
const char *loaded_refusal(struct loaded_library *library);
/* The same as a status; `what`, such as a file's name, begins the message. */
tutti_status loaded_need(struct loaded_library *library, const char *what);
/* Whether the process has the library already, whoever loaded it. */
bool loaded_is_present(const struct loaded_library *library);

#define LOADED_MEMBER(name) __typeof__(name) *name;
#define LOADED_NAME(name) #name,
#define LOADED_TABLE(library, FUNCTIONS)                                     \
    static struct {                                                          \
        FUNCTIONS(LOADED_MEMBER)                                             \
    } library##_functions;                                                   \
    static const char *const library##_names[] = { FUNCTIONS(LOADED_NAME) }; \
    _Static_assert(sizeof library##_functions == sizeof library##_names, "one pointer for each name");
/* The members of a library that its table gives. */
#define LOADED_ENTRIES(library) \
    .names = library##_names, .table = &library##_functions, .count = sizeof library##_names / sizeof library##_names[0]

#endif
