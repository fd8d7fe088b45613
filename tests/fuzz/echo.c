/* In the place of tutti-decode, for decoded.c: a helper whose answers are in the file itself, from its 16th byte on.
 * What follows them are pixels or samples, as many as the answer says; where there are not enough, the file's bytes
 * again. */
#include "formats/decode/socket.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { BEGIN = 16, MOST = 1 << 16, MOST_SENT = 1 << 25 };

static unsigned char file[MOST];
static size_t count;

/* The file's bytes after the answer, again and again; the file's last byte may end that early. */
static bool give_data(size_t bytes)
{
    const size_t begin = BEGIN + sizeof(struct decode_answer), all = bytes < MOST_SENT ? bytes : MOST_SENT;
    const bool whole = count == 0 || file[count - 1] != '!';
    const size_t wanted = whole ? all : all / 2;
    static const unsigned char none[256];
    for (size_t sent = 0; sent < wanted;) {
        const bool has = begin < count;
        size_t now = has ? count - begin : sizeof none;
        if (now > wanted - sent) now = wanted - sent;
        if (!socket_give(has ? file + begin : none, now)) return false;
        sent += now;
    }
    return whole && bytes <= MOST_SENT;
}

static bool serve(void)
{
    struct decode_request request;
    struct decode_answer answer = { 0 };
    int descriptor;
    if (!socket_receive_request(&request, &descriptor)) return false;
    if (request.task <= DECODE_PIXELS) {
        count = (size_t)request.bytes;
        if (request.bytes > MOST || !socket_receive(file, count)) return false;
    } else if (request.task == DECODE_OPEN) {
        const ssize_t got = pread(descriptor, file, sizeof file, 0);
        count = got > 0 ? (size_t)got : 0;
        close(descriptor);
    }
    const size_t there = count > BEGIN ? count - BEGIN : 0;
    memcpy(&answer, file + BEGIN, there < sizeof answer ? there : sizeof answer);
    if (request.task == DECODE_SAMPLES) answer.status = DECODE_DONE;
    if (!socket_give(&answer, sizeof answer)) return false;
    if (answer.status != DECODE_DONE) return true;
    if (request.task == DECODE_PIXELS && answer.width > 0 && answer.height > 0)
        return give_data((size_t)answer.width * (size_t)answer.height * (answer.row == 5 ? 4 : answer.row % 5));
    return request.task != DECODE_SAMPLES || give_data((size_t)request.frames * sizeof(float));
}

int main(void)
{
    const struct decode_answer ready = { .status = DECODE_DONE };
    signal(SIGPIPE, SIG_IGN); /* the other end may be closed at any time */
    if (!socket_give(&ready, sizeof ready)) return 1;
    while (serve()) continue;
    return 0;
}
