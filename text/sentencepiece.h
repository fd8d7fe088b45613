/* SentencePiece's models (.model) as the JSON of a tokenizer.json. */
#ifndef TEXT_SENTENCEPIECE_H
#define TEXT_SENTENCEPIECE_H

#include "base/status.h"

#include <jansson.h>

enum { TOKENIZER_LARGEST = 512 << 20 }; /* bytes of a file */

/* Fails with TUTTI_UNSUPPORTED in a build without protobuf-c. */
tutti_status sentencepiece_read(const char *path, json_t **json);

#endif
