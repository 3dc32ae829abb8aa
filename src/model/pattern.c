/* PCRE2, in Unicode mode, with just-in-time code where the processor has it. */
#include "model/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

/* Steps per byte that a match may take, and how many any match may. Patterns are linear, with a
 * small factor. */
#define STEPS_PER_BYTE 64u
#define STEPS_AT_LEAST 1000000u

struct qkv_pattern {
    pcre2_code *code;
    char *owner;
};

int qkv_pattern_new(qkv_pattern **out, const char *pattern, const char *owner, const char *path,
                    qkv_error *err) {
    int number;
    PCRE2_SIZE offset;
    *out = NULL;
    qkv_pattern *made = qkv_calloc(1, sizeof *made);
    char *copy = qkv_strdup(owner);
    if (!made || !copy) {
        free(made);
        free(copy);
        return qkv_fail_memory(err);
    }
    made->owner = copy;
    made->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                      &number, &offset, NULL);
    if (!made->code) {
        PCRE2_UCHAR message[128] = "";
        pcre2_get_error_message(number, message, sizeof message);
        qkv_pattern_free(made);
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: pattern of %s, offset %zu: %s", path, owner,
                        (size_t)offset, (const char *)message);
    }
    /* Without just-in-time code (not every processor has it) the interpreter does the same. */
    pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE);
    *out = made;
    return QKV_OK;
}

void qkv_pattern_free(qkv_pattern *pattern) {
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern->owner);
    free(pattern);
}

/* A copy of the same length where each malformed byte is U+001A, "substitute"; NULL when memory is
 * short. */
static char *make_well_formed(const char *text, size_t length) {
    char *copy = qkv_strndup(text, length);
    for (size_t i = 0; copy && i < length;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(text + i, length - i, &code);
        if (used == 1 && (unsigned char)text[i] >= 0x80) copy[i] = 0x1a;
        i += used;
    }
    return copy;
}

int qkv_matcher_open(qkv_matcher *matcher, const char *text, size_t length, qkv_error *err) {
    *matcher = (qkv_matcher){.text = text};
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->limits = pcre2_match_context_create(NULL);
    if (!qkv_utf8_valid(text, length))
        matcher->text = matcher->repaired = make_well_formed(text, length);
    if (!matcher->data || !matcher->limits || !matcher->text) {
        qkv_matcher_close(matcher);
        return qkv_fail_memory(err);
    }
    uint64_t steps = (uint64_t)length * STEPS_PER_BYTE;
    if (steps < STEPS_AT_LEAST) steps = STEPS_AT_LEAST;
    pcre2_set_match_limit(matcher->limits, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    return QKV_OK;
}

void qkv_matcher_close(qkv_matcher *matcher) {
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->limits);
    free(matcher->repaired);
    *matcher = (qkv_matcher){0};
}

int qkv_matcher_find(const qkv_matcher *matcher, const qkv_pattern *pattern, qkv_span piece,
                     uint32_t from, qkv_span *match, qkv_error *err) {
    PCRE2_SPTR subject = (PCRE2_SPTR)matcher->text + piece.start;
    const size_t length = piece.end - piece.start, at = from - piece.start;
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc =
        pcre2_match(pattern->code, subject, length, at, options, matcher->data, matcher->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(pattern->code, subject, length, at, options | PCRE2_NO_JIT, matcher->data,
                         matcher->limits);
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc == PCRE2_ERROR_NOMEMORY) return qkv_fail_memory(err);
    if (rc < 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the text is too much for %s at byte %zu (PCRE2 error %d)", pattern->owner,
                        (size_t)from, rc);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(matcher->data);
    /* \K can put the start behind the end, or before what was looked for. */
    if (span[0] < at || span[1] <= span[0]) return 0;
    *match = (qkv_span){piece.start + (uint32_t)span[0], piece.start + (uint32_t)span[1]};
    return 1;
}

int qkv_pattern_find_all(const qkv_pattern *pattern, const char *text, size_t length,
                         qkv_match_list *out, qkv_error *err) {
    qkv_matcher matcher;
    const qkv_span all = {0, (uint32_t)length};
    qkv_span match = {0, 0};
    int status = qkv_matcher_open(&matcher, text, length, err);
    if (status != QKV_OK) return status;
    while (match.end < all.end) {
        status = qkv_matcher_find(&matcher, pattern, all, match.end, &match, err);
        if (status <= 0) break;
        if (!QKV_PUSH(out->spans, out->capacity, out->count, match)) {
            status = qkv_fail_memory(err);
            break;
        }
    }
    qkv_matcher_close(&matcher);
    return status < 0 ? status : QKV_OK;
}
