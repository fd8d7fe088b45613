/* What networks for text share: functions that append layers. Those on strings, such as text_append(), are in
 * base/text.h. */
#ifndef MODELS_TEXT_H
#define MODELS_TEXT_H

#include "models/models.h"

/* Numbers of tokens that are padding are below 0, and at the end: the number of the others, float32 []. */
tutti_tensor text_count(tutti_network *network, tutti_tensor ids);
/* 1 for tokens, 0 for padding, float32 [TUTTI_SEQUENCE]. */
tutti_tensor text_mask(tutti_network *network, tutti_tensor ids);
/* x [TUTTI_SEQUENCE, width] -> the row of the last token [width]; zeros of an empty text. */
tutti_tensor text_last(tutti_network *network, tutti_tensor x, tutti_tensor ids);

/* Size of the vocabulary, which the data may set. */
int64_t text_vocabulary(const struct model_facts *facts);
/* A dense layer with normal initial values, and a bias that begins as zeros. */
tutti_tensor text_dense(
    tutti_network *network, tutti_tensor x, const char *name, int64_t units, bool bias, float deviation);
tutti_tensor text_activation(tutti_network *network, tutti_tensor x, enum model_activation activation);
/* A parameter [rows, width of the states] with normal initial values. */
tutti_tensor text_table(tutti_network *network, const char *name, int64_t rows, const struct model_config *config);
/* Rows of a table. */
tutti_tensor text_rows(tutti_network *network, tutti_tensor table, int64_t first, int64_t count);
/* The logits of each next token, by the table of the embeddings or a layer "lm_head". */
tutti_tensor text_logits(tutti_network *network, tutti_tensor x, tutti_tensor table, const struct model_facts *facts);
/* A parameter [width] that begins as ones. */
tutti_tensor text_ones(tutti_network *network, const char *name, int64_t width);
/* The logits of the last token's class by a layer named "score", as transformers' *ForSequenceClassification of
 * language models has it. */
tutti_tensor text_score(tutti_network *network, tutti_tensor x, tutti_tensor ids, int classes, float deviation);
/* Columns of the last axis. */
tutti_tensor text_columns(tutti_network *network, tutti_tensor x, int64_t first, int64_t count);
/* tutti_dropout(), or x where the probability is 0. */
tutti_tensor text_dropout(tutti_network *network, tutti_tensor x, float probability);
/* The first rows of a table [positions, width], as many as sequences of the batch are long. */
tutti_tensor text_positions(tutti_network *network, tutti_tensor table);
/* Pushes the scope "name.number". */
void text_push(tutti_network *network, const char *name, int64_t number);

#endif
