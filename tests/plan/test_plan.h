/* The cases of the program test_plan, one file for each subject. */
#ifndef TESTS_PLAN_TEST_PLAN_H
#define TESTS_PLAN_TEST_PLAN_H

#include "tests/plan/made.h"

void add_memory(TCase *cases);
void add_fusion(TCase *cases);
void add_storage(TCase *cases);
void add_graph(TCase *cases);
void add_choose(TCase *cases);

/* test_memory.c: fails if a value is overwritten before its last use. */
void replay(const struct made *made);

#endif
