/*
 * BPE over characters, tokenizer.ggml.model = "gemma4".
 *
 * Text looks as it does for SentencePiece (U+2581 for spaces, byte tokens for what no token
 * covers), but merges come from a list, and the whole text is one word. No space goes before the
 * text.
 */
#include "tokenizer/tokenizer_spm.h"

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    return qkv_spm_load(vocab, file, 1, "bpe (gemma4)", err);
}

const qkv_tokenizer qkv_tokenizer_gemma4 = {
    .model = "gemma4",
    .default_bos = QKV_NO_TOKEN,
    .default_eos = QKV_NO_TOKEN,
    .default_unknown = QKV_NO_TOKEN,
    .default_sep = QKV_NO_TOKEN,
    .add_bos = 1,
    .add_eos = 0,
    .add_space_prefix = 0,
    .load = load,
    .free_state = qkv_spm_free_state,
    .encode = qkv_spm_encode,
    .decode = qkv_spm_decode,
};
