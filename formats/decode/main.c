/* tutti-decode KIND: the helper of formats/decoder.c. It loads the library of one kind of file, gives up its rights,
 * and decodes what comes over its standard input, a socket, until that is closed. */
#include "formats/decode/decode.h"
#include "formats/decode/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A file that takes longer ends the process, also where nobody waits for it any more. */
enum { MOST_SECONDS = 3600 };
#define MOST_FILE ((uint64_t)1 << 30)

/* Memory for files, which is used again. */
static unsigned char *file_bytes;
static size_t file_room;

static bool receive_file(uint64_t bytes)
{
    if (bytes > MOST_FILE) return false;
    if (bytes > file_room) {
        free(file_bytes);
        file_room = 0;
        file_bytes = malloc((size_t)bytes);
        if (!file_bytes) return false;
        file_room = (size_t)bytes;
    }
    return socket_receive(file_bytes, (size_t)bytes);
}

static bool serve_picture(const struct library *library, const struct decode_request *request)
{
    struct decode_answer answer = { 0 };
    if (!library->read_picture || !receive_file(request->bytes)) return false;
    struct picture_file file = { .bytes = file_bytes,
        .count = (size_t)request->bytes,
        .wants_pixels = request->task == DECODE_PIXELS,
        .mask = request->mask != 0 };
    const bool read = library->read_picture(&file, &answer);
    bool good = socket_give(&answer, sizeof answer);
    if (good && read && file.wants_pixels)
        good =
            socket_give(file.pixels, (size_t)answer.width * (size_t)answer.height * (answer.row == 5 ? 4 : answer.row));
    free(file.pixels);
    return good;
}

static bool serve_sound(const struct library *library, const struct decode_request *request, int descriptor)
{
    static float mono[DECODE_MOST_FRAMES];
    struct decode_answer answer = { 0 };
    if (!library->open_sound) return false;
    if (request->task == DECODE_OPEN) {
        library->open_sound(descriptor, request->bytes, &answer);
        return socket_give(&answer, sizeof answer);
    }
    if (request->frames < 1 || request->frames > DECODE_MOST_FRAMES) return false;
    const bool read = library->read_sound(request->first, request->frames, mono, &answer);
    return socket_give(&answer, sizeof answer) && (!read || socket_give(mono, (size_t)request->frames * sizeof *mono));
}

static bool serve(const struct library *library)
{
    struct decode_request request;
    int descriptor;
    alarm(0);
    if (!socket_receive_request(&request, &descriptor)) return false;
    alarm(MOST_SECONDS);
    return request.task <= DECODE_PIXELS ? serve_picture(library, &request)
                                         : serve_sound(library, &request, descriptor);
}

/* Closes whatever the embedding program had open. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) == 0) return;
#endif
    for (int file = STDERR_FILENO + 1; file < sysconf(_SC_OPEN_MAX); file++) close(file);
}

static const struct library *find_library(const char *name)
{
    static const struct library *const libraries[] = { &library_heif, &library_sound, &library_tiff, &library_webp };
    for (size_t i = 0; name && i < sizeof libraries / sizeof *libraries; i++)
        if (!strcmp(libraries[i]->name, name)) return libraries[i];
    return NULL;
}

int main(int count, char **words)
{
    struct decode_answer ready = { 0 };
    const struct library *library = find_library(count == 2 ? words[1] : NULL);
    if (!library) {
        fputs("tutti-decode decodes pictures and recordings; the library starts it, users do not\n", stderr);
        return 2;
    }
    close_others();
    if (!library->load())
        ready.status = DECODE_NO_LIBRARY;
    else if (!sandbox_enter())
        ready.status = DECODE_NO_SANDBOX;
    if (!socket_give(&ready, sizeof ready) || ready.status != DECODE_DONE) return 1;
    while (serve(library)) continue;
    _exit(0);
}
