/* One pass over a pattern, escapes and classes rewritten. */
#include "tokenizer/regex.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/unicode_text.h"

#define WORD "\\p{L}\\p{M}\\p{N}\\p{Pc}"

typedef struct translator {
    const char *at;
    qkv_text *out;
    int in_class; /* how many brackets deep */
    int anchors;  /* ^ or $ outside classes: they mean lines */
    const char *reason;
} translator;

static int refuse(translator *t, const char *reason) {
    t->reason = reason;
    return 0;
}

/* \x{HH}, \xHH, \uHHHH: beyond ASCII the character itself. */
static int translate_code(translator *t) {
    const int braces = t->at[1] == 'x' && t->at[2] == '{';
    const char *digits = t->at + (braces ? 3 : 2);
    size_t most = braces ? 8 : t->at[1] == 'x' ? 2 : 4, n = 0;
    uint32_t code = 0;
    for (; n < most && strchr("0123456789abcdefABCDEF", digits[n]) && digits[n]; n++) {
        char c = digits[n];
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (n == 0 || (braces && digits[n] != '}') || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000))
        return refuse(t, "a character's number is malformed");
    if (code < 0x80)
        qkv_text_printf(t->out, "\\x{%X}", (unsigned)code);
    else
        qkv_unicode_append(t->out, code);
    t->at = digits + n + (size_t)braces;
    return 1;
}

static const struct {
    char name;
    const char *outside, *inside; /* NULL: cannot be said */
} escapes[] = {
    {'s', "\\p{White_Space}", "\\p{White_Space}"},
    {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'w', "[" WORD "]", WORD},
    {'W', "[^" WORD "]", NULL},
    {'h', "[0-9A-Fa-f]", "0-9A-Fa-f"},
    {'H', "[^0-9A-Fa-f]", NULL},
    {'K', NULL, NULL},
    {'C', NULL, NULL},
    {'M', NULL, NULL},
    {'Q', NULL, NULL},
    {'E', NULL, NULL},
    {'G', NULL, NULL},
    {'g', NULL, NULL},
};

static int translate_escape(translator *t) {
    const char name = t->at[1];
    if (!name) return refuse(t, "it ends with a backslash");
    if (name == 'x' || name == 'u') return translate_code(t);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (escapes[i].name != name) continue;
        const char *text = t->in_class ? escapes[i].inside : escapes[i].outside;
        if (!text) return refuse(t, "it has an escape that is not supported here");
        qkv_text_puts(t->out, text);
        t->at += 2;
        return 1;
    }
    qkv_text_append(t->out, t->at, 2);
    t->at += 2;
    return 1;
}

/* A bracket inside a class adds its characters to the outer one's. */
static int open_class(translator *t) {
    if (t->in_class && t->at[1] == ':') {
        const char *end = strstr(t->at, ":]");
        if (!end) return refuse(t, "a class of characters is malformed");
        qkv_text_append(t->out, t->at, (size_t)(end + 2 - t->at));
        t->at = end + 2;
        return 1;
    }
    if (t->in_class && t->at[1] == '^') return refuse(t, "it has a negated class in a class");
    if (!t->in_class++) {
        qkv_text_puts(t->out, "[");
        if (t->at[1] == '^') {
            qkv_text_puts(t->out, "^");
            t->at++;
        }
    }
    t->at++;
    if (*t->at == ']') { /* first in a class: itself */
        qkv_text_puts(t->out, "\\]");
        t->at++;
    }
    return 1;
}

static int translate_in_class(translator *t) {
    if (*t->at == '[') return open_class(t);
    if (t->at[0] == '&' && t->at[1] == '&') return refuse(t, "it has an intersection of classes");
    if (*t->at == ']') {
        if (--t->in_class == 0) qkv_text_puts(t->out, "]");
        t->at++;
        return 1;
    }
    qkv_text_append(t->out, t->at++, 1);
    return 1;
}

/* {n,m}+ repeats what was repeated; it is not possessive. */
static int translate_braces(translator *t) {
    const char *end = t->at + 1 + strspn(t->at + 1, "0123456789,");
    if (*end != '}' || end[1] != '+') {
        qkv_text_append(t->out, t->at++, 1);
        return 1;
    }
    long least = t->at[1] == ',' ? 0 : strtol(t->at + 1, NULL, 10);
    if (least > 1) return refuse(t, "it repeats a repetition");
    qkv_text_puts(t->out, least ? "+" : "*");
    t->at = end + 2;
    return 1;
}

static int translate_next(translator *t) {
    if (*t->at == '\\') return translate_escape(t);
    if (t->in_class) return translate_in_class(t);
    if (*t->at == '[') return open_class(t);
    if (*t->at == '{') return translate_braces(t);
    t->anchors |= *t->at == '^' || *t->at == '$';
    qkv_text_append(t->out, t->at++, 1);
    return 1;
}

int qkv_regex_translate(qkv_text *out, const char *pattern, const char *path, qkv_error *err) {
    qkv_text made = {0};
    translator t = {.at = pattern, .out = &made};
    int ok = 1, status = QKV_OK;
    qkv_text_puts(&made, "");
    while (ok && *t.at) ok = translate_next(&t);
    if (ok && t.in_class) ok = refuse(&t, "a class of characters has no end");
    if (!ok)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: pattern '%.80s' is not supported: %s",
                          path, pattern, t.reason);
    else if (made.failed)
        status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        if (t.anchors) qkv_text_puts(out, "(?m)");
        qkv_text_append(out, made.data, made.length);
    }
    qkv_text_release(&made);
    return status;
}

void qkv_regex_quote(qkv_text *out, const char *text) {
    for (; *text; text++) {
        if (strchr("\\^$.[]|()?*+{}-# ", *text)) qkv_text_puts(out, "\\");
        qkv_text_append(out, text, 1);
    }
}
