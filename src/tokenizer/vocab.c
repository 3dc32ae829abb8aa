/*
 * The vocabulary's outside: loading it by kind, tokens to text.
 *
 * It owns what all kinds have in common; how ordinary text becomes tokens is in vocab_encode.c and,
 * for each kind, in its tokenizer_*.c. Kinds that are not in the list are refused by name.
 */
#include "tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/model.h"
#include "tokenizer/vocab_internal.h"

#define MODEL_KEY "tokenizer.ggml.model"

static const qkv_tokenizer *const kinds[] = {
#define QKV_TOKENIZER_ENTRY(id) &qkv_tokenizer_##id,
    QKV_TOKENIZER_LIST(QKV_TOKENIZER_ENTRY)
#undef QKV_TOKENIZER_ENTRY
};

static const qkv_tokenizer *find_kind(const char *model) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i]->model, model) == 0) return kinds[i];
    }
    return NULL;
}

static int fail_kind(const qkv_gguf *file, const char *model, qkv_error *err) {
    qkv_text names = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        qkv_text_printf(&names, "%s%s", i ? ", " : "", kinds[i]->model);
    int status = names.failed ? qkv_fail_memory(err)
                              : qkv_fail(err, QKV_ERR_UNSUPPORTED,
                                         "%s: tokenizer '%.64s' is not supported (supported: %s)",
                                         file->path, model, names.data);
    qkv_text_release(&names);
    return status;
}

static int load_kind(qkv_vocab **out, const qkv_tokenizer *kind, const qkv_gguf *file,
                     qkv_error *err) {
    qkv_vocab *vocab = qkv_calloc(1, sizeof *vocab);
    if (!vocab) return qkv_fail_memory(err);
    vocab->kind = kind;
    int status = qkv_vocab_read_metadata(vocab, file, err);
    if (status == QKV_OK) status = qkv_vocab_read_pipeline(vocab, file, err);
    if (status == QKV_OK) status = kind->load(vocab, file, err);
    if (status == QKV_OK) status = qkv_vocab_form_specials(vocab, file->path, err);
    if (status == QKV_OK) status = qkv_vocab_find_ends(vocab, file, err);
    if (status == QKV_OK)
        *out = vocab;
    else
        qkv_vocab_free(vocab);
    return status;
}

int qkv_vocab_load(qkv_vocab **out, const struct gguf_context *gguf, const char *path,
                   qkv_error *err) {
    *out = NULL;
    /* The typed getters of gguf_file.h want a file; they never write to it. */
    qkv_gguf_part part = {.header = (struct gguf_context *)gguf};
    const qkv_gguf file = {.parts = &part, .n_parts = 1, .path = path};
    const char *model = NULL;
    int found = qkv_gguf_string(&file, MODEL_KEY, &model, err);
    if (found < 0) return found;
    if (!found) {
        if (gguf_find_key(gguf, "tokenizer.ggml.tokens") < 0) return QKV_OK;
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: has tokens but no %s", path, MODEL_KEY);
    }
    if (strcmp(model, "none") == 0 || strcmp(model, "no_vocab") == 0) return QKV_OK;
    const qkv_tokenizer *kind = find_kind(model);
    return kind ? load_kind(out, kind, &file, err) : fail_kind(&file, model, err);
}

void qkv_vocab_free(qkv_vocab *vocab) {
    if (!vocab) return;
    if (vocab->state) vocab->kind->free_state(vocab->state);
    free(vocab->label);
    free(vocab->tokens);
    free(vocab->pool);
    free(vocab->scores);
    free(vocab->ends);
    qkv_token_index_release(&vocab->specials);
    qkv_token_forms_release(&vocab->forms);
    qkv_normalizer_free(vocab->normalizer);
    qkv_charsmap_release(&vocab->charsmap);
    qkv_pretokenizer_free(vocab->pre);
    free(vocab);
}

int32_t qkv_vocab_size(const qkv_vocab *vocab) {
    return vocab->n_tokens;
}

int32_t qkv_vocab_end(const qkv_vocab *vocab, size_t index) {
    return index < vocab->n_ends ? vocab->ends[index] : QKV_NO_TOKEN;
}

int32_t qkv_vocab_separator(const qkv_vocab *vocab) {
    /* A directory's tokenizer says which token ends a text, and that is the one. */
    return vocab->add_eos && !vocab->add_sep ? vocab->eos : vocab->sep;
}

int qkv_vocab_has_segments(const qkv_vocab *vocab) {
    return vocab->kind == &qkv_tokenizer_wordpiece && qkv_vocab_separator(vocab) >= 0;
}

int32_t qkv_vocab_pair_separators(const qkv_vocab *vocab) {
    return qkv_vocab_separator(vocab) >= 0 ? vocab->pair_separators : 0;
}

const char *qkv_vocab_kind(const qkv_vocab *vocab) {
    return vocab->label;
}

static int check_id(const qkv_vocab *vocab, int32_t token, qkv_error *err) {
    if (token >= 0 && token < vocab->n_tokens) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "token %d is outside the vocabulary (0 to %d)",
                    (int)token, (int)vocab->n_tokens - 1);
}

/* Control tokens have no bytes of their own: what they give is their name. */
static int is_named(const qkv_vocab_token *token) {
    return token->type == QKV_TOKEN_CONTROL || token->type == QKV_TOKEN_UNKNOWN;
}

static void append_token(const qkv_vocab *vocab, const qkv_vocab_token *token, qkv_text *out) {
    int byte = token->type == QKV_TOKEN_BYTE ? qkv_vocab_byte_of(token->text, token->length) : -1;
    const char single = (char)byte;
    if (is_named(token))
        qkv_text_append(out, token->text, token->length);
    else if (byte >= 0)
        qkv_text_append(out, &single, 1);
    else
        vocab->kind->decode(token, out);
}

static int take_text(qkv_text *out, char **text, size_t *length, qkv_error *err) {
    if (out->failed) {
        qkv_text_release(out);
        return qkv_fail_memory(err);
    }
    *text = out->data;
    *length = out->length;
    return QKV_OK;
}

/* The space that encoding put before the text, and again after each special token, is the one that
 * decoding takes away there: the first byte of the first piece that has any. */
static void drop_prefix(qkv_text *out, size_t start) {
    if (out->failed || out->length == start || out->data[start] != ' ') return;
    memmove(out->data + start, out->data + start + 1, out->length - start);
    out->length--;
}

int qkv_vocab_detokenize(const qkv_vocab *vocab, char **text, size_t *length, const int32_t *tokens,
                         size_t n_tokens, int keep_special, qkv_error *err) {
    qkv_text out = {0};
    int opens = 1;
    *text = NULL;
    *length = 0;
    qkv_text_puts(&out, "");
    for (size_t i = 0; i < n_tokens; i++) {
        if (check_id(vocab, tokens[i], err) != QKV_OK) {
            qkv_text_release(&out);
            return QKV_ERR_ARGUMENT;
        }
        const qkv_vocab_token *token = &vocab->tokens[tokens[i]];
        /* An unknown token stands for a part of ordinary text: no space was put after it. */
        int special = token->type == QKV_TOKEN_CONTROL || token->type == QKV_TOKEN_USER_DEFINED;
        size_t start = out.length;
        if (keep_special || !is_named(token)) append_token(vocab, token, &out);
        if (opens && !special && vocab->add_space_prefix) drop_prefix(&out, start);
        opens = special;
    }
    return take_text(&out, text, length, err);
}

int qkv_vocab_token_text(const qkv_vocab *vocab, char **text, size_t *length, int32_t token,
                         qkv_error *err) {
    qkv_text out = {0};
    *text = NULL;
    *length = 0;
    if (check_id(vocab, token, err) != QKV_OK) return QKV_ERR_ARGUMENT;
    qkv_text_puts(&out, "");
    append_token(vocab, &vocab->tokens[token], &out);
    return take_text(&out, text, length, err);
}
