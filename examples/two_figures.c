/*
 * Draws the two figures, modify.png and mean.png, and says the first in numbers, modify.md.
 *
 *     two_figures MODEL.gguf
 */
#include <qkv/qkv.h>
#include <stdio.h>

int main(int argc, char **argv) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_figure *modify = NULL, *mean = NULL;
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    options.report = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: two_figures MODEL.gguf\n");
        return 2;
    }
    if (qkv_model_open(&model, argv[1], &err) == QKV_OK &&
        qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
        qkv_figure_modify(&modify, session, &options, &err) == QKV_OK &&
        qkv_figure_write(modify, "modify.png", &err) == QKV_OK &&
        qkv_figure_write(modify, "modify.md", &err) == QKV_OK &&
        qkv_figure_mean(&mean, session, NULL, &err) == QKV_OK) {
        qkv_figure_write(mean, "mean.png", &err);
    }
    if (err.status != QKV_OK) fprintf(stderr, "two_figures: %s\n", err.message);

    qkv_figure_free(modify);
    qkv_figure_free(mean);
    qkv_session_free(session);
    qkv_model_free(model);
    return err.status == QKV_OK ? 0 : 1;
}
