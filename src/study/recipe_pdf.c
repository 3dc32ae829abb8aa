/*
 * Recipes in PDF files: the keywords of the information dictionary. They are ASCII characters, which
 * cairo writes as they are, or, where there are brackets or backslashes among them, as UTF-16 in
 * hexadecimal digits. qkv writes PDF 1.4, where no object is compressed. A recipe is put
 * in by an incremental update: a new information dictionary after the old end of the file, with a
 * table that says where it lies. What a file of another program lacks for that is refused.
 */
#include <string.h>

#include "study/recipe_file.h"

#define KEYWORDS "/Keywords "

/* One byte of a literal string at *at; -1 at its end, -2 where it is malformed. */
static int next_byte(const char **at, const char *end, int *depth) {
    if (*at >= end) return -2;
    const char c = *(*at)++;
    if (c == '(') ++*depth;
    if (c == ')' && --*depth == 0) return -1;
    if (c != '\\') return (unsigned char)c;
    if (*at >= end) return -2;
    const char escaped = *(*at)++;
    return strchr("()\\", escaped) && escaped ? (unsigned char)escaped : -2;
}

static int fail_keywords(qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "its keywords are not as qkv writes them");
}

/* From after the bracket on. */
static int take_literal(const char *at, const char *end, qkv_text *recipe, qkv_error *err) {
    int depth = 1, byte;
    size_t length = 0;
    for (const char *ahead = at; (byte = next_byte(&ahead, end, &depth)) >= 0;) length++;
    if (byte == -2) return fail_keywords(err);
    if (length > RECIPE_FILE_MOST) return qkv_recipe_file_take(recipe, at, length, err);
    depth = 1;
    for (size_t i = 0; i < length; i++) {
        const char one = (char)next_byte(&at, end, &depth);
        qkv_text_append(recipe, &one, 1);
    }
    return QKV_OK;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = qkv_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* From after "<FEFF" on: "00" and two digits for each character. */
static int take_hexadecimal(const char *at, const char *end, qkv_text *recipe, qkv_error *err) {
    const char *close = memchr(at, '>', (size_t)(end - at));
    const size_t length = close ? (size_t)(close - at) : 1;
    if (length % 4) return fail_keywords(err);
    if (length / 4 > RECIPE_FILE_MOST) return qkv_recipe_file_take(recipe, at, length / 4, err);
    for (; at < close; at += 4) {
        const int high = digit(at[2]), low = digit(at[3]);
        const char one = (char)(high * 16 + low);
        if (at[0] != '0' || at[1] != '0' || high < 0 || low < 0 || high > 7) {
            return fail_keywords(err);
        }
        qkv_text_append(recipe, &one, 1);
    }
    return QKV_OK;
}

int qkv_recipe_pdf_find(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    const char *found = qkv_find_last(bytes, n, KEYWORDS), *end = bytes + n;
    if (!found) return QKV_OK;
    const char *at = found + strlen(KEYWORDS);
    if (at < end && *at == '(') return take_literal(at + 1, end, recipe, err);
    if (end - at > 5 && memcmp(at, "<FEFF", 5) == 0) {
        return take_hexadecimal(at + 5, end, recipe, err);
    }
    return fail_keywords(err);
}

/* ---- putting it in ---- */

/* The number after a key; -1 where there is none. */
static long number_behind(const char *bytes, size_t n, const char *key) {
    const char *found = qkv_find_last(bytes, n, key);
    if (!found) return -1;
    const char *at = found + strlen(key), *end = bytes + n;
    long value = -1;
    while (at < end && qkv_is_space(*at)) at++;
    for (; at < end && *at >= '0' && *at <= '9' && value < 100000000; at++) {
        value = (value < 0 ? 0 : value) * 10 + (*at - '0');
    }
    return value;
}

static void append_string(qkv_text *out, const char *text) {
    for (; *text; text++) {
        if (strchr("()\\", *text)) qkv_text_puts(out, "\\");
        qkv_text_append(out, text, 1);
    }
}

int qkv_recipe_pdf_put(const char *bytes, size_t n, const char *recipe, qkv_text *out,
                       qkv_error *err) {
    const char *trailer = qkv_find_last(bytes, n, "trailer");
    const size_t rest = trailer ? (size_t)(bytes + n - trailer) : 0;
    const long size = trailer ? number_behind(trailer, rest, "/Size") : -1;
    const long root = trailer ? number_behind(trailer, rest, "/Root") : -1;
    const long table = trailer ? number_behind(trailer, rest, "startxref") : -1;
    if (size < 0 || root < 0 || table < 0) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "the PDF is not one that qkv wrote: it has no plain table of its objects");
    }
    qkv_text_append(out, bytes, n);
    qkv_text_puts(out, "\n");
    const size_t object = out->length;
    qkv_text_printf(out, "%ld 0 obj\n<< /Producer (qkv)\n   " KEYWORDS "(", size);
    append_string(out, recipe);
    qkv_text_puts(out, ")\n>>\nendobj\n");
    const size_t xref = out->length;
    qkv_text_printf(
        out,
        "xref\n%ld 1\n%010zu 00000 n \ntrailer\n<< /Size %ld\n   /Root %ld 0 R\n   /Info "
        "%ld 0 R\n   /Prev %ld\n>>\nstartxref\n%zu\n%%%%EOF\n",
        size, object, size + 1, root, size, table, xref);
    return QKV_OK;
}
