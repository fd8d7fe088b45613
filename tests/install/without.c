/* Preloaded: the process finds no library whose name begins with one of those in WITHOUT, "libmpi.:libpng16.". */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *dlopen(const char *file, int mode);

void *dlopen(const char *file, int mode)
{
    void *(*const load)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    const char *name = getenv("WITHOUT");
    while (name && *name) {
        const size_t length = strcspn(name, ":");
        if (file && !strncmp(file, name, length)) return load("libabsent.so", mode);
        name += length + (name[length] == ':');
    }
    return load(file, mode);
}
