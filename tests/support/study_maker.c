#include "support/study_maker.h"

int study_make(qkv_study **out, const study_case *of, qkv_error *err) {
    int status = qkv_study_new(out, of->kind, err);
    if (status == QKV_OK && of->options) status = qkv_study_set_json(*out, of->options, err);
    if (status == QKV_OK && of->results) status = qkv_study_set(*out, "results", of->results, err);
    if (status == QKV_OK && of->page) status = qkv_study_set(*out, "page", "true", err);
    for (size_t i = 0; i < of->n_prompts && status == QKV_OK; i++)
        status = qkv_study_add_prompt(*out, &of->prompts[i], err);
    if (status == QKV_OK) status = qkv_study_run(*out, of->session, of->other, err);
    if (status == QKV_OK) return QKV_OK;
    qkv_study_free(*out);
    *out = NULL;
    return status;
}
