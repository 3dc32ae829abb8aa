/*
 * Prompts: a text or token ids, as plain data.
 *
 *     qkv_study *study = NULL;
 *     qkv_prompt prompt = QKV_PROMPT_INIT;
 *     prompt.text = "The river runs past the old mill.";
 *     if (qkv_study_new(&study, "lens", &err) == QKV_OK) {
 *         qkv_study_add_prompt(study, &prompt, &err);
 *     }
 *     qkv_study_free(study);
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
    /* The second text of a pair, for encoders, such as BERT: the two are joined as the tokenizer says, [CLS]
     * TEXT [SEP] PAIR [SEP]. Where there are segments, it is of the second one. NULL: none. */
    const char *pair;
} qkv_prompt;

/* The name of each prompt of the set that mean:set and patch:resample are about. */
#define QKV_SET_PROMPT "mean:set"

#define QKV_PROMPT_INIT                                                                            \
    { .size = sizeof(qkv_prompt), .flags = QKV_TOKENIZE_ADD_SPECIAL }

/* The neutral texts that figures and measures use when none is given; NULL past the end. */
QKV_API const char *qkv_default_prompt(size_t index);

#ifdef __cplusplus
}
#endif

#endif
