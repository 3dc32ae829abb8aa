/* The table of llama.cpp's vocabularies, and texts that go through them. */
#include "support/real_vocabs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf.h"
#include "support/vocab_pairs.h"

const real_vocab real_vocabs[N_REAL_VOCABS] = {
    {"aquila", "bpe (default)", 0, 0},
    {"baichuan", "sentencepiece", 0, 0},
    {"bert-bge", "wordpiece", 1, 1},
    {"command-r", "bpe (command-r)", 1, 0},
    {"deepseek-coder", "bpe (deepseek-coder)", 1, 0},
    {"deepseek-llm", "bpe (deepseek-llm)", 1, 0},
    {"falcon", "bpe (falcon)", 1, 0},
    {"gemma-4", "bpe (gemma4)", 1, 0},
    {"gpt-2", "bpe (gpt-2)", 1, 0},
    {"gpt-neox", "bpe (default)", 0, 0},
    {"llama-bpe", "bpe (llama-bpe)", 1, 0},
    {"llama-spm", "sentencepiece", 1, 0},
    {"mpt", "bpe (mpt)", 1, 0},
    {"nomic-bert-moe", "unigram", 0, 1},
    {"phi-3", "sentencepiece", 1, 0},
    {"qwen2", "bpe (qwen2)", 1, 0},
    {"qwen35", "bpe (qwen35)", 1, 0},
    {"refact", "bpe (refact)", 1, 0},
    {"starcoder", "bpe (starcoder)", 1, 0},
};

int load_vocab(qkv_vocab **vocab, const char *path, qkv_error *err) {
    struct gguf_context *gguf = vocab_metadata(path);
    int status = qkv_vocab_load(vocab, gguf, path, err);
    gguf_free(gguf);
    return status;
}

const qkv_vocab *get_vocab_at(const char *dir, const char *name) {
    static qkv_vocab *loaded[N_REAL_VOCABS];
    for (size_t i = 0; i < N_REAL_VOCABS; i++) {
        if (!name) {
            qkv_vocab_free(loaded[i]);
            loaded[i] = NULL;
            continue;
        }
        if (strcmp(real_vocabs[i].name, name) != 0) continue;
        qkv_error err = {0};
        if (!loaded[i] && load_vocab(&loaded[i], vocab_path(dir, name, ""), &err) != QKV_OK)
            fail_msg("%s", err.message);
        return loaded[i];
    }
    if (name) fail_msg("no vocabulary %s", name);
    return NULL;
}

int free_real_vocabs(void **state) {
    (void)state;
    get_vocab_at(NULL, NULL);
    return 0;
}

size_t vocab_ids(const qkv_vocab *vocab, int32_t **ids, const char *text, size_t length,
                 unsigned flags) {
    size_t n = 0;
    qkv_error err = {0};
    if (qkv_vocab_tokenize(vocab, ids, &n, text, length, flags, &err) != QKV_OK)
        fail_msg("%s", err.message);
    assert_non_null(*ids);
    return n;
}
