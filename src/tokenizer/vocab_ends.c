/*
 * The tokens that end a text: what the metadata name or list, and special tokens whose names say it. Many files
 * name one end only, where chats of the same model end with another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/vocab_internal.h"

static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                   "tokenizer.ggml.eom_token_id"};

static const char *const names[] = {"<|endoftext|>",
                                    "<|end_of_text|>",
                                    "<|eot_id|>",
                                    "<|eom_id|>",
                                    "<|im_end|>",
                                    "<end_of_turn>",
                                    "<|end|>",
                                    "<|return|>",
                                    "<|call|>",
                                    "<end_of_utterance>",
                                    "<|END_OF_TURN_TOKEN|>",
                                    "<｜end▁of▁sentence｜>"};

int qkv_vocab_is_end(const qkv_vocab *vocab, int32_t token) {
    for (size_t i = 0; i < vocab->n_ends; i++) {
        if (vocab->ends[i] == token) return 1;
    }
    return 0;
}

static int add_end(qkv_vocab *vocab, size_t *capacity, int64_t token, qkv_error *err) {
    if (token < 0 || token >= vocab->n_tokens || qkv_vocab_is_end(vocab, (int32_t)token))
        return QKV_OK;
    if (!QKV_PUSH(vocab->ends, *capacity, vocab->n_ends, (int32_t)token))
        return qkv_fail_memory(err);
    return QKV_OK;
}

static int32_t find_special(const qkv_vocab *vocab, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < vocab->specials.count; i++) {
        const int32_t id = vocab->specials.ids[i];
        const qkv_vocab_token *token = &vocab->tokens[id];
        if (token->length == length && memcmp(token->text, name, length) == 0) return id;
    }
    return QKV_NO_TOKEN;
}

/* What generation_config.json says, in a key of our own. Ids beyond the vocabulary mean nothing. */
static int add_listed(qkv_vocab *vocab, size_t *capacity, const qkv_gguf *file, qkv_error *err) {
    const int32_t *ids = NULL;
    size_t n = 0;
    int status = qkv_vocab_read_ids(file, QKV_END_TOKENS_KEY, &ids, &n, err);
    if (n > QKV_MOST_END_TOKENS)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s has %zu tokens; at most %d can end a text",
                        file->path, QKV_END_TOKENS_KEY, n, QKV_MOST_END_TOKENS);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        status = add_end(vocab, capacity, ids[i], err);
    return status;
}

int qkv_vocab_find_ends(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    size_t capacity = 0;
    int status = add_end(vocab, &capacity, vocab->eos, err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && status == QKV_OK; i++) {
        int64_t id = QKV_NO_TOKEN;
        const int found = qkv_gguf_int(file, keys[i], 0, UINT32_MAX, &id, err);
        if (found < 0) return found;
        if (found) status = add_end(vocab, &capacity, id, err);
    }
    if (status == QKV_OK) status = add_listed(vocab, &capacity, file, err);
    /* Where messages have an end of their own (gpt-oss), it is none of the text. */
    const int has_return = find_special(vocab, "<|return|>") != QKV_NO_TOKEN;
    for (size_t i = 0; i < sizeof names / sizeof *names && status == QKV_OK; i++) {
        if (has_return && strcmp(names[i], "<|end|>") == 0) continue;
        status = add_end(vocab, &capacity, find_special(vocab, names[i]), err);
    }
    return status;
}
