/* Lists of numbers: linspace and logspace are written out, and then there is one kind of list. */
#include "base/number_list.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

enum { MOST_NUMBERS = 10000 }; /* that the words of one list may stand for, all together */

typedef struct number_range {
    double from, to;
    int64_t n;
    int by_ratio; /* logspace */
} number_range;

/* Twelve digits: powers of ten come out as such, and more are not needed. */
static double number_of_range(const number_range *range, int64_t i) {
    const double at = (double)i / (double)(range->n - 1);
    if (i == 0) return range->from;
    if (i == range->n - 1) return range->to;
    if (!range->by_ratio) return qkv_round_digits(range->from * (1 - at) + range->to * at, 12);
    const double low = log10(range->from), high = log10(range->to);
    return qkv_round_digits(pow(10, low + (high - low) * at), 12);
}

/* FROM,TO,NUMBER and how long that is; 0 where it is something else, or more than `most` numbers. */
static size_t read_range(number_range *range, const char *text, int64_t most) {
    const char *first = strchr(text, ','), *second = first ? strchr(first + 1, ',') : NULL;
    if (!second) return 0;
    const size_t length = strcspn(second + 1, ",");
    if (!qkv_parse_double(text, (size_t)(first - text), &range->from) ||
        !qkv_parse_double(first + 1, (size_t)(second - first - 1), &range->to) ||
        !qkv_parse_int(second + 1, length, &range->n))
        return 0;
    const int has_ends = isfinite(range->from) && isfinite(range->to) &&
                         (!range->by_ratio || (range->from > 0 && range->to > 0));
    return has_ends && range->n >= 2 && range->n <= most ? (size_t)(second + 1 - text) + length : 0;
}

/* The part of a list that begins at `text`, up to a comma or the end. *room is how many numbers its
 * words may still stand for. */
static int expand_part(qkv_text *out, const char *text, size_t *length, int64_t *room,
                       qkv_error *err) {
    static const char *const words[] = {"linspace:", "logspace:"};
    for (int i = 0; i < 2; i++) {
        number_range range = {.by_ratio = i};
        const size_t word = strlen(words[i]);
        if (strncmp(text, words[i], word) != 0) continue;
        *length = read_range(&range, text + word, *room);
        if (!*length)
            return qkv_fail(err, QKV_ERR_SYNTAX,
                            "%s should be %sFROM,TO,NUMBER, with %s and a number from 2 to %d",
                            text, words[i], i ? "ends above 0" : "finite ends", (int)*room);
        *length += word;
        *room -= range.n;
        for (int64_t k = 0; k < range.n; k++) {
            if (k) qkv_text_puts(out, ",");
            qkv_text_append_number(out, number_of_range(&range, k));
        }
        return QKV_OK;
    }
    *length = strcspn(text, ",");
    qkv_text_append(out, text, *length);
    return QKV_OK;
}

int qkv_number_list_expand(char **out, const char *list, qkv_error *err) {
    qkv_text text = {0};
    int64_t room = MOST_NUMBERS;
    *out = NULL;
    for (const char *at = list;; at++) {
        size_t length = 0;
        const int status = expand_part(&text, at, &length, &room, err);
        if (status != QKV_OK) {
            qkv_text_release(&text);
            return status;
        }
        at += length;
        if (*at == '\0') break;
        qkv_text_puts(&text, ",");
    }
    qkv_text_puts(&text, "");
    if (text.failed) {
        qkv_text_release(&text);
        return qkv_fail_memory(err);
    }
    *out = text.data;
    return QKV_OK;
}

int qkv_number_list_next(const char **at, const char **text, size_t *length, double *value) {
    if (!*at) return 0;
    *text = *at;
    *length = strcspn(*at, ",");
    if (!qkv_parse_double(*text, *length, value) || !isfinite(*value)) *value = (double)NAN;
    *at = (*text)[*length] ? *text + *length + 1 : NULL;
    return 1;
}
