/* The range test of learning rates, for people: the suggestion, and a picture. */
#ifndef TOOLS_FIND_LR_H
#define TOOLS_FIND_LR_H

#include "tools/session.h"
#include "tutti_finetune.h"

/* Tests the rates of the compiled session, prints the suggestion to standard error (with `json` as a line to standard
 * output, too) and writes the picture. Only rank 0 prints and writes. Returns an exit status. */
int find_lr_run(const struct session *session, const tutti_source *source, const char *path, bool json);

#endif
