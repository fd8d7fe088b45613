/* A file is a row of TFRecords: length (8 bytes), its checksum, the event, its checksum. An event is a message of
 * Protocol Buffers: 1: time (double), 2: step (varint), 3: version of the file (text), 5: summary; a summary has values
 * (1) with a tag (1) and a number (2: float). */
#include "tools/report/tensorboard.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TAG = 100, MOST_EVENT = 256, FIELD_VARINT = 0, FIELD_DOUBLE = 1, FIELD_BYTES = 2, FIELD_FLOAT = 5 };

struct tensorboard {
    FILE *file;
    char *path;
    uint32_t table[256]; /* of CRC-32C */
    int error;
};

/* A message that is being written. */
struct message {
    unsigned char bytes[MOST_EVENT];
    size_t size;
};

static void make_table(uint32_t *table)
{
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78u : 0);
    }
}

/* CRC-32C, turned and shifted, as TFRecord has it. */
static uint32_t masked_sum(const struct tensorboard *board, const unsigned char *bytes, size_t size)
{
    uint32_t sum = 0xffffffffu;
    for (size_t i = 0; i < size; i++) sum = sum >> 8 ^ board->table[(sum ^ bytes[i]) & 255];
    sum = ~sum;
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

static void put_little(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8 * i));
}

static void add_varint(struct message *message, uint64_t value)
{
    for (; value >= 128; value >>= 7) message->bytes[message->size++] = (unsigned char)(value | 128);
    message->bytes[message->size++] = (unsigned char)value;
}

static void add_key(struct message *message, int field, int kind)
{
    message->bytes[message->size++] = (unsigned char)(field << 3 | kind);
}

static void add_bytes(struct message *message, int field, const void *bytes, size_t size)
{
    add_key(message, field, FIELD_BYTES);
    add_varint(message, size);
    memcpy(message->bytes + message->size, bytes, size);
    message->size += size;
}

static void add_time(struct message *message)
{
    struct timespec now = { 0 };
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, sizeof(bits));
    add_key(message, 1, FIELD_DOUBLE);
    put_little(message->bytes + message->size, bits, 8);
    message->size += 8;
}

static void write_record(struct tensorboard *board, const struct message *message)
{
    unsigned char head[12], tail[4];
    put_little(head, message->size, 8);
    put_little(head + 8, masked_sum(board, head, 8), 4);
    put_little(tail, masked_sum(board, message->bytes, message->size), 4);
    if (fwrite(head, 1, sizeof(head), board->file) != sizeof(head) ||
        fwrite(message->bytes, 1, message->size, board->file) != message->size ||
        fwrite(tail, 1, sizeof(tail), board->file) != sizeof(tail))
        board->error = errno ? errno : EIO;
}

tutti_status tensorboard_open(struct tensorboard **result, const char *folder)
{
    char host[64] = "";
    struct message message = { .size = 0 };
    struct tensorboard *board = *result = memory_new(1, sizeof(*board));
    if (!board) return TUTTI_NO_MEMORY;
    make_table(board->table);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail(TUTTI_FILE, "cannot make the folder %s: %s", folder, strerror(errno));
    if (gethostname(host, sizeof(host) - 1) != 0 || strchr(host, '/')) snprintf(host, sizeof(host), "host");
    board->path =
        memory_format("%s/events.out.tfevents.%lld.%s.%ld.0", folder, (long long)time(NULL), host, (long)getpid());
    if (!board->path) return TUTTI_NO_MEMORY;
    board->file = fopen(board->path, "wbx");
    if (!board->file) return fail(TUTTI_FILE, "cannot write %s: %s", board->path, strerror(errno));
    add_time(&message);
    add_bytes(&message, 3, "brain.Event:2", strlen("brain.Event:2"));
    write_record(board, &message);
    return tensorboard_flush(board);
}

void tensorboard_scalar(struct tensorboard *board, const char *tag, int64_t step, double value)
{
    struct message event = { .size = 0 }, number = { .size = 0 }, summary = { .size = 0 };
    const float single = (float)value;
    uint32_t bits;
    if (!isfinite(single) || step < 0 || strlen(tag) > MOST_TAG) return;
    memcpy(&bits, &single, sizeof(bits));
    add_bytes(&number, 1, tag, strlen(tag));
    add_key(&number, 2, FIELD_FLOAT);
    put_little(number.bytes + number.size, bits, 4);
    number.size += 4;
    add_bytes(&summary, 1, number.bytes, number.size);
    add_time(&event);
    add_key(&event, 2, FIELD_VARINT);
    add_varint(&event, (uint64_t)step);
    add_bytes(&event, 5, summary.bytes, summary.size);
    write_record(board, &event);
}

tutti_status tensorboard_flush(struct tensorboard *board)
{
    if (fflush(board->file) != 0 && !board->error) board->error = errno;
    if (!board->error) return TUTTI_OK;
    return fail(TUTTI_FILE, "cannot write %s: %s", board->path, strerror(board->error));
}

void tensorboard_close(struct tensorboard *board)
{
    if (!board) return;
    if (board->file) fclose(board->file);
    free(board->path);
    free(board);
}
