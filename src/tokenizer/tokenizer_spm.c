/*
 * SentencePiece-style BPE, tokenizer.ggml.model = "llama".
 *
 * Spaces become U+2581, a space goes before the text where the model wants it, and neighbouring
 * characters merge in the order of their scores, or of a merge list where the file asks for that.
 * What no token covers falls back to byte tokens (<0x0A>), and to the unknown token where the
 * vocabulary has none.
 */
#include "tokenizer/tokenizer_spm.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_ranks.h"

#define USE_MERGES_KEY "qkv.tokenizer.use_merges"
#define FUSE_UNKNOWN_KEY "qkv.tokenizer.fuse_unknown"

typedef struct spm_state {
    qkv_string_map ids;       /* texts of ordinary tokens */
    int32_t byte_tokens[256]; /* or QKV_NO_TOKEN */
    size_t longest;           /* text among them, in bytes */
    int use_merges;           /* their order, not that of the scores */
    qkv_merge_ranks ranks;
    int whole_words; /* a word that is a token is taken whole, whatever the merges say */
    int byte_fallback;
    int fuse_unknown; /* neighbouring unknown characters are one token */
} spm_state;

void qkv_spm_free_state(void *state) {
    spm_state *spm = state;
    qkv_string_map_release(&spm->ids);
    qkv_merge_ranks_release(&spm->ranks);
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

int qkv_spm_default_normalizer(qkv_vocab *vocab, const char *path, qkv_error *err) {
    const char *const steps[] = {"prepend", QKV_SPM_SPACE, "replace", " ", QKV_SPM_SPACE};
    size_t skip = vocab->add_space_prefix ? 0 : 2;
    if (vocab->normalizer) return QKV_OK;
    return qkv_normalizer_new(&vocab->normalizer, steps + skip, 5 - skip, NULL, path, err);
}

static int read_flags(spm_state *spm, const qkv_gguf *file, qkv_error *err) {
    const struct {
        const char *key;
        int *value;
    } flags[] = {{USE_MERGES_KEY, &spm->use_merges},
                 {FUSE_UNKNOWN_KEY, &spm->fuse_unknown},
                 {"qkv.tokenizer.byte_fallback", &spm->byte_fallback},
                 {"qkv.tokenizer.ignore_merges", &spm->whole_words}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int found = qkv_gguf_bool(file, flags[i].key, flags[i].value, err);
        if (found < 0) return found;
    }
    return QKV_OK;
}

/* The merges may name any token; of equal texts an ordinary one goes first. */
static int load_merges(const qkv_vocab *vocab, spm_state *spm, const qkv_gguf *file,
                       qkv_error *err) {
    qkv_string_map all = {0};
    if (!qkv_string_map_init(&all, (size_t)vocab->n_tokens)) return qkv_fail_memory(err);
    for (int special = 0; special < 2; special++) {
        for (int32_t i = 0; i < vocab->n_tokens; i++) {
            const qkv_vocab_token *token = &vocab->tokens[i];
            if (token->length > 0 && is_ordinary(token) != special)
                qkv_string_map_add(&all, token->text, token->length, i);
        }
    }
    int status = qkv_merge_ranks_load(&spm->ranks, &all, file, err);
    qkv_string_map_release(&all);
    return status;
}

int qkv_spm_load(qkv_vocab *vocab, const qkv_gguf *file, int use_merges, const char *label,
                 qkv_error *err) {
    spm_state *spm = qkv_calloc(1, sizeof *spm);
    vocab->state = spm;
    vocab->label = qkv_strdup(label);
    if (!spm || !vocab->label) return qkv_fail_memory(err);
    if (!qkv_string_map_init(&spm->ids, (size_t)vocab->n_tokens)) return qkv_fail_memory(err);
    spm->use_merges = use_merges;
    spm->byte_fallback = 1;
    index_tokens(vocab, spm);
    int status = read_flags(spm, file, err);
    if (status == QKV_OK && spm->use_merges)
        status = load_merges(vocab, spm, file, err);
    else if (status == QKV_OK && !vocab->scores)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s: tokenizer.ggml.scores is missing", file->path);
    if (status == QKV_OK) status = qkv_spm_default_normalizer(vocab, file->path, err);
    return status;
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    return qkv_spm_load(vocab, file, 0, "sentencepiece", err);
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

/* 1 when every byte of a symbol has a token. */
static int has_bytes(const spm_text *text, const qkv_symbol *symbol) {
    if (!text->spm->byte_fallback) return 0;
    for (uint32_t i = 0; i < symbol->length; i++) {
        unsigned char byte = (unsigned char)text->bytes[symbol->start + i];
        if (text->spm->byte_tokens[byte] == QKV_NO_TOKEN) return 0;
    }
    return 1;
}

/* Byte tokens for a symbol that is not a token, or one unknown token when a byte has none. */
static int push_bytes(const spm_text *text, const qkv_symbol *symbol, int after_unknown,
                      qkv_token_list *out, qkv_error *err) {
    int status = QKV_OK;
    if (!has_bytes(text, symbol)) {
        if (after_unknown && text->spm->fuse_unknown) return QKV_OK;
        return qkv_vocab_push_unknown(text->vocab, out, text->bytes[symbol->start], err);
    }
    for (uint32_t i = 0; i < symbol->length && status == QKV_OK; i++) {
        unsigned char byte = (unsigned char)text->bytes[symbol->start + i];
        status = qkv_token_list_push(out, text->spm->byte_tokens[byte], err);
    }
    return status;
}

static int push_symbols(const spm_text *text, const qkv_merger *merger, qkv_token_list *out,
                        qkv_error *err) {
    int status = QKV_OK, after_unknown = 0;
    for (int32_t i = merger->n_symbols > 0 ? 0 : -1; i >= 0 && status == QKV_OK;
         i = merger->symbols[i].next) {
        const qkv_symbol *symbol = &merger->symbols[i];
        int known = symbol->id != QKV_NO_TOKEN;
        status = known ? qkv_token_list_push(out, symbol->id, err)
                       : push_bytes(text, symbol, after_unknown, out, err);
        after_unknown = !known && !has_bytes(text, symbol);
    }
    return status;
}

int qkv_spm_encode(const qkv_vocab *vocab, qkv_encoding *work, const char *bytes, size_t length,
                   qkv_error *err) {
    const spm_state *spm = vocab->state;
    const spm_text text = {vocab, spm, bytes};
    qkv_merger *merger = &work->merger;
    int status = QKV_OK;
    if (spm->whole_words) {
        int32_t id = qkv_string_map_find(&spm->ids, bytes, length);
        if (id != QKV_NO_TOKEN) return qkv_token_list_push(&work->out, id, err);
    }
    qkv_merger_clear(merger);
    for (size_t i = 0; i < length && status == QKV_OK;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(bytes + i, length - i, &code);
        int32_t id = qkv_string_map_find(&spm->ids, bytes + i, used);
        status = qkv_merger_add(merger, (uint32_t)i, (uint32_t)used, id, err);
        i += used;
    }
    if (status == QKV_OK)
        status = spm->use_merges ? qkv_merger_run(merger, qkv_merge_ranks_find, &spm->ranks, err)
                                 : qkv_merger_run(merger, find_pair, &text, err);
    return status == QKV_OK ? push_symbols(&text, merger, &work->out, err) : status;
}

void qkv_spm_decode(const qkv_vocab_token *token, qkv_text *out) {
    const char *rest = token->text, *blank;
    while ((blank = strstr(rest, QKV_SPM_SPACE)) != NULL) {
        qkv_text_append(out, rest, (size_t)(blank - rest));
        qkv_text_puts(out, " ");
        rest = blank + sizeof QKV_SPM_SPACE - 1;
    }
    qkv_text_puts(out, rest);
}

const qkv_tokenizer qkv_tokenizer_spm = {
    .model = "llama",
    .default_bos = 1,
    .default_eos = 2,
    .default_unknown = 0,
    .default_sep = QKV_NO_TOKEN,
    .add_bos = 1,
    .add_eos = 0,
    .add_space_prefix = 1,
    .load = load,
    .free_state = qkv_spm_free_state,
    .encode = qkv_spm_encode,
    .decode = qkv_spm_decode,
};
