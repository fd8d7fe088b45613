/* Bytes as base64 (RFC 4648). */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/text.h"

void base64_append(struct text *text, const unsigned char *bytes, size_t size);

#endif
