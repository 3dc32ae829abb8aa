/* Studies in one call, for tests. */
#ifndef QKV_TESTS_STUDY_MAKER_H
#define QKV_TESTS_STUDY_MAKER_H

#define QKV_UNSTABLE
#include "qkv/qkv.h"

typedef struct study_case {
    const char *kind;
    const char *options; /* JSON; NULL: none */
    const qkv_prompt *prompts;
    size_t n_prompts;
    qkv_session *session, *other;
    const char *results; /* NULL: none */
    int page;
} study_case;

/* *out is NULL after a failure. */
int study_make(qkv_study **out, const study_case *of, qkv_error *err);

#endif
