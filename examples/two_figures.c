/*
 * Draws the two figures, modify.png and mean.png, and says the first in numbers, modify.md.
 *
 *     two_figures MODEL.gguf
 */
#include <qkv/qkv.h>
#include <stdio.h>

/* A figure of the library's own prompts; it is freed by the caller. */
static int make(qkv_study **figure, const char *kind, qkv_session *session, qkv_error *err) {
    int status = qkv_study_new(figure, kind, err);
    if (status == QKV_OK) status = qkv_study_set(*figure, "report", NULL, err);
    return status == QKV_OK ? qkv_study_run(*figure, session, NULL, err) : status;
}

int main(int argc, char **argv) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_study *modify = NULL, *mean = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: two_figures MODEL.gguf\n");
        return 2;
    }
    if (qkv_model_open(&model, argv[1], &err) == QKV_OK &&
        qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
        make(&modify, "modify", session, &err) == QKV_OK &&
        qkv_study_write(modify, "modify.png", &err) == QKV_OK &&
        qkv_study_write(modify, "modify.md", &err) == QKV_OK &&
        make(&mean, "mean", session, &err) == QKV_OK) {
        qkv_study_write(mean, "mean.png", &err);
    }
    if (err.status != QKV_OK) fprintf(stderr, "two_figures: %s\n", err.message);

    qkv_study_free(modify);
    qkv_study_free(mean);
    qkv_session_free(session);
    qkv_model_free(model);
    return err.status == QKV_OK ? 0 : 1;
}
