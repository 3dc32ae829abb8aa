/* Recipes in files. See recipe_file.h. */
#include "study/recipe_file.h"

#include <stdint.h>
#include <string.h>

#include "base/crc32.h"
#include "base/json.h"

/* ---- bytes ---- */

const char *qkv_find_first(const char *bytes, size_t n, const char *text) {
    const size_t length = strlen(text);
    const char *end = bytes + n;
    for (const char *at = bytes; (size_t)(end - at) >= length; at++) {
        at = memchr(at, text[0], (size_t)(end - at) - length + 1);
        if (!at) return NULL;
        if (memcmp(at, text, length) == 0) return at;
    }
    return NULL;
}

const char *qkv_find_last(const char *bytes, size_t n, const char *text) {
    const size_t length = strlen(text);
    for (size_t i = n >= length ? n - length + 1 : 0; i-- > 0;) {
        if (bytes[i] == text[0] && memcmp(bytes + i, text, length) == 0) return bytes + i;
    }
    return NULL;
}

int qkv_recipe_file_take(qkv_text *recipe, const char *bytes, size_t n, qkv_error *err) {
    if (n > RECIPE_FILE_MOST) {
        return qkv_fail(err, QKV_ERR_FORMAT, "its recipe has %zu bytes, and the most is %d", n,
                        RECIPE_FILE_MOST);
    }
    if (qkv_json_cost(bytes, n) > RECIPE_FILE_MOST_COST) {
        return qkv_fail(err, QKV_ERR_FORMAT, "its recipe has more parts than one of qkv can have");
    }
    qkv_text_append(recipe, bytes, n);
    return recipe->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int starts_with(const char *bytes, size_t n, const char *text) {
    return n >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

/* ---- PNG ---- */

#define PNG_MAGIC "\x89PNG\r\n\x1a\n"
#define PNG_KEY "qkv-recipe"

typedef struct png_chunk {
    const char *begin; /* of its length */
    const char *data;
    size_t length, whole; /* of the data, of all */
} png_chunk;

static uint32_t big_endian(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The chunk at *at, after which it moves: 1; 0 at the end or where it is cut off. */
static int next_chunk(const char *bytes, size_t n, size_t *at, png_chunk *chunk) {
    if (n - *at < 12) return 0;
    chunk->begin = bytes + *at;
    chunk->data = chunk->begin + 8;
    chunk->length = big_endian(chunk->begin);
    chunk->whole = chunk->length + 12;
    if (chunk->whole > n - *at) return 0;
    *at += chunk->whole;
    return 1;
}

static int is_type(const png_chunk *chunk, const char *type) {
    return memcmp(chunk->begin + 4, type, 4) == 0;
}

static int is_recipe_chunk(const png_chunk *chunk) {
    const int is_text = is_type(chunk, "iTXt") || is_type(chunk, "zTXt") || is_type(chunk, "tEXt");
    return is_text && chunk->length >= sizeof PNG_KEY &&
           memcmp(chunk->data, PNG_KEY, sizeof PNG_KEY) == 0;
}

/* KEY NUL compressed NUL-or-method LANGUAGE NUL TRANSLATED NUL TEXT */
static int take_itxt(const png_chunk *chunk, qkv_text *recipe, qkv_error *err) {
    const char *at = chunk->data + sizeof PNG_KEY, *end = chunk->data + chunk->length;
    if (end - at < 2 || at[0] != 0) {
        return qkv_fail(err, QKV_ERR_FORMAT, "its recipe is compressed, which qkv does not do");
    }
    at += 2;
    for (int i = 0; i < 2; i++) {
        const char *nul = memchr(at, 0, (size_t)(end - at));
        if (!nul) return qkv_fail(err, QKV_ERR_FORMAT, "its iTXt chunk is malformed");
        at = nul + 1;
    }
    return qkv_recipe_file_take(recipe, at, (size_t)(end - at), err);
}

static int find_png(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    png_chunk chunk;
    for (size_t at = sizeof PNG_MAGIC - 1; next_chunk(bytes, n, &at, &chunk);) {
        if (!is_recipe_chunk(&chunk)) continue;
        if (is_type(&chunk, "iTXt")) return take_itxt(&chunk, recipe, err);
        if (is_type(&chunk, "tEXt")) {
            return qkv_recipe_file_take(recipe, chunk.data + sizeof PNG_KEY,
                                        chunk.length - sizeof PNG_KEY, err);
        }
        return qkv_fail(err, QKV_ERR_FORMAT, "its recipe is compressed, which qkv does not do");
    }
    return QKV_OK;
}

static void append_big_endian(qkv_text *out, uint32_t number) {
    const char bytes[4] = {(char)(number >> 24), (char)(number >> 16), (char)(number >> 8),
                           (char)number};
    qkv_text_append(out, bytes, sizeof bytes);
}

static void append_chunk(qkv_text *out, const char *recipe) {
    static const char head[] = "iTXt" PNG_KEY "\0\0\0\0"; /* and its NUL: five after the key */
    append_big_endian(out, (uint32_t)(sizeof head - 4 + strlen(recipe)));
    const size_t begin = out->length;
    qkv_text_append(out, head, sizeof head);
    qkv_text_puts(out, recipe);
    if (!out->failed) append_big_endian(out, qkv_crc32(0, out->data + begin, out->length - begin));
}

static int put_png(const char *bytes, size_t n, const char *recipe, qkv_text *out, qkv_error *err) {
    png_chunk chunk;
    qkv_text_append(out, bytes, sizeof PNG_MAGIC - 1);
    for (size_t at = sizeof PNG_MAGIC - 1; next_chunk(bytes, n, &at, &chunk);) {
        if (is_type(&chunk, "IEND")) {
            append_chunk(out, recipe);
            qkv_text_append(out, chunk.begin, chunk.whole);
            return QKV_OK;
        }
        if (!is_recipe_chunk(&chunk)) qkv_text_append(out, chunk.begin, chunk.whole);
    }
    return qkv_fail(err, QKV_ERR_FORMAT, "the PNG is cut off");
}

/* ---- between two tags ---- */

typedef struct tags {
    const char *open, *close;
} tags;

static const tags SVG = {"<metadata id=\"qkv-recipe\">", "</metadata>"};
static const tags HTML = {"<script type=\"application/json\" id=\"qkv-recipe\">", "</script>"};
static const tags MARKDOWN = {"<!-- qkv-recipe ", " -->"};

/* What stands between them; NULL: nothing does. */
static const char *between(const tags *t, const char *bytes, size_t n, size_t *length) {
    const char *open = qkv_find_last(bytes, n, t->open);
    if (!open) return NULL;
    const char *begin = open + strlen(t->open);
    const char *end = qkv_find_first(begin, (size_t)(bytes + n - begin), t->close);
    *length = end ? (size_t)(end - begin) : 0;
    return end ? begin : NULL;
}

static void append_unescaped(qkv_text *out, const char *bytes, size_t n) {
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        while (k < 5 && !starts_with(bytes + i, n - i, names[k])) k++;
        qkv_text_append(out, k < 5 ? &"&<>\"'"[k] : bytes + i, 1);
        i += k < 5 ? strlen(names[k]) : 1;
    }
}

static int find_svg(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    size_t length = 0;
    const char *found = between(&SVG, bytes, n, &length);
    if (!found) return QKV_OK;
    qkv_text whole = {0};
    append_unescaped(&whole, found, length);
    const int status = whole.failed ? qkv_fail_memory(err)
                                    : qkv_recipe_file_take(recipe, whole.data, whole.length, err);
    qkv_text_release(&whole);
    return status;
}

static int find_html(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    size_t length = 0;
    const char *found = between(&HTML, bytes, n, &length);
    return found ? qkv_recipe_file_take(recipe, found, length, err) : QKV_OK;
}

static int find_markdown(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    size_t length = 0;
    const char *found = between(&MARKDOWN, bytes, n, &length);
    return found ? qkv_recipe_file_take(recipe, found, length, err) : QKV_OK;
}

/* Each of these bytes becomes the JSON escape of itself: in JSON they stand in strings alone. */
static void append_guarded(qkv_text *out, const char *recipe, const char *bytes) {
    for (; *recipe; recipe++) {
        if (strchr(bytes, *recipe))
            qkv_text_printf(out, "\\u%04x", (unsigned)(unsigned char)*recipe);
        else
            qkv_text_append(out, recipe, 1);
    }
}

void qkv_recipe_file_append_html(qkv_text *out, const char *recipe) {
    qkv_text_puts(out, HTML.open);
    append_guarded(out, recipe, "<>&");
    qkv_text_puts(out, HTML.close);
    qkv_text_puts(out, "\n");
}

/* Minus signs of numbers stay: there is never more than one. */
static void append_comment(qkv_text *out, const char *recipe) {
    for (; *recipe; recipe++) {
        const int guarded = *recipe == '>' || (recipe[0] == '-' && recipe[1] == '-');
        if (guarded)
            qkv_text_printf(out, "\\u%04x", (unsigned)(unsigned char)*recipe);
        else
            qkv_text_append(out, recipe, 1);
    }
}

void qkv_recipe_file_append_markdown(qkv_text *out, const char *recipe) {
    qkv_text_puts(out, MARKDOWN.open);
    append_comment(out, recipe);
    qkv_text_puts(out, MARKDOWN.close);
    qkv_text_puts(out, "\n");
}

static void append_svg(qkv_text *out, const char *recipe) {
    qkv_text_puts(out, SVG.open);
    append_guarded(out, recipe, "<>&");
    qkv_text_puts(out, SVG.close);
}

/* The file without the element that it has, and with a new one at `place`. */
static int put_between(const tags *t, const char *bytes, size_t n, const char *place,
                       void (*append)(qkv_text *, const char *), const char *recipe,
                       qkv_text *out) {
    size_t length = 0;
    const char *end = bytes + n, *old = between(t, bytes, n, &length);
    const char *from = old ? old - strlen(t->open) : place;
    const char *to = old ? old + length + strlen(t->close) : place;
    if (old && to < end && *to == '\n' && append != append_svg) to++;
    qkv_text_append(out, bytes, (size_t)(from - bytes));
    append(out, recipe);
    qkv_text_append(out, to, (size_t)(end - to));
    return QKV_OK;
}

static int put_svg(const char *bytes, size_t n, const char *recipe, qkv_text *out, qkv_error *err) {
    const char *open = qkv_find_first(bytes, n, "<svg");
    const char *close = open ? memchr(open, '>', (size_t)(bytes + n - open)) : NULL;
    if (!close) return qkv_fail(err, QKV_ERR_FORMAT, "the SVG is cut off");
    return put_between(&SVG, bytes, n, close + 1, append_svg, recipe, out);
}

static int put_html(const char *bytes, size_t n, const char *recipe, qkv_text *out,
                    qkv_error *err) {
    const char *body = qkv_find_last(bytes, n, "</body>");
    if (!body) return qkv_fail(err, QKV_ERR_FORMAT, "the page has no end");
    return put_between(&HTML, bytes, n, body, qkv_recipe_file_append_html, recipe, out);
}

static int put_markdown(const char *bytes, size_t n, const char *recipe, qkv_text *out,
                        qkv_error *err) {
    (void)err;
    return put_between(&MARKDOWN, bytes, n, bytes + n, qkv_recipe_file_append_markdown, recipe,
                       out);
}

/* ---- JSON ---- */

enum { MOST_JSON = 32 << 20, MOST_JSON_COST = 256 << 20 }; /* of a whole report, or of a header */

static json_t *load(const char *bytes, size_t n) {
    return qkv_json_parse(bytes, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

static int check_size(const char *bytes, size_t n, qkv_error *err) {
    if (n > MOST_JSON)
        return qkv_fail(err, QKV_ERR_FORMAT, "it has %zu bytes of JSON, and the most is %d", n,
                        MOST_JSON);
    if (qkv_json_cost(bytes, n) > MOST_JSON_COST)
        return qkv_fail(err, QKV_ERR_FORMAT, "its JSON has too many parts");
    return QKV_OK;
}

static int find_json(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    int status = check_size(bytes, n, err);
    if (status != QKV_OK) return status;
    json_t *tree = load(bytes, n);
    if (!tree) return qkv_fail(err, QKV_ERR_FORMAT, "it is not JSON");
    const json_t *found = json_object_get(tree, "recipe");
    if (!json_is_object(found) && json_object_get(tree, "format")) found = tree;
    if (json_is_object(found)) {
        qkv_text text = {0};
        qkv_json_append_value(&text, found);
        status = text.failed ? qkv_fail_memory(err)
                             : qkv_recipe_file_take(recipe, text.data, text.length, err);
        qkv_text_release(&text);
    }
    json_decref(tree);
    return status;
}

static uint64_t header_length(const char *bytes) {
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | (unsigned char)bytes[i];
    return length;
}

static int is_safetensors(const char *bytes, size_t n) {
    return n > 9 && bytes[8] == '{' && header_length(bytes) <= n - 8;
}

static int find_safetensors(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err) {
    const size_t length = (size_t)header_length(bytes);
    (void)n;
    int status = check_size(bytes + 8, length, err);
    if (status != QKV_OK) return status;
    json_t *tree = load(bytes + 8, length);
    const json_t *metadata = json_object_get(tree, "__metadata__");
    const json_t *found = json_object_get(metadata, "recipe");
    if (!tree) status = qkv_fail(err, QKV_ERR_FORMAT, "its header is not JSON");
    if (json_is_string(found)) {
        status =
            qkv_recipe_file_take(recipe, json_string_value(found), json_string_length(found), err);
    }
    json_decref(tree);
    return status;
}

/* ---- which is which ---- */

static int is_png(const char *bytes, size_t n) {
    return starts_with(bytes, n, PNG_MAGIC);
}

static int is_pdf(const char *bytes, size_t n) {
    return starts_with(bytes, n, "%PDF-");
}

static int is_html(const char *bytes, size_t n) {
    return starts_with(bytes, n, "<!DOCTYPE html") || starts_with(bytes, n, "<html");
}

static int is_svg(const char *bytes, size_t n) {
    return (starts_with(bytes, n, "<?xml") || starts_with(bytes, n, "<svg")) &&
           qkv_find_first(bytes, n < 4096 ? n : 4096, "<svg");
}

static int is_json(const char *bytes, size_t n) {
    size_t i = 0;
    while (i < n && qkv_is_space(bytes[i])) i++;
    return i < n && bytes[i] == '{';
}

static int is_markdown(const char *bytes, size_t n) {
    return starts_with(bytes, n, "# ");
}

typedef struct file_format {
    const char *format;
    int (*is)(const char *bytes, size_t n);
    int (*find)(const char *bytes, size_t n, qkv_text *recipe, qkv_error *err);
    int (*put)(const char *bytes, size_t n, const char *recipe, qkv_text *out, qkv_error *err);
} file_format;

static const file_format formats[] = {
    {"png", is_png, find_png, put_png},
    {"pdf", is_pdf, qkv_recipe_pdf_find, qkv_recipe_pdf_put},
    {"html", is_html, find_html, put_html},
    {"svg", is_svg, find_svg, put_svg},
    {"md", is_markdown, find_markdown, put_markdown},
    {"safetensors", is_safetensors, find_safetensors, NULL},
    {"json", is_json, find_json, NULL},
};

static const file_format *find_format(const char *bytes, size_t n) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].is(bytes, n)) return &formats[i];
    }
    return NULL;
}

static int fail_kind(const char *name, qkv_error *err) {
    return qkv_fail(
        err, QKV_ERR_FORMAT,
        "%s is not a file that qkv writes figures to: PNG, SVG, PDF, HTML, Markdown, JSON "
        "or safetensors",
        name);
}

/* The file's name before what is wrong with it. */
static int fail_named(int status, const char *name, qkv_error *err) {
    qkv_error inner = err ? *err : (qkv_error){0};
    return status == QKV_ERR_MEMORY ? status : qkv_fail(err, status, "%s: %s", name, inner.message);
}

int qkv_recipe_file_read(const char *bytes, size_t n, const char *name, qkv_text *recipe,
                         const char **format, qkv_error *err) {
    const file_format *found = find_format(bytes, n);
    if (!found) return fail_kind(name, err);
    *format = found->format;
    const int status = found->find(bytes, n, recipe, err);
    if (status != QKV_OK) return fail_named(status, name, err);
    if (recipe->failed) return qkv_fail_memory(err);
    if (recipe->length) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "%s carries no recipe: it was made without, or lost it; 'qkv recipe insert' "
                    "puts one back",
                    name);
}

int qkv_recipe_file_write(const char *bytes, size_t n, const char *name, const char *recipe,
                          qkv_text *out, qkv_error *err) {
    const file_format *found = find_format(bytes, n);
    if (!found) return fail_kind(name, err);
    if (!found->put) {
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: recipes are not put into %s files", name,
                        found->format);
    }
    const int status = found->put(bytes, n, recipe, out, err);
    if (status != QKV_OK) return fail_named(status, name, err);
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}
