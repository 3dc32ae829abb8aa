/*
 * Prompts: a text or token ids, as plain data.
 *
 *     qkv_model *model = NULL;
 *     int32_t *tokens = NULL;
 *     size_t n_tokens = 0;
 *     qkv_prompt prompt = QKV_PROMPT_INIT;
 *     prompt.text = "The river runs past the old mill.";
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_prompt_tokenize(&prompt, model, &tokens, &n_tokens, &err) == QKV_OK) {
 *         printf("%zu tokens\n", n_tokens);
 *     }
 *     qkv_tokens_free(tokens);
 *     qkv_model_free(model);
 *
 * Where several prompts are asked for they are an array, all of one size. A function that is given a prompt
 * copies what it needs; the text and the ids stay the caller's. Nothing here has state: any thread
 * may call it.
 */
#ifndef QKV_PROMPT_H
#define QKV_PROMPT_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_prompt {
    size_t size;
    const char *text;      /* NULL: given as token ids */
    size_t length;         /* bytes of the text; 0: up to its NUL */
    const int32_t *tokens; /* used as they are; NULL: given as text */
    size_t n_tokens;
    uint32_t flags;   /* of qkv_tokenize_flags, for a text */
    const char *name; /* of a source that edits say patch:NAME of, or QKV_SET_PROMPT; else NULL */
    const char *written; /* the text that `tokens` were made of, for records; NULL: not known */
    /* The second text of a pair, for models with segments, such as BERT: its tokens follow the first
     * separator, [CLS] TEXT [SEP] PAIR [SEP], and are of the second segment. NULL: none. */
    const char *pair;
} qkv_prompt;

/* The name of each prompt of the set that mean:set and patch:resample are about. */
#define QKV_SET_PROMPT "mean:set"

#define QKV_PROMPT_INIT                                                                            \
    { .size = sizeof(qkv_prompt), .flags = QKV_TOKENIZE_ADD_SPECIAL }

/* The tokens of a prompt, freed with qkv_tokens_free. An empty prompt is an error. */
QKV_API int qkv_prompt_tokenize(const qkv_prompt *prompt, const qkv_model *model, int32_t **tokens,
                                size_t *n_tokens, qkv_error *err);

/* The neutral texts that figures and measures use when none is given; NULL past the end. */
QKV_API const char *qkv_default_prompt(size_t index);

#ifdef __cplusplus
}
#endif

#endif
