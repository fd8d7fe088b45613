/* The parts of training that need no device: shares, optimizers on the host, the order of batches, checkpoints, and
 * the parts that stand by themselves. */
#include <check.h>
#undef fail /* Check's name for something else */

#include "tests/train/test_train.h"

int main(void)
{
    SRunner *runner = srunner_create(suite_shares());
    srunner_add_suite(runner, suite_speed());
    srunner_add_suite(runner, suite_optimizer());
    srunner_add_suite(runner, suite_batches());
    srunner_add_suite(runner, suite_checkpoint());
    srunner_add_suite(runner, suite_loss_scale());
    srunner_add_suite(runner, suite_parts());
    srunner_add_suite(runner, suite_scores());
    srunner_add_suite(runner, suite_schedule());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
