/*
 * Fuzzer: lines of text as the headers Host, Origin, Sec-Fetch-Site, Cookie and Authorization. What is
 * let in is what the rules say in other words.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "harness.h"
#include "server/guard.h"

enum { HOST, ORIGIN, SITE, COOKIE, AUTHORIZATION, N_LINES };

static const char TOKEN[] = "0123456789abcdef";

/* Does the text begin with the word, and continue with nothing or a port? */
static int is_name(const char *host, const char *word) {
    const size_t n = strlen(word);
    if (strncasecmp(host, word, n) != 0) return 0;
    if (!host[n]) return 1;
    return host[n] == ':' && host[n + 1] &&
           strspn(host + n + 1, "0123456789") == strlen(host + n + 1);
}

static void check_host(const char *host) {
    const int here =
        is_name(host, "localhost") || is_name(host, "127.0.0.1") || is_name(host, "[::1]");
    if (qkv_guard_host(host, 0)) {
        FUZZ_REQUIRE(here);
        FUZZ_REQUIRE(qkv_guard_host(host, 1));
    }
    /* A name of letters is never an address. */
    if (qkv_guard_host(host, 1) && !here)
        FUZZ_REQUIRE(strspn(host, "0123456789.:[]abcdefABCDEF") == strlen(host));
}

static void check_cookie(const char *header) {
    char value[QKV_GUARD_TOKEN_SIZE];
    if (!qkv_guard_cookie(header, "qkv-1", value, sizeof value)) return;
    FUZZ_REQUIRE(strlen(value) < sizeof value && !strchr(value, ';'));
    FUZZ_REQUIRE(strstr(header, "qkv-1="));
    if (qkv_guard_same(value, TOKEN)) FUZZ_REQUIRE(strcmp(value, TOKEN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = qkv_strndup((const char *)data, size), *at = text;
    const char *lines[N_LINES] = {0};
    FUZZ_REQUIRE(text);
    for (int i = 0; i < N_LINES && at; i++) {
        char *end = strchr(at, '\n');
        if (end) *end = '\0';
        lines[i] = at;
        at = end ? end + 1 : NULL;
    }
    if (lines[HOST]) check_host(lines[HOST]);
    if (lines[ORIGIN] && qkv_guard_origin(lines[ORIGIN], lines[HOST])) {
        FUZZ_REQUIRE(strncmp(lines[ORIGIN], "http://", 7) == 0);
        FUZZ_REQUIRE(strcasecmp(lines[ORIGIN] + 7, lines[HOST]) == 0);
    }
    if (lines[SITE] && qkv_guard_site(lines[SITE]))
        FUZZ_REQUIRE(strcmp(lines[SITE], "none") == 0 || strcmp(lines[SITE], "same-origin") == 0);
    if (lines[COOKIE]) check_cookie(lines[COOKIE]);
    const char *bearer = qkv_guard_bearer(lines[AUTHORIZATION]);
    if (bearer) FUZZ_REQUIRE(qkv_guard_same(bearer, TOKEN) == (strcmp(bearer, TOKEN) == 0));
    if (bearer && qkv_guard_is_token(bearer)) FUZZ_REQUIRE(strlen(bearer) >= 16);
    free(text);
    return 0;
}
