#include "tests/onnx/messages.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, LENGTH = 2 };

static void append(struct message *message, const void *bytes, size_t size)
{
    if (message->size + size > message->capacity) {
        message->capacity = 2 * (message->size + size);
        message->data = realloc(message->data, message->capacity);
        if (!message->data) abort();
    }
    if (size) memcpy(message->data + message->size, bytes, size);
    message->size += size;
}

static void put_varint(struct message *message, uint64_t number)
{
    do {
        const unsigned char byte = (number & 127) | (number > 127 ? 128 : 0);
        append(message, &byte, 1);
        number >>= 7;
    } while (number);
}

void put_integer(struct message *message, int field, int64_t number)
{
    put_varint(message, (uint64_t)field << 3 | VARINT);
    put_varint(message, (uint64_t)number);
}

void put_float(struct message *message, int field, float number)
{
    put_varint(message, (uint64_t)field << 3 | 5); /* 32 bits */
    append(message, &number, sizeof number);
}

void put_bytes(struct message *message, int field, const void *bytes, size_t size)
{
    put_varint(message, (uint64_t)field << 3 | LENGTH);
    put_varint(message, size);
    append(message, bytes, size);
}

void put_text(struct message *message, int field, const char *text)
{
    put_bytes(message, field, text, strlen(text));
}

void put_message(struct message *message, int field, struct message *part)
{
    put_bytes(message, field, part->data, part->size);
    message_free(part);
}

void message_free(struct message *message)
{
    free(message->data);
    *message = (struct message) { 0 };
}
