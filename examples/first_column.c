/*
 * Scales the queries of one head down and prints how much every token attends to the first one,
 * before and after. With queries near zero a head cannot choose: row i becomes 1 / (i + 1).
 *
 *     first_column MODEL.gguf
 */
#include <qkv/qkv.h>
#include <stdio.h>
#include <string.h>

static int print_columns(const qkv_result *result) {
    qkv_tensor plain = QKV_TENSOR_INIT,
               edited = QKV_TENSOR_INIT; /* [head, query, key]: one head was captured */
    if (!qkv_result_get(result, 0, QKV_SITE_PATTERN, 0, &plain) ||
        !qkv_result_get(result, 1, QKV_SITE_PATTERN, 0, &edited)) {
        return 0;
    }
    const int64_t n_tokens = plain.shape[1];
    printf("query  unmodified  edited\n");
    for (int64_t i = 0; i < n_tokens; i++) {
        printf("%5d  %10.4f  %6.4f\n", (int)i, plain.data[i * n_tokens], edited.data[i * n_tokens]);
    }
    return 1;
}

int main(int argc, char **argv) {
    static const char text[] = "The river runs past the old mill.";
    qkv_error err = {0};
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    int done = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: first_column MODEL.gguf\n");
        return 2;
    }
    if (qkv_model_open(&model, argv[1], &err) == QKV_OK &&
        qkv_tokenize(model, &tokens, &n_tokens, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL,
                     &err) == QKV_OK &&
        qkv_plan_new(&plan, model, tokens, n_tokens, &err) == QKV_OK &&
        qkv_plan_add_variant(plan, "q@0.h0=scale:1e-10", NULL, &err) == QKV_OK &&
        qkv_plan_add_capture(plan, "pattern@0.h0", &err) == QKV_OK &&
        qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
        qkv_session_run(session, &result, plan, &err) == QKV_OK) {
        done = print_columns(result);
    } else {
        fprintf(stderr, "first_column: %s\n", err.message);
    }

    qkv_result_free(result);
    qkv_session_free(session);
    qkv_plan_free(plan);
    qkv_tokens_free(tokens);
    qkv_model_free(model);
    return done ? 0 : 1;
}
