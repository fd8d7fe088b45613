/* Several processes in a build without MPI: there are none. */
#include "parallel/hosts.h"

#include <stdlib.h>

/* Variables in which the usual launchers give the number of processes: Open MPI; MPICH, its derivatives and Slurm. */
static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };

tutti_status link_open(struct tutti_hosts *hosts)
{
    hosts->count = 1;
    for (int i = 0; i < 2; i++) {
        const char *size = getenv(sizes[i]);
        if (size && atoi(size) > 1)
            return fail(TUTTI_UNSUPPORTED,
                "%s processes were started together, but this build has no MPI: build with -Dmpi=enabled, or start one "
                "process",
                size);
    }
    return TUTTI_OK;
}

void link_close(struct tutti_hosts *hosts)
{
    (void)hosts;
}

static tutti_status nobody(void)
{
    return fail(TUTTI_INTERNAL, "there are no other processes");
}

tutti_status hosts_start_all_reduce(struct tutti_hosts *hosts, const float *values, float *sums, int64_t count)
{
    (void)hosts, (void)values, (void)sums, (void)count;
    return nobody();
}

tutti_status hosts_start_all_reduce_bf16(
    struct tutti_hosts *hosts, const uint16_t *values, uint16_t *sums, int64_t count)
{
    (void)hosts, (void)values, (void)sums, (void)count;
    return nobody();
}

tutti_status hosts_wait_all_reduces(struct tutti_hosts *hosts)
{
    (void)hosts;
    return nobody();
}

bool hosts_progress(struct tutti_hosts *hosts)
{
    (void)hosts;
    return false;
}

tutti_status hosts_gather(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes)
{
    (void)hosts, (void)mine, (void)all, (void)bytes;
    return nobody();
}

tutti_status hosts_broadcast(struct tutti_hosts *hosts, int root, void *data, size_t bytes)
{
    (void)hosts, (void)root, (void)data, (void)bytes;
    return nobody();
}

tutti_status hosts_round(struct tutti_hosts *hosts, const void *mine, void *all, size_t bytes)
{
    (void)hosts, (void)mine, (void)all, (void)bytes;
    return nobody();
}

tutti_status hosts_round_test(struct tutti_hosts *hosts, bool *over)
{
    (void)hosts, (void)over;
    return nobody();
}

tutti_status hosts_round_wait(struct tutti_hosts *hosts)
{
    (void)hosts;
    return nobody();
}
