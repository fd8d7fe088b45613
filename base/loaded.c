#include "base/loaded.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { UNTRIED, LOADED, MISSING };

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* Fills the table. Returns NULL or the loader's reason. */
static const char *load(const struct loaded_library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | (library->is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!handle) return dlerror();
    for (size_t i = 0; i < library->count; i++) {
        void *entry = dlsym(handle, library->names[i]);
        if (!entry) return dlerror();
        memcpy((char *)library->table + i * sizeof entry, &entry, sizeof entry);
    }
    return NULL; /* it stays until the process ends */
}

const char *loaded_refusal(struct loaded_library *library)
{
    if (!library->file) return NULL;
    if (atomic_load_explicit(&library->state, memory_order_acquire) == UNTRIED) {
        pthread_mutex_lock(&one_at_a_time);
        if (atomic_load(&library->state) == UNTRIED) {
            const char *reason = load(library);
            if (reason)
                snprintf(library->refusal, sizeof library->refusal,
                    "%s needs %s, which cannot be loaded: install it (Debian's package: %s) [%s]", library->purpose,
                    library->file, library->package, reason);
            atomic_store_explicit(&library->state, reason ? MISSING : LOADED, memory_order_release);
        }
        pthread_mutex_unlock(&one_at_a_time);
    }
    return atomic_load_explicit(&library->state, memory_order_acquire) == LOADED ? NULL : library->refusal;
}

tutti_status loaded_need(struct loaded_library *library, const char *what)
{
    const char *refusal = loaded_refusal(library);
    return refusal ? fail(TUTTI_UNSUPPORTED, "%s: %s", what, refusal) : TUTTI_OK;
}

bool loaded_is_present(const struct loaded_library *library)
{
    if (!library->file) return true;
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_NOLOAD);
    if (handle) dlclose(handle); /* counts down: whoever loaded it still has it */
    return handle != NULL;
}
