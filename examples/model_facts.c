/*
 * Opens a model and prints what it is made of.
 *
 *     model_facts MODEL.gguf
 */
#include <inttypes.h>
#include <qkv/qkv.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: model_facts MODEL.gguf\n");
        return 2;
    }
    qkv_error err;
    qkv_model *model = NULL;
    if (qkv_model_open(&model, argv[1], &err) != QKV_OK) {
        fprintf(stderr, "model_facts: %s\n", err.message);
        return 1;
    }
    const qkv_model_info *info = qkv_model_get_info(model);
    printf("%s: %s, %" PRIu64 " parameters\n", info->path, info->architecture, info->n_params);
    printf("%d layers of %d query heads and %d key/value heads, %d wide\n", info->n_layer,
           info->n_head, info->n_kv_head, info->head_dim);
    printf("position: %s; context: %d tokens; vocabulary: %d\n", info->position, info->n_ctx,
           info->n_vocab);
    qkv_model_free(model);
    return 0;
}
