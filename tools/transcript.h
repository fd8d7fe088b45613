/* Transcripts of labels: 0 is the blank, and label i + 1 the token i of the tokenizer that the weights have. */
#ifndef TOOLS_TRANSCRIPT_H
#define TOOLS_TRANSCRIPT_H

#include "tutti_text.h"

/* The text of labels, which is freed by free(); NULL: failure. user: the tokenizer. As tutti_scores_options.text. */
char *transcript_text(void *user, const int32_t *labels, int64_t count);
/* The text that logits [steps, classes] say. */
char *transcript_of(tutti_tokenizer *tokenizer, const float *logits, int64_t steps, int64_t classes);

#endif
