/* The passes of plan/ without a device. Networks are built with the public builder over a runtime that holds one
 * made-up device. */
#include "tests/plan/test_plan.h"

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *cases = tcase_create("plan");
    tcase_add_checked_fixture(cases, NULL, free_device);
    add_memory(cases);
    add_fusion(cases);
    add_storage(cases);
    add_graph(cases);
    add_choose(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
