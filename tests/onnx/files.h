/* The files that make*.py made: tests/onnx/files. */
#ifndef TESTS_ONNX_FILES_H
#define TESTS_ONNX_FILES_H

#include <stddef.h>

/* The path of the file NAME SUFFIX, of whose name `length` characters count; in one of the folders. */
void file_path(char *path, size_t size, const char *name, size_t length, const char *suffix);

#endif
