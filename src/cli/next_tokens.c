/*
 * Tokens as --of and --diff name them: texts with something between them, blanks before a word kept.
 * What tables show as an escape can be given as one, and so can the character that stands between.
 */
#include <string.h>

#include "base/memory.h"
#include "cli/next.h"

static int digit_of(char c) {
    const char lower = qkv_lower(c);
    if (c >= '0' && c <= '9') return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads what follows a backslash: how many bytes that took, 0 where it is no escape. */
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

/* One text up to `between` or the end: where it ends. */
static const char *read_text(qkv_text *out, const char *at, char between) {
    out->length = 0;
    qkv_text_puts(out, "");
    while (*at && *at != between) {
        const size_t escape = *at == '\\' ? read_escape(out, at + 1, between) : 0;
        if (!escape) qkv_text_append(out, at, 1);
        at += 1 + escape;
    }
    return at;
}

static int add_token(cli_token_list *list, const qkv_model *model, const char *option,
                     const qkv_text *text, qkv_error *err) {
    int32_t token;
    qkv_error why = {0};
    if (text->failed) return qkv_fail_memory(err);
    if (text->length == 0) return cli_usage(err, "%s: the text of a token is empty", option);
    const int status = qkv_find_token(model, &token, text->data, text->length, &why);
    if (status != QKV_OK) {
        qkv_fail_with(err, status, "%s: %s", option, why.message);
        return status;
    }
    return QKV_PUSH(list->ids, list->capacity, list->n, token) ? QKV_OK : qkv_fail_memory(err);
}

int cli_token_list_read(cli_token_list *list, const qkv_model *model, const char *option,
                        const char *given, char between, qkv_error *err) {
    qkv_text text = {0};
    int status = QKV_OK;
    for (const char *at = given; status == QKV_OK; at++) {
        at = read_text(&text, at, between);
        status = add_token(list, model, option, &text, err);
        if (!*at) break;
    }
    qkv_text_release(&text);
    return status;
}
