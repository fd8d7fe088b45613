/* Several processes in a build without MPI: there are none. */
#include "parallel/communicator.h"

#include <stdlib.h>

/* Variables in which the usual launchers give the number of processes: Open MPI; MPICH, its derivatives and Slurm. */
static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };

tutti_status comm_open(struct tutti_hosts *comm)
{
    comm->count = 1;
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

void comm_close(struct tutti_hosts *comm)
{
    (void)comm;
}

static tutti_status nobody(void)
{
    return fail(TUTTI_INTERNAL, "there are no other processes");
}

tutti_status comm_start_all_reduce(struct tutti_hosts *comm, const float *values, float *sums, int64_t count)
{
    (void)comm, (void)values, (void)sums, (void)count;
    return nobody();
}

tutti_status comm_start_all_reduce_bf16(struct tutti_hosts *comm, const uint16_t *values, uint16_t *sums, int64_t count)
{
    (void)comm, (void)values, (void)sums, (void)count;
    return nobody();
}

tutti_status comm_wait_all_reduces(struct tutti_hosts *comm)
{
    (void)comm;
    return nobody();
}

bool comm_progress(struct tutti_hosts *comm)
{
    (void)comm;
    return false;
}

tutti_status comm_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes)
{
    (void)comm, (void)mine, (void)all, (void)bytes;
    return nobody();
}

tutti_status comm_broadcast(struct tutti_hosts *comm, int root, void *data, size_t bytes)
{
    (void)comm, (void)root, (void)data, (void)bytes;
    return nobody();
}

tutti_status comm_start_gather(struct tutti_hosts *comm, const void *mine, void *all, size_t bytes)
{
    (void)comm, (void)mine, (void)all, (void)bytes;
    return nobody();
}

tutti_status comm_test_gather(struct tutti_hosts *comm, bool *over)
{
    (void)comm, (void)over;
    return nobody();
}

tutti_status comm_wait_gather(struct tutti_hosts *comm)
{
    (void)comm;
    return nobody();
}
