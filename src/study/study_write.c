/* Files of a study: pictures here, tables in study_numbers.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/sized.h"
#include "draw/draw.h"
#include "qkv/version.h"
#include "study/figure.h"
#include "study/print.h"
#include "study/study.h"

/* ---- names ---- */

/* The place of a name among those that `at` gives; of NULL the first. */
static int find(const qkv_study *study, const char *name, const char *what, size_t n,
                const char *(*at)(const qkv_study *, size_t), size_t *found, qkv_error *err) {
    if (n == 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "this study has no %s", what);
    if (!name) return *found = 0, QKV_OK;
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    qkv_text known = {0};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(at(study, i), name) == 0) {
            qkv_text_release(&known);
            return *found = i, QKV_OK;
        }
        qkv_nearest_try(&near, at(study, i));
        qkv_text_printf(&known, "%s%s", i ? ", " : "", at(study, i));
    }
    const int status =
        qkv_fail(err, QKV_ERR_ARGUMENT, "`%s`: there is no \"%.40s\"%s; there %s %s", what, name,
                 qkv_nearest_hint(&near), n == 1 ? "is" : "are", known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static const char *table_name(const qkv_study *study, size_t i) {
    return study->tables[i].name;
}

int qkv_study_find_picture(const qkv_study *study, const char *name, size_t *at, qkv_error *err) {
    return find(study, name, "picture", study->n_pictures, qkv_study_picture_name, at, err);
}

int qkv_study_find_table(const qkv_study *study, const char *name, size_t *at, qkv_error *err) {
    return find(study, name, "table", study->n_tables, table_name, at, err);
}

/* ---- the look ---- */

static int read_look(study_look *to, const qkv_study *study, qkv_error *err) {
    *to = (study_look){0};
    const int status = qkv_fields_read(&qkv_study_look_table, study->set[QKV_FIELD_LOOK], to, err);
    const study_print print = {(qkv_text_form)to->text, to->font, to->width, to->no_notes,
                               to->font_size};
    return status == QKV_OK ? qkv_print_check(&print, err) : status;
}

static int check_look(const qkv_study *study, const study_look *look, qkv_error *err) {
    size_t at = 0;
    int status = QKV_OK;
    if (look->picture) {
        status = qkv_study_find_picture(study, look->picture, &at, err);
        const int is_map = status == QKV_OK && study->pictures[at].chart == STUDY_HEATMAP;
        if (status == QKV_OK && look->colormap && !is_map)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "`colormap` is for heatmaps, and %s is not one",
                            look->picture);
    }
    if (status == QKV_OK && look->table)
        status = qkv_study_find_table(study, look->table, &at, err);
    return status;
}

int qkv_study_check_look(const qkv_study *study, qkv_error *err) {
    study_look look;
    QKV_NEED(err, study);
    if (study->kind->figure) return QKV_OK; /* checked when it was made */
    const int status = read_look(&look, study, err);
    return status == QKV_OK ? check_look(study, &look, err) : status;
}

/* ---- pictures ---- */

void qkv_study_small_print(const qkv_study *study, qkv_text *text) {
    text->failed |= study->model.failed;
    qkv_text_puts(text, study->model.data ? study->model.data : "");
    for (size_t i = 0; i < study->n_notes; i++)
        qkv_text_printf(text, " \xc2\xb7 %s", study->notes[i]);
    qkv_text_printf(text, " \xc2\xb7 qkv\xc2\xa0%s \xc2\xb7 %s", qkv_version(), study->id);
}

static int draw(const study_picture *picture, const study_look *look, const qkv_chart_style *style,
                const char *format, char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_heatmap map;
    switch (picture->chart) {
    case STUDY_LINES:
        return qkv_lines_render(&picture->of.lines, style, format, bytes, n_bytes, err);
    case STUDY_BARS:
        return qkv_bars_render(&picture->of.bars, style, format, bytes, n_bytes, err);
    case STUDY_HEATMAP:
        map = picture->of.map;
        if (look->colormap) map.colormap = (qkv_colormap)look->colormap;
        return qkv_heatmap_render(&map, style, format, bytes, n_bytes, err);
    }
    return QKV_OK;
}

static int render_picture(const qkv_study *study, const char *format, const study_look *look,
                          char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    qkv_text small_print = {0};
    char *recipe = NULL;
    size_t at = 0;
    int status = qkv_study_find_picture(study, look->picture, &at, err);
    if (status == QKV_OK && !look->no_recipe)
        status = qkv_study_recipe_with(study, look, &recipe, err);
    qkv_study_small_print(study, &small_print);
    if (status == QKV_OK && small_print.failed) status = qkv_fail_memory(err);
    style.title = look->title ? look->title : qkv_study_picture_title(study, at);
    if (style.title && !style.title[0]) style.title = NULL;
    style.small_print = look->no_notes ? NULL : small_print.data;
    style.recipe = recipe;
    style.text = (qkv_text_form)look->text;
    style.font = look->font;
    style.width = look->width;
    style.font_size = look->font_size;
    style.dpi = qkv_print_dpi(look->dpi, look->width);
    if (status == QKV_OK)
        status = draw(&study->pictures[at], look, &style, format, bytes, n_bytes, err);
    qkv_text_release(&small_print);
    free(recipe);
    return status;
}

/* ---- formats ---- */

static int from_text(int status, qkv_text *text, char **bytes, size_t *n_bytes) {
    if (status != QKV_OK) return qkv_text_release(text), status;
    *bytes = text->data;
    *n_bytes = text->length;
    return QKV_OK;
}

static int render_csv(const qkv_study *study, const char *format, const study_look *look,
                      char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_text text = {0};
    (void)format;
    return from_text(qkv_study_csv(study, look, &text, err), &text, bytes, n_bytes);
}

static int render_json(const qkv_study *study, const char *format, const study_look *look,
                       char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_text text = {0};
    (void)format;
    return from_text(qkv_study_json(study, look, &text, err), &text, bytes, n_bytes);
}

static int render_sqlite(const qkv_study *study, const char *format, const study_look *look,
                         char **bytes, size_t *n_bytes, qkv_error *err) {
    (void)format;
    return qkv_study_sqlite(study, look, bytes, n_bytes, err);
}

static int render_html(const qkv_study *study, const char *format, const study_look *look,
                       char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_text text = {0};
    (void)format;
    return from_text(qkv_study_html(study, look, &text, err), &text, bytes, n_bytes);
}

static const struct {
    const char *name;
    int (*render)(const qkv_study *, const char *, const study_look *, char **, size_t *,
                  qkv_error *);
} formats[] = {
    {"png", render_picture},   {"svg", render_picture}, {"pdf", render_picture},
    {"html", render_html},     {"csv", render_csv},     {"json", render_json},
    {"sqlite", render_sqlite},
};

static int render_figure(const qkv_study *study, const char *format, char **bytes, size_t *n_bytes,
                         qkv_error *err) {
    if (qkv_equal_ignoring_case(format, "html") && !study->figure->scores)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a figure is a page where `page` was set before it ran");
    /* JSON is the report where there is one, and else the tables, as of other studies. */
    const int is_tables = qkv_equal_ignoring_case(format, "json") && !study->figure->report;
    const study_look look = {0};
    return is_tables ? render_json(study, format, &look, bytes, n_bytes, err)
                     : qkv_figure_render(study->figure, format, bytes, n_bytes, err);
}

const char *qkv_study_formats(const study_kind *kind) {
    return kind->figure        ? "png|svg|pdf|html|md|json|csv|safetensors|npz"
           : kind->no_pictures ? "html|csv|json|sqlite"
                               : "png|svg|pdf|html|csv|json|sqlite";
}

int qkv_study_render(const qkv_study *study, const char *format, char **bytes, size_t *n_bytes,
                     qkv_error *err) {
    study_look look;
    QKV_NEED(err, bytes);
    QKV_NEED(err, n_bytes);
    *bytes = NULL;
    *n_bytes = 0;
    QKV_NEED(err, study);
    QKV_NEED(err, format);
    if (!study->recipe) return qkv_fail(err, QKV_ERR_ARGUMENT, "this study has not run");
    if (study->figure) return render_figure(study, format, bytes, n_bytes, err);
    int status = read_look(&look, study, err);
    if (status == QKV_OK) status = check_look(study, &look, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (qkv_equal_ignoring_case(format, formats[i].name))
            return formats[i].render(study, formats[i].name, &look, bytes, n_bytes, err);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a study is png, svg, pdf, html, csv, json or sqlite, not \"%.40s\"", format);
}

int qkv_study_write(const qkv_study *study, const char *path, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    QKV_NEED(err, study);
    QKV_NEED(err, path);
    int status = qkv_study_render(study, qkv_path_suffix(path), &bytes, &n_bytes, err);
    if (status == QKV_OK) status = qkv_output_write(path, bytes, n_bytes, err);
    free(bytes);
    return status;
}
