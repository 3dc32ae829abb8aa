/*
 * SentencePiece-style BPE, tokenizer.ggml.model = "llama".
 *
 * Blanks become U+2581, a blank goes before the text where the model wants it, and neighbouring
 * characters merge in the order of their scores. What no token covers falls back to byte tokens
 * (<0x0A>), and to the unknown token where the vocabulary has none.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/tokenizer_merge.h"
#include "model/vocab_internal.h"

#define BLANK "\xe2\x96\x81" /* U+2581, which stands for a space */
#define BLANK_LENGTH (sizeof BLANK - 1)

typedef struct spm_state {
    qkv_string_map ids;       /* texts of ordinary tokens */
    int32_t byte_tokens[256]; /* or QKV_NO_TOKEN */
    size_t longest;           /* text among them, in bytes */
} spm_state;

static void free_state(void *state) {
    spm_state *spm = state;
    qkv_string_map_release(&spm->ids);
    free(spm);
}

/* Text alone never becomes a control, unknown or byte token. */
static int is_ordinary(const qkv_vocab_token *token) {
    return token->length > 0 && token->type != QKV_TOKEN_CONTROL &&
           token->type != QKV_TOKEN_UNKNOWN && token->type != QKV_TOKEN_BYTE;
}

static void index_tokens(const qkv_vocab *vocab, spm_state *spm) {
    for (size_t i = 0; i < 256; i++) spm->byte_tokens[i] = QKV_NO_TOKEN;
    for (int32_t i = 0; i < vocab->n_tokens; i++) {
        const qkv_vocab_token *token = &vocab->tokens[i];
        int byte = qkv_vocab_byte_of(token->text, token->length);
        if (byte >= 0 && spm->byte_tokens[byte] == QKV_NO_TOKEN) spm->byte_tokens[byte] = i;
        if (!is_ordinary(token)) continue;
        qkv_string_map_add(&spm->ids, token->text, token->length, i);
        if (token->length > spm->longest) spm->longest = token->length;
    }
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    if (!vocab->scores)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", file->path);
    spm_state *spm = qkv_calloc(1, sizeof *spm);
    vocab->state = spm;
    vocab->label = qkv_strdup("sentencepiece");
    if (!spm || !vocab->label) return qkv_fail_memory(err);
    if (!qkv_string_map_init(&spm->ids, (size_t)vocab->n_tokens)) return qkv_fail_memory(err);
    index_tokens(vocab, spm);
    return QKV_OK;
}

typedef struct spm_text {
    const qkv_vocab *vocab;
    const spm_state *spm;
    const char *bytes;
} spm_text;

static int find_pair(const void *context, const qkv_symbol *left, const qkv_symbol *right,
                     double *order, int32_t *id) {
    const spm_text *text = context;
    size_t length = (size_t)left->length + right->length;
    if (length > text->spm->longest) return 0;
    *id = qkv_string_map_find(&text->spm->ids, text->bytes + left->start, length);
    if (*id == QKV_NO_TOKEN) return 0;
    *order = -(double)text->vocab->scores[*id];
    return 1;
}

/* Byte tokens for a symbol that is no token, or one unknown token when a byte has none. */
static int push_bytes(const spm_text *text, const qkv_symbol *symbol, qkv_token_list *out,
                      qkv_error *err) {
    const unsigned char *bytes = (const unsigned char *)text->bytes + symbol->start;
    for (uint32_t i = 0; i < symbol->length; i++) {
        if (text->spm->byte_tokens[bytes[i]] != QKV_NO_TOKEN) continue;
        if (text->vocab->unknown != QKV_NO_TOKEN)
            return qkv_token_list_push(out, text->vocab->unknown, err);
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "the vocabulary has no token for byte 0x%02X of the text", bytes[i]);
    }
    int status = QKV_OK;
    for (uint32_t i = 0; i < symbol->length && status == QKV_OK; i++)
        status = qkv_token_list_push(out, text->spm->byte_tokens[bytes[i]], err);
    return status;
}

static int encode_escaped(const spm_text *text, size_t length, qkv_token_list *out,
                          qkv_error *err) {
    qkv_merger merger = {0};
    int status = QKV_OK;
    for (size_t i = 0; i < length && status == QKV_OK;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(text->bytes + i, length - i, &code);
        int32_t id = qkv_string_map_find(&text->spm->ids, text->bytes + i, used);
        status = qkv_merger_add(&merger, (uint32_t)i, (uint32_t)used, id, err);
        i += used;
    }
    if (status == QKV_OK) status = qkv_merger_run(&merger, find_pair, text, err);
    for (int32_t i = merger.n_symbols > 0 ? 0 : -1; i >= 0 && status == QKV_OK;
         i = merger.symbols[i].next) {
        const qkv_symbol *symbol = &merger.symbols[i];
        status = symbol->id != QKV_NO_TOKEN ? qkv_token_list_push(out, symbol->id, err)
                                            : push_bytes(text, symbol, out, err);
    }
    qkv_merger_release(&merger);
    return status;
}

static int encode(const qkv_vocab *vocab, qkv_token_list *out, const char *text, size_t length,
                  qkv_error *err) {
    qkv_text escaped = {0};
    if (vocab->add_space_prefix) qkv_text_puts(&escaped, BLANK);
    for (size_t i = 0; i < length;) {
        const char *space = memchr(text + i, ' ', length - i);
        size_t end = space ? (size_t)(space - text) : length;
        qkv_text_append(&escaped, text + i, end - i);
        if (space) qkv_text_puts(&escaped, BLANK);
        i = end + (space != NULL);
    }
    const spm_text source = {vocab, vocab->state, escaped.data};
    int status =
        escaped.failed ? qkv_fail_memory(err) : encode_escaped(&source, escaped.length, out, err);
    qkv_text_release(&escaped);
    return status;
}

static void decode(const qkv_vocab_token *token, qkv_text *out) {
    const char *rest = token->text, *blank;
    while ((blank = strstr(rest, BLANK)) != NULL) {
        qkv_text_append(out, rest, (size_t)(blank - rest));
        qkv_text_puts(out, " ");
        rest = blank + BLANK_LENGTH;
    }
    qkv_text_puts(out, rest);
}

const qkv_tokenizer qkv_tokenizer_spm = {
    .model = "llama",
    .default_bos = 1,
    .default_eos = 2,
    .default_unknown = 0,
    .add_bos = 1,
    .add_eos = 0,
    .add_space_prefix = 1,
    .load = load,
    .free_state = free_state,
    .encode = encode,
    .decode = decode,
};
