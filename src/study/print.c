/* Text, font, width and notes of what is printed. See print.h. */
#include "study/print.h"

#include <math.h>

#include "base/text.h"
#include "draw/draw.h"

static const double MOST_WIDTH = 14400;             /* points */
static const double LEAST_FONT = 5, MOST_FONT = 72; /* points */
static const double SCREEN_DPI = 150, PRINT_DPI = 300;

double qkv_print_dpi(double given, double width) {
    if (given > 0) return given;
    return width > 0 ? PRINT_DPI : SCREEN_DPI;
}

int qkv_print_check(const study_print *print, qkv_error *err) {
    if ((unsigned)print->text > QKV_TEXT_TEXT) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`text` is not one of its constants");
    }
    if (print->width != 0 && !(print->width > 0 && print->width <= MOST_WIDTH)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`width` must be above 0 and up to %g points, not %g", MOST_WIDTH,
                        print->width);
    }
    if (print->font_size != 0 &&
        !(print->font_size >= LEAST_FONT && print->font_size <= MOST_FONT)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`font_size` must be %g to %g points, not %g",
                        LEAST_FONT, MOST_FONT, print->font_size);
    }
    return print->font ? qkv_font_check(print->font, err) : QKV_OK;
}

char *qkv_print_missing(size_t script) {
    const char *package = qkv_script_package(script);
    qkv_text text = {0};
    qkv_text_printf(&text, "no font has all %s characters of the drawing, which become boxes",
                    qkv_script_name(script));
    if (package[0]) qkv_text_printf(&text, "; Debian's package %s has them", package);
    if (!text.failed) return text.data;
    qkv_text_release(&text);
    return NULL;
}
