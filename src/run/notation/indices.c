#include "run/notation/indices.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"

static int fail_index(const qkv_axis *a, const char *sign, int64_t index, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_PLAN, "%s %s%lld is out of range; %s has %ss 0 to %lld", a->one,
                    sign, (long long)index, a->whole, a->one, (long long)a->n - 1);
}

/* An index, negative ones counted from the end; *given = 0 when there is none. */
static int take_index(const char **at, const qkv_axis *a, int64_t *index, int *given,
                      qkv_error *err) {
    const int negative = **at == '-';
    const char *number = *at + negative;
    const size_t digits = strspn(number, "0123456789");
    *given = qkv_parse_int(number, digits, index);
    if (!*given)
        return negative
                   ? qkv_fail(err, QKV_ERR_SYNTAX, "expected a %s number before '%s'", a->one, *at)
                   : QKV_OK;
    *at = number + digits;
    const int64_t value = negative ? a->end - *index : *index;
    if (value < 0 || value > a->n) return fail_index(a, negative ? "-" : "", *index, err);
    *index = value;
    return QKV_OK;
}

int qkv_indices_take(const char **at, const qkv_axis *a, int64_t *first, int64_t *end,
                     qkv_error *err) {
    int has_first, has_end;
    const char *start = *at;
    *end = a->n;
    int status = take_index(at, a, first, &has_first, err);
    if (status != QKV_OK) return status;
    if (!has_first) *first = 0;
    if (**at == ':') {
        ++*at;
        status = take_index(at, a, end, &has_end, err);
        if (status != QKV_OK) return status;
        if (!has_end) *end = a->n;
    } else if (!has_first) {
        return qkv_fail(err, QKV_ERR_SYNTAX, "expected a %s, a range like 2:8 or ':' before '%s'",
                        a->one, *at);
    } else if (*first >= a->n) {
        return fail_index(a, "", *first, err);
    } else {
        *end = *first + 1;
    }
    if (*first < *end) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN, "the selector %c%.*s%c matches no %s; %s has %ss 0 to %lld",
                    a->open, (int)(*at - start), start, a->close, a->one, a->whole, a->one,
                    (long long)a->n - 1);
}

/* ---- pairs ---- */

typedef struct list {
    int64_t *items;
    size_t n, capacity;
} list;

static int take_list(const char **at, const qkv_axis *a, list *out, qkv_error *err) {
    for (;; ++*at) {
        int64_t first, end;
        const int status = qkv_indices_take(at, a, &first, &end, err);
        if (status != QKV_OK) return status;
        for (; first < end; first++) {
            if (!QKV_PUSH(out->items, out->capacity, out->n, first)) return qkv_fail_memory(err);
        }
        if (**at != ',') return QKV_OK;
    }
}

static int take_lists(const char *at, const qkv_axis *own, const qkv_axis *other, list *left,
                      list *right, qkv_error *err) {
    int status = take_list(&at, own, left, err);
    if (status == QKV_OK && strncmp(at, "<-", 2) != 0)
        status = qkv_fail(err, QKV_ERR_SYNTAX, "expected '<-' before '%s'", at);
    if (status != QKV_OK) return status;
    at += 2;
    status = take_list(&at, other, right, err);
    if (status == QKV_OK && *at != ']')
        status = qkv_fail(err, QKV_ERR_SYNTAX, "expected ']' before '%s'", at);
    if (status != QKV_OK || left->n == right->n) return status;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "%zu %s%s before '<-' and %zu after it: each takes one of the other prompt",
                    left->n, own->one, qkv_plural(left->n), right->n);
}

int qkv_indices_pair(int64_t **from, const char *text, const qkv_axis *own, const qkv_axis *other,
                     qkv_error *err) {
    list left = {0}, right = {0};
    int status = take_lists(text, own, other, &left, &right, err);
    int64_t *map = status == QKV_OK ? qkv_calloc((size_t)own->n, sizeof *map) : NULL;
    if (status == QKV_OK && !map) status = qkv_fail_memory(err);
    for (int64_t i = 0; map && i < own->n; i++) map[i] = -1;
    for (size_t i = 0; status == QKV_OK && i < left.n; i++) {
        int64_t *to = &map[left.items[i]];
        if (*to >= 0)
            status = qkv_fail(err, QKV_ERR_PLAN, "%s %lld stands twice before '<-'", own->one,
                              (long long)left.items[i]);
        *to = right.items[i];
    }
    free(left.items);
    free(right.items);
    if (status != QKV_OK) {
        free(map);
        return status;
    }
    *from = map;
    return QKV_OK;
}
