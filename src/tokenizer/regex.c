/*
 * PCRE2, in Unicode mode, with just-in-time code where the processor has it.
 *
 * PCRE2 counts the steps of one attempt, that is from one place of the text, and forgets them. So
 * places are tried one by one here, with patterns compiled to match where they are put, and each try
 * gets a limit that grows as it is reached: what a try took is known within a factor, and the text
 * as a whole has a budget.
 *
 * How far a step looks is not counted by PCRE2 at all. So a try sees the text up to a window's end
 * first, which grows too: a partial match is how PCRE2 says that it wanted to look further.
 */
#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

/* Steps that a text may take, for each of its bytes and besides. Published patterns take eight for
 * each byte of the worst text tried, and at most two of prose. */
#define STEPS_PER_BYTE 32u
#define STEPS_AT_LEAST 20000u
/* A try may take so many and see so many bytes for one step of the budget; each time that is not
 * enough it gets so many times more, for as many steps, or one for so many bytes. */
#define FREE_STEPS 64u
#define FREE_BYTES 512u
#define GROWTH 8u
#define BYTES_PER_STEP 8u

/* Memory for places to come back to, in KiB: where just-in-time code runs out of its stack. */
#define HEAP_KIB (16u << 10)

#define MAX_PATTERN (64u << 10) /* bytes; a published one has a few hundred */

struct qkv_regex {
    pcre2_code *code;
    char *owner;
    uint8_t starts[256]; /* whether a match can start with this byte */
};

qkv_match_budget qkv_match_budget_for(size_t length) {
    return (qkv_match_budget){STEPS_AT_LEAST + (uint64_t)length * STEPS_PER_BYTE};
}

/* What can start a match, of a pattern that is not tied to a place: PCRE2 looks for that alone. */
static void find_starts(uint8_t starts[256], const pcre2_code *code) {
    const uint8_t *bits = NULL;
    uint32_t kind = 0, unit = 0;
    pcre2_pattern_info(code, PCRE2_INFO_FIRSTCODETYPE, &kind);
    pcre2_pattern_info(code, PCRE2_INFO_FIRSTCODEUNIT, &unit);
    pcre2_pattern_info(code, PCRE2_INFO_FIRSTBITMAP, &bits);
    for (uint32_t i = 0; i < 256; i++) {
        /* It does not say whether the case counts. */
        const int same =
            unit == i || (unit < 128 && i < 128 && qkv_is_letter((char)i) && (unit ^ i) == 32);
        starts[i] = kind == 1 ? same : bits ? bits[i / 8] >> (i % 8) & 1 : 1;
    }
}

/* Compiled twice: once to ask what it can start with, which one that is tied to a place does not
 * tell. The number of PCRE2's error, and where in the pattern; 0 is success. */
static int compile(qkv_regex *made, const char *pattern, PCRE2_SIZE *offset) {
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    int number = PCRE2_ERROR_NOMEMORY;
    pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
    if (!limits) return number;
    pcre2_set_max_pattern_length(limits, MAX_PATTERN);
    pcre2_code *free_code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &number, offset, limits);
    if (free_code) {
        find_starts(made->starts, free_code);
        made->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                   options | PCRE2_ANCHORED, &number, offset, limits);
    }
    pcre2_code_free(free_code);
    pcre2_compile_context_free(limits);
    return made->code ? 0 : number;
}

int qkv_regex_new(qkv_regex **out, const char *pattern, const char *owner, const char *path,
                  qkv_error *err) {
    PCRE2_SIZE offset = 0;
    *out = NULL;
    qkv_regex *made = qkv_calloc(1, sizeof *made);
    char *copy = qkv_strdup(owner);
    if (!made || !copy) {
        free(made);
        free(copy);
        return qkv_fail_memory(err);
    }
    made->owner = copy;
    const int number = compile(made, pattern, &offset);
    if (number) {
        PCRE2_UCHAR message[128] = "";
        pcre2_get_error_message(number, message, sizeof message);
        qkv_regex_free(made);
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: pattern of %s, offset %zu: %s", path, owner,
                        (size_t)offset, (const char *)message);
    }
    /* Without just-in-time code (not every processor has it) the interpreter does the same. */
    pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    *out = made;
    return QKV_OK;
}

void qkv_regex_free(qkv_regex *pattern) {
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

int qkv_matcher_open(qkv_matcher *matcher, const char *text, size_t length,
                     qkv_match_budget *budget, qkv_error *err) {
    *matcher = (qkv_matcher){.text = text, .budget = budget};
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->limits = pcre2_match_context_create(NULL);
    if (!qkv_utf8_valid(text, length))
        matcher->text = matcher->repaired = make_well_formed(text, length);
    if (!matcher->data || !matcher->limits || !matcher->text) {
        qkv_matcher_close(matcher);
        return qkv_fail_memory(err);
    }
    pcre2_set_heap_limit(matcher->limits, HEAP_KIB);
    return QKV_OK;
}

void qkv_matcher_close(qkv_matcher *matcher) {
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->limits);
    free(matcher->repaired);
    *matcher = (qkv_matcher){0};
}

/* The start of a character, so many bytes after a place or a little before, or the end. */
static size_t window_end(const char *text, size_t length, size_t at, size_t bytes) {
    if (length - at <= bytes) return length;
    size_t end = at + bytes;
    while (((unsigned char)text[end] & 0xc0) == 0x80) end--;
    return end;
}

/* One try from one place, with so many steps, and so many bytes of the text. */
static int try_with(const qkv_matcher *m, const qkv_regex *pattern, qkv_span piece, size_t at,
                    uint32_t steps, size_t bytes) {
    const char *text = m->text + piece.start;
    const size_t length = piece.end - piece.start, end = window_end(text, length, at, bytes);
    const uint32_t options =
        PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (end < length ? PCRE2_PARTIAL_HARD : 0);
    pcre2_set_match_limit(m->limits, steps);
    int rc = pcre2_match(pattern->code, (PCRE2_SPTR)text, end, at, options, m->data, m->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(pattern->code, (PCRE2_SPTR)text, end, at, options | PCRE2_NO_JIT, m->data,
                         m->limits);
    return rc;
}

static int take(qkv_match_budget *budget, uint64_t steps) {
    const int enough = budget->steps > 0 && budget->steps >= steps;
    if (enough) budget->steps -= steps;
    return enough;
}

/* One try from one place, with as much as it takes and the text has left. */
static int try_at(const qkv_matcher *m, const qkv_regex *pattern, qkv_span piece, size_t at) {
    uint64_t steps = FREE_STEPS, bytes = FREE_BYTES, price = 1;
    while (take(m->budget, price)) {
        const int rc = try_with(m, pattern, piece, at, (uint32_t)steps, bytes);
        if (rc == PCRE2_ERROR_PARTIAL) {
            bytes *= GROWTH;
        } else if (rc == PCRE2_ERROR_MATCHLIMIT) {
            const uint64_t left = m->budget->steps, most = left < UINT32_MAX ? left : UINT32_MAX;
            steps = steps * GROWTH < most ? steps * GROWTH : most;
        } else {
            return rc;
        }
        price = 1 + (steps > FREE_STEPS ? steps - 1 : 0) +
                (bytes > FREE_BYTES ? bytes / BYTES_PER_STEP : 0);
    }
    return PCRE2_ERROR_MATCHLIMIT;
}

static int fail_try(const qkv_regex *pattern, size_t from, int rc, qkv_error *err) {
    if (rc == PCRE2_ERROR_NOMEMORY) return qkv_fail_memory(err);
    const char *what = rc == PCRE2_ERROR_MATCHLIMIT  ? "takes too many steps"
                       : rc == PCRE2_ERROR_HEAPLIMIT ? "takes too much memory"
                                                     : "fails";
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a regular expression of %s %s on this text, at byte %zu", pattern->owner, what,
                    from);
}

static size_t next_character(const char *text, size_t at, size_t length) {
    for (at++; at < length && ((unsigned char)text[at] & 0xc0) == 0x80;) at++;
    return at;
}

int qkv_matcher_find(const qkv_matcher *matcher, const qkv_regex *pattern, qkv_span piece,
                     uint32_t from, qkv_span *match, qkv_error *err) {
    const char *text = matcher->text + piece.start;
    const size_t length = piece.end - piece.start;
    for (size_t at = from - piece.start; at < length; at = next_character(text, at, length)) {
        if (!pattern->starts[(unsigned char)text[at]]) continue;
        const int rc = try_at(matcher, pattern, piece, at);
        if (rc == PCRE2_ERROR_NOMATCH) continue;
        if (rc < 0) return fail_try(pattern, piece.start + at, rc, err);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(matcher->data);
        /* \K can put the start after the end, or before what was looked for. */
        if (span[0] < at || span[1] <= span[0]) return 0;
        *match = (qkv_span){piece.start + (uint32_t)span[0], piece.start + (uint32_t)span[1]};
        return 1;
    }
    return 0;
}

int qkv_regex_find_all(const qkv_regex *pattern, const char *text, size_t length,
                       qkv_match_budget *budget, qkv_match_list *out, qkv_error *err) {
    qkv_matcher matcher;
    const qkv_span all = {0, (uint32_t)length};
    qkv_span match = {0, 0};
    int status = qkv_matcher_open(&matcher, text, length, budget, err);
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
