/* The suites of the program test_devices, one file each. The files of the suites "devices", which tests/vendors runs
 * too, and "alone" add their cases to either. */
#ifndef TESTS_TRAIN_TEST_DEVICES_H
#define TESTS_TRAIN_TEST_DEVICES_H

#include <check.h>
#undef fail

Suite *suite_attention_drops(void);
Suite *suite_between(void);
Suite *suite_carried(void);
Suite *suite_schedules(void);
Suite *suite_rebalance(void);
Suite *suite_feeds(void);
Suite *suite_finetune(void);
Suite *suite_fit(void);
Suite *suite_fp16(void);
Suite *suite_lengths(void);
Suite *suite_lora(void);
Suite *suite_objective(void);
Suite *suite_options(void);
Suite *suite_bf16(void);
Suite *suite_parameters(void);
Suite *suite_readers(void);
Suite *suite_recompute(void);
Suite *suite_scored(void);
Suite *suite_sequences(void);
Suite *suite_stored(void);
Suite *suite_sync(void);

void calls_alone(TCase *cases);
void division_together(TCase *cases);
void division_alone(TCase *cases);
void failures_together(TCase *cases);
void inference_together(TCase *cases);
void inference_alone(TCase *cases);
void measuring_alone(TCase *cases);
void threads_together(TCase *cases);
void threads_alone(TCase *cases);
void transfers_together(TCase *cases);
void transfers_alone(TCase *cases);

#endif
