#include "model/lazy_weights.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ggml-cpu.h"

typedef struct lazy_weight {
    struct ggml_tensor *tensor;
    qkv_gguf_tensor source;
    int32_t layer;
    ggml_backend_buffer_t buffer; /* NULL until it is made */
} lazy_weight;

struct qkv_lazy_weights {
    pthread_mutex_t lock;
    lazy_weight *weights;
    size_t n_weights, capacity;
};

static qkv_lazy_weights *new_lazy(void) {
    qkv_lazy_weights *lazy = qkv_calloc(1, sizeof *lazy);
    if (lazy && pthread_mutex_init(&lazy->lock, NULL) != 0) {
        free(lazy);
        lazy = NULL;
    }
    return lazy;
}

int qkv_lazy_weights_add(qkv_lazy_weights **lazy, struct ggml_tensor *tensor,
                         const qkv_gguf_tensor *t, int32_t layer, qkv_error *err) {
    const lazy_weight weight = {.tensor = tensor, .source = *t, .layer = layer};
    if (!*lazy) *lazy = new_lazy();
    if (!*lazy || !QKV_PUSH((*lazy)->weights, (*lazy)->capacity, (*lazy)->n_weights, weight))
        return qkv_fail_memory(err);
    return QKV_OK;
}

static int make(lazy_weight *w, qkv_error *err) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(w->tensor));
    if (!buffer) return qkv_fail_memory(err);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    qkv_gguf_load(&w->source, ggml_backend_buffer_get_base(buffer));
    ggml_backend_tensor_alloc(buffer, w->tensor, ggml_backend_buffer_get_base(buffer));
    w->buffer = buffer;
    return QKV_OK;
}

int qkv_lazy_weights_make(qkv_lazy_weights *lazy, int32_t layer, qkv_error *err) {
    int status = QKV_OK;
    if (!lazy) return QKV_OK;
    pthread_mutex_lock(&lazy->lock);
    for (size_t i = 0; i < lazy->n_weights && status == QKV_OK; i++) {
        lazy_weight *w = &lazy->weights[i];
        if (w->layer == layer && !w->buffer) status = make(w, err);
    }
    pthread_mutex_unlock(&lazy->lock);
    return status;
}

void qkv_lazy_weights_free(qkv_lazy_weights *lazy) {
    if (!lazy) return;
    for (size_t i = 0; i < lazy->n_weights; i++) {
        if (lazy->weights[i].buffer) ggml_backend_buffer_free(lazy->weights[i].buffer);
    }
    pthread_mutex_destroy(&lazy->lock);
    free(lazy->weights);
    free(lazy);
}
