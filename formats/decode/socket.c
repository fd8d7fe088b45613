#include "formats/decode/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET = STDIN_FILENO };

bool socket_receive(void *data, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t count = read(SOCKET, (char *)data + got, bytes - got);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        got += (size_t)count;
    }
    return true;
}

bool socket_give(const void *data, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        const ssize_t count = write(SOCKET, (const char *)data + sent, bytes - sent);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        sent += (size_t)count;
    }
    return true;
}

bool socket_receive_request(struct decode_request *request, int *descriptor)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { .iov_base = request, .iov_len = sizeof *request };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t got;
    *descriptor = -1;
    do got = recvmsg(SOCKET, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    return socket_receive((char *)request + got, sizeof *request - (size_t)got);
}
