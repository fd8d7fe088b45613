/* Opens data as a training does, and prints the time until the first samples can be read, the processor's time and the
 * most memory that the process had. large.py makes tables and folders for it.
 *
 *   open_data PATH
 */
#include "tutti_data.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    struct rusage used;
    const tutti_data_options options = { .size = sizeof options, .fill_missing = true, .threads = 1 };
    if (argc != 2) {
        fprintf(stderr, "open_data PATH\n");
        return 2;
    }
    const double begun = now();
    tutti_data *data = tutti_data_open(argv[1], &options);
    if (!data) {
        fprintf(stderr, "open_data: %s\n", tutti_message(NULL));
        return 1;
    }
    const double seconds = now() - begun;
    getrusage(RUSAGE_SELF, &used);
    printf("%lld samples opened in %.2f s; processor %.3f s user, %.3f s system; most memory %ld MiB\n",
        (long long)tutti_data_source(data, TUTTI_DATA_TRAIN)->samples, seconds, seconds_of(used.ru_utime),
        seconds_of(used.ru_stime), used.ru_maxrss >> 10);
    tutti_data_free(data);
    return 0;
}
