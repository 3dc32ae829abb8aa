#include "draw/page.h"

#include <math.h>
#include <setjmp.h>

#include <png.h>

/* Lines of a figure are mostly equal to the one above: with that filter a little compression does.
 * Level 6 would take twice as long for files a tenth smaller. */
enum { COMPRESSION = 3 };

static void append(png_structp png, png_bytep bytes, size_t length) {
    qkv_text *out = png_get_io_ptr(png);
    qkv_text_append(out, (const char *)bytes, length);
    if (out->failed) png_error(png, "out of memory");
}

static void flush(png_structp png) {
    (void)png;
}

/* libpng's own two print. */
static void fail(png_structp png, png_const_charp message) {
    (void)message;
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void put_header(png_structp png, png_infop info, cairo_surface_t *image, double dpi) {
    const png_uint_32 per_metre = (png_uint_32)lround(dpi / 0.0254);
    png_set_IHDR(png, info, (png_uint_32)cairo_image_surface_get_width(image),
                 (png_uint_32)cairo_image_surface_get_height(image), 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_pHYs(png, info, per_metre, per_metre, PNG_RESOLUTION_METER);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_compression_level(png, COMPRESSION);
    png_write_info(png, info);
}

/* A pixel is a number of 32 bits, 0x00RRGGBB. */
static void put_pixels(png_structp png, cairo_surface_t *image) {
    const unsigned char *data = cairo_image_surface_get_data(image);
    const ptrdiff_t stride = cairo_image_surface_get_stride(image);
    const int height = cairo_image_surface_get_height(image);
    const uint32_t one = 1;
    if (*(const unsigned char *)&one) { /* the least byte comes first */
        png_set_bgr(png);
        png_set_filler(png, 0, PNG_FILLER_AFTER);
    } else {
        png_set_filler(png, 0, PNG_FILLER_BEFORE);
    }
    for (int y = 0; y < height; y++) png_write_row(png, data + y * stride);
}

static void put_recipe(png_structp png, png_infop info, const char *recipe) {
    char key[] = "qkv-recipe", none[] = "";
    const png_text chunk = {.compression = PNG_ITXT_COMPRESSION_NONE,
                            .key = key,
                            .text = (char *)recipe,
                            .lang = none,
                            .lang_key = none};
    png_set_text(png, info, &chunk, 1);
}

/* 0 when memory ran out on the way. */
static int put_file(png_structp png, png_infop info, cairo_surface_t *image, const char *recipe,
                    double dpi) {
    if (setjmp(png_jmpbuf(png))) return 0;
    put_header(png, info, image, dpi);
    put_pixels(png, image);
    if (recipe) put_recipe(png, info, recipe);
    png_write_end(png, info);
    return 1;
}

int qkv_png_write(qkv_text *out, cairo_surface_t *image, const char *recipe, double dpi,
                  qkv_error *err) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int done = 0;
    cairo_surface_flush(image);
    if (info) {
        png_set_write_fn(png, out, append, flush);
        done = put_file(png, info, image, recipe, dpi);
    }
    png_destroy_write_struct(&png, &info);
    return done ? QKV_OK : qkv_fail_memory(err);
}
