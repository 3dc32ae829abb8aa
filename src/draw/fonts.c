/*
 * Scripts that no font has glyphs for, and the packages that have: one list. See qkv/fonts.h.
 */
#include "draw/draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "draw/lettering.h"

#define CORE "fonts-noto-core"
#define CJK "fonts-noto-cjk"
#define DEJAVU "fonts-dejavu-core"

/* X(script of GLib, its name, package). What stands in no line is looked up in the last ones. */
#define SCRIPT_LIST(X)                                                                             \
    X(LATIN, "Latin", DEJAVU)                                                                      \
    X(GREEK, "Greek", DEJAVU)                                                                      \
    X(CYRILLIC, "Cyrillic", DEJAVU)                                                                \
    X(HAN, "Han", CJK)                                                                             \
    X(HIRAGANA, "Hiragana", CJK)                                                                   \
    X(KATAKANA, "Katakana", CJK)                                                                   \
    X(HANGUL, "Hangul", CJK)                                                                       \
    X(BOPOMOFO, "Bopomofo", CJK)                                                                   \
    X(ARABIC, "Arabic", CORE)                                                                      \
    X(HEBREW, "Hebrew", CORE)                                                                      \
    X(ARMENIAN, "Armenian", CORE)                                                                  \
    X(GEORGIAN, "Georgian", CORE)                                                                  \
    X(DEVANAGARI, "Devanagari", CORE)                                                              \
    X(BENGALI, "Bengali", CORE)                                                                    \
    X(GURMUKHI, "Gurmukhi", CORE)                                                                  \
    X(GUJARATI, "Gujarati", CORE)                                                                  \
    X(ORIYA, "Oriya", CORE)                                                                        \
    X(TAMIL, "Tamil", CORE)                                                                        \
    X(TELUGU, "Telugu", CORE)                                                                      \
    X(KANNADA, "Kannada", CORE)                                                                    \
    X(MALAYALAM, "Malayalam", CORE)                                                                \
    X(SINHALA, "Sinhala", CORE)                                                                    \
    X(THAI, "Thai", CORE)                                                                          \
    X(LAO, "Lao", CORE)                                                                            \
    X(KHMER, "Khmer", CORE)                                                                        \
    X(MYANMAR, "Myanmar", CORE)                                                                    \
    X(TIBETAN, "Tibetan", CORE)                                                                    \
    X(ETHIOPIC, "Ethiopic", CORE)                                                                  \
    X(MONGOLIAN, "Mongolian", CORE)                                                                \
    X(SYRIAC, "Syriac", CORE)                                                                      \
    X(THAANA, "Thaana", CORE)                                                                      \
    X(NKO, "N'Ko", CORE)                                                                           \
    X(CHEROKEE, "Cherokee", CORE)                                                                  \
    X(CANADIAN_ABORIGINAL, "Canadian Aboriginal", CORE)                                            \
    X(TIFINAGH, "Tifinagh", CORE)                                                                  \
    X(YI, "Yi", CORE)                                                                              \
    X(JAVANESE, "Javanese", CORE)                                                                  \
    X(BALINESE, "Balinese", CORE)                                                                  \
    X(VAI, "Vai", CORE)                                                                            \
    X(ADLAM, "Adlam", CORE)                                                                        \
    X(RUNIC, "Runic", CORE)                                                                        \
    X(OGHAM, "Ogham", CORE)                                                                        \
    X(CUNEIFORM, "Cuneiform", CORE)                                                                \
    X(EGYPTIAN_HIEROGLYPHS, "Egyptian Hieroglyphs", CORE)

typedef struct script_entry {
    GUnicodeScript id;
    const char *name, *package;
} script_entry;

#define SCRIPT_ENTRY(id, name, package) {G_UNICODE_SCRIPT_##id, name, package},
static const script_entry SCRIPTS[] = {
    SCRIPT_LIST(SCRIPT_ENTRY){G_UNICODE_SCRIPT_INVALID_CODE, "emoji", "fonts-noto-color-emoji"},
    {G_UNICODE_SCRIPT_COMMON, "symbol", CORE},
    {G_UNICODE_SCRIPT_UNKNOWN, "private or unassigned", ""},
    {G_UNICODE_SCRIPT_INVALID_CODE, "other", CORE},
};
#undef SCRIPT_ENTRY

enum { N_SCRIPTS = sizeof SCRIPTS / sizeof *SCRIPTS };
enum { OTHER = N_SCRIPTS - 1, UNKNOWN = N_SCRIPTS - 2, EMOJI = N_SCRIPTS - 4 };
_Static_assert(N_SCRIPTS <= 64, "one bit for every script");

const char *qkv_script_name(size_t script) {
    return script < N_SCRIPTS ? SCRIPTS[script].name : NULL;
}

const char *qkv_script_package(size_t script) {
    return script < N_SCRIPTS ? SCRIPTS[script].package : NULL;
}

/* Pictures and the signs that colour and join them: Unicode gives them no script of their own. */
static int is_emoji(gunichar code) {
    return (code >= 0x1f000 && code <= 0x1faff) || (code >= 0xe0020 && code <= 0xe007f);
}

static size_t find_script(gunichar code) {
    const GUnicodeType type = g_unichar_type(code);
    if (is_emoji(code)) return EMOJI;
    if (type == G_UNICODE_PRIVATE_USE || type == G_UNICODE_UNASSIGNED) return UNKNOWN;
    const GUnicodeScript id = g_unichar_get_script(code);
    for (size_t i = 0; i < OTHER; i++) {
        if (SCRIPTS[i].id == id && i != EMOJI) return i;
    }
    return OTHER;
}

/* ---- glyphs ---- */

uint64_t qkv_words_missing(PangoLayout *words) {
    uint64_t scripts = 0;
    if (pango_layout_get_unknown_glyphs_count(words) == 0) return 0;
    PangoLayoutIter *at = pango_layout_get_iter(words);
    do {
        const PangoGlyphItem *run = pango_layout_iter_get_run_readonly(at);
        for (int i = 0; run && i < run->glyphs->num_glyphs; i++) {
            const PangoGlyph glyph = run->glyphs->glyphs[i].glyph;
            if (!(glyph & PANGO_GLYPH_UNKNOWN_FLAG)) continue;
            scripts |= UINT64_C(1) << find_script(glyph & ~PANGO_GLYPH_UNKNOWN_FLAG);
        }
    } while (pango_layout_iter_next_run(at));
    pango_layout_iter_free(at);
    return scripts;
}

int qkv_fonts_missing(const char *text, const char *font, uint64_t *scripts, qkv_error *err) {
    qkv_lettering lettering = {0};
    PangoLayout *words = NULL;
    QKV_NEED(err, text);
    QKV_NEED(err, scripts);
    *scripts = 0;
    int status = qkv_lettering_open(&lettering, err);
    if (status == QKV_OK) status = qkv_lettering_set_font(&lettering, font, err);
    if (status == QKV_OK) {
        words = qkv_words_new(&lettering, text, QKV_WORDS_PLAIN, 10, 0);
        if (words) *scripts = qkv_words_missing(words);
        status = words ? QKV_OK : qkv_fail_memory(err);
    }
    if (words) g_object_unref(words);
    qkv_lettering_close(&lettering);
    return status;
}

/* ---- families ---- */

static int compare_families(const void *a, const void *b) {
    return strcmp(pango_font_family_get_name(*(PangoFontFamily *const *)a),
                  pango_font_family_get_name(*(PangoFontFamily *const *)b));
}

/* An error with the names of as many families as a line holds. */
static int fail_family(const char *family, PangoFontFamily **families, int n, qkv_error *err) {
    enum { MOST = 12 };
    qkv_text names = {0};
    qsort(families, (size_t)n, sizeof *families, compare_families);
    for (int i = 0; i < n && i < MOST; i++) {
        qkv_text_printf(&names, "%s%s", i ? ", " : "", pango_font_family_get_name(families[i]));
    }
    if (n > MOST) qkv_text_printf(&names, " and %d more: 'fc-list : family' lists them", n - MOST);
    const int status = names.failed ? qkv_fail_memory(err)
                                    : qkv_fail(err, QKV_ERR_ARGUMENT,
                                               "`font`: there is no font family "
                                               "'%s'; fontconfig has %s",
                                               family, names.length ? names.data : "none");
    qkv_text_release(&names);
    return status;
}

int qkv_lettering_find_font(const qkv_lettering *lettering, const char *family, qkv_error *err) {
    PangoFontFamily **families = NULL;
    int n = 0, found = 0;
    pango_font_map_list_families(lettering->fonts, &families, &n);
    for (int i = 0; i < n && !found; i++) {
        found = qkv_equal_ignoring_case(pango_font_family_get_name(families[i]), family);
    }
    const int status = found ? QKV_OK : fail_family(family, families, n, err);
    g_free(families);
    return status;
}

int qkv_font_check(const char *family, qkv_error *err) {
    qkv_lettering lettering = {0};
    QKV_NEED(err, family);
    int status = qkv_lettering_open(&lettering, err);
    if (status == QKV_OK) status = qkv_lettering_find_font(&lettering, family, err);
    qkv_lettering_close(&lettering);
    return status;
}
