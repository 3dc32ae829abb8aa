/*
 * Models: weights, hyper-parameters and vocabulary, opened once and never changed.
 *
 *     qkv_model *model = NULL;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK) {
 *         const qkv_model_info *info = qkv_model_get_info(model);
 *         printf("%s: %d layers of %d heads\n", info->architecture, (int)info->n_layer,
 *                (int)info->n_head);
 *     }
 *     qkv_model_free(model);
 *
 * A model is immutable and may be used by several threads at once. Weights are memory-mapped:
 * opening reads headers only.
 *
 * It is counted by reference: whatever needs it (a session, a plan, a sweep) keeps it alive, and
 * qkv_model_free gives up the caller's part. Freeing in any order is safe.
 */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_model qkv_model;

/* Facts about a model. Strings belong to the model. Fields are only ever added at the end. */
typedef struct qkv_model_info {
    const char *path;         /* as given (first part of a split model) */
    const char *name;         /* general.name, or "", or what the directory is called */
    const char *architecture; /* "llama", "gpt2", ... */
    const char *position;     /* "rope", "rope (linear x2)", "rope (yarn x4)", "rope (llama3)",
                                 "learned", ... */
    const char *tensor_types; /* "F16 x 43, F32 x 13", most frequent first */
    const char *tokenizer;    /* "bpe (gpt-2)", "sentencepiece", or "none" */
    int32_t n_layer;
    int32_t n_embd; /* D */
    /* Where layers differ, the largest number of all of them; qkv_model_get_layer has a layer's. */
    int32_t n_head;    /* H */
    int32_t n_kv_head; /* G */
    int32_t head_dim;  /* d */
    int32_t n_ff;
    int32_t n_vocab;     /* V */
    int32_t n_ctx;       /* longest prompt the model takes */
    int32_t window;      /* sliding window in tokens, 0 = none */
    int32_t tied_output; /* 1 when the output projection is the token embedding */
    int32_t n_files;     /* parts of a split model; files of a directory that count */
    uint64_t n_params;
    uint64_t file_size; /* bytes, all parts */
    int32_t n_windowed; /* layers that have the window, or chunks; the others see everything */
    int32_t causal;     /* 0: every token sees every other one */
    int32_t n_expert;   /* experts per layer, 0 = none */
    int32_t n_expert_used;
    int32_t has_logits;  /* 0: an encoder; its output is final_norm, or the last resid_post */
    int32_t has_sink;    /* 1: a learned sink takes a share of every row of the pattern */
    const char *notices; /* all that qkv_model_notice gives, joined by "; ", or "" */
    double attn_softcap; /* c: scores s become c tanh(s / c); 0: they do not */
    double attn_scale;   /* products of queries and keys are multiplied by it: scores */
    int32_t
        has_segments;  /* 1: tokens after the first separator are of a second segment, as in BERT */
    const char *label; /* what figures call it: its name for `qkv pull`, else `name` */
    const char *weights_type; /* of most of the parameters: "IQ2_XXS", "F16" */
    int32_t has_final_norm;   /* 1: there is a norm after the last layer */
    int32_t chunk; /* tokens of a chunk, of which a query sees its own up to itself; 0 = none */
} qkv_model_info;

/* Opens a GGUF file (of a split model, NAME-00001-of-00003.gguf, the path of any part), or a Hugging
 * Face directory: config.json, *.safetensors, tokenizer.json (or the files of older tokenisers).
 * `name` is its path, or what the model is called on this machine: "tinyllama", "org/name:Q4_K_M", as
 * qkv/hub.h says. */
QKV_API int qkv_model_open(qkv_model **out, const char *name, qkv_error *err);
/* One more who needs the model, and has to free it. Returns the model, NULL for NULL. */
QKV_API qkv_model *qkv_model_retain(const qkv_model *model);
/* Gives up one part in the model; with the last one it is gone. */
QKV_API void qkv_model_free(qkv_model *model);

/* The architectures that can be opened, "llama", "gpt2", ...; NULL past the end. */
QKV_API const char *qkv_family_name(size_t index);

QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *model);

/* What layers may differ in. Fields are only ever added at the end. */
typedef struct qkv_layer_info {
    size_t size;
    int32_t n_head;    /* H */
    int32_t n_kv_head; /* G */
    int32_t head_dim;  /* d, the width of its queries and keys */
    int32_t value_dim; /* that of its values, and of z */
    int32_t n_ff;
    int32_t
        window; /* a query does not see keys that are so many tokens or more away, 0: it sees all; -C: it sees
                       * those of its own chunk of C tokens, up to itself */
    int32_t kv_layer; /* whose keys and values its queries see: usually its own number */
    int32_t has_gate; /* 1: z is multiplied by a gate before the output matrix (site `gate`) */
    const char
        *kind; /* "an attention layer", "a gated delta-net layer"; without attention n_head is 0 */
} qkv_layer_info;

#define QKV_LAYER_INFO_INIT                                                                        \
    { .size = sizeof(qkv_layer_info) }

/* Fills *info and returns 1, or returns 0 where the model has fewer layers. */
QKV_API int qkv_model_get_layer(const qkv_model *model, int32_t layer, qkv_layer_info *info);

/* What the user of the model should know, a line each: settings of config.json that have no effect,
 * parts of a larger model that are not loaded. NULL past the end. Belongs to the model. */
QKV_API const char *qkv_model_notice(const qkv_model *model, size_t index);

/* XXH3-128 of the model's files as 32 hexadecimal digits. Reads every byte the first time it is
 * asked for. */
QKV_API int qkv_model_hash(const qkv_model *model, char out[33], qkv_error *err);

/* ---- text and tokens ---- */

enum qkv_tokenize_flags {
    QKV_TOKENIZE_ADD_SPECIAL = 1,   /* add BOS/EOS as the model's metadata says */
    QKV_TOKENIZE_PARSE_SPECIAL = 2, /* "<|bos|>" and the like in the text become those tokens */
    QKV_TOKENIZE_CONTINUES =
        4 /* the text follows another one: SentencePiece puts no space before it */
};

/* Text to token ids. *tokens is allocated with malloc and is the caller's to free with
 * qkv_tokens_free. */
QKV_API int qkv_tokenize(const qkv_model *model, int32_t **tokens, size_t *n_tokens,
                         const char *text, size_t length, unsigned flags, qkv_error *err);

/* Token ids to bytes (not necessarily UTF-8), NUL-terminated for convenience; *length leaves the
 * NUL out. Control tokens (BOS and the like) are written only when keep_special is not 0. */
QKV_API int qkv_detokenize(const qkv_model *model, char **text, size_t *length,
                           const int32_t *tokens, size_t n_tokens, int keep_special,
                           qkv_error *err);

/* The bytes of one token, for display: a control token gives its name, e.g. "<|bos|>". Freed with
 * qkv_text_free. */
QKV_API int qkv_token_text(const qkv_model *model, char **text, size_t *length, int32_t token,
                           qkv_error *err);

/* The tokens that end a text, as the file and the names of its special tokens say: from 0 on, -1 past
 * the end. A model without a tokenizer has none. */
QKV_API int qkv_is_end_token(const qkv_model *model, int32_t token);

QKV_API void qkv_tokens_free(int32_t *tokens);
QKV_API void qkv_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
