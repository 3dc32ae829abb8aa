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

#include "draw/draw.h"
#include "page/page_bundle.h"
#include "page/page_files.h"
#include "study/html_page.h"
#include "study/recipe_file.h"

/* ---- texts ---- */

/* Plain text within HTML; one line. */
static void put_escaped(qkv_text *text, const char *bytes, size_t length) {
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

/* For where nothing can be in italics: without the marks of it. */
static void put_plain_title(qkv_text *text, const char *title) {
    for (const char *at = title; *at;) {
        if (*at == '*' || (*at == '\\' && at[1] == '*')) {
            if (*at == '\\') qkv_text_puts(text, "*");
            at += *at == '\\' ? 2 : 1;
            continue;
        }
        const size_t n = 1 + strcspn(at + 1, "*\\");
        put_escaped(text, at, n);
        at += n;
    }
}

/* ---- data ---- */

json_t *qkv_html_texts(const char *const *texts, size_t n) {
    if (!texts) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_text(texts[i] ? texts[i] : ""));
    return list;
}

json_t *qkv_html_integers(const int32_t *numbers, size_t n) {
    if (!numbers) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, json_integer(numbers[i]));
    return list;
}

/* Colours of maps: "#rrggbb#rrggbb...", `steps` + 1 of them. */
static json_t *describe_colors(qkv_colormap chosen) {
    json_t *all = json_object();
    for (int map = QKV_COLORMAP_COOLWARM; map <= QKV_COLORMAP_GREY; map++) {
        /* As fine as the figures have it, where the page uses it: then colours are the same. */
        const int steps = map == QKV_COLORMAP_COOLWARM || map == (int)chosen ? 1024 : 128;
        qkv_grid_style style = QKV_GRID_STYLE_INIT;
        qkv_text colors = {0};
        style.colormap = (qkv_colormap)map;
        for (int i = 0; i <= steps; i++) {
            qkv_text_printf(&colors, "#%06x", (unsigned)qkv_grid_color(&style, (double)i / steps));
        }
        qkv_json_put(all, qkv_colormap_name(style.colormap),
                     colors.failed ? NULL : json_string(colors.data));
        qkv_text_release(&colors);
    }
    return all;
}

static json_t *describe_page(const html_page *page) {
    json_t *attention = page->attention ? json_incref((json_t *)page->attention) : json_null();
    return json_pack("{s:i, s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "format", 2, "title",
                     qkv_json_text(page->title ? page->title : ""), "small_print",
                     qkv_json_text(page->small_print ? page->small_print : ""), "about",
                     qkv_json_text(page->about ? page->about : ""), "options",
                     page->options ? page->options : "", "id", page->id, "colormap",
                     qkv_colormap_name(page->colormap), "colors", describe_colors(page->colormap),
                     "attention", attention, "parts", json_incref((json_t *)page->parts));
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

static int put_data(qkv_text *out, const html_page *page, qkv_error *err) {
    qkv_text json = {0};
    json_t *data = describe_page(page);
    if (!data) return qkv_fail_memory(err);
    qkv_json_append_value(&json, data);
    json_decref(data);
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

static int put_page(const html_page *page, const page_parts *parts, qkv_text *out, qkv_error *err) {
    qkv_text_puts(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    put_policy(out, parts->script_hash.data, parts->style_hash.data);
    qkv_text_puts(out, "<title>");
    put_plain_title(out, page->title && page->title[0] ? page->title : page->name);
    qkv_text_puts(out, "</title>\n<style>");
    qkv_text_append(out, parts->style.data, parts->style.length);
    qkv_text_puts(out, "</style></head>\n<body class=\"offline\"><main>\n<div id=\"page\">"
                       "<noscript>This page shows its numbers with a script, which is switched off "
                       "here. It is inside the file; nothing is fetched.</noscript></div>\n");
    qkv_text_puts(out, "</main>\n");
    const int status = put_data(out, page, err);
    qkv_text_puts(out, "<script type=\"module\">");
    qkv_text_append(out, parts->script.data, parts->script.length);
    qkv_text_puts(out, "</script>\n");
    if (page->recipe) qkv_recipe_file_append_html(out, page->recipe);
    qkv_text_puts(out, "</body></html>\n");
    return status == QKV_OK && out->failed ? qkv_fail_memory(err) : status;
}

int qkv_html_page_write(const html_page *page, qkv_text *out, qkv_error *err) {
    page_parts parts = {0};
    int status = make_parts(&parts, err);
    if (status == QKV_OK) status = put_page(page, &parts, out, err);
    release_parts(&parts);
    return status;
}
