/* Letters as glyphs, as outlines or as elements of an SVG. See words_show.h. */
#include "draw/words_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page.h"

static const cairo_user_data_key_t WAY_KEY;

void qkv_words_set_way(cairo_t *cr, const qkv_words_way *way) {
    cairo_set_user_data(cr, &WAY_KEY, (void *)way, NULL);
}

/* ---- runs: pieces of a line in one font and colour ---- */

typedef struct run {
    PangoGlyphItem *item;
    double x, y; /* left end of its baseline, from the layout's origin */
    double red, green, blue;
} run;

/* The colour of the run's own, or the one that the page is painted in. */
static void find_color(run *piece, cairo_t *cr) {
    cairo_pattern_get_rgba(cairo_get_source(cr), &piece->red, &piece->green, &piece->blue, NULL);
    for (GSList *at = piece->item->item->analysis.extra_attrs; at; at = at->next) {
        const PangoAttribute *attribute = at->data;
        if (attribute->klass->type != PANGO_ATTR_FOREGROUND) continue;
        const PangoColor *color = &((const PangoAttrColor *)attribute)->color;
        piece->red = color->red / 65535.0;
        piece->green = color->green / 65535.0;
        piece->blue = color->blue / 65535.0;
    }
}

/* The run at the iterator; 0 at the end of a line. */
static int read_run(run *piece, PangoLayoutIter *at, cairo_t *cr) {
    PangoRectangle box;
    piece->item = pango_layout_iter_get_run_readonly(at);
    if (!piece->item) return 0;
    pango_layout_iter_get_run_extents(at, NULL, &box);
    piece->x = (double)box.x / PANGO_SCALE;
    piece->y = (double)pango_layout_iter_get_baseline(at) / PANGO_SCALE;
    find_color(piece, cr);
    return 1;
}

/* ---- outlines ---- */

/* Glyphs that are pictures, such as emoji, have no outline and stay what they are. */
static void fill_run(cairo_t *cr, const run *piece, double x, double y) {
    PangoFont *font = piece->item->item->analysis.font;
    double left, top, right, bottom;
    cairo_save(cr);
    cairo_set_source_rgb(cr, piece->red, piece->green, piece->blue);
    cairo_new_path(cr);
    cairo_move_to(cr, x + piece->x, y + piece->y);
    pango_cairo_glyph_string_path(cr, font, piece->item->glyphs);
    cairo_path_extents(cr, &left, &top, &right, &bottom);
    if (right > left) {
        cairo_fill(cr);
    } else {
        cairo_new_path(cr);
        cairo_move_to(cr, x + piece->x, y + piece->y);
        pango_cairo_show_glyph_string(cr, font, piece->item->glyphs);
    }
    cairo_restore(cr);
}

static void fill_words(cairo_t *cr, PangoLayout *words) {
    double x, y;
    run piece;
    cairo_get_current_point(cr, &x, &y);
    PangoLayoutIter *at = pango_layout_get_iter(words);
    do {
        if (read_run(&piece, at, cr)) fill_run(cr, &piece, x, y);
    } while (pango_layout_iter_next_run(at));
    pango_layout_iter_free(at);
}

/* ---- elements of an SVG ---- */

static unsigned byte_of(double part) {
    return (unsigned)lround(part * 255);
}

/* Quotes would end the attribute. */
static void append_family(qkv_text *out, const char *family) {
    for (size_t part; *family; family += part) {
        part = strcspn(family, "\"");
        qkv_xml_append(out, family, part);
        if (family[part] && ++part) qkv_text_puts(out, "&quot;");
    }
}

/* Family, size, style and colour. All runs have the layout's size: what a font of pictures says
 * about its own is that of the pictures it holds. */
static void append_style(qkv_text *out, const run *piece, double size) {
    static const char *const styles[] = {"normal", "oblique", "italic"};
    PangoFontDescription *font = pango_font_describe(piece->item->item->analysis.font);
    const char *family = pango_font_description_get_family(font);
    qkv_text_puts(out, " font-family=\"");
    if (family) {
        append_family(out, family);
        qkv_text_puts(out, ", ");
    }
    qkv_text_printf(out, "sans-serif\" font-size=\"%.6g\" font-style=\"%s\" fill=\"#%02x%02x%02x\"",
                    size, styles[pango_font_description_get_style(font)], byte_of(piece->red),
                    byte_of(piece->green), byte_of(piece->blue));
    pango_font_description_free(font);
}

static void append_letters(qkv_text *out, const run *piece, const char *text) {
    const PangoItem *item = piece->item->item;
    if (item->analysis.flags & PANGO_ANALYSIS_FLAG_IS_ELLIPSIS) {
        qkv_text_puts(out, QKV_ELLIPSIS);
    } else {
        qkv_xml_append(out, text + item->offset, (size_t)item->length);
    }
}

/* Where a line begins. Lines that are not turned have plain coordinates: they are easier to edit. */
static void append_place(qkv_text *out, cairo_t *cr, double x, double y) {
    cairo_matrix_t m;
    cairo_get_matrix(cr, &m);
    cairo_matrix_transform_point(&m, &x, &y);
    if (m.xx == 1 && m.yy == 1 && m.xy == 0 && m.yx == 0) {
        qkv_text_printf(out, " x=\"%.7g\" y=\"%.7g\"", x, y);
        return;
    }
    /* A quarter turn leaves cosines of 1e-17. */
    qkv_text_printf(out, " transform=\"matrix(%.7g %.7g %.7g %.7g %.7g %.7g)\"",
                    round(m.xx * 1e9) / 1e9 + 0.0, round(m.yx * 1e9) / 1e9 + 0.0,
                    round(m.xy * 1e9) / 1e9 + 0.0, round(m.yy * 1e9) / 1e9 + 0.0, x, y);
}

/* Opens a <tspan> where the style differs from the one before, so that words stay together. */
static void open_span(qkv_text *out, qkv_text *last, const run *piece, double size) {
    qkv_text style = {0};
    append_style(&style, piece, size);
    if (style.failed) {
        out->failed = 1;
    } else if (!last->data || strcmp(style.data, last->data) != 0) {
        qkv_text_printf(out, "%s<tspan%s>", last->data ? "</tspan>" : "", style.data);
        qkv_text_release(last);
        *last = style;
        return;
    }
    qkv_text_release(&style);
}

/* One line as a <text>. Returns 0 after the last line. */
static int append_line(qkv_text *out, cairo_t *cr, PangoLayoutIter *at, const char *text,
                       double size) {
    double x, y;
    qkv_text last = {0};
    run piece;
    int more, n_runs = 0;
    cairo_get_current_point(cr, &x, &y);
    do {
        if (!read_run(&piece, at, cr)) { /* the end of the line */
            more = pango_layout_iter_next_run(at);
            break;
        }
        if (n_runs++ == 0) {
            qkv_text_puts(out, "<text xml:space=\"preserve\"");
            append_place(out, cr, x + piece.x, y + piece.y);
            qkv_text_puts(out, ">");
        }
        open_span(out, &last, &piece, size);
        append_letters(out, &piece, text);
    } while ((more = pango_layout_iter_next_run(at)));
    if (n_runs) qkv_text_puts(out, "</tspan></text>\n");
    qkv_text_release(&last);
    return more;
}

static void append_elements(qkv_text *out, cairo_t *cr, PangoLayout *words) {
    const char *text = pango_layout_get_text(words);
    const int size = pango_font_description_get_size(pango_layout_get_font_description(words));
    PangoLayoutIter *at = pango_layout_get_iter(words);
    while (append_line(out, cr, at, text, (double)size / PANGO_SCALE)) {}
    pango_layout_iter_free(at);
}

/* ---- all ways ---- */

void qkv_words_show(cairo_t *cr, PangoLayout *words) {
    const qkv_words_way *way = cairo_get_user_data(cr, &WAY_KEY);
    if (way && way->elements) {
        append_elements(way->elements, cr, words);
    } else if (way && way->paths) {
        fill_words(cr, words);
    } else {
        pango_cairo_show_layout(cr, words);
    }
}
