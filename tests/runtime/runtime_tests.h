/* Shared by the tests of this group. */
#ifndef TESTS_RUNTIME_TESTS_H
#define TESTS_RUNTIME_TESTS_H

#include <check.h>
#undef fail /* Check's name for something else */

#include "runtime/device.h"

Suite *builder_suite(void);
Suite *discover_suite(void);
Suite *memory_suite(void);
Suite *program_suite(void);
Suite *launch_suite(void);
Suite *check_suite(void);
Suite *store_suite(void);
Suite *drivers_suite(void);

/* A folder for the test, removed with all that is in it. */
void folder_begin(void);
void folder_end(void);
const char *folder(void);
/* Number of files in it whose names end so. */
int files_ending(const char *ending);
/* The path of the first of them; freed by free(). */
char *file_ending(const char *ending);

/* Opens with the test's folder as the cache; fails the test where that fails. */
tutti_runtime *open_runtime(const tutti_runtime_options *options);
/* The first device of a runtime opened so, and its closing. */
struct device *device_begin(void);
void device_end(struct device *device);
/* Whether the lines logged at debug level since the last call of open_runtime() contain this. */
bool logged(const char *part);

void expect_ok(tutti_status status);
/* Fails the test unless the status is the one wanted and the message is one line with this in it. */
void expect_failure(tutti_status found, tutti_status wanted, const char *part);

#endif
