/* Round numbers for bars, axes and cells. Minus signs are U+2212, as wide as the digits. */
#include "draw/ticks.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MINUS "\xe2\x88\x92"

static const double LEAST_WRITTEN_OUT = 0.001; /* 0.005, but 5·10⁻⁴ */
static const double SMALL_REACH = 0.1;         /* two decimals would all be the same */
static const double THREE_DECIMALS = 0.01;     /* a reach for which three are enough */
enum { MOST_FINE_DECADES = 12 };               /* with small ticks between the powers of ten */

static const char *sign_of(double value) {
    return value < 0 ? MINUS : "";
}

/* The smallest 1, 2 or 5 times a power of ten that is not below `least` (but for rounding). */
static double nice_number(double least) {
    const double power = pow(10, floor(log10(least)));
    static const double steps[] = {1, 2, 5};
    for (int i = 0; i < 3; i++) {
        if (steps[i] * power >= least * (1 - 1e-9)) return steps[i] * power;
    }
    return 10 * power;
}

/* The next smaller of these numbers. */
static double finer(double step) {
    return nice_number(0.35 * step);
}

int qkv_nice_step(double least) {
    return least <= 1 ? 1 : (int)lround(nice_number(fmin(least, 1e9)));
}

static void add_tick(qkv_tick *ticks, int *n, const qkv_grid_style *style, double value,
                     const char *label) {
    if (*n >= QKV_MAX_TICKS) return;
    const double place = qkv_scale_place(style, value);
    ticks[*n].place = place;
    snprintf(ticks[*n].label, sizeof ticks[*n].label, "%s", label);
    ++*n;
}

void qkv_number_text(char text[QKV_NUMBER_SIZE], double value, int digits) {
    qkv_format(text, QKV_NUMBER_SIZE, "%s%.*g", sign_of(value), digits, fabs(value));
}

/* Written out up to 100 000, as on a linear scale. */
static void plain_number(char text[QKV_NUMBER_SIZE], double value) {
    qkv_number_text(text, value, fabs(value) < 1e3 ? 3 : 5);
}

/* How many digits tell numbers up to `largest` apart that lie `step` from each other. */
static int digits_of(double largest, double step) {
    const double digits = floor(log10(largest) + 1e-9) - floor(log10(step) + 1e-9) + 1;
    return (int)fmin(fmax(digits, 3), 15);
}

static int linear_ticks(qkv_tick *ticks, const qkv_grid_style *style, int most) {
    const double low = style->low, high = style->high;
    const double slack = 1e-6 * (high - low);
    double step = nice_number((high - low) / (most - 1));
    /* One number is not a scale: a short bar takes closer ones. */
    while (floor((high + slack) / step) - ceil((low - slack) / step) < 1) step = finer(step);
    int n = 0;
    const int decimals = (int)fmax(0, -floor(log10(step * (1 + 1e-9))));
    const double largest = fmax(fabs(low), fabs(high));
    const int scientific = decimals > 4 || largest >= 1e5;
    for (double k = ceil((low - slack) / step); k * step <= high + slack && n < QKV_MAX_TICKS;
         k++) {
        const double value = k == 0 ? 0 : k * step;
        char text[QKV_NUMBER_SIZE];
        if (scientific) {
            qkv_number_text(text, value, digits_of(largest, step));
        } else {
            qkv_format(text, sizeof text, "%s%.*f", sign_of(value), decimals, fabs(value));
        }
        add_tick(ticks, &n, style, value, text);
    }
    return n;
}

/* 10⁻³, −10², 5·10⁻⁴ */
static void power_of_ten(char text[QKV_NUMBER_SIZE], int negative, int factor, int exponent) {
    static const char *const digits[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    char plain[16], before[16] = "";
    if (factor > 1) snprintf(before, sizeof before, "%d\xc2\xb7", factor);
    snprintf(plain, sizeof plain, "%d", exponent < 0 ? -exponent : exponent);
    snprintf(text, QKV_NUMBER_SIZE, "%s%s10%s", negative ? MINUS : "", before,
             exponent < 0 ? "\xe2\x81\xbb" : "");
    for (const char *c = plain; *c; c++) {
        strncat(text, digits[*c - '0'], QKV_NUMBER_SIZE - strlen(text) - 1);
    }
}

/* Magnitudes above zero that a log or power scale marks, small to large. */
typedef struct magnitude {
    double value;
    int exponent; /* of the power of ten, when that is how it is written */
    int factor;   /* before it; 0: written out */
} magnitude;

/* A log scale too short for two of 1, 2 and 5: evenly spaced values, as on a linear one. */
static int even_magnitudes(magnitude *out, double low, double high) {
    const double step = nice_number((high - low) / 3);
    int n = 0;
    for (double k = ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9) && n < 4; k++) {
        out[n++] = (magnitude){k * step, 0, 0};
    }
    return n;
}

static int log_magnitudes(magnitude *out, double floor_value, double high, int most) {
    const int first = (int)ceil(log10(floor_value) - 1e-9);
    const int last = (int)floor(log10(high) + 1e-9);
    int n = 0;
    if (last - first >= 2) {
        const int stride =
            (last - first + most - 1) / most > 1 ? (last - first + most - 1) / most : 1;
        for (int e = last; e >= first && n < QKV_MAX_TICKS; e -= stride) n++;
        for (int i = 0; i < n; i++) {
            const int e = last - stride * (n - 1 - i);
            out[i] = (magnitude){pow(10, e), e, 1};
        }
        return n;
    }
    /* Less than two decades: 1, 2 and 5 times the powers, which small ones are written with. */
    static const int multiples[] = {1, 2, 5};
    const int written_out = floor_value >= LEAST_WRITTEN_OUT;
    for (int e = first - 1; e <= last; e++) {
        for (int i = 0; i < 3 && n < QKV_MAX_TICKS; i++) {
            const double value = multiples[i] * pow(10, e);
            if (value < floor_value * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
            out[n++] = (magnitude){value, e, written_out ? 0 : multiples[i]};
        }
    }
    return n >= 2 ? n : even_magnitudes(out, floor_value, high);
}

static double one_digit(double value) {
    const double power = pow(10, floor(log10(value)));
    return round(value / power) * power;
}

/* Even steps along the bar, each rounded to one digit. */
static int power_magnitudes(magnitude *out, double span, double gamma, int most) {
    int n = 0;
    double before = 0;
    for (int k = 1; k < most; k++) {
        const double exact = span * pow((double)k / (most - 1), 1 / gamma);
        const double value = k == most - 1 ? span : one_digit(exact);
        if (value <= before * (1 + 1e-9) || value > span * (1 + 1e-9)) continue;
        out[n++] = (magnitude){value, 0, 0};
        before = value;
    }
    return n;
}

static void add_magnitude(qkv_tick *ticks, int *n, const qkv_grid_style *style, const magnitude *m,
                          double base, int negative) {
    char text[QKV_NUMBER_SIZE];
    const double value = base + (negative ? -m->value : m->value);
    if (m->factor) {
        power_of_ten(text, negative, m->factor, m->exponent);
    } else {
        plain_number(text, value);
    }
    add_tick(ticks, n, style, value, text);
}

static int curved_ticks(qkv_tick *ticks, const qkv_grid_style *style, int most) {
    magnitude found[QKV_MAX_TICKS];
    const int mirrored = style->diverging != 0, is_log = style->scale == QKV_SCALE_LOG;
    const double base = mirrored || is_log ? 0 : style->low;
    const int share = mirrored ? (most + 1) / 2 + 1 : most;
    const int m = is_log ? log_magnitudes(found, style->log_floor, style->high, share - 1)
                         : power_magnitudes(found, style->high - base, style->gamma, share);
    /* Around the middle of a mirrored log bar, the smallest magnitude would sit on the zero. */
    const int skip =
        mirrored && is_log && m > 1 && qkv_scale_place(style, found[0].value) - 0.5 < 0.05;
    int n = 0;
    for (int i = m - 1; mirrored && i >= skip; i--) {
        add_magnitude(ticks, &n, style, &found[i], base, 1);
    }
    if (mirrored || !is_log) {
        char text[QKV_NUMBER_SIZE];
        plain_number(text, base);
        add_tick(ticks, &n, style, base, text);
    }
    for (int i = skip; i < m; i++) add_magnitude(ticks, &n, style, &found[i], base, 0);
    return n;
}

int qkv_ticks_make(qkv_tick ticks[QKV_MAX_TICKS], const qkv_grid_style *style, int most) {
    if (most < 2) most = 2;
    if (most > QKV_MAX_TICKS / 2) most = QKV_MAX_TICKS / 2;
    return style->scale == QKV_SCALE_LINEAR ? linear_ticks(ticks, style, most)
                                            : curved_ticks(ticks, style, most);
}

int qkv_ticks_minor(double places[QKV_MAX_MINOR], const qkv_grid_style *style) {
    if (style->scale != QKV_SCALE_LOG || style->diverging) return 0;
    const int first = (int)floor(log10(style->log_floor)), last = (int)ceil(log10(style->high));
    const int most = last - first <= MOST_FINE_DECADES ? 9 : 1;
    int n = 0;
    for (int e = first; e <= last; e++) {
        for (int m = 1; m <= most && n < QKV_MAX_MINOR; m++) {
            const double value = m * pow(10, e);
            if (value < style->log_floor || value > style->high) continue;
            places[n++] = qkv_scale_place(style, value);
        }
    }
    return n;
}

/* One digit and a power of ten: 2e-3. */
static void short_power(char text[QKV_NUMBER_SIZE], double value) {
    int exponent = (int)floor(log10(fabs(value)));
    long digit = lround(fabs(value) / pow(10, exponent));
    if (digit == 10) digit = 1, exponent++;
    snprintf(text, QKV_NUMBER_SIZE, "%s%lde%d", sign_of(value), digit, exponent);
}

void qkv_cell_text(char text[QKV_NUMBER_SIZE], const qkv_grid_style *style, double value) {
    const double size = fabs(value);
    const double reach = fmax(fabs(style->low), fabs(style->high));
    const int is_log = style->scale == QKV_SCALE_LOG, is_small = reach < SMALL_REACH;
    text[0] = '\0';
    if (value == 0 || isnan(value)) return;
    if (is_small && !is_log && reach >= THREE_DECIMALS && size >= 0.0005 && size < SMALL_REACH) {
        snprintf(text, QKV_NUMBER_SIZE, "%s.%03d", sign_of(value), (int)lround(size * 1000));
    } else if ((is_log && size < 0.0095 && size >= style->log_floor) ||
               (is_small && size < SMALL_REACH && size >= reach / 200)) {
        short_power(text, value);
    } else if (size < 0.005) {
        snprintf(text, QKV_NUMBER_SIZE, "0");
    } else if (size < 0.995) {
        snprintf(text, QKV_NUMBER_SIZE, "%s.%02d", sign_of(value), (int)lround(size * 100));
    } else if (size < 9.95) {
        qkv_format(text, QKV_NUMBER_SIZE, "%s%.1f", sign_of(value), size);
    } else if (size < 999.5) {
        qkv_format(text, QKV_NUMBER_SIZE, "%s%.0f", sign_of(value), size);
    } else {
        qkv_format(text, QKV_NUMBER_SIZE, "%s%.0e", sign_of(value), size);
    }
}
