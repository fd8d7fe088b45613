/* The networks that test_export.c writes. */
#ifndef TESTS_ONNX_EXPORT_NETWORKS_H
#define TESTS_ONNX_EXPORT_NETWORKS_H

#include <check.h>
#undef fail /* base/status.h has its own */

#include "tutti_onnx.h"

#define GOOD(call) ck_assert_msg((call) == TUTTI_OK, "%s", tutti_message(NULL))

/* Returns their number. */
int export_networks(void);
/* Builds network i, with named outputs, and returns its name, which is valid until the next call. */
const char *export_network(tutti_network *network, int i);

#endif
