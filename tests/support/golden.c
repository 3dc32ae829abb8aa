/* Drawn SVGs compared with those in tests/golden. See golden.h. */
#include "support/golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/lettering.h"
#include "support/figures.h"

int golden_font(void) {
    qkv_lettering lettering;
    assert_int_equal(qkv_lettering_open(&lettering, NULL), QKV_OK);
    PangoFontDescription *wanted = pango_font_description_from_string("DejaVu Sans 10");
    PangoFont *font = pango_font_map_load_font(lettering.fonts, lettering.context, wanted);
    PangoFontDescription *got = font ? pango_font_describe(font) : NULL;
    const int is = got && strcmp(pango_font_description_get_family(got), "DejaVu Sans") == 0;
    if (got) pango_font_description_free(got);
    if (font) g_object_unref(font);
    pango_font_description_free(wanted);
    qkv_lettering_close(&lettering);
    return is;
}

/* Cuts out everything from each `from` up to the next `to`. */
static void cut(char *text, const char *from, const char *to) {
    char *out = text, *at = text;
    for (char *start; (start = strstr(at, from));) {
        memmove(out, at, (size_t)(start - at));
        out += start - at;
        at = strstr(start, to);
        assert_non_null(at);
    }
    memmove(out, at, strlen(at) + 1);
}

static void check_same_svg(char *found, char *golden, const char *name) {
    char *texts[] = {found, golden};
    for (int i = 0; i < 2; i++) {
        cut(texts[i], "<symbol", "</symbol>"); /* outlines */
        cut(texts[i], "#glyph", "\"");         /* which outline: numbered as they appear */
        cut(texts[i], "data:image/png", "\"");
    }
    const char *a = found, *b = golden;
    while (*a && *b) {
        char *end_a, *end_b;
        const double x = strtod(a, &end_a), y = strtod(b, &end_b);
        const int numbers = end_a != a && end_b != b;
        if (numbers ? fabs(x - y) > 0.1 : *a != *b) {
            fail_msg("%s differs from its golden figure at \"%.60s\", was \"%.60s\"; look at it, "
                     "then run with QKV_UPDATE_GOLDEN=1",
                     name, a, b);
        }
        a = numbers ? end_a : a + 1;
        b = numbers ? end_b : b + 1;
    }
    assert_int_equal(*a, *b);
}

void check_golden_at(const char *directory, const char *drawn, const char *name) {
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/golden/%s", directory, name);
    char *found = slurp(drawn, &size);
    if (getenv("QKV_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(found, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = slurp(path, &size);
    check_same_svg(found, golden, name);
    free(found);
    free(golden);
}
