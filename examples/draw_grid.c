/*
 * Draws what the heads of the first layer attend to, as one grid.
 *
 *     draw_grid MODEL.gguf [OUT.png]
 */
#include <qkv/qkv.h>
#include <stdio.h>
#include <string.h>

static int run_prompt(const qkv_model *model, qkv_result **result, qkv_error *err) {
    static const char text[] = "A good teacher explains the same idea in many ways.";
    int32_t *tokens = NULL;
    size_t n_tokens = 0;
    qkv_plan *plan = NULL;
    qkv_session *session = NULL;
    int status =
        qkv_tokenize(model, &tokens, &n_tokens, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL, err);
    if (status == QKV_OK) status = qkv_plan_new(&plan, model, tokens, n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "pattern@0", err);
    if (status == QKV_OK) status = qkv_session_new(&session, model, NULL, err);
    if (status == QKV_OK) status = qkv_session_run(session, result, plan, err);
    qkv_session_free(session);
    qkv_plan_free(plan);
    qkv_tokens_free(tokens);
    return status;
}

static int draw(const qkv_result *result, const char *path, qkv_error *err) {
    qkv_tensor pattern = QKV_TENSOR_INIT; /* [head, query, key] */
    qkv_grid *grid = NULL;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    if (!qkv_result_get(result, 0, QKV_SITE_PATTERN, 0, &pattern)) return QKV_ERR_ARGUMENT;
    const int32_t n_tokens = (int32_t)pattern.shape[1];
    int status = qkv_grid_new(&grid, 1, pattern.n_heads, err);
    for (int32_t h = 0; h < pattern.n_heads && status == QKV_OK; h++) {
        char title[32];
        snprintf(title, sizeof title, "Head *%d*", pattern.heads[h]);
        const qkv_panel panel = {.size = sizeof(qkv_panel),
                                 .values = pattern.data + (size_t)h * n_tokens * n_tokens,
                                 .n_rows = n_tokens,
                                 .n_cols = n_tokens,
                                 .title = title};
        status = qkv_grid_set_panel(grid, 0, h, &panel, err);
    }
    style.title = "The Attention Weight in Layer 0";
    if (status == QKV_OK) status = qkv_grid_write(grid, &style, path, err);
    qkv_grid_free(grid);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: draw_grid MODEL.gguf [OUT.png]\n");
        return 2;
    }
    const char *path = argc > 2 ? argv[2] : "example_grid.png";
    qkv_error err = {0};
    qkv_model *model = NULL;
    qkv_result *result = NULL;
    int status = qkv_model_open(&model, argv[1], &err);
    if (status == QKV_OK) status = run_prompt(model, &result, &err);
    if (status == QKV_OK) status = draw(result, path, &err);
    if (status == QKV_OK) {
        printf("%s\n", path);
    } else {
        fprintf(stderr, "draw_grid: %s\n", err.message);
    }
    qkv_result_free(result);
    qkv_model_free(model);
    return status == QKV_OK ? 0 : 1;
}
