/*
 * A figure as a page that lives: offline.js draws it from the data, and where it was measured the
 * report follows below.
 */
#include <stdlib.h>

#include "study/living.h"
#include "study/report.h"

int qkv_figure_html(const qkv_figure *fig, qkv_text *out, qkv_error *err) {
    const char *given = fig->options.title, *own = fig->title ? fig->title : "Attention weights";
    qkv_text body = {0};
    json_t *data = NULL;
    int status = qkv_living_figure_json(fig, &data, err);
    if (status == QKV_OK && fig->report) qkv_report_html(fig->report, &body);
    if (status == QKV_OK && body.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        const living_page page = {.title = given && given[0] ? given : own,
                                  .data = data,
                                  .body = body.data,
                                  .recipe = fig->options.no_recipe ? NULL : fig->recipe};
        status = qkv_living_page(&page, out, err);
    }
    qkv_text_release(&body);
    json_decref(data);
    return status;
}
