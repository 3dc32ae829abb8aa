/*
 * Makes what the corpus of fuzz_gguf starts from: `fuzz_seeds DIRECTORY`. Whole models of two to
 * four kilobytes, because mutations of larger ones mostly hit weights. Run it again when there is a
 * kind of model that no seed has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch.h"
#include "support/tiny_model.h"

static const char *const texts[] = {"<unk>", "<s>", "</s>", "t",  "h",  "e",
                                    "i",     "n",   "th",   "in", "the"};
enum { FEW = sizeof texts / sizeof *texts };

static void set_byte_level(struct gguf_context *gguf) {
    static const char *const merges[] = {"t h", "i n", "th e"};
    gguf_set_arr_str(gguf, "tokenizer.ggml.merges", (const char **)merges, 3);
}

static void set_sentencepiece(struct gguf_context *gguf) {
    float scores[FEW];
    for (int i = 0; i < FEW; i++) scores[i] = (float)-i;
    gguf_remove_key(gguf, "tokenizer.ggml.merges");
    gguf_remove_key(gguf, "tokenizer.ggml.pre");
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, FEW);
    gguf_set_val_bool(gguf, "tokenizer.ggml.add_space_prefix", true);
}

static void set_none(struct gguf_context *gguf) {
    static const char *const names[] = {
        "model",  "pre",          "tokens",       "token_type",
        "merges", "bos_token_id", "eos_token_id", "unknown_token_id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s", names[i]);
        gguf_remove_key(gguf, key);
    }
}

static void set_few_tokens(struct gguf_context *gguf) {
    int32_t types[FEW];
    for (int i = 0; i < FEW; i++) types[i] = texts[i][0] == '<' ? 3 : 1;
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", (const char **)texts, FEW);
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, FEW);
}

/* A model without most of its vocabulary, which would be most of the file. */
static void save(const tiny_options *options, void (*set_vocabulary)(struct gguf_context *),
                 const char *directory, const char *name) {
    tiny_file file;
    char path[512], key[64];
    struct gguf_context *gguf = gguf_init_empty();
    if (!gguf) abort();
    tiny_build(&file, options);
    gguf_set_kv(gguf, file.gguf);
    set_few_tokens(gguf);
    set_vocabulary(gguf);
    snprintf(key, sizeof key, "%s.vocab_size", options->family);
    if (gguf_find_key(gguf, key) >= 0) gguf_set_val_u32(gguf, key, FEW);
    for (struct ggml_tensor *t = ggml_get_first_tensor(file.tensors); t;
         t = ggml_get_next_tensor(file.tensors, t)) {
        if (t->ne[1] == TINY_VOCAB) t->ne[1] = FEW; /* whole rows, so the rest stays as it is */
        gguf_add_tensor(gguf, t);
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!gguf_write_to_file(gguf, path, false)) abort();
    gguf_free(gguf);
    tiny_free(&file);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
        return 2;
    }
    const char *to = argv[1];
    tiny_options o = {"llama", .n_layer = 1, .n_embd = 4, .n_head = 2, .head_dim = 2, .n_ff = 4};
    o.n_ctx = 8;
    save(&o, set_byte_level, to, "llama");
    save(&o, set_sentencepiece, to, "llama_sentencepiece");
    o.rope = TINY_ROPE_YARN, o.window = 3, o.qkv_bias = o.out_bias = o.ffn_bias = 1;
    save(&o, set_none, to, "llama_yarn_window_biases");
    o.rope = TINY_ROPE_LINEAR, o.window = 0, o.n_kv_head = 1, o.untied = 1;
    save(&o, set_none, to, "llama_linear_grouped_untied");
    o.rope = TINY_ROPE_LLAMA3, o.type = GGML_TYPE_F16;
    save(&o, set_none, to, "llama_stored_divisors_f16");
    o = (tiny_options){"llama",        .n_layer = 1, .n_embd = 32, .n_head = 2,
                       .head_dim = 16, .n_ff = 32,   .n_ctx = 8,   .type = GGML_TYPE_Q4_0};
    save(&o, set_none, to, "llama_q4_0");
    o = (tiny_options){"gpt2",        .n_layer = 1, .n_embd = 4, .n_head = 2,
                       .head_dim = 2, .n_ff = 4,    .n_ctx = 4};
    save(&o, set_byte_level, to, "gpt2");
    return 0;
}
