/*
 * WordPiece, tokenizer.ggml.model = "bert".
 *
 * Text is simplified (small letters, no accents), cut at white space and around every punctuation
 * mark and ideograph; each word is then covered by the longest token that fits, again and again. A
 * word that cannot be covered, or has too many characters, is one unknown token. In the vocabulary
 * a token that starts a word has U+2581 before it, one that continues a word has nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_spm.h"

#define MAX_CHARACTERS_KEY "qkv.tokenizer.max_word_characters"
#define CLS_KEY "tokenizer.ggml.cls_token_id"

enum { MAX_CHARACTERS = 100, LARGEST_MAX_CHARACTERS = 1000 };

typedef struct wordpiece_state {
    qkv_token_index tokens; /* ordinary ones */
    int64_t max_characters;
} wordpiece_state;

static void free_state(void *state) {
    wordpiece_state *wordpiece = state;
    qkv_token_index_release(&wordpiece->tokens);
    free(wordpiece);
}

static int index_tokens(const qkv_vocab *vocab, wordpiece_state *wordpiece, qkv_error *err) {
    int32_t *ids = qkv_calloc((size_t)vocab->n_tokens, sizeof *ids);
    size_t count = 0;
    if (!ids) return qkv_fail_memory(err);
    for (int32_t i = 0; i < vocab->n_tokens; i++) {
        const qkv_vocab_token *token = &vocab->tokens[i];
        if (token->length > 0 && token->type != QKV_TOKEN_CONTROL &&
            token->type != QKV_TOKEN_UNKNOWN)
            ids[count++] = i;
    }
    int status = qkv_token_index_init(&wordpiece->tokens, vocab->tokens, ids, count, err);
    free(ids);
    return status;
}

/* How BERT's own tokeniser simplifies and cuts text; two flags may be in the file. */
static int make_defaults(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    static const char *const patterns[] = {"\\p{White_Space}", "[\\p{P}!-\\/:-@\\[-`{-~]"};
    static const char *const behaviors[] = {"removed", "isolated"};
    int lower = 1;
    int found = qkv_gguf_bool(file, "tokenizer.ggml.normalizer.lowercase", &lower, err);
    if (found < 0) return found;
    int strip = lower;
    found = qkv_gguf_bool(file, "tokenizer.ggml.normalizer.strip_accents", &strip, err);
    if (found < 0) return found;
    const char *const steps[] = {"bert", "1", "1", strip ? "1" : "0", lower ? "1" : "0"};
    int status = QKV_OK;
    if (!vocab->normalizer)
        status = qkv_normalizer_new(&vocab->normalizer, steps, 5, NULL, file->path, err);
    if (status == QKV_OK && !vocab->pre)
        status =
            qkv_pretokenizer_new_from(&vocab->pre, patterns, behaviors, 2, "bert", file->path, err);
    return status;
}

/* What starts a text may be called CLS instead of BOS. */
static int read_cls(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    int64_t cls = 0;
    if (gguf_find_key(file->parts[0].header, "tokenizer.ggml.bos_token_id") >= 0) return QKV_OK;
    int found = qkv_gguf_int(file, CLS_KEY, 0, vocab->n_tokens - 1, &cls, err);
    if (found > 0) vocab->bos = (int32_t)cls;
    return found < 0 ? found : QKV_OK;
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    wordpiece_state *wordpiece = qkv_calloc(1, sizeof *wordpiece);
    vocab->state = wordpiece;
    vocab->label = qkv_strdup("wordpiece");
    if (!wordpiece || !vocab->label) return qkv_fail_memory(err);
    wordpiece->max_characters = MAX_CHARACTERS;
    /* The mark of a word's start becomes a space; that of the first word goes. */
    vocab->add_space_prefix = 1;
    int status = index_tokens(vocab, wordpiece, err);
    if (status != QKV_OK) return status;
    int found = qkv_gguf_int(file, MAX_CHARACTERS_KEY, 1, LARGEST_MAX_CHARACTERS,
                             &wordpiece->max_characters, err);
    if (found < 0) return found;
    status = read_cls(vocab, file, err);
    return status == QKV_OK ? make_defaults(vocab, file, err) : status;
}

static int is_too_long(const wordpiece_state *wordpiece, const char *word, size_t length) {
    int64_t characters = 0;
    for (size_t i = 0; i < length; i++) characters += ((unsigned char)word[i] & 0xc0) != 0x80;
    return characters > wordpiece->max_characters;
}

/* The longest token at the start of the text: its length, or 0. The mark of a word's start counts
 * as such there only, and not alone; elsewhere it is a character that no token continues with. */
static size_t longest_token(const qkv_vocab *vocab, const char *text, size_t length, int starts,
                            int32_t *id) {
    const wordpiece_state *wordpiece = vocab->state;
    const size_t mark = sizeof QKV_SPM_SPACE - 1;
    if (!starts && length >= mark && memcmp(text, QKV_SPM_SPACE, mark) == 0) return 0;
    qkv_token_cursor cursor = qkv_token_index_start(&wordpiece->tokens, text[0]);
    int some = cursor.low < cursor.high;
    size_t best = 0;
    while (some) {
        int32_t token = qkv_token_index_get(&wordpiece->tokens, vocab->tokens, &cursor);
        if (token != QKV_NO_TOKEN && (!starts || cursor.depth > mark)) {
            *id = token;
            best = cursor.depth;
        }
        some = cursor.depth < length &&
               qkv_token_index_step(&wordpiece->tokens, vocab->tokens, &cursor, text[cursor.depth]);
    }
    return best;
}

static int encode(const qkv_vocab *vocab, qkv_encoding *work, const char *word, size_t length,
                  qkv_error *err) {
    const wordpiece_state *wordpiece = vocab->state;
    const size_t begin = work->out.count;
    size_t at = 0;
    if (is_too_long(wordpiece, word, length))
        return qkv_vocab_push_unknown(vocab, &work->out, word[0], err);
    qkv_text *marked = &work->scratch;
    marked->length = 0;
    qkv_text_puts(marked, QKV_SPM_SPACE);
    qkv_text_append(marked, word, length);
    if (marked->failed) return qkv_fail_memory(err);
    while (at < marked->length) {
        int32_t id = QKV_NO_TOKEN;
        size_t used = longest_token(vocab, marked->data + at, marked->length - at, at == 0, &id);
        if (used == 0) {
            work->out.count = begin;
            return qkv_vocab_push_unknown(vocab, &work->out, word[0], err);
        }
        int status = qkv_token_list_push(&work->out, id, err);
        if (status != QKV_OK) return status;
        at += used;
    }
    return QKV_OK;
}

const qkv_tokenizer qkv_tokenizer_wordpiece = {
    .model = "bert",
    .default_bos = 101,
    .default_eos = QKV_NO_TOKEN,
    .default_unknown = 100,
    .default_sep = 102,
    .add_bos = 1,
    .add_eos = 0,
    .add_sep = 1,
    .add_space_prefix = 0,
    .load = load,
    .free_state = free_state,
    .encode = encode,
    .decode = qkv_spm_decode,
};
