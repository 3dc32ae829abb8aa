/*
 * Sockets to listen at: 127.0.0.1 and ::1 at the same port, or one address that was asked for.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/serve.h"

enum { TRIES = 16, BACKLOG = 128 };

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static int read_address(const char *text, address *out) {
    *out = (address){0};
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->any.sa_family = AF_INET;
        return 1;
    }
    out->any.sa_family = AF_INET6;
    return inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
}

static socklen_t size_of(const address *a) {
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

/* A socket that listens, or -1, and errno says why. */
static int open_socket(address *a, int32_t port) {
    const int yes = 1;
    if (a->any.sa_family == AF_INET)
        a->v4.sin_port = htons((uint16_t)port);
    else
        a->v6.sin6_port = htons((uint16_t)port);
    const int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    /* Without it a server that was killed could not come back for a minute. */
    int failed = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!failed && a->any.sa_family == AF_INET6)
        failed = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (!failed) failed = bind(fd, &a->any, size_of(a));
    if (!failed) failed = listen(fd, BACKLOG);
    if (!failed) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int32_t port_of(int fd) {
    address a = {0};
    socklen_t size = sizeof a;
    if (getsockname(fd, &a.any, &size) != 0) return 0;
    return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

static int fail_port(const char *text, int32_t port, int why, qkv_error *err) {
    if (why == EADDRINUSE)
        return qkv_fail(err, QKV_ERR_IO,
                        "port %d is taken: give another one, or 0 for any that is free", (int)port);
    if (why == EACCES)
        return qkv_fail(err, QKV_ERR_IO, "port %d is not for ordinary users: give one from 1024 on",
                        (int)port);
    return qkv_fail(err, QKV_ERR_IO, "cannot listen at %s, port %d: %s", text, (int)port,
                    strerror(why));
}

/* ::1 beside 127.0.0.1. Returns 0 where another program has the port there; a machine without IPv6
 * does without. */
static int open_second(int32_t port, int *fd) {
    address a;
    read_address("::1", &a);
    *fd = open_socket(&a, port);
    return *fd >= 0 || errno != EADDRINUSE;
}

static int listen_here(int32_t port, int fds[2], int32_t *chosen, qkv_error *err) {
    address a;
    read_address("127.0.0.1", &a);
    for (int i = 0; i < (port ? 1 : TRIES); i++) {
        fds[0] = open_socket(&a, port);
        if (fds[0] < 0) return fail_port("127.0.0.1", port, errno, err);
        *chosen = port_of(fds[0]);
        if (open_second(*chosen, &fds[1])) return QKV_OK;
        close(fds[0]);
        fds[0] = -1;
    }
    return fail_port("::1", port, EADDRINUSE, err);
}

int qkv_listen(const char *text, int32_t port, int fds[2], int32_t *chosen, qkv_error *err) {
    address a;
    fds[0] = fds[1] = -1;
    if (!text) return listen_here(port, fds, chosen, err);
    if (!read_address(text, &a))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`bind` is an address in numbers, such as 192.168.1.5, 0.0.0.0 or ::, not "
                        "'%s'",
                        text);
    fds[0] = open_socket(&a, port);
    if (fds[0] < 0) return fail_port(text, port, errno, err);
    *chosen = port_of(fds[0]);
    return QKV_OK;
}
