#include "tests/onnx/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void file_path(char *path, size_t size, const char *name, size_t length, const char *suffix)
{
    static const char *const folders[] = { "networks", "parameters", "values" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const int written = snprintf(
            path, size, "%s/tests/onnx/files/%s/%.*s%s", getenv("TUTTI_SOURCE"), folders[i], (int)length, name, suffix);
        if (written < 0 || (size_t)written >= size) abort();
        if (access(path, R_OK) == 0) return;
    }
}
