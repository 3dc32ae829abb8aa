/*
 * Cutting text into words with PCRE2.
 *
 * The compiled patterns are shared by all threads; each split has match data of its own. Matching
 * is bounded: a text that a pattern cannot finish in reasonable steps is refused, never hung on.
 */
#include "model/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/pretokenizer_list.h"

enum { MAX_PATTERNS = 6 };

/* Steps per byte that a match may take, and how many any match may. Patterns are linear, with a
 * small factor. */
#define STEPS_PER_BYTE 64u
#define STEPS_AT_LEAST 10000000u

typedef struct pretokenizer_entry {
    const char *name;
    unsigned flags;
    const char *patterns[MAX_PATTERNS];
} pretokenizer_entry;

static const pretokenizer_entry entries[] = {
#define QKV_PRETOKENIZER_ENTRY(name, flags, ...) {name, flags, {__VA_ARGS__}},
    QKV_PRETOKENIZER_LIST(QKV_PRETOKENIZER_ENTRY)
#undef QKV_PRETOKENIZER_ENTRY
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };

struct qkv_pretokenizer {
    const pretokenizer_entry *entry;
    pcre2_code *codes[MAX_PATTERNS];
    size_t n_codes;
};

static int fail_unknown(const char *name, const char *path, qkv_error *err) {
    qkv_text names = {0};
    for (size_t i = 0; i < N_ENTRIES; i++)
        qkv_text_printf(&names, "%s%s", i ? ", " : "", entries[i].name);
    int status = names.failed
                     ? qkv_fail_memory(err)
                     : qkv_fail(err, QKV_ERR_UNSUPPORTED,
                                "%s: pre-tokenizer '%.64s' is not supported (supported: %s)", path,
                                name, names.data);
    qkv_text_release(&names);
    return status;
}

static int compile(pcre2_code **out, const char *name, const char *pattern, qkv_error *err) {
    int code;
    PCRE2_SIZE offset;
    *out = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &code, &offset, NULL);
    if (!*out) {
        PCRE2_UCHAR message[128] = "";
        pcre2_get_error_message(code, message, sizeof message);
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "pattern of pre-tokenizer %s, offset %zu: %s",
                        name, (size_t)offset, (const char *)message);
    }
    /* Without just-in-time code (not every processor has it) the interpreter does the same. */
    pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    return QKV_OK;
}

int qkv_pretokenizer_new(qkv_pretokenizer **out, const char *name, const char *path,
                         qkv_error *err) {
    *out = NULL;
    const pretokenizer_entry *entry = NULL;
    for (size_t i = 0; i < N_ENTRIES && !entry; i++) {
        if (strcmp(entries[i].name, name) == 0) entry = &entries[i];
    }
    if (!entry) return fail_unknown(name, path, err);
    qkv_pretokenizer *pre = qkv_calloc(1, sizeof *pre);
    if (!pre) return qkv_fail_memory(err);
    pre->entry = entry;
    for (; pre->n_codes < MAX_PATTERNS && entry->patterns[pre->n_codes]; pre->n_codes++) {
        int status = compile(&pre->codes[pre->n_codes], name, entry->patterns[pre->n_codes], err);
        if (status != QKV_OK) {
            qkv_pretokenizer_free(pre);
            return status;
        }
    }
    *out = pre;
    return QKV_OK;
}

void qkv_pretokenizer_free(qkv_pretokenizer *pre) {
    if (!pre) return;
    for (size_t i = 0; i < pre->n_codes; i++) pcre2_code_free(pre->codes[i]);
    free(pre);
}

int qkv_pretokenizer_whole_words(const qkv_pretokenizer *pre) {
    return (pre->entry->flags & WHOLE) != 0;
}

int qkv_pretokenizer_adds_bos(const qkv_pretokenizer *pre) {
    return (pre->entry->flags & BOS) != 0;
}

typedef struct end_list {
    uint32_t *ends;
    size_t count, capacity;
} end_list;

typedef struct splitter {
    const qkv_pretokenizer *pre;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const char *text; /* well-formed */
} splitter;

/* 1 and the match, 0 for none, or a negative status. */
static int match(const splitter *s, const pcre2_code *code, const char *text, size_t length,
                 size_t from, size_t *start, size_t *end, qkv_error *err) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = pcre2_match(code, subject, length, from, PCRE2_NO_UTF_CHECK, s->data, s->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(code, subject, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->data,
                         s->limits);
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc == PCRE2_ERROR_NOMEMORY) return qkv_fail_memory(err);
    if (rc < 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the text is too much for pre-tokenizer %s at byte %zu (PCRE2 error %d)",
                        s->pre->entry->name, (size_t)(text - s->text) + from, rc);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->data);
    *start = span[0];
    *end = span[1];
    return *end > *start;
}

/* Cuts the piece from `first` to `last` into the pattern's matches and what lies between. */
static int split_piece(const splitter *s, const pcre2_code *code, uint32_t first, uint32_t last,
                       end_list *out, qkv_error *err) {
    size_t at = 0, length = last - first, start = 0, end = 0;
    while (at < length) {
        int found = match(s, code, s->text + first, length, at, &start, &end, err);
        if (found < 0) return found;
        if (!found) start = end = length;
        if (start > at && !QKV_PUSH(out->ends, out->capacity, out->count, first + (uint32_t)start))
            return qkv_fail_memory(err);
        if (end > start && !QKV_PUSH(out->ends, out->capacity, out->count, first + (uint32_t)end))
            return qkv_fail_memory(err);
        at = end;
    }
    return QKV_OK;
}

static int split_all(const splitter *s, end_list *pieces, qkv_error *err) {
    int status = QKV_OK;
    for (size_t c = 0; c < s->pre->n_codes && status == QKV_OK; c++) {
        end_list finer = {0};
        uint32_t first = 0;
        for (size_t i = 0; i < pieces->count && status == QKV_OK; i++) {
            status = split_piece(s, s->pre->codes[c], first, pieces->ends[i], &finer, err);
            first = pieces->ends[i];
        }
        free(pieces->ends);
        *pieces = finer;
    }
    return status;
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

static int prepare(splitter *s, size_t length, qkv_error *err) {
    s->data = pcre2_match_data_create(1, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->data || !s->limits) return qkv_fail_memory(err);
    uint64_t steps = (uint64_t)length * STEPS_PER_BYTE;
    if (steps < STEPS_AT_LEAST) steps = STEPS_AT_LEAST;
    pcre2_set_match_limit(s->limits, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    return QKV_OK;
}

int qkv_pretokenizer_split(const qkv_pretokenizer *pre, const char *text, size_t length,
                           uint32_t **ends, size_t *count, qkv_error *err) {
    splitter s = {.pre = pre, .text = text};
    end_list pieces = {0};
    char *repaired = NULL;
    *ends = NULL;
    *count = 0;
    if (length == 0) return QKV_OK;
    int status = prepare(&s, length, err);
    if (status != QKV_OK) goto done;
    if (!qkv_utf8_valid(text, length)) {
        s.text = repaired = make_well_formed(text, length);
        if (!repaired) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK && !QKV_PUSH(pieces.ends, pieces.capacity, pieces.count, (uint32_t)length))
        status = qkv_fail_memory(err);
    if (status == QKV_OK) status = split_all(&s, &pieces, err);
done:
    pcre2_match_data_free(s.data);
    pcre2_match_context_free(s.limits);
    free(repaired);
    if (status != QKV_OK) {
        free(pieces.ends);
        return status;
    }
    *ends = pieces.ends;
    *count = pieces.count;
    return QKV_OK;
}
