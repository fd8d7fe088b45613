#include "tests/train/folder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

char test_folder[64];

void folder_new(void)
{
    snprintf(test_folder, sizeof(test_folder), "/tmp/tutti-train-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_folder));
}

void folder_remove(void)
{
    char command[100];
    snprintf(command, sizeof(command), "rm -rf '%s'", test_folder);
    ck_assert_int_eq(system(command), 0);
}

const char *in_folder(const char *name)
{
    static char paths[8][128];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", test_folder, name);
    return path;
}
