#include "hub/places.h"

#include <stdlib.h>

#include "base/memory.h"

#define PLACE_STRINGS(X)                                                                           \
    X(name)                                                                                        \
    X(path)                                                                                        \
    X(repository)                                                                                  \
    X(revision)                                                                                    \
    X(commit)                                                                                      \
    X(problem)

int qkv_place_fill(qkv_model_place *place, const qkv_model_place_info *from, qkv_error *err) {
    int failed = 0;
    place->info.size = from->size;
#define COPY(field)                                                                                \
    place->info.field = qkv_strdup(from->field ? from->field : "");                                \
    failed |= !place->info.field;
    PLACE_STRINGS(COPY)
#undef COPY
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

void qkv_place_release(qkv_model_place *place) {
#define RELEASE(field) free((char *)place->info.field);
    PLACE_STRINGS(RELEASE)
#undef RELEASE
    *place = (qkv_model_place){0};
}

const qkv_model_place_info *qkv_model_place_get_info(const qkv_model_place *place) {
    return place ? &place->info : NULL;
}

void qkv_model_place_free(qkv_model_place *place) {
    if (place) qkv_place_release(place);
    free(place);
}
