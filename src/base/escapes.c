#include "base/escapes.h"

#include <string.h>

static int digit_of(char c) {
    const char lower = qkv_lower(c);
    if (c >= '0' && c <= '9') return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads what follows a backslash: how many bytes that took, 0 where it is not an escape. */
static size_t read_escape(qkv_text *out, const char *at, char between) {
    const char *const letters = "ntr\\", *const bytes = "\n\t\r\\", *known;
    if (*at && *at == between) {
        qkv_text_append(out, at, 1);
        return 1;
    }
    if (*at && (known = strchr(letters, *at)) != NULL) {
        qkv_text_append(out, bytes + (known - letters), 1);
        return 1;
    }
    if (*at != 'x' || digit_of(at[1]) < 0 || digit_of(at[2]) < 0) return 0;
    const char byte = (char)(digit_of(at[1]) * 16 + digit_of(at[2]));
    qkv_text_append(out, &byte, 1);
    return 3;
}

const char *qkv_read_escaped(qkv_text *out, const char *at, char between) {
    out->length = 0;
    qkv_text_puts(out, "");
    while (*at && *at != between) {
        const size_t escape = *at == '\\' ? read_escape(out, at + 1, between) : 0;
        if (!escape) qkv_text_append(out, at, 1);
        at += 1 + escape;
    }
    return at;
}
