/* Takes the place of sentencepiece.c in builds without protobuf-c. */
#include "text/sentencepiece.h"

tutti_status sentencepiece_read(const char *path, json_t **json)
{
    (void)json;
    return fail(TUTTI_UNSUPPORTED,
        "%s: this build of Tutti does not read SentencePiece's models: install libprotobuf-c and protoc-c and build it "
        "again, or save a tokenizer.json by transformers' AutoTokenizer",
        path);
}
