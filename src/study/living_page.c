/*
 * A page in one file that asks for nothing else: style, scripts and data are inside, and a policy says
 * that nothing may be fetched and nothing run but this script. It works from disk, without a network,
 * and as the srcdoc of a frame.
 *
 * Data stand in a block of JSON in which < > and & are escapes, so that no text of a prompt can end
 * it. The script puts texts into the page as text alone.
 */
#include <stdlib.h>
#include <string.h>

#include "page/page_bundle.h"
#include "page/page_files.h"
#include "study/living.h"
#include "study/recipe_file.h"

/* ---- texts ---- */

void qkv_html_put_escaped(qkv_text *text, const char *bytes, size_t length) {
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, bytes, length);
    for (const char *at = visible.length ? visible.data : ""; *at;) {
        const size_t plain = strcspn(at, "&<>\"");
        qkv_text_append(text, at, plain);
        at += plain;
        if (*at == '&') qkv_text_puts(text, "&amp;");
        if (*at == '<') qkv_text_puts(text, "&lt;");
        if (*at == '>') qkv_text_puts(text, "&gt;");
        if (*at == '"') qkv_text_puts(text, "&quot;");
        at += *at != '\0';
    }
    text->failed |= visible.failed;
    qkv_text_release(&visible);
}

void qkv_html_put(qkv_text *text, const char *string) {
    qkv_html_put_escaped(text, string, strlen(string));
}

void qkv_html_put_title(qkv_text *text, const char *title) {
    int italic = 0;
    for (const char *at = title; *at; at++) {
        if (*at == '\\' && at[1] == '*') {
            at++;
            qkv_text_puts(text, "*");
        } else if (*at == '*') {
            italic = !italic;
            qkv_text_puts(text, italic ? "<em>" : "</em>");
        } else if (*at == '-') {
            qkv_text_puts(text, "\xe2\x80\x91"); /* one that lines are not broken after: 1e-10 */
        } else {
            const size_t n = 1 + strcspn(at + 1, "*\\-");
            qkv_html_put_escaped(text, at, n);
            at += n - 1;
        }
    }
    if (italic) qkv_text_puts(text, "</em>");
}

/* For where nothing can be in italics: without the marks of it. */
static void put_plain_title(qkv_text *text, const char *title) {
    for (const char *at = title; *at;) {
        if (*at == '*' || (*at == '\\' && at[1] == '*')) {
            if (*at == '\\') qkv_text_puts(text, "*");
            at += *at == '\\' ? 2 : 1;
            continue;
        }
        const size_t n = 1 + strcspn(at + 1, "*\\");
        qkv_html_put_escaped(text, at, n);
        at += n;
    }
}

/* ---- what the page is made of ---- */

static int add_style(qkv_text *out, qkv_error *err) {
    static const char *const names[] = {"style.css", "offline.css"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *bytes = NULL;
        size_t n = 0;
        if (!qkv_page_file(names[i], &bytes, &n)) {
            return qkv_fail(err, QKV_ERR_FORMAT, "the page has no file %s", names[i]);
        }
        qkv_text_append(out, bytes, n);
    }
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

static void put_policy(qkv_text *out, const char *script, const char *style) {
    qkv_text_printf(out,
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; "
                    "form-action 'none'\">\n",
                    script, style);
}

static int put_data(qkv_text *out, const json_t *data, qkv_error *err) {
    qkv_text json = {0};
    qkv_json_append_value(&json, data);
    if (json.failed) return qkv_text_release(&json), qkv_fail_memory(err);
    qkv_text_puts(out, "<script type=\"application/json\" id=\"qkv-data\">");
    for (const char *at = json.data; *at;) {
        const size_t plain = strcspn(at, "<>&");
        qkv_text_append(out, at, plain);
        at += plain;
        if (*at) qkv_text_printf(out, "\\u%04x", (unsigned)(unsigned char)*at++);
    }
    qkv_text_puts(out, "</script>\n");
    qkv_text_release(&json);
    return QKV_OK;
}

typedef struct page_parts {
    qkv_text script, style, script_hash, style_hash;
} page_parts;

static int make_parts(page_parts *parts, qkv_error *err) {
    qkv_text_puts(&parts->script, "\n");
    int status = qkv_page_bundle("offline.js", &parts->script, err);
    if (status == QKV_OK) status = add_style(&parts->style, err);
    if (status == QKV_OK && (parts->script.failed || parts->style.failed))
        status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        status = qkv_page_policy_hash(parts->script.data, parts->script.length, &parts->script_hash,
                                      err);
    }
    if (status == QKV_OK) {
        status =
            qkv_page_policy_hash(parts->style.data, parts->style.length, &parts->style_hash, err);
    }
    return status;
}

static void release_parts(page_parts *parts) {
    qkv_text_release(&parts->script);
    qkv_text_release(&parts->style);
    qkv_text_release(&parts->script_hash);
    qkv_text_release(&parts->style_hash);
}

static int put_page(const living_page *page, const page_parts *parts, qkv_text *out,
                    qkv_error *err) {
    qkv_text_puts(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    put_policy(out, parts->script_hash.data, parts->style_hash.data);
    qkv_text_puts(out, "<title>");
    put_plain_title(out, page->title);
    qkv_text_puts(out, "</title>\n<style>");
    qkv_text_append(out, parts->style.data, parts->style.length);
    qkv_text_puts(out, "</style></head>\n<body class=\"offline\"><main>\n<div id=\"living\">"
                       "<noscript>This page shows its figure with a script, which is switched off "
                       "here. It is inside the file; nothing is fetched.</noscript></div>\n");
    if (page->body) qkv_text_puts(out, page->body);
    qkv_text_puts(out, "</main>\n");
    const int status = put_data(out, page->data, err);
    qkv_text_puts(out, "<script type=\"module\">");
    qkv_text_append(out, parts->script.data, parts->script.length);
    qkv_text_puts(out, "</script>\n");
    if (page->recipe) qkv_recipe_file_append_html(out, page->recipe);
    qkv_text_puts(out, "</body></html>\n");
    return status == QKV_OK && out->failed ? qkv_fail_memory(err) : status;
}

int qkv_living_page(const living_page *page, qkv_text *out, qkv_error *err) {
    page_parts parts = {0};
    int status = make_parts(&parts, err);
    if (status == QKV_OK) status = put_page(page, &parts, out, err);
    release_parts(&parts);
    return status;
}
