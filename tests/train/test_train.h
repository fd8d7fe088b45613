/* The suites of the program test_train, one file each. */
#ifndef TESTS_TRAIN_TEST_TRAIN_H
#define TESTS_TRAIN_TEST_TRAIN_H

#include <check.h>
#undef fail

Suite *suite_shares(void);
Suite *suite_speed(void);
Suite *suite_optimizer(void);
Suite *suite_batches(void);
Suite *suite_checkpoint(void);
Suite *suite_loss_scale(void);
Suite *suite_parts(void);
Suite *suite_scores(void);
Suite *suite_schedule(void);

#endif
