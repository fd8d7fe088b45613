/* The parts of test_text. */
#ifndef TESTS_TEXT_TEXT_H
#define TESTS_TEXT_TEXT_H

#include <check.h>

TCase *recorded_tests(void); /* tokenizers with the peer's ids */
TCase *hostile_tests(void);  /* files that are refused */
TCase *train_tests(void);    /* tokenizers learned from texts */

#endif
