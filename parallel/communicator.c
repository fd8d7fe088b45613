#include "parallel/communicator.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/options.h"
#include "tutti_hosts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

tutti_hosts *tutti_hosts_open(const tutti_hosts_options *given)
{
    tutti_hosts_options options;
    if (OPTIONS_READ(&options, given, tutti_hosts_options) != TUTTI_OK) return NULL;
    const char *text = getenv("TUTTI_HOST_LIMIT");
    const double limit = options.limit_s != 0 ? options.limit_s : text ? number_read(text, NULL) : 0;
    if (!(limit >= 0) || !isfinite(limit)) {
        (void)fail(TUTTI_INVALID, "the time limit of hosts is %g seconds: it must be finite and not negative", limit);
        return NULL;
    }
    tutti_hosts *hosts = memory_new(1, sizeof(*hosts));
    if (!hosts) return NULL;
    hosts->limit_s = limit > 0 ? limit : 45;
    if (comm_open(hosts) == TUTTI_OK) return hosts;
    tutti_hosts_close(hosts);
    return NULL;
}

bool comm_is_whole(const struct tutti_hosts *comm)
{
    return membership_count(&comm->members, MEMBER_LOST) == 0;
}

void comm_leave(struct tutti_hosts *comm)
{
    membership_lose(&comm->members, comm->rank);
}

void tutti_hosts_close(tutti_hosts *hosts)
{
    if (!hosts) return;
    char message[1024];
    const tutti_status status = status_last();
    snprintf(message, sizeof(message), "%s", status_message());
    comm_close(hosts);
    status_set(status, message);
    free(hosts);
}

int tutti_hosts_rank(const tutti_hosts *hosts)
{
    return hosts ? hosts->rank : 0;
}

int tutti_hosts_count(const tutti_hosts *hosts)
{
    return hosts ? hosts->count : 1;
}

tutti_status tutti_hosts_agree(tutti_hosts *hosts, tutti_status status)
{
    if (!hosts || hosts->count == 1) return status;
    int32_t mine = (int32_t)status;
    int32_t *all = memory_new((size_t)hosts->count, sizeof(*all));
    if (!all) return TUTTI_NO_MEMORY;
    const tutti_status gathered = comm_gather(hosts, &mine, all, sizeof(mine));
    for (int i = 0; i < hosts->count && gathered == TUTTI_OK && status == TUTTI_OK; i++)
        if (all[i] != TUTTI_OK)
            status = fail((tutti_status)all[i], "rank %d: %s", i, tutti_status_text((tutti_status)all[i]));
    free(all);
    return status == TUTTI_OK ? gathered : status;
}
