/*
 * Unigram, tokenizer.ggml.model = "t5".
 *
 * Of all the ways to cover the text with tokens, the one with the highest sum of scores, found
 * position by position (Viterbi). A character that no token covers costs more than any token; a run
 * of them is one unknown token, or byte tokens where the vocabulary has them for all bytes.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_spm.h"

#define BYTE_FALLBACK_KEY "qkv.tokenizer.byte_fallback"
#define UNKNOWN_PENALTY 10.0

/* Every position looks at most this far: longer tokens would make long texts slow. */
enum { MAX_TOKEN_LENGTH = 2048 };

typedef struct unigram_state {
    qkv_token_index tokens;
    double unknown_score;
    int byte_fallback;
    int32_t byte_tokens[256];
} unigram_state;

static void free_state(void *state) {
    unigram_state *unigram = state;
    qkv_token_index_release(&unigram->tokens);
    free(unigram);
}

static int is_ordinary(const qkv_vocab_token *token) {
    return token->length > 0 &&
           (token->type == QKV_TOKEN_NORMAL || token->type == QKV_TOKEN_USER_DEFINED ||
            token->type == QKV_TOKEN_UNUSED);
}

static int index_tokens(const qkv_vocab *vocab, unigram_state *unigram, const char *path,
                        qkv_error *err) {
    int32_t *ids = qkv_calloc((size_t)vocab->n_tokens, sizeof *ids);
    size_t count = 0;
    double lowest = 0;
    if (!ids) return qkv_fail_memory(err);
    for (size_t i = 0; i < 256; i++) unigram->byte_tokens[i] = QKV_NO_TOKEN;
    int status = QKV_OK;
    for (int32_t i = 0; i < vocab->n_tokens && status == QKV_OK; i++) {
        const qkv_vocab_token *token = &vocab->tokens[i];
        int byte = qkv_vocab_byte_of(token->text, token->length);
        if (byte >= 0 && unigram->byte_tokens[byte] == QKV_NO_TOKEN) unigram->byte_tokens[byte] = i;
        if (token->type == QKV_TOKEN_NORMAL && vocab->scores[i] < lowest) lowest = vocab->scores[i];
        if (!is_ordinary(token)) continue;
        if (isinf(vocab->scores[i]))
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s: the score of token %d is infinite", path,
                              (int)i);
        if (token->length > MAX_TOKEN_LENGTH)
            status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: token %d has more than %d bytes", path,
                              (int)i, MAX_TOKEN_LENGTH);
        ids[count++] = i;
    }
    unigram->unknown_score = lowest - UNKNOWN_PENALTY;
    if (status == QKV_OK)
        status = qkv_token_index_init(&unigram->tokens, vocab->tokens, ids, count, err);
    free(ids);
    return status;
}

/* The character map, runs of spaces made one, U+2581 for spaces. */
static int make_normalizer(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    const char *steps[7];
    size_t n = 0;
    int join = 0;
    if (vocab->normalizer) return QKV_OK;
    int found = qkv_gguf_bool(file, "tokenizer.ggml.remove_extra_whitespaces", &join, err);
    if (found < 0) return found;
    if (vocab->charsmap.trie) steps[n++] = "precompiled";
    if (join) steps[n++] = "join_blanks";
    if (join || vocab->add_space_prefix) {
        steps[n++] = "prepend";
        steps[n++] = " ";
    }
    steps[n++] = "replace";
    steps[n++] = " ";
    steps[n++] = QKV_SPM_SPACE;
    return qkv_normalizer_new(&vocab->normalizer, steps, n, &vocab->charsmap, file->path, err);
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    if (!vocab->scores)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", file->path);
    unigram_state *unigram = qkv_calloc(1, sizeof *unigram);
    vocab->state = unigram;
    vocab->label = qkv_strdup("unigram");
    if (!unigram || !vocab->label) return qkv_fail_memory(err);
    int status = index_tokens(vocab, unigram, file->path, err);
    if (status != QKV_OK) return status;
    int found = qkv_gguf_bool(file, BYTE_FALLBACK_KEY, &unigram->byte_fallback, err);
    return found < 0 ? found : make_normalizer(vocab, file, err);
}

/* The best way to cover the text up to some position: its last token. */
typedef struct best_end {
    double score;
    int32_t id; /* QKV_NO_TOKEN: a character that no token covers */
    uint32_t start;
} best_end;

static void offer(best_end *best, uint32_t start, size_t end, double score, int32_t id) {
    if (score > best[end].score) best[end] = (best_end){score, id, start};
}

/* Offers every token that starts at a position to where it ends. */
static void extend(const qkv_vocab *vocab, const char *text, size_t length, size_t at,
                   best_end *best) {
    const unigram_state *unigram = vocab->state;
    const qkv_token_index *index = &unigram->tokens;
    uint32_t code;
    const size_t character = qkv_utf8_decode(text + at, length - at, &code);
    int covered = 0;
    qkv_token_cursor cursor = qkv_token_index_start(index, text[at]);
    int some = cursor.low < cursor.high;
    while (some) {
        int32_t id = qkv_token_index_get(index, vocab->tokens, &cursor);
        size_t end = at + cursor.depth;
        if (id != QKV_NO_TOKEN) {
            int user = vocab->tokens[id].type == QKV_TOKEN_USER_DEFINED;
            offer(best, (uint32_t)at, end, best[at].score + (user ? 0 : vocab->scores[id]), id);
            covered |= cursor.depth == character;
        }
        some = end < length && qkv_token_index_step(index, vocab->tokens, &cursor, text[end]);
    }
    if (!covered)
        offer(best, (uint32_t)at, at + character, best[at].score + unigram->unknown_score,
              QKV_NO_TOKEN);
}

static int push_unknown(const qkv_vocab *vocab, qkv_encoding *work, const char *text, size_t length,
                        qkv_error *err) {
    const unigram_state *unigram = vocab->state;
    int complete = unigram->byte_fallback;
    for (size_t i = 0; i < length && complete; i++)
        complete = unigram->byte_tokens[(unsigned char)text[i]] != QKV_NO_TOKEN;
    if (!complete) return qkv_vocab_push_unknown(vocab, &work->out, text[0], err);
    int status = QKV_OK;
    for (size_t i = 0; i < length && status == QKV_OK; i++)
        status = qkv_token_list_push(&work->out, unigram->byte_tokens[(unsigned char)text[i]], err);
    return status;
}

/* Turns the chain of last tokens round: afterwards best[p].start is where the token that starts at
 * p ends, and best[p].id is that token. */
static void turn_round(best_end *best, size_t length) {
    size_t end = length, next_start = best[length].start;
    int32_t id = best[length].id;
    while (end > 0) {
        size_t start = next_start;
        next_start = best[start].start;
        int32_t next_id = best[start].id;
        best[start].start = (uint32_t)end;
        best[start].id = id;
        id = next_id;
        end = start;
    }
}

static int encode(const qkv_vocab *vocab, qkv_encoding *work, const char *text, size_t length,
                  qkv_error *err) {
    best_end *best = qkv_calloc(length + 1, sizeof *best);
    int status = QKV_OK;
    if (!best) return qkv_fail_memory(err);
    for (size_t i = 1; i <= length; i++) best[i].score = -DBL_MAX;
    /* Positions inside a character are never reached, but by tokens that end there. */
    for (size_t at = 0, used; at < length; at += used) {
        uint32_t code;
        used = qkv_utf8_decode(text + at, length - at, &code);
        extend(vocab, text, length, at, best);
    }
    turn_round(best, length);
    for (size_t at = 0; at < length && status == QKV_OK;) {
        size_t end = best[at].start;
        if (best[at].id != QKV_NO_TOKEN) {
            status = qkv_token_list_push(&work->out, best[at].id, err);
        } else {
            while (end < length && best[end].id == QKV_NO_TOKEN) end = best[end].start;
            status = push_unknown(vocab, work, text + at, end - at, err);
        }
        at = end;
    }
    free(best);
    return status;
}

const qkv_tokenizer qkv_tokenizer_unigram = {
    .model = "t5",
    .default_bos = QKV_NO_TOKEN,
    .default_eos = 1,
    .default_unknown = 2,
    .default_sep = QKV_NO_TOKEN,
    .add_bos = 0,
    .add_eos = 1,
    .add_space_prefix = 0,
    .load = load,
    .free_state = free_state,
    .encode = encode,
    .decode = qkv_spm_decode,
};
