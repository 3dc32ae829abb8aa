/*
 * Fuzzer: the bytes are a regular expression, as tokenizer.json has them, and, after a NUL, a text.
 * Whatever they are, matching ends: with matches in order, or with one line. Memory is bounded here,
 * steps by libFuzzer's time for one input.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/regex.h"

/* What PCRE2 may take for places to come back to, its code, and the lists of matches. */
enum { ALLOWED = 48 << 20, MAX_TEXT = 4096 };

static void find(const qkv_regex *pattern, const char *text, size_t length) {
    qkv_match_budget budget = qkv_match_budget_for(length);
    const uint64_t steps = budget.steps;
    qkv_match_list matches = {0};
    qkv_error err = {0};
    const int status = qkv_regex_find_all(pattern, text, length, &budget, &matches, &err);
    fuzz_check_status(status, status == QKV_OK ? &matches : NULL, &err);
    FUZZ_REQUIRE(budget.steps <= steps);
    for (size_t i = 0; i < matches.count; i++) {
        const qkv_span span = matches.spans[i];
        FUZZ_REQUIRE(span.start < span.end && span.end <= length);
        FUZZ_REQUIRE(i == 0 || matches.spans[i - 1].end <= span.start);
    }
    free(matches.spans);
}

/* The same pattern twice, the second in the pieces that the first leaves. */
static void split(const char *pattern, const char *text, size_t length) {
    const char *const patterns[] = {pattern, pattern};
    static const char *const behaviors[] = {"contiguous", "isolated"};
    qkv_pretokenizer *pre = NULL;
    qkv_span *pieces = NULL;
    size_t count = 0;
    qkv_error err = {0};
    int status = qkv_pretokenizer_new_from(&pre, patterns, behaviors, 2, "fuzz", "fuzz", &err);
    fuzz_check_status(status, pre, &err);
    if (status != QKV_OK) return;
    qkv_match_budget budget = qkv_match_budget_for(length);
    status = qkv_pretokenizer_split(pre, text, length, &budget, &pieces, &count, &err);
    if (status != QKV_OK) fuzz_check_status(status, pieces, &err);
    for (size_t i = 0, at = 0; i < count; at = pieces[i++].end)
        FUZZ_REQUIRE(pieces[i].start == at && pieces[i].end > at && pieces[i].end <= length);
    FUZZ_REQUIRE(status != QKV_OK || length == 0 || pieces[count - 1].end == length);
    free(pieces);
    qkv_pretokenizer_free(pre);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    if (!end) return 0;
    const char *text = (const char *)end + 1;
    size_t length = size - (size_t)(end - data) - 1;
    if (length > MAX_TEXT) length = MAX_TEXT;
    qkv_text translated = {0};
    qkv_regex *pattern = NULL;
    qkv_error err = {0};
    fuzz_watch_memory(ALLOWED, 1);
    if (qkv_regex_translate(&translated, (const char *)data, "fuzz", &err) == QKV_OK) {
        const char *regex = translated.data ? translated.data : "";
        const int status = qkv_regex_new(&pattern, regex, "fuzz", "fuzz", &err);
        fuzz_check_status(status, pattern, &err);
        if (pattern) find(pattern, text, length);
        if (pattern) split(regex, text, length);
        qkv_regex_free(pattern);
    }
    fuzz_check_memory();
    qkv_text_release(&translated);
    return 0;
}
