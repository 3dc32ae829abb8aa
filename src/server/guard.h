/*
 * Who may ask: pure functions over the text of headers, which anybody may have written.
 *
 * A page of another site can make a browser send requests here. It does not know the token; its
 * requests carry its own Origin; and where it has made its own name lead here (DNS rebinding), that
 * name is in Host.
 */
#ifndef QKV_SERVER_GUARD_H
#define QKV_SERVER_GUARD_H

#include <stddef.h>

enum { QKV_GUARD_TOKEN_SIZE = 129 }; /* longest token, and a NUL */

/* Is Host a name of this machine that no name server decides about: localhost, 127.0.0.1 or [::1],
 * with any port; with any_address, every numeric address? NULL: no. */
int qkv_guard_host(const char *host, int any_address);
/* Is Origin the page that Host serves? NULL: there is none, which no browser leaves out of what
 * another site sends; yes. */
int qkv_guard_origin(const char *origin, const char *host);
/* Sec-Fetch-Site: may what asks be answered? NULL: an older browser or another program; yes. */
int qkv_guard_site(const char *site);
/* The next cookie of this name, and what stands after it; NULL: there is none. Any server of this machine
 * may set one of our name, which must not hide ours. */
const char *qkv_guard_cookie(const char *header, const char *name, char *value, size_t size);
/* The token after "Bearer "; NULL: none. */
const char *qkv_guard_bearer(const char *authorization);
/* Are two texts the same? Takes as long wherever they differ. NULL equals nothing. */
int qkv_guard_same(const char *a, const char *b);
/* Is it fit to be a token? */
int qkv_guard_is_token(const char *text);

#endif
