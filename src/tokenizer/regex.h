/*
 * Regular expressions over UTF-8, by PCRE2.
 *
 * A compiled pattern is shared by all threads. Matching is bounded: a text that patterns cannot
 * finish in reasonable steps and memory is refused, never hung on. The steps are those of a whole
 * text, through all patterns and pieces of it: its budget, made once and handed on.
 */
#ifndef QKV_TOKENIZER_REGEX_H
#define QKV_TOKENIZER_REGEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/text.h"

typedef struct qkv_regex qkv_regex;

typedef struct qkv_span {
    uint32_t start, end;
} qkv_span;

typedef struct qkv_match_list {
    qkv_span *spans; /* freed with free */
    size_t count, capacity;
} qkv_match_list;

typedef struct qkv_match_budget {
    uint64_t steps; /* that are left */
} qkv_match_budget;

/* For a text of so many bytes. */
qkv_match_budget qkv_match_budget_for(size_t length);

/* `owner` and `path` are for messages. */
int qkv_regex_new(qkv_regex **out, const char *pattern, const char *owner, const char *path,
                  qkv_error *err);
void qkv_regex_free(qkv_regex *pattern);

/* Appends all matches in order, none empty. Any bytes will do: a malformed one counts as a control
 * character. */
int qkv_regex_find_all(const qkv_regex *pattern, const char *text, size_t length,
                       qkv_match_budget *budget, qkv_match_list *out, qkv_error *err);

/* For many matches in pieces of one text: qkv_matcher_open makes the text well-formed once. */
typedef struct qkv_matcher {
    struct pcre2_real_match_data_8 *data;
    struct pcre2_real_match_context_8 *limits;
    const char *text; /* well-formed, as long as the one given */
    char *repaired;
    qkv_match_budget *budget; /* borrowed */
} qkv_matcher;

int qkv_matcher_open(qkv_matcher *matcher, const char *text, size_t length,
                     qkv_match_budget *budget, qkv_error *err);
void qkv_matcher_close(qkv_matcher *matcher);
/* The first match at or after `from` within the piece, taken by itself: 1 and the span (of the
 * whole text), 0 for none, or a negative status. */
int qkv_matcher_find(const qkv_matcher *matcher, const qkv_regex *pattern, qkv_span piece,
                     uint32_t from, qkv_span *match, qkv_error *err);

/*
 * Patterns of tokenizer.json, which are Oniguruma's (Ruby's syntax), as PCRE2 understands them.
 *
 * White space is written as the property, as in pretokenizer_list.h, so that equal patterns become
 * equal texts. What means something else to PCRE2 and cannot be rewritten is refused.
 */

/* Appends the translation. */
int qkv_regex_translate(qkv_text *out, const char *pattern, const char *path, qkv_error *err);
/* Appends a pattern that matches the text literally. */
void qkv_regex_quote(qkv_text *out, const char *text);

#endif
