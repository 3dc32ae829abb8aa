/* The kinds of studies: one line each, and nothing else about them here. */
#include "study/study.h"

#include <string.h>

/* X(name of its study_kind), in the order of lists */
/* clang-format off: one to a line */
#define STUDY_KIND_LIST(X)                                                                         \
    X(qkv_study_lens)                                                                              \
    X(qkv_study_patch)                                                                             \
    X(qkv_study_compare)                                                                           \
    X(qkv_study_massive)                                                                           \
    X(qkv_study_weights)                                                                           \
    X(qkv_study_heads)                                                                             \
    X(qkv_study_ships)                                                                             \
    X(qkv_study_sahara)                                                                            \
    X(qkv_study_phrase_rates)                                                                      \
    X(qkv_study_streaming)                                                                         \
    X(qkv_study_h2o)                                                                               \
    X(qkv_study_snapkv)                                                                            \
    X(qkv_study_kivi)                                                                              \
    X(qkv_study_retrieval)
/* clang-format on */

#define STUDY_DECLARE(id) extern const study_kind id;
STUDY_KIND_LIST(STUDY_DECLARE)
#undef STUDY_DECLARE

#define STUDY_ENTRY(id) &(id),
const study_kind *const qkv_study_kinds[] = {STUDY_KIND_LIST(STUDY_ENTRY)};
#undef STUDY_ENTRY
const size_t qkv_study_n_kinds = sizeof qkv_study_kinds / sizeof *qkv_study_kinds;

const study_kind *qkv_study_find_kind(const char *name) {
    for (size_t i = 0; i < qkv_study_n_kinds; i++) {
        if (strcmp(qkv_study_kinds[i]->name, name) == 0) return qkv_study_kinds[i];
    }
    return NULL;
}

const char *qkv_study_kind_name(size_t index) {
    return index < qkv_study_n_kinds ? qkv_study_kinds[index]->name : NULL;
}

const char *qkv_study_kind_title(size_t index) {
    return index < qkv_study_n_kinds ? qkv_study_kinds[index]->title : NULL;
}

int qkv_study_kind_prompts(const char *kind, size_t *least, size_t *most) {
    const study_kind *found = kind ? qkv_study_find_kind(kind) : NULL;
    if (!found || !least || !most) return 0;
    *least = found->least_prompts;
    *most = found->most_prompts;
    return 1;
}
