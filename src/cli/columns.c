#define _XOPEN_SOURCE 700
#include "cli/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

static int incomplete; /* something that was to be printed, for want of memory */

/* wcwidth needs a locale of UTF-8, whatever the user's is; without one every character is narrow. */
size_t cli_columns(const char *text) {
    const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    const size_t length = strlen(text);
    size_t columns = 0;
    incomplete |= !utf8 && errno == ENOMEM;
    uint32_t code;
    for (size_t i = 0, n; (n = qkv_utf8_decode(text + i, length - i, &code)) > 0; i += n) {
        const int width = utf8 ? wcwidth((wchar_t)code) : 1;
        columns += width < 0 ? 1 : (size_t)width;
    }
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    return columns;
}

const char *cli_shown(const qkv_text *text) {
    incomplete |= text->failed;
    return text->data && !text->failed ? text->data : "";
}

int cli_is_incomplete(void) {
    return incomplete;
}

void cli_append_token(qkv_text *out, const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    out->failed |= status == QKV_ERR_MEMORY;
    if (status == QKV_OK) {
        qkv_text_puts(out, "\"");
        qkv_text_append_visible(out, bytes, length);
        qkv_text_puts(out, "\"");
    } else {
        qkv_text_printf(out, "#%" PRId32, token);
    }
    qkv_text_free(bytes);
}

void cli_append_printable(qkv_text *out, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            qkv_text_printf(out, "\\x%02x", c);
        else
            qkv_text_append(out, text + i, 1);
    }
}
