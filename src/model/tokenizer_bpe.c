/*
 * Byte-level BPE, tokenizer.ggml.model = "gpt2".
 *
 * Token texts spell bytes as printable characters: a byte that is a printable Latin-1 character
 * stands for itself, the others are U+0100 onwards in order. The text is cut into words
 * (pretokenizer.c); inside each, neighbouring symbols merge in the order of the merge list. Every
 * merge must name tokens, so that symbols are token ids throughout and never strings.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/pretokenizer.h"
#include "model/tokenizer_merge.h"
#include "model/vocab_internal.h"

#define MERGES_KEY "tokenizer.ggml.merges"
#define PRE_KEY "tokenizer.ggml.pre"

enum { MAX_SPELLING = 0x144 }; /* one past the highest code point that spells a byte */

typedef struct merge {
    int32_t left, right; /* left QKV_NO_TOKEN: free */
    int32_t rank, id;
} merge;

typedef struct bpe_state {
    qkv_string_map ids;       /* all token texts */
    int32_t byte_tokens[256]; /* or QKV_NO_TOKEN */
    merge *merges;            /* open addressing */
    size_t n_slots;           /* a power of two */
    qkv_pretokenizer *pre;
} bpe_state;

static void free_state(void *state) {
    bpe_state *bpe = state;
    qkv_string_map_release(&bpe->ids);
    free(bpe->merges);
    qkv_pretokenizer_free(bpe->pre);
    free(bpe);
}

static int spells_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/* The code point that spells each byte. */
static void byte_spellings(uint16_t spelling[256]) {
    uint16_t next = 0x100;
    for (unsigned i = 0; i < 256; i++) spelling[i] = spells_itself(i) ? (uint16_t)i : next++;
}

/* The byte that a code point spells, or -1. */
static int spelled_byte(uint32_t code) {
    if (code < 0x100) return spells_itself(code) ? (int)code : -1;
    if (code >= MAX_SPELLING) return -1;
    /* U+0100 to U+0120 are bytes 0x00 to 0x20, then 0x7f to 0xa0, and 0xad. */
    if (code <= 0x120) return (int)code - 0x100;
    return code == MAX_SPELLING - 1 ? 0xad : (int)code - 0x121 + 0x7f;
}

/* Tokens that text alone may become. */
static int is_ordinary(const qkv_vocab_token *token) {
    return token->type != QKV_TOKEN_CONTROL && token->type != QKV_TOKEN_UNKNOWN &&
           token->type != QKV_TOKEN_USER_DEFINED;
}

/* Of equal texts an ordinary token goes before a special one. */
static void index_tokens(const qkv_vocab *vocab, bpe_state *bpe) {
    for (int special = 0; special < 2; special++) {
        for (int32_t i = 0; i < vocab->n_tokens; i++) {
            const qkv_vocab_token *token = &vocab->tokens[i];
            if (token->length == 0 || is_ordinary(token) == special) continue;
            qkv_string_map_add(&bpe->ids, token->text, token->length, i);
        }
    }
    uint16_t spelling[256];
    byte_spellings(spelling);
    for (unsigned i = 0; i < 256; i++) {
        char text[4];
        int32_t id = qkv_string_map_find(&bpe->ids, text, qkv_utf8_encode(spelling[i], text));
        if (id != QKV_NO_TOKEN && !is_ordinary(&vocab->tokens[id])) id = QKV_NO_TOKEN;
        bpe->byte_tokens[i] = id;
    }
}

static merge *probe(const bpe_state *bpe, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t mask = bpe->n_slots - 1;
    for (size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & mask;; i = (i + 1) & mask) {
        merge *slot = &bpe->merges[i];
        if (slot->left == QKV_NO_TOKEN || (slot->left == left && slot->right == right)) return slot;
    }
}

/* "LEFT RIGHT"; a part may start with a blank but not be one. */
static int add_merge(bpe_state *bpe, const qkv_gguf *file, const char *text, size_t rank,
                     qkv_text *joined, qkv_error *err) {
    const char *blank = text[0] ? strchr(text + 1, ' ') : NULL;
    if (!blank || !blank[1])
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: merge %zu, '%.80s', is not two tokens",
                        file->path, rank, text);
    size_t left_length = (size_t)(blank - text), right_length = strlen(blank + 1);
    joined->length = 0;
    qkv_text_append(joined, text, left_length);
    qkv_text_append(joined, blank + 1, right_length);
    if (joined->failed) return qkv_fail_memory(err);
    int32_t left = qkv_string_map_find(&bpe->ids, text, left_length);
    int32_t right = qkv_string_map_find(&bpe->ids, blank + 1, right_length);
    int32_t id = qkv_string_map_find(&bpe->ids, joined->data, joined->length);
    if (left == QKV_NO_TOKEN || right == QKV_NO_TOKEN || id == QKV_NO_TOKEN)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: merge %zu, '%.80s': both parts and what they make must be tokens",
                        file->path, rank, text);
    merge *slot = probe(bpe, left, right);
    if (slot->left == QKV_NO_TOKEN) *slot = (merge){left, right, (int32_t)rank, id};
    return QKV_OK;
}

static int load_merges(bpe_state *bpe, const qkv_gguf *file, qkv_error *err) {
    int64_t key;
    size_t count;
    qkv_text joined = {0};
    int status = qkv_vocab_string_array(file, MERGES_KEY, &key, &count, err);
    if (status != QKV_OK) return status;
    for (bpe->n_slots = 16; bpe->n_slots / 2 < count;) bpe->n_slots *= 2;
    bpe->merges = qkv_calloc(bpe->n_slots, sizeof *bpe->merges);
    if (!bpe->merges) return qkv_fail_memory(err);
    for (size_t i = 0; i < bpe->n_slots; i++) bpe->merges[i].left = QKV_NO_TOKEN;
    for (size_t i = 0; i < count && status == QKV_OK; i++)
        status =
            add_merge(bpe, file, gguf_get_arr_str(file->parts[0].header, key, i), i, &joined, err);
    qkv_text_release(&joined);
    return status;
}

static int load_words(qkv_vocab *vocab, bpe_state *bpe, const qkv_gguf *file, qkv_error *err) {
    const char *name = "default";
    int found = qkv_gguf_string(file, PRE_KEY, &name, err);
    if (found < 0) return found;
    if (name[0] == '\0') name = "default";
    int status = qkv_pretokenizer_new(&bpe->pre, name, file->path, err);
    if (status != QKV_OK) return status;
    if (qkv_pretokenizer_adds_bos(bpe->pre) && vocab->bos != QKV_NO_TOKEN &&
        gguf_find_key(file->parts[0].header, "tokenizer.ggml.add_bos_token") < 0)
        vocab->add_bos = 1;
    qkv_text label = {0};
    qkv_text_printf(&label, "bpe (%s)", name);
    vocab->label = label.data;
    return label.failed ? qkv_fail_memory(err) : QKV_OK;
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    bpe_state *bpe = qkv_calloc(1, sizeof *bpe);
    vocab->state = bpe;
    vocab->add_space_prefix = 0; /* bytes in, the same bytes out */
    if (!bpe || !qkv_string_map_init(&bpe->ids, (size_t)vocab->n_tokens))
        return qkv_fail_memory(err);
    index_tokens(vocab, bpe);
    int status = load_words(vocab, bpe, file, err);
    return status == QKV_OK ? load_merges(bpe, file, err) : status;
}

static int find_pair(const void *context, const qkv_symbol *left, const qkv_symbol *right,
                     double *order, int32_t *id) {
    if (left->id == QKV_NO_TOKEN || right->id == QKV_NO_TOKEN) return 0;
    const merge *slot = probe(context, left->id, right->id);
    if (slot->left == QKV_NO_TOKEN) return 0;
    *order = slot->rank;
    *id = slot->id;
    return 1;
}

typedef struct bpe_work {
    qkv_merger merger;
    qkv_text spelled;
    uint16_t spelling[256];
} bpe_work;

/* The token that the whole word is, or QKV_NO_TOKEN. */
static int32_t whole_word(const qkv_vocab *vocab, bpe_work *work, const char *word, size_t length) {
    const bpe_state *bpe = vocab->state;
    work->spelled.length = 0;
    for (size_t i = 0; i < length; i++) {
        char text[4];
        size_t n = qkv_utf8_encode(work->spelling[(unsigned char)word[i]], text);
        qkv_text_append(&work->spelled, text, n);
    }
    if (work->spelled.failed) return QKV_NO_TOKEN; /* reported at the end */
    int32_t id = qkv_string_map_find(&bpe->ids, work->spelled.data, work->spelled.length);
    return id != QKV_NO_TOKEN && is_ordinary(&vocab->tokens[id]) ? id : QKV_NO_TOKEN;
}

static int push_missing(const qkv_vocab *vocab, qkv_token_list *out, char byte, qkv_error *err) {
    if (vocab->unknown != QKV_NO_TOKEN) return qkv_token_list_push(out, vocab->unknown, err);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "the vocabulary has no token for byte 0x%02X of the text", (unsigned char)byte);
}

static int encode_word(const qkv_vocab *vocab, bpe_work *work, qkv_token_list *out,
                       const char *word, size_t length, qkv_error *err) {
    const bpe_state *bpe = vocab->state;
    qkv_merger *merger = &work->merger;
    int status = QKV_OK;
    if (qkv_pretokenizer_whole_words(bpe->pre)) {
        int32_t id = whole_word(vocab, work, word, length);
        if (id != QKV_NO_TOKEN) return qkv_token_list_push(out, id, err);
    }
    qkv_merger_clear(merger);
    for (size_t i = 0; i < length && status == QKV_OK; i++)
        status =
            qkv_merger_add(merger, (uint32_t)i, 1, bpe->byte_tokens[(unsigned char)word[i]], err);
    if (status == QKV_OK) status = qkv_merger_run(merger, find_pair, bpe, err);
    for (int32_t i = 0; i >= 0 && status == QKV_OK; i = merger->symbols[i].next) {
        const qkv_symbol *symbol = &merger->symbols[i];
        status = symbol->id != QKV_NO_TOKEN ? qkv_token_list_push(out, symbol->id, err)
                                            : push_missing(vocab, out, word[symbol->start], err);
    }
    return status;
}

static int encode(const qkv_vocab *vocab, qkv_token_list *out, const char *text, size_t length,
                  qkv_error *err) {
    const bpe_state *bpe = vocab->state;
    bpe_work work = {{0}, {0}, {0}};
    uint32_t *ends = NULL;
    size_t count = 0, start = 0;
    byte_spellings(work.spelling);
    int status = qkv_pretokenizer_split(bpe->pre, text, length, &ends, &count, err);
    for (size_t i = 0; i < count && status == QKV_OK; i++) {
        status = encode_word(vocab, &work, out, text + start, ends[i] - start, err);
        start = ends[i];
    }
    if (status == QKV_OK && work.spelled.failed) status = qkv_fail_memory(err);
    qkv_merger_release(&work.merger);
    qkv_text_release(&work.spelled);
    free(ends);
    return status;
}

/* Characters that spell no byte are kept as they are: such tokens were added as plain text. */
static void decode(const qkv_vocab_token *token, qkv_text *out) {
    if (token->type == QKV_TOKEN_USER_DEFINED) {
        qkv_text_append(out, token->text, token->length);
        return;
    }
    for (size_t i = 0; i < token->length;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(token->text + i, token->length - i, &code);
        int byte = spelled_byte(code);
        const char single = (char)byte;
        qkv_text_append(out, byte < 0 ? token->text + i : &single, byte < 0 ? used : 1);
        i += used;
    }
}

const qkv_tokenizer qkv_tokenizer_bpe = {
    .model = "gpt2",
    .default_bos = QKV_NO_TOKEN,
    .default_eos = QKV_NO_TOKEN,
    .default_unknown = QKV_NO_TOKEN,
    .add_bos = 0,
    .add_eos = 0,
    .add_space_prefix = 0,
    .load = load,
    .free_state = free_state,
    .encode = encode,
    .decode = decode,
};
