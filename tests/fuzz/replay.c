/* In libFuzzer's place: runs a target on the files of folders, for compilers that have no libFuzzer. */
#include "base/file.h"
#include "base/status.h"
#include "tests/fuzz/target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PATH = 4096, SECONDS = 60, LARGEST = 1 << 24 };

static bool replay(const char *path)
{
    unsigned char *data = NULL;
    size_t size = 0;
    if (file_read(path, LARGEST, &data, &size) != TUTTI_OK) {
        fprintf(stderr, "replay: %s\n", status_message());
        return false;
    }
    const time_t begin = time(NULL);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    const bool fast = time(NULL) - begin < SECONDS;
    if (!fast) fprintf(stderr, "replay: %s took more than %d seconds\n", path, SECONDS);
    return fast;
}

static bool replay_folder(const char *folder, int *count)
{
    char path[PATH];
    bool good = true;
    DIR *list = opendir(folder);
    if (!list) {
        fprintf(stderr, "replay: the folder %s cannot be read\n", folder);
        return false;
    }
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        good = replay(path) && good;
        ++*count;
    }
    closedir(list);
    return good;
}

int main(int count, char **words)
{
    int files = 0;
    bool good = LLVMFuzzerInitialize(&count, &words) == 0;
    for (int i = 1; i < count; i++) good = replay_folder(words[i], &files) && good;
    printf("%d inputs\n", files);
    return good && files > 0 ? 0 : 1;
}
