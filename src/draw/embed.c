/* Recipes and resolution put into finished PNG and SVG files in memory. See embed.h. */
#include "draw/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- PNG ---- */

enum { SIGNATURE = 8, CHUNK_FRAME = 12, IHDR_SIZE = 13 + CHUNK_FRAME };

uint32_t qkv_png_crc(const char *bytes, size_t length) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return crc ^ 0xffffffff;
}

static void append_u32(qkv_text *out, uint32_t value) {
    const char bytes[4] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                           (char)value};
    qkv_text_append(out, bytes, 4);
}

/* A chunk is its length, type, data, and the CRC of type and data. */
static void append_chunk(qkv_text *out, const qkv_text *type_and_data) {
    append_u32(out, (uint32_t)type_and_data->length - 4);
    qkv_text_append(out, type_and_data->data, type_and_data->length);
    append_u32(out, qkv_png_crc(type_and_data->data, type_and_data->length));
}

static void append_resolution(qkv_text *out, double dpi) {
    qkv_text chunk = {0};
    const uint32_t per_metre = (uint32_t)lround(dpi / 0.0254);
    qkv_text_puts(&chunk, "pHYs");
    append_u32(&chunk, per_metre);
    append_u32(&chunk, per_metre);
    qkv_text_append(&chunk, "\1", 1); /* the unit is the metre */
    if (!chunk.failed) append_chunk(out, &chunk);
    out->failed |= chunk.failed;
    qkv_text_release(&chunk);
}

static void append_recipe(qkv_text *out, const char *recipe) {
    static const char head[] = "iTXtqkv-recipe\0" /* keyword */
                               "\0\0"             /* not compressed */
                               "\0"               /* no language */
                               ""; /* no translated keyword: its NUL is the string's */
    qkv_text chunk = {0};
    qkv_text_append(&chunk, head, sizeof head);
    qkv_text_puts(&chunk, recipe);
    if (!chunk.failed) append_chunk(out, &chunk);
    out->failed |= chunk.failed;
    qkv_text_release(&chunk);
}

static int replace(qkv_text *file, qkv_text *made, qkv_error *err) {
    const int failed = made->failed;
    qkv_text *loser = failed ? made : file;
    qkv_text_release(loser);
    if (failed) return qkv_fail_memory(err);
    *file = *made;
    return QKV_OK;
}

int qkv_embed_png(qkv_text *file, const char *recipe, double dpi, qkv_error *err) {
    const size_t start = SIGNATURE + IHDR_SIZE;
    if (file->length < start + CHUNK_FRAME) {
        return qkv_fail(err, QKV_ERR_IO, "the PNG that cairo wrote is incomplete");
    }
    const size_t end = file->length - CHUNK_FRAME; /* IEND is empty */
    qkv_text made = {0};
    qkv_text_append(&made, file->data, start);
    append_resolution(&made, dpi);
    qkv_text_append(&made, file->data + start, end - start);
    if (recipe) append_recipe(&made, recipe);
    qkv_text_append(&made, file->data + end, CHUNK_FRAME);
    return replace(file, &made, err);
}

/* ---- SVG ---- */

static void append_escaped(qkv_text *out, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&':
            qkv_text_puts(out, "&amp;");
            break;
        case '<':
            qkv_text_puts(out, "&lt;");
            break;
        case '>':
            qkv_text_puts(out, "&gt;");
            break;
        default:
            qkv_text_append(out, text, 1);
        }
    }
}

/* cairo names surfaces and images after a counter of the whole process: "image27". Their numbers
 * here become the order in which they first appear. */
typedef struct renumbering {
    unsigned long *seen;
    size_t n;
    size_t capacity;
} renumbering;

static size_t new_number(renumbering *names, unsigned long number, int *failed) {
    for (size_t i = 0; i < names->n; i++) {
        if (names->seen[i] == number) return i;
    }
    if (names->n == names->capacity) {
        const size_t wanted = names->capacity ? 2 * names->capacity : 16;
        unsigned long *moved = realloc(names->seen, wanted * sizeof *moved);
        if (!moved) return *failed = 1, 0;
        names->seen = moved;
        names->capacity = wanted;
    }
    names->seen[names->n] = number;
    return names->n++;
}

/* The number in the next such name at or after `text`, in an id or in a reference to one. The quote
 * or # before it cannot be part of image data. */
static const char *next_number(const char *text) {
    static const char *const names[] = {"\"image", "#image", "\"surface", "#surface"};
    const char *best = NULL;
    size_t length = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(text, names[i]);
        if (!found || (best && found > best)) continue;
        best = found;
        length = strlen(names[i]);
    }
    return best ? best + length : NULL;
}

static void append_renumbered(qkv_text *out, const char *svg) {
    renumbering names = {0};
    for (const char *found; (found = next_number(svg));) {
        char *end;
        qkv_text_append(out, svg, (size_t)(found - svg));
        const unsigned long number = strtoul(found, &end, 10);
        if (end != found) qkv_text_printf(out, "%zu", new_number(&names, number, &out->failed));
        svg = end;
    }
    qkv_text_puts(out, svg);
    free(names.seen);
}

int qkv_embed_svg(qkv_text *file, const char *recipe, qkv_error *err) {
    const char *open = file->data ? strstr(file->data, "<svg") : NULL;
    const char *close = open ? strchr(open, '>') : NULL;
    if (!close) return qkv_fail(err, QKV_ERR_IO, "the SVG that cairo wrote is incomplete");
    qkv_text made = {0};
    qkv_text_append(&made, file->data, (size_t)(close + 1 - file->data));
    if (recipe) {
        qkv_text_puts(&made, "\n<metadata id=\"qkv-recipe\">");
        append_escaped(&made, recipe);
        qkv_text_puts(&made, "</metadata>");
    }
    append_renumbered(&made, close + 1);
    return replace(file, &made, err);
}
