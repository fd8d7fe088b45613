#ifndef TESTS_TEST_AUGMENT_H
#define TESTS_TEST_AUGMENT_H

#include "base/status.h"
#include "data/augment_steps.h"

#include <check.h>

TCase *draws_case(void);

#endif
