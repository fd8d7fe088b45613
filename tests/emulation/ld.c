/* The linker of kernels: tests/run puts its folder before others in PATH, where POCL looks for `ld`. It leaves out
 * libm, libc and libgcc_s, whose functions the program that loads a kernel has anyway. To read them is 15 of the 19 ms
 * that it takes to link a kernel, and the chosen tests link thousands. What does not lie in POCL's cache is linked as
 * ever. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_kernel(int count, char **words)
{
    const char *cache = getenv("POCL_CACHE_DIR");
    for (int i = 1; cache && *cache && i + 1 < count; i++)
        if (!strcmp(words[i], "-o")) return !strncmp(words[i + 1], cache, strlen(cache));
    return false;
}

static bool is_left_out(const char *word)
{
    return !strcmp(word, "-lm") || !strcmp(word, "-lc") || !strcmp(word, "-lgcc_s");
}

int main(int count, char **words)
{
    const bool kernel = is_kernel(count, words);
    int kept = 1;
    for (int i = 1; i < count; i++)
        if (!kernel || !is_left_out(words[i])) words[kept++] = words[i];
    words[kept] = NULL;
    execv(LINKER, words);
    perror(LINKER);
    return 1;
}
