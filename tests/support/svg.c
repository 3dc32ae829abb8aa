/* Reads the paths of an SVG as cairo writes them: attributes, or a style with the same names. */
#include "support/svg.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The value of a property within [at, end), after `name:` or `name="`; NULL when it has none. */
static const char *value_of(const char *at, const char *end, const char *name) {
    const size_t n = strlen(name);
    for (; at + n + 2 < end; at++) {
        if (memcmp(at, name, n) != 0 || strchr(" ;\"", at[-1]) == NULL) continue;
        if (at[n] == ':') return at + n + 1;
        if (at[n] == '=' && at[n + 1] == '"') return at + n + 2;
    }
    return NULL;
}

static long color_of(const char *text) {
    double part[3];
    if (!text || sscanf(text, "rgb(%lf%%,%lf%%,%lf%%)", &part[0], &part[1], &part[2]) != 3)
        return SVG_NO_COLOR;
    long color = 0;
    for (int i = 0; i < 3; i++) color = color << 8 | lround(part[i] * 2.55);
    return color;
}

static qkv_box box_of(const svg_path *path) {
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    for (size_t i = 0; i < path->n; i++) {
        left = fmin(left, path->x[i]), right = fmax(right, path->x[i]);
        top = fmin(top, path->y[i]), bottom = fmax(bottom, path->y[i]);
    }
    return (qkv_box){.x = left, .y = top, .width = right - left, .height = bottom - top};
}

/* "M 1 2 L 3 4 Z ": letters are skipped, numbers come in pairs. */
static svg_path read_path(const char *at, const char *end) {
    svg_path path = {.fill = color_of(value_of(at, end, "fill"))};
    const char *d = value_of(at, end, "d");
    assert_non_null(d);
    while (*d != '"' && path.n < SVG_POINTS) {
        char *after;
        const double x = strtod(d, &after);
        if (after == d) {
            d++;
            continue;
        }
        path.x[path.n] = x;
        path.y[path.n++] = strtod(after, &after);
        d = after;
    }
    path.box = box_of(&path);
    return path;
}

/* The next <path .../> from *at on, or NULL; *end is where it ends. Those within <defs> are outlines
 * of letters. */
static const char *next_path(const char *at, const char **end) {
    for (;;) {
        const char *path = strstr(at, "<path "), *defs = strstr(at, "<defs>");
        if (!path) return NULL;
        if (!defs || path < defs) {
            *end = strstr(path, "/>");
            assert_non_null(*end);
            return path;
        }
        at = strstr(defs, "</defs>");
        assert_non_null(at);
    }
}

svg_path svg_find(const char *svg, const char *property, const char *value, size_t index) {
    const size_t n = strlen(value);
    const char *end;
    for (const char *at = svg; (at = next_path(at, &end)); at = end) {
        const char *found = value_of(at, end, property);
        if (!found || strncmp(found, value, n) != 0 || !strchr(";\"", found[n])) continue;
        if (index-- == 0) return read_path(at, end);
    }
    return (svg_path){.fill = SVG_NO_COLOR};
}

long svg_color_at(const char *svg, double x, double y) {
    long color = SVG_NO_COLOR;
    const char *end;
    for (const char *at = svg; (at = next_path(at, &end)); at = end) {
        const svg_path path = read_path(at, end);
        const qkv_box *box = &path.box;
        if (path.fill != SVG_NO_COLOR && x > box->x && x < box->x + box->width && y > box->y &&
            y < box->y + box->height)
            color = path.fill;
    }
    return color;
}

void check_same_place(double found, double wanted, const char *what) {
    if (!(fabs(found - wanted) < 0.01)) fail_msg("%s: at %g, not at %g", what, found, wanted);
}

void check_same_box(const qkv_box *found, const qkv_box *wanted, const char *what) {
    check_same_place(found->x, wanted->x, what);
    check_same_place(found->y, wanted->y, what);
    check_same_place(found->width, wanted->width, what);
    check_same_place(found->height, wanted->height, what);
}
