/* The readers take paths: each input is written into one file, which lies in memory where TMPDIR does. */
#include "tests/fuzz/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 256 };
static char folder[PATH], path[PATH + 16], sibling[PATH + 32], linked[PATH + 32];
static int input = -1;

static void must(bool good, const char *what)
{
    if (good) return;
    perror(what);
    exit(2);
}

static void remove_all(void)
{
    unlink(path);
    if (*sibling) unlink(sibling);
    if (*linked) unlink(linked);
    rmdir(folder);
}

void input_open(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tutti-fuzz-XXXXXX", parent && *parent ? parent : "/tmp");
    must(mkdtemp(folder) != NULL, folder);
    snprintf(path, sizeof path, "%s/input", folder);
    input = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(input >= 0 && atexit(remove_all) == 0, path);
}

const char *input_path(const uint8_t *data, size_t size)
{
    must(ftruncate(input, 0) == 0 && pwrite(input, data, size, 0) == (ssize_t)size, path);
    return path;
}

void input_sibling(const char *name, size_t size)
{
    snprintf(sibling, sizeof sibling, "%s/%s", folder, name);
    const int file = open(sibling, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(file >= 0 && ftruncate(file, (off_t)size) == 0 && close(file) == 0, sibling);
}

void input_link(const char *name, char *to, size_t size)
{
    snprintf(linked, sizeof linked, "%s/%s", folder, name);
    must(link(path, linked) == 0 && (size_t)snprintf(to, size, "%s", linked) < size, linked);
}
