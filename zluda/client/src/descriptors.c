/* Descriptors, and messages that carry them to another process. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 4 };

int zl_above_standard(int descriptor)
{
    int moved;

    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(descriptor);
    return moved;
}

int zl_memory_file(const char *name, uint64_t size)
{
    int descriptor = zl_above_standard(memfd_create(name, MFD_CLOEXEC));
    if (descriptor >= 0 && size && ftruncate(descriptor, (off_t)size) < 0) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

bool zl_send(int socket, const void *data, size_t size, const int *descriptors, size_t count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(MOST * sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    ssize_t sent;

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

bool zl_receive(int socket, void *data, size_t size, int *descriptor)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    struct cmsghdr *rights;
    ssize_t got;

    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)size)
        return false;
    for (rights = CMSG_FIRSTHDR(&message); rights; rights = CMSG_NXTHDR(&message, rights))
        if (rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
            memcpy(descriptor, CMSG_DATA(rights), sizeof *descriptor);
    *descriptor = zl_above_standard(*descriptor);
    return true;
}
