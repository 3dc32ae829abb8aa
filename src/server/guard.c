#define _POSIX_C_SOURCE 200809L
#include "server/guard.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/text.h"

enum { LONGEST_HOST = 64 };

/* ---- Host ---- */

/* Where the port begins, at its colon or at the end; NULL: this is not a port. */
static const char *find_port(const char *host) {
    const char *from = host[0] == '[' ? strchr(host, ']') : host;
    if (!from) return NULL;
    const char *colon = strchr(from, ':');
    if (!colon) return host[0] == '[' && from[1] ? NULL : from + strlen(from);
    if (host[0] == '[' && colon != from + 1) return NULL;
    const size_t digits = strspn(colon + 1, "0123456789");
    return digits >= 1 && digits <= 5 && !colon[1 + digits] ? colon : NULL;
}

static int is_address(const char *name) {
    unsigned char bytes[16];
    const size_t n = strlen(name);
    char inside[LONGEST_HOST];
    if (name[0] != '[') return inet_pton(AF_INET, name, bytes) == 1;
    if (n < 3 || n >= sizeof inside || name[n - 1] != ']') return 0;
    memcpy(inside, name + 1, n - 2);
    inside[n - 2] = '\0';
    return inet_pton(AF_INET6, inside, bytes) == 1;
}

int qkv_guard_host(const char *host, int any_address) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    char name[LONGEST_HOST];
    const char *port = host ? find_port(host) : NULL;
    if (!port || port == host || (size_t)(port - host) >= sizeof name) return 0;
    memcpy(name, host, (size_t)(port - host));
    name[port - host] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (qkv_equal_ignoring_case(name, names[i])) return 1;
    }
    return any_address && is_address(name);
}

/* ---- where a request comes from ---- */

int qkv_guard_origin(const char *origin, const char *host) {
    static const char scheme[] = "http://";
    if (!origin) return 1;
    if (!host || strncmp(origin, scheme, sizeof scheme - 1) != 0) return 0;
    return qkv_equal_ignoring_case(origin + sizeof scheme - 1, host);
}

int qkv_guard_site(const char *site) {
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/* ---- tokens ---- */

const char *qkv_guard_cookie(const char *header, const char *name, char *value, size_t size) {
    const size_t n = strlen(name);
    for (const char *at = header; at && *at;) {
        while (*at == ' ' || *at == ';') at++;
        const size_t length = strcspn(at, ";");
        if (length > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            const size_t bytes = length - n - 1;
            if (bytes < size) {
                memcpy(value, at + n + 1, bytes);
                value[bytes] = '\0';
                return at + length;
            }
        }
        at += length;
    }
    return NULL;
}

const char *qkv_guard_bearer(const char *authorization) {
    static const char word[] = "Bearer ";
    if (!authorization || strncmp(authorization, word, sizeof word - 1) != 0) return NULL;
    return authorization + sizeof word - 1;
}

int qkv_guard_same(const char *a, const char *b) {
    if (!a || !b) return 0;
    const size_t n = strlen(a), m = strlen(b);
    unsigned char different = n != m;
    for (size_t i = 0; i < n; i++) {
        different |= (unsigned char)(a[i] ^ b[m ? i % m : 0]);
    }
    return !different;
}

int qkv_guard_is_token(const char *text) {
    enum { SHORTEST = 16 };
    static const char known[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t n = strlen(text);
    return n >= SHORTEST && n < QKV_GUARD_TOKEN_SIZE && strspn(text, known) == n;
}
