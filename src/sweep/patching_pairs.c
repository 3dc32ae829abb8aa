/*
 * Pairs of prompts, and which positions of the two stand for one another: all of them where the
 * prompts have the same number of tokens, else those that `align` says:
 *
 *     prefix          counted from the beginning, as far as the shorter prompt goes
 *     suffix          counted from the end
 *     0-3=0-3,5=6     positions of the clean prompt = those of the corrupt one
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "sweep/patching.h"

static const char *const roles[] = {"clean", "corrupt"};

/* How messages call a prompt. */
static void name_prompt(const qkv_patching *p, size_t number, char name[64]) {
    if (p->n_pairs > 1)
        snprintf(name, 64, "the %s prompt of pair %zu", roles[number % 2], number / 2);
    else
        snprintf(name, 64, "the %s prompt", roles[number % 2]);
}

/* ---- reading ---- */

static int read_answers(qkv_spec *spec, size_t number, const json_t *object, qkv_error *err) {
    static const char *const keys[] = {"answer", "wrong"};
    qkv_patch_pair *pair = &spec->sweep->patching->pairs[number];
    qkv_error why = {0};
    for (int k = 0; k < QKV_PATCH_PARTS; k++) {
        const json_t *text = json_object_get(object, keys[k]);
        if (!text) continue;
        if (!json_is_string(text))
            return qkv_fail(err, QKV_ERR_SYNTAX, "pair %zu: %s must be a text", number, keys[k]);
        if (json_string_length(text) == 0)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "pair %zu: %s is empty", number, keys[k]);
        pair->texts[k] = qkv_strdup(json_string_value(text));
        if (!pair->texts[k]) return qkv_fail_memory(err);
    }
    const int status =
        qkv_patching_find_answers(spec->sweep->model, pair->texts, pair->answers, &why);
    if (status != QKV_OK)
        return qkv_fail(err, status, "the answers of pair %zu: %s", number, why.message);
    return QKV_OK;
}

static int read_pair(qkv_spec *spec, size_t number, const json_t *object, qkv_error *err) {
    static const char *const keys[] = {"answer", "clean", "corrupt", "wrong"};
    int status = QKV_OK;
    if (!json_is_object(object))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "pair %zu is not an object such as {\"clean\": TEXT, \"corrupt\": TEXT}",
                        number);
    if (json_object_get(spec->object, "pairs"))
        status = qkv_spec_check_keys(object, keys, sizeof keys / sizeof *keys, err);
    for (int role = 0; role < 2 && status == QKV_OK; role++) {
        const json_t *value = json_object_get(object, roles[role]);
        const size_t at = spec->sweep->n_prompts;
        char name[64];
        name_prompt(spec->sweep->patching, at, name);
        if (spec->prompts)
            status = qkv_spec_add_prompt(spec->sweep, &spec->prompts->items[at], err);
        else if (value)
            status = qkv_spec_prompt(spec->sweep, value, name, err);
        else
            return qkv_fail(err, QKV_ERR_SYNTAX, "%s is missing", name);
        if (status == QKV_OK) status = qkv_spec_prompt_check(spec->sweep, at, name, err);
    }
    return status == QKV_OK ? read_answers(spec, number, object, err) : status;
}

/* ---- alignment ---- */

typedef struct range {
    int64_t first, last;
} range;

/* "3" or "2-5"; returns where it ended, NULL where it is none. */
static const char *read_range(const char *at, range *out) {
    size_t n = strspn(at, "0123456789");
    if (!qkv_parse_int(at, n, &out->first)) return NULL;
    out->last = out->first;
    at += n;
    if (*at != '-') return at;
    n = strspn(++at, "0123456789");
    if (!qkv_parse_int(at, n, &out->last) || out->last < out->first) return NULL;
    return at + n;
}

static int fail_map(const char *text, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    "align is prefix, suffix or a map such as 0-3=0-3,5=6; '%s'%s", text, why);
}

static int add_aligned(qkv_patch_pair *pair, range clean, range corrupt) {
    for (int64_t i = 0; clean.first + i <= clean.last; i++) {
        pair->clean[pair->n_aligned] = (int32_t)(clean.first + i);
        pair->corrupt[pair->n_aligned++] = (int32_t)(corrupt.first + i);
    }
    return QKV_OK;
}

static int add_map(qkv_patch_pair *pair, const char *text, int64_t n_clean, int64_t n_corrupt,
                   qkv_error *err) {
    int64_t after_clean = 0, after_corrupt = 0;
    for (const char *at = text;; at++) {
        range clean = {0}, corrupt = {0};
        at = read_range(at, &clean);
        if (at && *at == '=')
            at = read_range(at + 1, &corrupt);
        else
            at = NULL;
        if (!at || (*at && *at != ',')) return fail_map(text, " is not one", err);
        if (clean.last - clean.first != corrupt.last - corrupt.first)
            return fail_map(text, " has ranges of different length", err);
        if (clean.first < after_clean || corrupt.first < after_corrupt)
            return fail_map(text, " does not ascend", err);
        if (clean.last >= n_clean || corrupt.last >= n_corrupt)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "align '%s' leaves the prompts, which have positions 0 to %" PRId64
                            " (clean) and 0 to %" PRId64 " (corrupt)",
                            text, n_clean - 1, n_corrupt - 1);
        add_aligned(pair, clean, corrupt);
        after_clean = clean.last + 1;
        after_corrupt = corrupt.last + 1;
        if (!*at) return QKV_OK;
    }
}

static void quote_token(const qkv_sweep *s, size_t prompt, int64_t position, qkv_text *out) {
    char *bytes = NULL;
    size_t length = 0;
    const qkv_own_prompt *p = &s->prompts[prompt];
    if ((size_t)position >= p->n_tokens) {
        qkv_text_puts(out, "the end");
        return;
    }
    qkv_text_puts(out, "\"");
    if (qkv_token_text(s->model, &bytes, &length, p->tokens[position], NULL) == QKV_OK)
        qkv_text_append_short(out, bytes, length, 40);
    qkv_text_puts(out, "\"");
    qkv_text_free(bytes);
}

static int fail_lengths(const qkv_sweep *s, size_t number, qkv_error *err) {
    const qkv_patch_pair *pair = &s->patching->pairs[number];
    qkv_text text = {0};
    if (s->patching->n_pairs > 1) qkv_text_printf(&text, "pair %zu: ", number);
    qkv_text_printf(&text,
                    "the clean prompt has %zu tokens and the corrupt one %zu, and they differ from "
                    "position %" PRId64 " on (",
                    s->prompts[2 * number].n_tokens, s->prompts[2 * number + 1].n_tokens,
                    pair->first_difference);
    quote_token(s, 2 * number, pair->first_difference, &text);
    qkv_text_puts(&text, " and ");
    quote_token(s, 2 * number + 1, pair->first_difference, &text);
    qkv_text_puts(&text, "); say with align which positions stand for one another: prefix, suffix, "
                         "or a map such as 0-3=0-3,5=6");
    const int status =
        text.failed ? qkv_fail_memory(err) : qkv_fail(err, QKV_ERR_PLAN, "%s", text.data);
    qkv_text_release(&text);
    return status;
}

static int align_pair(qkv_spec *spec, size_t number, qkv_error *err) {
    const qkv_sweep *s = spec->sweep;
    const char *align = s->patching->align;
    qkv_patch_pair *pair = &s->patching->pairs[number];
    const qkv_own_prompt *clean = &s->prompts[2 * number], *corrupt = clean + 1;
    const int64_t a = (int64_t)clean->n_tokens, b = (int64_t)corrupt->n_tokens;
    const int64_t n = a < b ? a : b;
    pair->clean = qkv_calloc((size_t)n, sizeof *pair->clean);
    pair->corrupt = qkv_calloc((size_t)n, sizeof *pair->corrupt);
    if (!pair->clean || !pair->corrupt) return qkv_fail_memory(err);
    while (pair->first_difference < n &&
           clean->tokens[pair->first_difference] == corrupt->tokens[pair->first_difference])
        pair->first_difference++;
    if (a == b && pair->first_difference == n) {
        if (s->patching->n_pairs > 1)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "pair %zu: the clean and the corrupt prompt are the same tokens",
                            number);
        return qkv_fail(err, QKV_ERR_PLAN, "the clean and the corrupt prompt are the same tokens");
    }
    if (!align && a != b) return fail_lengths(s, number, err);
    if (!align || strcmp(align, "prefix") == 0)
        return add_aligned(pair, (range){0, n - 1}, (range){0, n - 1});
    if (strcmp(align, "suffix") == 0)
        return add_aligned(pair, (range){a - n, a - 1}, (range){b - n, b - 1});
    return add_map(pair, align, a, b, err);
}

static int read_align(qkv_spec *spec, qkv_error *err) {
    const json_t *align = json_object_get(spec->object, "align");
    if (!align) return QKV_OK;
    if (!json_is_string(align)) return fail_map("this", " is not a text", err);
    spec->sweep->patching->align = qkv_strdup(json_string_value(align));
    return spec->sweep->patching->align ? QKV_OK : qkv_fail_memory(err);
}

/* ---- columns ---- */

static int check_same_length(const qkv_sweep *s, qkv_error *err) {
    for (size_t i = 2; i < s->n_prompts; i++) {
        if (s->prompts[i].n_tokens == s->prompts[i % 2].n_tokens) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "the %s prompt of pair %zu has %zu tokens and that of pair 0 has %zu; "
                        "means by position need pairs of one length (means by head do not)",
                        roles[i % 2], i / 2, s->prompts[i].n_tokens, s->prompts[i % 2].n_tokens);
    }
    return QKV_OK;
}

/* The positions that are named, or all that have a partner. */
int qkv_patching_columns(qkv_spec *spec, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    const qkv_patch_pair *pair = &p->pairs[0];
    json_t *list = NULL;
    int status = check_same_length(spec->sweep, err);
    if (status == QKV_OK) status = qkv_spec_list(spec, "positions", &list, err);
    p->positions = qkv_calloc(pair->n_aligned, sizeof *p->positions);
    uint8_t *wanted = qkv_calloc(spec->sweep->prompts[0].n_tokens, 1);
    if (status == QKV_OK && (!p->positions || !wanted)) status = qkv_fail_memory(err);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++) {
        const json_t *item = json_array_get(list, i);
        char number[32] = "";
        range of = {0};
        if (json_is_integer(item))
            snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
        const char *text = json_is_string(item) ? json_string_value(item) : number;
        const char *end = read_range(text, &of);
        if (!end || *end)
            status = qkv_fail(err, QKV_ERR_SYNTAX,
                              "positions are written 3, 2-4 or 0,2,5-7; '%s' is none", text);
        else if (of.last >= (int64_t)spec->sweep->prompts[0].n_tokens)
            status = qkv_fail(err, QKV_ERR_PLAN,
                              "position %" PRId64 " is out of range: the clean prompt has 0 to %zu",
                              of.last, spec->sweep->prompts[0].n_tokens - 1);
        for (int64_t k = of.first; k <= of.last && status == QKV_OK; k++) wanted[k] = 1;
    }
    for (size_t i = 0; i < pair->n_aligned && status == QKV_OK; i++) {
        if (list && !wanted[pair->clean[i]]) continue;
        wanted[pair->clean[i]] = 0;
        p->positions[p->n_positions++] = pair->clean[i];
    }
    for (size_t i = 0; list && status == QKV_OK && i < spec->sweep->prompts[0].n_tokens; i++) {
        if (wanted[i])
            status =
                qkv_fail(err, QKV_ERR_PLAN,
                         "position %zu of the clean prompt has no partner in the corrupt one", i);
    }
    free(wanted);
    json_decref(list);
    return status;
}

int qkv_patching_pairs(qkv_spec *spec, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    const json_t *pairs = json_object_get(spec->object, "pairs");
    if (pairs && json_array_size(pairs) == 0)
        return qkv_fail(err, QKV_ERR_SYNTAX, "pairs must be a list of objects");
    if (pairs &&
        (json_object_get(spec->object, "clean") || json_object_get(spec->object, "corrupt")))
        return qkv_fail(err, QKV_ERR_SYNTAX, "give pairs, or clean and corrupt, not both");
    p->n_pairs = pairs ? json_array_size(pairs) : 1;
    p->pairs = qkv_calloc(p->n_pairs, sizeof *p->pairs);
    if (!p->pairs) return qkv_fail_memory(err);
    int status = read_align(spec, err);
    for (size_t i = 0; i < p->n_pairs && status == QKV_OK; i++) {
        status = read_pair(spec, i, pairs ? json_array_get(pairs, i) : spec->object, err);
        if (status == QKV_OK) status = align_pair(spec, i, err);
    }
    return status;
}
