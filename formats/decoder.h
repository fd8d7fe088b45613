/* Helper processes that decode files by libraries which are loaded only there: one process for one kind of file,
 * without rights, for one file at a time and any number of them one after another. What a file does to its decoder
 * costs that file and the process. Any thread may call. The helper is tutti-decode, next to the library (libexec), or
 * what TUTTI_DECODER names. */
#ifndef FORMATS_DECODER_H
#define FORMATS_DECODER_H

#include "tutti.h"

#include "formats/decode/protocol.h"

enum decoder_kind { DECODER_HEIF, DECODER_SOUND, DECODER_TIFF, DECODER_WEBP, DECODER_KINDS };

struct decoder;

/* Takes a helper that waits, or starts one. Errors: TUTTI_UNSUPPORTED where the helper or its library is missing. The
 * message begins with `name`, a file that is `what`, such as "WebP". */
tutti_status decoder_take(enum decoder_kind kind, const char *name, const char *what, struct decoder **decoder);
/* Returns it for the next file. One that failed ends, and so does one of which not all was received (`broken`). */
void decoder_give(struct decoder *decoder, bool broken);

/* Sends a request with the bytes of a picture, or with the descriptor of a recording (else -1), and receives the
 * answer. The functions return TUTTI_FORMAT, with a message that begins with `name`, where the file is refused or the
 * helper ended. */
tutti_status decoder_ask(struct decoder *decoder, const char *name, const struct decode_request *request,
    const void *bytes, int descriptor, struct decode_answer *answer);
tutti_status decoder_receive(struct decoder *decoder, const char *name, void *data, size_t bytes);
/* Whether the helper ended while it had a file, but had others before it, which may have harmed it: then the file is
 * worth another try. */
bool decoder_was_used(const struct decoder *decoder);

/* For tests: how long a file may take, in seconds of the clock; 0: the default. */
void decoder_set_patience(int seconds);

#endif
