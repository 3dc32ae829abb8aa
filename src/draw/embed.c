/* Recipes put into finished SVG files in memory. */
#include "draw/page.h"

#include <stdlib.h>
#include <string.h>

void qkv_xml_append(qkv_text *out, const char *text, size_t length) {
    for (; length; text++, length--) {
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

static int replace(qkv_text *file, qkv_text *made, qkv_error *err) {
    const int failed = made->failed;
    qkv_text *loser = failed ? made : file;
    qkv_text_release(loser);
    if (failed) return qkv_fail_memory(err);
    *file = *made;
    return QKV_OK;
}

/* The end tag, where nothing but spaces stands after it. */
static const char END_TAG[] = "</svg>";

/* After all that cairo wrote. Names in a user's text are not renumbered, so it is added last. */
static int append_elements(qkv_text *made, const char *elements) {
    const size_t tag = sizeof END_TAG - 1;
    size_t end = made->length;
    while (end > tag && strncmp(made->data + end - tag, END_TAG, tag) != 0) end--;
    if (end <= tag) return 0;
    made->length = end - tag;
    qkv_text_printf(made, "<g id=\"text\">\n");
    qkv_text_puts(made, elements);
    qkv_text_printf(made, "</g>\n%s\n", END_TAG);
    return 1;
}

int qkv_embed_svg(qkv_text *file, const char *recipe, const char *elements, qkv_error *err) {
    const char *open = file->data ? strstr(file->data, "<svg") : NULL;
    const char *close = open ? strchr(open, '>') : NULL;
    if (!close) return qkv_fail(err, QKV_ERR_IO, "the SVG that cairo wrote is incomplete");
    qkv_text made = {0};
    qkv_text_append(&made, file->data, (size_t)(close + 1 - file->data));
    if (recipe) {
        qkv_text_puts(&made, "\n<metadata id=\"qkv-recipe\">");
        qkv_xml_append(&made, recipe, strlen(recipe));
        qkv_text_puts(&made, "</metadata>");
    }
    append_renumbered(&made, close + 1);
    if (elements && !made.failed && !append_elements(&made, elements)) {
        qkv_text_release(&made);
        return qkv_fail(err, QKV_ERR_IO, "the SVG that cairo wrote is incomplete");
    }
    return replace(file, &made, err);
}
