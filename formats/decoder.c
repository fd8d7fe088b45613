#include "formats/decoder.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a file may take, by the processor's clock and by the wall's, where other work may take the processor; and
 * after how much work a helper is replaced, long before the system's limit ends it. */
enum { PROCESSOR_SECONDS = 60, WALL_SECONDS = 600, RETIREMENT_SECONDS = 3600 };

struct decoder {
    struct decoder *next; /* that waits, too */
    enum decoder_kind kind;
    pid_t process;
    int socket;
    bool failed, retry;           /* it ended; after another file than the one that it had first */
    int64_t files;                /* that were sent to it */
    double began, processor_time; /* of its file: the wall's clock, and its processor time then */
};

static const struct {
    const char *word, *file, *package;
} kinds[DECODER_KINDS] = { [DECODER_HEIF] = { "heif", "libheif.so.1", "libheif1" },
    [DECODER_SOUND] = { "sound", "libsndfile.so.1", "libsndfile1" },
    [DECODER_TIFF] = { "tiff", "libtiff.so.6", "libtiff6" },
    [DECODER_WEBP] = { "webp", "libwebp.so.7", "libwebp7" } };

/* Helpers that wait. A child of fork() shares the sockets of its parent's helpers: it forgets these. */
static struct {
    pthread_mutex_t lock;
    pid_t owner;
    struct decoder *waiting[DECODER_KINDS];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_int patience;                      /* 0: WALL_SECONDS */
static atomic_bool lacks_library[DECODER_KINDS]; /* found by a helper */

void decoder_set_patience(int seconds)
{
    atomic_store(&patience, seconds);
}

bool decoder_was_used(const struct decoder *decoder)
{
    return decoder->retry;
}

/* ----------------------------------------------------------------------------------------- start and end ---- */

/* Returns the helper's path, which the caller frees; NULL if there is none. */
static char *helper_path(void)
{
    static const char *const places[] = { TUTTI_LIBEXEC_FROM_LIB "/tutti-decode", "tutti-decode" };
    const char *given = secure_getenv("TUTTI_DECODER");
    if (given && *given) return memory_copy_text(given);
    return child_find(places, sizeof(places) / sizeof(places[0]));
}

/* Ends a helper, which has `patience_ms` to end by itself. Returns what child_reap() does. */
static int reap(struct decoder *decoder, int patience_ms)
{
    if (decoder->socket >= 0) {
        shutdown(decoder->socket, SHUT_RDWR);
        close(decoder->socket);
    }
    decoder->socket = -1;
    const int how = decoder->process > 0 ? child_reap(decoder->process, patience_ms) : -1;
    decoder->process = -1;
    return how;
}

static double processor_time(const struct decoder *decoder)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(decoder->process, &clock) || clock_gettime(clock, &used)) return 0;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* ----------------------------------------------------------------------------------------------- the socket ---- */

/* Records why the helper of this file cannot go on, and ends it. */
static tutti_status lose(struct decoder *decoder, const char *name)
{
    enum { PATIENCE_MS = 2000 };
    decoder->failed = true;
    decoder->retry = decoder->files > 1;
    const int how = reap(decoder, PATIENCE_MS), signal = how >= 0 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    if (signal)
        return fail(TUTTI_FORMAT, "%s: its decoder died of signal %d (%s): the file is damaged or hostile", name,
            signal, strsignal(signal));
    return fail(TUTTI_FORMAT, "%s: its decoder ended early: the file is damaged or hostile", name);
}

/* Called when nothing has come for a second: whether the file has taken too long. */
static bool is_late(const struct decoder *decoder)
{
    const int most = atomic_load(&patience);
    return clock_seconds() - decoder->began > (most ? most : WALL_SECONDS) ||
        processor_time(decoder) - decoder->processor_time > PROCESSOR_SECONDS;
}

static tutti_status end_late(struct decoder *decoder, const char *name)
{
    decoder->failed = true;
    (void)reap(decoder, 0);
    return fail(TUTTI_FORMAT, "%s: decoding it takes too long: the file is damaged or hostile", name);
}

static bool again(ssize_t count)
{
    return count < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK);
}

static tutti_status send_all(struct decoder *decoder, const char *name, const void *data, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        const ssize_t count = send(decoder->socket, (const char *)data + sent, bytes - sent, MSG_NOSIGNAL);
        if (again(count) && is_late(decoder)) return end_late(decoder, name);
        if (again(count)) continue;
        if (count <= 0) return lose(decoder, name);
        sent += (size_t)count;
    }
    return TUTTI_OK;
}

tutti_status decoder_receive(struct decoder *decoder, const char *name, void *data, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t count = recv(decoder->socket, (char *)data + got, bytes - got, 0);
        if (again(count) && is_late(decoder)) return end_late(decoder, name);
        if (again(count)) continue;
        if (count <= 0) return lose(decoder, name);
        got += (size_t)count;
    }
    return TUTTI_OK;
}

/* Sends the request, and the descriptor with its first bytes. */
static tutti_status send_request(
    struct decoder *decoder, const char *name, const struct decode_request *request, int descriptor)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .bytes = { 0 } };
    struct iovec part = { .iov_base = (void *)request, .iov_len = sizeof(*request) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    ssize_t count;
    if (descriptor < 0) return send_all(decoder, name, request, sizeof(*request));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    do count = sendmsg(decoder->socket, &message, MSG_NOSIGNAL);
    while (again(count) && !is_late(decoder));
    if (again(count)) return end_late(decoder, name);
    if (count <= 0) return lose(decoder, name);
    return send_all(decoder, name, (const char *)request + count, sizeof(*request) - (size_t)count);
}

/* What a helper writes may be anything. */
static void make_printable(struct decode_answer *answer)
{
    char *end = answer->text;
    answer->text[sizeof(answer->text) - 1] = '\0';
    for (char *c = answer->text; *c; c++) {
        if (strchr(" \t\r\n", *c))
            *c = ' ';
        else if (*c < ' ' || *c > '~')
            *c = '?';
        if (*c != ' ') end = c + 1;
    }
    *end = '\0';
}

tutti_status decoder_ask(struct decoder *decoder, const char *name, const struct decode_request *request,
    const void *bytes, int descriptor, struct decode_answer *answer)
{
    tutti_status status;
    decoder->files += request->task != DECODE_SAMPLES;
    decoder->began = clock_seconds();
    decoder->processor_time = processor_time(decoder);
    TRY(send_request(decoder, name, request, descriptor));
    if (bytes) TRY(send_all(decoder, name, bytes, (size_t)request->bytes));
    TRY(decoder_receive(decoder, name, answer, sizeof(*answer)));
    make_printable(answer);
    if (answer->status == DECODE_NO_MEMORY)
        FAIL(TUTTI_FORMAT, "%s: it needs more memory than a decoder may have: %s", name, answer->text);
    if (answer->status != DECODE_DONE)
        FAIL(TUTTI_FORMAT, "%s: %s", name, *answer->text ? answer->text : "it is damaged");
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------- the pool ---- */

static void free_decoder(struct decoder *decoder)
{
    (void)reap(decoder, 0);
    free(decoder);
}

static struct decoder *take_waiting(enum decoder_kind kind)
{
    struct decoder *found;
    pthread_mutex_lock(&pool.lock);
    if (pool.owner != getpid()) memset(pool.waiting, 0, sizeof(pool.waiting));
    pool.owner = getpid();
    found = pool.waiting[kind];
    if (found) pool.waiting[kind] = found->next;
    pthread_mutex_unlock(&pool.lock);
    return found;
}

static tutti_status fail_library(enum decoder_kind kind, const char *name, const char *what)
{
    return fail(TUTTI_UNSUPPORTED, "%s is %s: reading it needs %s (apt install %s)", name, what, kinds[kind].file,
        kinds[kind].package);
}

static tutti_status start(struct decoder *decoder, const char *path, const char *name, const char *what)
{
    const struct timeval step = { .tv_sec = 1 };
    struct decode_answer ready = { .status = DECODE_NO_LIBRARY };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return fail(
            TUTTI_UNSUPPORTED, "%s is %s: a socket for its decoder cannot be made: %s", name, what, strerror(errno));
    decoder->socket = ends[0];
    char *const arguments[] = { "tutti-decode", (char *)kinds[decoder->kind].word, NULL };
    const int error = child_start(path, arguments, ends[1], -1, &decoder->process);
    close(ends[1]);
    if (error) decoder->process = -1;
    if (error)
        return fail(
            TUTTI_UNSUPPORTED, "%s is %s: its decoder, '%s', cannot be started: %s", name, what, path, strerror(error));
    decoder->began = clock_seconds();
    (void)setsockopt(decoder->socket, SOL_SOCKET, SO_SNDTIMEO, &step, sizeof(step));
    (void)setsockopt(decoder->socket, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step));
    if (decoder_receive(decoder, name, &ready, sizeof(ready)) != TUTTI_OK)
        return fail(
            TUTTI_UNSUPPORTED, "%s is %s: its decoder, '%s', ended as soon as it was started", name, what, path);
    if (ready.status == DECODE_NO_LIBRARY) atomic_store(&lacks_library[decoder->kind], true);
    if (ready.status == DECODE_NO_LIBRARY) return fail_library(decoder->kind, name, what);
    if (ready.status != DECODE_DONE)
        return fail(TUTTI_UNSUPPORTED,
            "%s is %s: this system does not let its decoder give up rights (seccomp), so that it is not read: convert "
            "it",
            name, what);
    return TUTTI_OK;
}

tutti_status decoder_take(enum decoder_kind kind, const char *name, const char *what, struct decoder **taken)
{
    *taken = take_waiting(kind);
    if (*taken) return TUTTI_OK;
    if (atomic_load(&lacks_library[kind])) return fail_library(kind, name, what);
    char *path = helper_path();
    if (!path)
        return fail(TUTTI_UNSUPPORTED,
            "%s is %s: reading it needs tutti-decode, which belongs in %s, seen from the library's folder", name, what,
            TUTTI_LIBEXEC_FROM_LIB);
    struct decoder *decoder = memory_new(1, sizeof(*decoder));
    if (decoder) *decoder = (struct decoder) { .kind = kind, .process = -1, .socket = -1 };
    const tutti_status status = decoder ? start(decoder, path, name, what) : TUTTI_NO_MEMORY;
    free(path);
    if (status == TUTTI_OK)
        *taken = decoder;
    else if (decoder)
        free_decoder(decoder);
    return status;
}

void decoder_give(struct decoder *decoder, bool broken)
{
    if (broken || decoder->failed || processor_time(decoder) > RETIREMENT_SECONDS) {
        free_decoder(decoder);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    decoder->next = pool.waiting[decoder->kind];
    pool.waiting[decoder->kind] = decoder;
    pthread_mutex_unlock(&pool.lock);
}
