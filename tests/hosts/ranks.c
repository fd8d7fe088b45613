#include "tests/hosts/ranks.h"

#include "parallel/ranks.h"
#include "tutti_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

tutti_hosts *hosts;
static const struct mode *chosen;

void same_on_ranks(struct session *session)
{
    int64_t count;
    uint64_t all[2];
    float *values = session_parameters(session, &count);
    const uint64_t mine = XXH3_64bits(values, (size_t)count * sizeof(*values));
    ASSERT_OK(comm_gather(hosts, &mine, all, sizeof(mine)));
    ck_assert_msg(all[0] == all[1], "the ranks have different parameters");
    free(values);
}

START_TEST(run_chosen)
{
    chosen->test();
}
END_TEST

/* In this process, which MPI knows. */
static int failures(void)
{
    Suite *suite = suite_create("ranks");
    TCase *cases = tcase_create("ranks");
    tcase_add_test(cases, run_chosen);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

int main(int count, char **words)
{
    for (const struct mode *mode = modes; mode->name; mode++)
        if (count > 1 && !strcmp(words[1], mode->name)) chosen = mode;
    if (!chosen) return 2;
    hosts = tutti_hosts_open(&(tutti_hosts_options) { .limit_s = chosen->limit_s });
    if (tutti_hosts_count(hosts) != 2) return 2;
    data_make();
    sessions_share_runtimes();
    const int failed = failures();
    printf("rank %d: %s\n", hosts->rank, failed ? "bad" : "good");
    fflush(stdout);
    if (failed) _Exit(1); /* mpirun ends the other one, which may wait for this one */
    tutti_hosts_close(hosts);
    return 0;
}
