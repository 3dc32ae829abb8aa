#include "model/late.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ggml-cpu.h"

typedef struct late_weight {
    struct ggml_tensor *tensor;
    qkv_gguf_tensor source;
    int32_t layer;
    ggml_backend_buffer_t buffer; /* NULL until it is made */
} late_weight;

struct qkv_late {
    pthread_mutex_t lock;
    late_weight *weights;
    size_t n_weights, capacity;
};

static qkv_late *new_late(void) {
    qkv_late *late = qkv_calloc(1, sizeof *late);
    if (late && pthread_mutex_init(&late->lock, NULL) != 0) {
        free(late);
        late = NULL;
    }
    return late;
}

int qkv_late_add(qkv_late **late, struct ggml_tensor *tensor, const qkv_gguf_tensor *t,
                 int32_t layer, qkv_error *err) {
    const late_weight weight = {.tensor = tensor, .source = *t, .layer = layer};
    if (!*late) *late = new_late();
    if (!*late || !QKV_PUSH((*late)->weights, (*late)->capacity, (*late)->n_weights, weight))
        return qkv_fail_memory(err);
    return QKV_OK;
}

static int make(late_weight *w, qkv_error *err) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(w->tensor));
    if (!buffer) return qkv_fail_memory(err);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    qkv_gguf_load(&w->source, ggml_backend_buffer_get_base(buffer));
    ggml_backend_tensor_alloc(buffer, w->tensor, ggml_backend_buffer_get_base(buffer));
    w->buffer = buffer;
    return QKV_OK;
}

int qkv_late_make(qkv_late *late, int32_t layer, qkv_error *err) {
    int status = QKV_OK;
    if (!late) return QKV_OK;
    pthread_mutex_lock(&late->lock);
    for (size_t i = 0; i < late->n_weights && status == QKV_OK; i++) {
        late_weight *w = &late->weights[i];
        if (w->layer == layer && !w->buffer) status = make(w, err);
    }
    pthread_mutex_unlock(&late->lock);
    return status;
}

void qkv_late_free(qkv_late *late) {
    if (!late) return;
    for (size_t i = 0; i < late->n_weights; i++) {
        if (late->weights[i].buffer) ggml_backend_buffer_free(late->weights[i].buffer);
    }
    pthread_mutex_destroy(&late->lock);
    free(late->weights);
    free(late);
}
