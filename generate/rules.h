/* Which nodes work on some tokens of a text as on all of them, and what of their inputs they need. */
#ifndef GENERATE_RULES_H
#define GENERATE_RULES_H

#include "generate/walk.h"

extern const struct rules token_rules;

#endif
