/* Claiming the driver process that `zluda run` has started ahead of the program (zluda/cli/ahead.py). Whatever is wrong
   with it, a driver of the program's own is as good. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_SECONDS = 10 };            /* a driver that has not loaded by then is stopped, or hangs */

/* A socket on which the driver named `name` listens, in the abstract namespace. */
static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    struct ucred peer;
    socklen_t size = sizeof peer;
    int connection, failed;

    if (length + 1 > sizeof address.sun_path)
        return -1;
    connection = zl_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (connection < 0)
        return -1;
    memcpy(address.sun_path + 1, name, length);
    do
        failed = connect(connection, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
    while (failed && errno == EINTR);
    /* Anybody may have taken the name of a driver that is gone. */
    if (failed || getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != geteuid()) {
        close(connection);
        return -1;
    }
    return connection;
}

/* A file of the variables that a driver gets, each with a null behind it; or -1. */
static int environment_file(void)
{
    char **environment = zl_driver_environment();
    char *text, *end;
    size_t size = 0;
    int file = -1;

    if (!environment)
        return -1;
    for (size_t i = 0; environment[i]; i++)
        size += strlen(environment[i]) + 1;
    text = end = malloc(size + 1);
    if (text) {
        for (size_t i = 0; environment[i]; i++)
            end = stpcpy(end, environment[i]) + 1;
        file = zl_memory_file("zluda-environment", 0);
        if (file >= 0 && write(file, text, size) != (ssize_t)size) {
            close(file);
            file = -1;
        }
    }
    free(text);
    free(environment);
    return file;
}

int zl_claim_driver(void)
{
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS}, forever = {0};
    struct zl_claim claim = {.magic = ZL_MAGIC, .protocol = ZL_PROTOCOL_IDENTITY, .host = (uint32_t)getpid()}, answer;
    const char *name = getenv("ZLUDA_DRIVER");
    int connection = name && *name ? connect_to(name) : -1;
    int with[2], extra = -1;
    bool agreed;

    if (connection < 0)
        return -1;
    with[0] = environment_file();
    with[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (with[1] < 0)
        with[1] = zl_above_standard(open("/dev/null", O_WRONLY | O_CLOEXEC));
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    agreed = with[0] >= 0 && with[1] >= 0 && zl_send(connection, &claim, sizeof claim, with, 2) &&
             zl_receive(connection, &answer, sizeof answer, &extra) && answer.magic == ZL_MAGIC &&
             !memcmp(answer.protocol, claim.protocol, sizeof claim.protocol);
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
    for (int i = 0; i < 2; i++)
        if (with[i] >= 0)
            close(with[i]);
    if (extra >= 0)
        close(extra);
    if (!agreed) {
        close(connection);
        return -1;
    }
    return connection;
}
