/* The helper's end of the socket to formats/decoder.c, which is its standard input. All return false when the other end
 * is closed, and for errors. */
#ifndef FORMATS_DECODE_SOCKET_H
#define FORMATS_DECODE_SOCKET_H

#include "formats/decode/protocol.h"

#include <stdbool.h>
#include <stddef.h>

bool socket_receive(void *data, size_t bytes);
bool socket_give(const void *data, size_t bytes);
/* Receives a request, and the descriptor that may come with it, else -1. */
bool socket_receive_request(struct decode_request *request, int *descriptor);

#endif
