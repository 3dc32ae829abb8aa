/*
 * Texts that follow a prompt: answers of one token or more, and single tokens. Escapes are read (base/escapes.h);
 * where a space belongs before a text it is put there, and a warning of the study says so. `option` names the
 * option, for messages.
 */
#ifndef QKV_STUDY_ANSWERS_H
#define QKV_STUDY_ANSWERS_H

#include "base/text.h"
#include "study/study.h"

typedef struct study_answers {
    int32_t **tokens;
    size_t *lengths;
    qkv_text *texts; /* without escapes */
    size_t n;
} study_answers;

/* The answers of a LIST field; NULL: none. Release them also after a failure. */
int qkv_answers_read(study_answers *answers, qkv_study *study, const qkv_model *model,
                     const char *list, qkv_error *err);
/* Warns of answers that most likely lack a space after a prompt. */
int qkv_answers_check_spaces(const study_answers *answers, qkv_study *study, const study_inputs *in,
                             qkv_error *err);
void qkv_answers_release(study_answers *answers);

typedef struct token_list {
    int32_t *ids;
    size_t n, capacity;
} token_list;

/* Adds the tokens whose texts are given, with commas between them, of each line of a LIST field. */
int qkv_token_list_read(token_list *list, qkv_study *study, const qkv_model *model,
                        const char *option, const char *lines, qkv_error *err);
/* Adds pairs of tokens that are compared, A/B, one to a line. */
int qkv_token_pairs_read(token_list *list, qkv_study *study, const qkv_model *model,
                         const char *option, const char *lines, qkv_error *err);

/* What is wrong with such fields, told without a model: an empty text, not two. `between` is 0 for answers. */
int qkv_answer_texts_check(const char *option, const char *lines, char between, qkv_error *err);

#endif
