/* Training on one and on two devices: run with two POCL devices (POCL_DEVICES="pthread pthread"). */
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include <stdlib.h>
#include <string.h>

static void two_devices_are_there(void)
{
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1" });
    ck_assert_msg(runtime, "two devices are needed, POCL_DEVICES=\"pthread pthread\": %s", tutti_message(NULL));
    tutti_close(runtime);
}

static void setup(void)
{
    data_make();
    two_devices_are_there();
}

/* TUTTI_SUITES names the suites to run; without it all of them run. */
static bool is_wanted(const char *suite)
{
    const char *wanted = getenv("TUTTI_SUITES");
    return !wanted || strstr(wanted, suite);
}

/* What two devices do together. */
static Suite *suite_devices(void)
{
    Suite *suite = suite_create("devices");
    TCase *cases = cases_new(suite, "devices", setup, NULL);
    division_together(cases);
    transfers_together(cases);
    failures_together(cases);
    inference_together(cases);
    threads_together(cases_new(suite, "threads", setup, NULL));
    return suite;
}

static Suite *suite_alone(void)
{
    Suite *suite = suite_create("alone");
    TCase *cases = cases_new(suite, "alone", setup, NULL);
    measuring_alone(cases);
    division_alone(cases);
    inference_alone(cases);
    calls_alone(cases);
    transfers_alone(cases);
    threads_alone(cases);
    return suite;
}

int main(void)
{
    static const struct {
        const char *name;
        Suite *(*make)(void);
    } suites[] = { { "devices", suite_devices }, { "alone", suite_alone }, { "rebalance", suite_rebalance },
        { "feeds", suite_feeds }, { "finetune", suite_finetune }, { "fit", suite_fit },
        { "schedules", suite_schedules }, { "fp16", suite_fp16 }, { "lengths", suite_lengths },
        { "objective", suite_objective }, { "options", suite_options }, { "bf16", suite_bf16 },
        { "parameters", suite_parameters }, { "readers", suite_readers }, { "scored", suite_scored },
        { "sequences", suite_sequences }, { "stored", suite_stored }, { "sync", suite_sync },
        { "between", suite_between }, { "attention_drops", suite_attention_drops }, { "carried", suite_carried },
        { "lora", suite_lora }, { "recompute", suite_recompute } };
    SRunner *runner = srunner_create(NULL);
    srunner_set_fork_status(runner, CK_NOFORK);
    sessions_share_runtimes();
    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
        if (is_wanted(suites[i].name)) srunner_add_suite(runner, suites[i].make());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    sessions_end();
    return failed ? 1 : 0;
}
