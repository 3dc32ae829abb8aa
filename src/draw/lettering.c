/* Text through pango: fonts, titles with italics, labels of one line. See lettering.h. */
#include "draw/lettering.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The first family carries nearly every alphabet; pango finds fonts for the rest by itself. */
static const char FAMILY[] = "DejaVu Sans, sans-serif";
static const char BLANK[] = "\xc2\xb7"; /* middle dot: a space at a token's edge, made visible */

int qkv_lettering_open(qkv_lettering *lettering, qkv_error *err) {
    *lettering = (qkv_lettering){0};
    lettering->fonts = pango_cairo_font_map_new();
    if (!lettering->fonts) return qkv_fail_memory(err);
    /* 72 dots per inch: one unit of pango is one point of ours. */
    pango_cairo_font_map_set_resolution(PANGO_CAIRO_FONT_MAP(lettering->fonts), 72);
    lettering->context = pango_font_map_create_context(lettering->fonts);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(lettering->context, options);
    const int failed = cairo_font_options_status(options) != CAIRO_STATUS_SUCCESS;
    cairo_font_options_destroy(options);
    if (failed) return qkv_fail_memory(err);
    pango_context_set_round_glyph_positions(lettering->context, FALSE);
    pango_context_set_language(lettering->context, pango_language_from_string("en"));
    return QKV_OK;
}

int qkv_lettering_set_font(qkv_lettering *lettering, const char *family, qkv_error *err) {
    qkv_text families = {0};
    if (!family) return QKV_OK;
    const int status = qkv_lettering_find_font(lettering, family, err);
    if (status != QKV_OK) return status;
    qkv_text_printf(&families, "%s, %s", family, FAMILY);
    free(lettering->families);
    lettering->families = families.data;
    return families.failed ? qkv_fail_memory(err) : QKV_OK;
}

void qkv_lettering_close(qkv_lettering *lettering) {
    free(lettering->families);
    if (lettering->context) g_object_unref(lettering->context);
    if (lettering->fonts) g_object_unref(lettering->fonts);
    *lettering = (qkv_lettering){0};
}

double qkv_lettering_size(const qkv_lettering *lettering, double natural) {
    const double larger = fmax(natural / QKV_SMALLEST_LETTERS, 1);
    if (lettering->given > 0) return fmax(natural * lettering->given, lettering->least);
    return fmax(natural, lettering->least * sqrt(larger));
}

/* ---- reading the text ---- */

/* pango's time for a word that it must break grows with the square of its length, and people do not read
 * more than this. Characters. */
static const size_t MOST_CHARACTERS[] = {
    [QKV_WORDS_PLAIN] = 2000, [QKV_WORDS_TITLE] = 2000, [QKV_WORDS_LABEL] = 200};

/* A copy, cut with an ellipsis where it is longer; NULL when memory is short. */
static char *cut(const char *text, qkv_words_kind kind) {
    const size_t length = strlen(text), most = MOST_CHARACTERS[kind];
    const size_t kept = qkv_utf8_prefix(text, length, most);
    qkv_text out = {0};
    qkv_text_append(&out, text, kept);
    if (kept < length) qkv_text_puts(&out, QKV_ELLIPSIS);
    if (!out.failed) return out.data;
    qkv_text_release(&out);
    return NULL;
}

/* Appends with control characters made visible, but lines still broken where they were. */
static void append_lines(qkv_text *out, const char *text, size_t length) {
    while (length) {
        const char *end = memchr(text, '\n', length);
        const size_t line = end ? (size_t)(end - text) : length;
        qkv_text_append_visible(out, text, line);
        if (!end) return;
        qkv_text_puts(out, "\n");
        text += line + 1;
        length -= line + 1;
    }
}

/* Where the asterisk that closes an italic part stands; NULL when there is none. */
static const char *closing_asterisk(const char *text) {
    for (; *text; text++) {
        if (text[0] == '\\' && text[1] == '*') {
            text++;
        } else if (*text == '*') {
            return text;
        }
    }
    return NULL;
}

static void add_attribute(PangoAttrList *attributes, PangoAttribute *attribute, size_t start,
                          size_t end) {
    attribute->start_index = (guint)start;
    attribute->end_index = (guint)end;
    pango_attr_list_insert(attributes, attribute);
}

/* A title's text, its italic parts noted in `attributes` (which may be NULL). An asterisk without
 * a partner stands for itself. */
static void read_title(qkv_text *out, const char *title, PangoAttrList *attributes) {
    int italic = 0;
    size_t start = 0;
    for (const char *c = title; *c;) {
        if (c[0] == '\\' && c[1] == '*') {
            qkv_text_puts(out, "*");
            c += 2;
        } else if (*c == '*' && (italic || closing_asterisk(c + 1))) {
            if (italic && attributes) {
                add_attribute(attributes, pango_attr_style_new(PANGO_STYLE_ITALIC), start,
                              out->length);
            }
            italic = !italic;
            start = out->length;
            c++;
        } else {
            const size_t run = 1 + strcspn(c + 1, "\\*");
            append_lines(out, c, run);
            c += run;
        }
    }
}

/* Where the sign between both sides of a formula stands, with a space to each side; NULL: none. */
static const char *find_relation(const char *text, size_t *length) {
    static const char *const signs[] = {
        " = ", " < ", " > ", " \xe2\x89\xa4 ", " \xe2\x89\xa5 ", " \xe2\x89\x88 "};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *found = strstr(text, signs[i]);
        if (!found || (first && found > first)) continue;
        first = found;
        *length = strlen(signs[i]);
    }
    return first;
}

/* The words beside such a sign stay on its line. */
static void keep_formulas(const char *text, PangoAttrList *attributes) {
    size_t length = 0;
    for (const char *at = text, *sign; (sign = find_relation(at, &length)); at = sign + length) {
        const char *first = sign;
        while (first > text && !strchr(" \n", first[-1])) first--;
        const char *end = sign + length + strcspn(sign + length, " \n");
        add_attribute(attributes, pango_attr_allow_breaks_new(FALSE), (size_t)(first - text),
                      (size_t)(end - text));
    }
}

static void append_blanks(qkv_text *out, size_t n, PangoAttrList *attributes) {
    const size_t start = out->length;
    const guint16 grey = 0x8fff;
    for (size_t i = 0; i < n; i++) qkv_text_puts(out, BLANK);
    if (n) {
        add_attribute(attributes, pango_attr_foreground_new(grey, grey, grey), start, out->length);
    }
}

static void read_label(qkv_text *out, const char *label, PangoAttrList *attributes) {
    const size_t length = strlen(label);
    const size_t head = strspn(label, " ");
    size_t tail = 0;
    while (head + tail < length && label[length - 1 - tail] == ' ') tail++;
    append_blanks(out, head, attributes);
    qkv_text_append_visible(out, label + head, length - head - tail);
    append_blanks(out, tail, attributes);
}

char *qkv_title_plain(const char *title) {
    qkv_text text = {0};
    char *shown = cut(title, QKV_WORDS_TITLE);
    if (!shown) return NULL;
    qkv_text_puts(&text, "");
    read_title(&text, shown, NULL);
    free(shown);
    if (!text.failed) return text.data;
    qkv_text_release(&text);
    return NULL;
}

char *qkv_text_clean(const char *text) {
    qkv_text out = {0};
    qkv_text_puts(&out, "");
    for (size_t length = strlen(text), used; length; text += used, length -= used) {
        uint32_t code;
        used = qkv_utf8_decode(text, length, &code);
        const int control = (code < 0x20 && code != '\n' && code != '\t') ||
                            (code >= 0x7f && code < 0xa0) || (code & 0xfffe) == 0xfffe;
        char bytes[4];
        qkv_text_append(&out, bytes, qkv_utf8_encode(control ? 0xfffd : code, bytes));
    }
    if (!out.failed) return out.data;
    qkv_text_release(&out);
    return NULL;
}

/* ---- layouts ---- */

static void set_font(PangoLayout *layout, const qkv_lettering *lettering, double size) {
    PangoFontDescription *font = pango_font_description_new();
    pango_font_description_set_family(font, lettering->families ? lettering->families : FAMILY);
    /* Not below the size: 5 points are 5 points. */
    pango_font_description_set_size(font, (int)ceil(size * PANGO_SCALE - 1e-6));
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
}

static gboolean is_formula(PangoAttribute *attribute, gpointer data) {
    (void)data;
    return attribute->klass->type == PANGO_ATTR_ALLOW_BREAKS;
}

static void release_formulas(PangoLayout *layout) {
    PangoAttrList *attributes = pango_attr_list_copy(pango_layout_get_attributes(layout));
    PangoAttrList *formulas = pango_attr_list_filter(attributes, is_formula, NULL);
    pango_layout_set_attributes(layout, attributes);
    if (formulas) pango_attr_list_unref(formulas);
    pango_attr_list_unref(attributes);
}

void qkv_words_wrap(PangoLayout *layout, double limit) {
    if (qkv_words_width(layout) <= limit) return;
    pango_layout_set_width(layout, (int)(limit * PANGO_SCALE));
    pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
    /* A formula that is longer than a line must be broken after all. */
    if (qkv_words_width(layout) > limit) release_formulas(layout);
}

static void set_limit(PangoLayout *layout, qkv_words_kind kind, double limit) {
    if (kind != QKV_WORDS_LABEL) {
        pango_layout_set_alignment(layout, PANGO_ALIGN_CENTER);
        if (limit > 0) qkv_words_wrap(layout, limit);
    } else if (limit > 0 && qkv_words_width(layout) > limit) {
        pango_layout_set_width(layout, (int)(limit * PANGO_SCALE));
        pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
    }
}

static const char FAILED[] = "qkv-failed";

int qkv_lettering_failed(const qkv_lettering *lettering) {
    return g_object_get_data(G_OBJECT(lettering->context), FAILED) != NULL;
}

PangoLayout *qkv_words_new(const qkv_lettering *lettering, const char *text, qkv_words_kind kind,
                           double size, double limit) {
    qkv_text read = {0};
    char *shown = cut(text, kind);
    if (!shown) {
        g_object_set_data(G_OBJECT(lettering->context), FAILED, (void *)FAILED);
        return NULL;
    }
    PangoAttrList *attributes = pango_attr_list_new();
    PangoLayout *layout = NULL;
    qkv_text_puts(&read, "");
    if (kind == QKV_WORDS_TITLE) {
        read_title(&read, shown, attributes);
        if (!read.failed) keep_formulas(read.data, attributes);
    }
    if (kind == QKV_WORDS_PLAIN) append_lines(&read, shown, strlen(shown));
    if (kind == QKV_WORDS_LABEL) read_label(&read, shown, attributes);
    free(shown);
    if (!read.failed && read.length < G_MAXINT) {
        layout = pango_layout_new(lettering->context);
        set_font(layout, lettering, size);
        if (kind == QKV_WORDS_LABEL) pango_layout_set_single_paragraph_mode(layout, TRUE);
        pango_layout_set_text(layout, read.data, (int)read.length);
        pango_layout_set_attributes(layout, attributes);
        set_limit(layout, kind, limit);
    }
    if (!layout) g_object_set_data(G_OBJECT(lettering->context), FAILED, (void *)FAILED);
    pango_attr_list_unref(attributes);
    qkv_text_release(&read);
    return layout;
}

static PangoRectangle logical(PangoLayout *layout) {
    PangoRectangle box;
    pango_layout_get_extents(layout, NULL, &box);
    return box;
}

double qkv_words_width(PangoLayout *layout) {
    return (double)logical(layout).width / PANGO_SCALE;
}

double qkv_words_right(PangoLayout *layout) {
    PangoRectangle ink, box;
    pango_layout_get_extents(layout, &ink, &box);
    /* pango fills an ellipsised line up to its limit: only the ink says where the text ends. */
    if (pango_layout_is_ellipsized(layout)) box = ink;
    return (double)(box.x + box.width) / PANGO_SCALE;
}

double qkv_words_frame(PangoLayout *layout) {
    const int width = pango_layout_get_width(layout);
    return width >= 0 ? (double)width / PANGO_SCALE : qkv_words_width(layout);
}

double qkv_words_height(PangoLayout *layout) {
    return (double)logical(layout).height / PANGO_SCALE;
}

double qkv_words_baseline(PangoLayout *layout) {
    return (double)pango_layout_get_baseline(layout) / PANGO_SCALE;
}
