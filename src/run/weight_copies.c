#include "run/weight_copies.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ggml-cpu.h"

struct ggml_tensor *qkv_weight_copies_find(const qkv_weight_copies *copies,
                                           const struct ggml_tensor *weight) {
    for (size_t i = 0; i < copies->n_weights; i++) {
        if (copies->weights[i].weight == weight) return copies->weights[i].copy;
    }
    return NULL;
}

static void drop(qkv_weight_copy *entry) {
    if (entry->buffer) ggml_backend_buffer_free(entry->buffer);
    if (entry->ctx) ggml_free(entry->ctx);
}

static int allocate(qkv_weight_copy *entry, size_t size) {
    struct ggml_init_params params = {.mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true};
    if (qkv_memory_allows(params.mem_size)) entry->ctx = ggml_init(params);
    if (!entry->ctx) return 0;
    entry->copy = ggml_new_tensor(entry->ctx, GGML_TYPE_F32, GGML_MAX_DIMS, entry->weight->ne);
    entry->buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    if (!entry->buffer) return 0;
    ggml_backend_buffer_set_usage(entry->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_tensor_alloc(entry->buffer, entry->copy,
                              ggml_backend_buffer_get_base(entry->buffer));
    return 1;
}

static void convert(const qkv_weight_copy *entry, int n_threads) {
    const struct ggml_tensor *w = entry->weight;
    ggml_to_float_t to_float = ggml_get_type_traits(w->type)->to_float;
    int64_t rows = ggml_nrows(w), width = w->ne[0];
#pragma omp parallel for num_threads(n_threads)
    for (int64_t r = 0; r < rows; r++)
        to_float((const char *)w->data + (size_t)r * w->nb[1],
                 (float *)entry->copy->data + r * width, width);
}

int qkv_weight_copies_add(qkv_weight_copies *copies, const struct ggml_tensor *weight,
                          int n_threads) {
    size_t size = (size_t)ggml_nelements(weight) * sizeof(float);
    if (size > copies->budget - copies->size || qkv_weight_copies_find(copies, weight)) return 0;
    qkv_weight_copy entry = {.weight = weight};
    if (!allocate(&entry, size) ||
        !QKV_PUSH(copies->weights, copies->capacity, copies->n_weights, entry)) {
        drop(&entry);
        return 0;
    }
    copies->size += size;
    convert(&entry, n_threads);
    return 1;
}

void qkv_weight_copies_release(qkv_weight_copies *copies) {
    for (size_t i = 0; i < copies->n_weights; i++) drop(&copies->weights[i]);
    free(copies->weights);
    *copies = (qkv_weight_copies){.budget = copies->budget};
}
