/*
 * Cutting text into words, pattern by pattern. Data (the known ones) in pretokenizer_list.h.
 */
#include "tokenizer/pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tokenizer/pretokenizer_list.h"

enum { MAX_KNOWN_PATTERNS = 6, MAX_PATTERNS = 32 };

enum behavior {
#define QKV_SPLIT_ENUM(name) SPLIT_##name,
    QKV_SPLIT_LIST(QKV_SPLIT_ENUM) N_BEHAVIORS
#undef QKV_SPLIT_ENUM
};

static const char *const behavior_names[] = {
#define QKV_SPLIT_NAME(name) #name,
    QKV_SPLIT_LIST(QKV_SPLIT_NAME)
#undef QKV_SPLIT_NAME
};

typedef struct pretokenizer_entry {
    const char *name;
    unsigned flags;
    const char *patterns[MAX_KNOWN_PATTERNS];
} pretokenizer_entry;

static const pretokenizer_entry entries[] = {
#define QKV_PRETOKENIZER_ENTRY(name, flags, ...) {name, flags, {__VA_ARGS__}},
    QKV_PRETOKENIZER_LIST(QKV_PRETOKENIZER_ENTRY)
#undef QKV_PRETOKENIZER_ENTRY
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };

struct qkv_pretokenizer {
    unsigned flags;
    struct {
        qkv_regex *pattern;
        enum behavior behavior;
    } steps[MAX_PATTERNS];
    size_t n_steps;
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

static int find_behavior(const char *name, enum behavior *behavior) {
    for (size_t i = 0; i < N_BEHAVIORS; i++) {
        if (strcmp(behavior_names[i], name) != 0) continue;
        *behavior = (enum behavior)i;
        return 1;
    }
    return 0;
}

int qkv_pretokenizer_new_from(qkv_pretokenizer **out, const char *const *patterns,
                              const char *const *behaviors, size_t count, const char *name,
                              const char *path, qkv_error *err) {
    int status = QKV_OK;
    *out = NULL;
    if (count > MAX_PATTERNS)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: pre-tokenizer %s has more than %d patterns",
                        path, name, MAX_PATTERNS);
    qkv_pretokenizer *pre = qkv_calloc(1, sizeof *pre);
    qkv_text owner = {0};
    qkv_text_printf(&owner, "pre-tokenizer %s", name);
    if (!pre || owner.failed) status = qkv_fail_memory(err);
    for (size_t i = 0; i < count && status == QKV_OK; i++) {
        if (!find_behavior(behaviors[i], &pre->steps[i].behavior)) {
            status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: there is no split behavior '%.64s'",
                              path, behaviors[i]);
            break;
        }
        status = qkv_regex_new(&pre->steps[i].pattern, patterns[i], owner.data, path, err);
        pre->n_steps = i + 1;
    }
    qkv_text_release(&owner);
    if (status == QKV_OK)
        *out = pre;
    else
        qkv_pretokenizer_free(pre);
    return status;
}

const char *qkv_pretokenizer_known(size_t index, const char *const **patterns, size_t *count,
                                   int *whole_words) {
    if (index >= N_ENTRIES) return NULL;
    const pretokenizer_entry *entry = &entries[index];
    *patterns = entry->patterns;
    for (*count = 0; *count < MAX_KNOWN_PATTERNS && entry->patterns[*count];) (*count)++;
    *whole_words = (entry->flags & WHOLE) != 0;
    return entry->name;
}

int qkv_pretokenizer_new(qkv_pretokenizer **out, const char *name, const char *path,
                         qkv_error *err) {
    static const char *const all_isolated[MAX_KNOWN_PATTERNS] = {
        "isolated", "isolated", "isolated", "isolated", "isolated", "isolated"};
    const char *const *patterns = NULL, *known;
    size_t count = 0, index = 0;
    int whole = 0;
    *out = NULL;
    while ((known = qkv_pretokenizer_known(index, &patterns, &count, &whole)) != NULL) {
        if (strcmp(known, name) == 0) break;
        index++;
    }
    if (!known) return fail_unknown(name, path, err);
    int status = qkv_pretokenizer_new_from(out, patterns, all_isolated, count, name, path, err);
    if (status == QKV_OK) (*out)->flags = entries[index].flags;
    return status;
}

void qkv_pretokenizer_free(qkv_pretokenizer *pre) {
    if (!pre) return;
    for (size_t i = 0; i < pre->n_steps; i++) qkv_regex_free(pre->steps[i].pattern);
    free(pre);
}

int qkv_pretokenizer_whole_words(const qkv_pretokenizer *pre) {
    return (pre->flags & WHOLE) != 0;
}

int qkv_pretokenizer_adds_bos(const qkv_pretokenizer *pre) {
    return (pre->flags & BOS) != 0;
}

/* ---- splitting ---- */

/* What one pattern makes of one piece; matches and what lies between them come in order. */
typedef struct cutter {
    enum behavior behavior;
    qkv_match_list *out;
    size_t begin;   /* where this piece's parts begin in the list */
    int last_match; /* whether the last part was a match */
} cutter;

static int push(cutter *c, qkv_span part, qkv_error *err) {
    return QKV_PUSH(c->out->spans, c->out->capacity, c->out->count, part) ? QKV_OK
                                                                          : qkv_fail_memory(err);
}

static int cut(cutter *c, qkv_span part, int is_match, qkv_error *err) {
    if (part.start == part.end) return QKV_OK;
    int joins = 0, after = c->last_match, has_last = c->out->count > c->begin;
    c->last_match = is_match;
    switch (c->behavior) {
    case SPLIT_removed:
        return is_match ? QKV_OK : push(c, part, err);
    case SPLIT_removed_inverted:
        return is_match ? push(c, part, err) : QKV_OK;
    case SPLIT_contiguous:
        joins = has_last && is_match == after;
        break;
    case SPLIT_merged_with_previous:
        joins = has_last && is_match && !after;
        break;
    case SPLIT_merged_with_next:
        joins = has_last && !is_match && after;
        break;
    default:
        break;
    }
    if (!joins) return push(c, part, err);
    c->out->spans[c->out->count - 1].end = part.end;
    return QKV_OK;
}

static int cut_piece(const qkv_matcher *matcher, const qkv_regex *pattern, cutter *c,
                     qkv_span piece, qkv_error *err) {
    uint32_t at = piece.start;
    c->begin = c->out->count;
    c->last_match = 0;
    while (at < piece.end) {
        qkv_span match = {piece.end, piece.end};
        int found = qkv_matcher_find(matcher, pattern, piece, at, &match, err);
        if (found < 0) return found;
        int status = cut(c, (qkv_span){at, match.start}, 0, err);
        if (status == QKV_OK) status = cut(c, match, 1, err);
        if (status != QKV_OK) return status;
        at = match.end;
    }
    return QKV_OK;
}

static int split_all(const qkv_pretokenizer *pre, const qkv_matcher *matcher,
                     qkv_match_list *pieces, qkv_error *err) {
    int status = QKV_OK;
    for (size_t s = 0; s < pre->n_steps && status == QKV_OK; s++) {
        qkv_match_list finer = {0};
        cutter c = {.behavior = pre->steps[s].behavior, .out = &finer};
        for (size_t i = 0; i < pieces->count && status == QKV_OK; i++)
            status = cut_piece(matcher, pre->steps[s].pattern, &c, pieces->spans[i], err);
        free(pieces->spans);
        *pieces = finer;
    }
    return status;
}

int qkv_pretokenizer_split(const qkv_pretokenizer *pre, const char *text, size_t length,
                           qkv_match_budget *budget, qkv_span **pieces, size_t *count,
                           qkv_error *err) {
    qkv_matcher matcher = {0};
    qkv_match_list list = {0};
    const qkv_span all = {0, (uint32_t)length};
    *pieces = NULL;
    *count = 0;
    if (length == 0) return QKV_OK;
    int status = qkv_matcher_open(&matcher, text, length, budget, err);
    if (status != QKV_OK) return status;
    if (!QKV_PUSH(list.spans, list.capacity, list.count, all)) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = split_all(pre, &matcher, &list, err);
    qkv_matcher_close(&matcher);
    if (status != QKV_OK) {
        free(list.spans);
        return status;
    }
    *pieces = list.spans;
    *count = list.count;
    return QKV_OK;
}
