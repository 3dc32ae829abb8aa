/*
 * Tokens that are written out in the text: "<|bos|>", "<|im_start|>", runs of blanks.
 *
 * They are kept sorted by their bytes, so that the longest one at a position is found by narrowing
 * a range byte after byte; a table by first byte lets ordinary text pass at the cost of one look.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/vocab_internal.h"

static int is_special(const qkv_vocab_token *token) {
    return token->length > 0 &&
           (token->type == QKV_TOKEN_CONTROL || token->type == QKV_TOKEN_USER_DEFINED ||
            token->type == QKV_TOKEN_UNKNOWN);
}

typedef struct special {
    const qkv_vocab_token *token;
    int32_t id;
} special;

static int compare_texts(const qkv_vocab_token *a, const qkv_vocab_token *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* By text; of equal texts a user-defined token comes first, since it always counts, then the lower
 * id. */
static int compare_specials(const void *left, const void *right) {
    const special *a = left, *b = right;
    int order = compare_texts(a->token, b->token);
    if (order) return order;
    int user_a = a->token->type == QKV_TOKEN_USER_DEFINED;
    int user_b = b->token->type == QKV_TOKEN_USER_DEFINED;
    return user_a != user_b ? user_b - user_a : (a->id > b->id) - (a->id < b->id);
}

static int sort_specials(qkv_vocab *vocab, size_t count, qkv_error *err) {
    special *sorted = qkv_calloc(count, sizeof *sorted);
    vocab->specials = qkv_calloc(count, sizeof *vocab->specials);
    if (!sorted || !vocab->specials) {
        free(sorted);
        return qkv_fail_memory(err);
    }
    size_t n = 0;
    for (int32_t i = 0; i < vocab->n_tokens; i++) {
        if (is_special(&vocab->tokens[i])) sorted[n++] = (special){&vocab->tokens[i], i};
    }
    qsort(sorted, n, sizeof *sorted, compare_specials);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && compare_texts(sorted[i - 1].token, sorted[i].token) == 0) continue;
        vocab->specials[vocab->n_specials++] = sorted[i].id;
        vocab->special_ranges[(unsigned char)sorted[i].token->text[0] + 1]++;
    }
    for (size_t i = 0; i < 256; i++) vocab->special_ranges[i + 1] += vocab->special_ranges[i];
    free(sorted);
    return QKV_OK;
}

/* Which special tokens swallow white space is not in the metadata; it goes by the model's name.
 * token NULL stands for every special token; later lines override earlier ones. */
static const struct {
    const char *key, *contains; /* in lower case */
    const char *token;
    uint8_t left, right;
} strip_rules[] = {
    {"general.name", "phi-3", NULL, 0, 1},
    {"general.name", "phi-3", "<unk>", 0, 0},
    {"general.name", "phi-3", "<s>", 0, 0},
    {"general.name", "phi-3", "<|endoftext|>", 0, 0},
    {"general.name", "phi3", NULL, 0, 1},
    {"general.name", "phi3", "<unk>", 0, 0},
    {"general.name", "phi3", "<s>", 0, 0},
    {"general.name", "phi3", "<|endoftext|>", 0, 0},
    {"general.name", "modern-bert", "[MASK]", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-de", "<mask>", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-es", "<mask>", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-code", "<mask>", 1, 0},
};

static int contains_ignoring_case(const char *text, const char *part) {
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == part[i]) i++;
        if (!part[i]) return 1;
    }
    return 0;
}

static int apply_strip_rules(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    for (size_t r = 0; r < sizeof strip_rules / sizeof *strip_rules; r++) {
        const char *value = NULL;
        int found = qkv_gguf_string(file, strip_rules[r].key, &value, err);
        if (found < 0) return found;
        if (!found || !contains_ignoring_case(value, strip_rules[r].contains)) continue;
        for (size_t i = 0; i < vocab->n_specials; i++) {
            qkv_vocab_token *token = &vocab->tokens[vocab->specials[i]];
            if (strip_rules[r].token && strcmp(strip_rules[r].token, token->text) != 0) continue;
            token->strips_left = strip_rules[r].left;
            token->strips_right = strip_rules[r].right;
        }
    }
    return QKV_OK;
}

int qkv_vocab_index_specials(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    size_t count = 0;
    for (int32_t i = 0; i < vocab->n_tokens; i++) count += (size_t)is_special(&vocab->tokens[i]);
    int status = sort_specials(vocab, count, err);
    return status == QKV_OK ? apply_strip_rules(vocab, file, err) : status;
}

/* First index in [low, high) whose byte at `depth` is at least `byte`. Texts that end there come
 * first. */
static size_t lower_bound(const qkv_vocab *vocab, size_t low, size_t high, size_t depth, int byte) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const qkv_vocab_token *token = &vocab->tokens[vocab->specials[middle]];
        int at = depth < token->length ? (unsigned char)token->text[depth] : -1;
        if (at < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t qkv_vocab_match_special(const qkv_vocab *vocab, const char *text, size_t length,
                                int parse_special) {
    if (length == 0) return QKV_NO_TOKEN;
    unsigned char first = (unsigned char)text[0];
    size_t low = vocab->special_ranges[first], high = vocab->special_ranges[first + 1];
    int32_t best = QKV_NO_TOKEN;
    for (size_t depth = 1; low < high; depth++) {
        int32_t id = vocab->specials[low];
        const qkv_vocab_token *token = &vocab->tokens[id];
        if (token->length == depth && (parse_special || token->type == QKV_TOKEN_USER_DEFINED))
            best = id;
        if (depth >= length) break;
        int byte = (unsigned char)text[depth];
        low = lower_bound(vocab, low, high, depth, byte);
        high = lower_bound(vocab, low, high, depth, byte + 1);
    }
    return best;
}
