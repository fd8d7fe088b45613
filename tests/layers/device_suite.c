#include "tests/layers/device_suite.h"

#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>

int device_suite_run(const char *name, const char *devices, tutti_runtime **runtime, void (*add)(TCase *cases))
{
    *runtime = tutti_open(&(tutti_runtime_options) { .devices = getenv("TUTTI_DEVICES") ? NULL : devices });
    if (!*runtime || !(*runtime)->count) {
        fprintf(stderr, "no device to test on: %s\n", tutti_message(NULL));
        return 1;
    }
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, 0);
    add(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* OpenCL drivers' threads do not survive a fork */
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    tutti_close(*runtime);
    return failed ? 1 : 0;
}
