/*
 * Patching: a sweep of pairs of prompts (qkv/sweep.h), computed here or read from its results.
 *
 * Prompts come in pairs, the clean one first. Both directions have the same scale:
 *
 *     recovery = (m - m_corrupt) / (m_clean - m_corrupt)
 *
 * of the metric m, so that 1 is the clean prompt and 0 the corrupt one. Over several pairs each m is
 * their mean.
 */
#include "study/patch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/steps.h"
#include "qkv/sweep_blocks.h"
#include "qkv/sweep_reader.h"

#define TEXT_FIELD(name) STUDY_FIELD(patch_options, name, TEXT, 0, STUDY_MOST_TEXT)

static const field fields[] = {
    TEXT_FIELD(site),      TEXT_FIELD(by),
    TEXT_FIELD(direction), TEXT_FIELD(align),
    TEXT_FIELD(positions), TEXT_FIELD(layers),
    TEXT_FIELD(heads),     TEXT_FIELD(metric),
    TEXT_FIELD(answers),   STUDY_FIELD(patch_options, top, INT, 1, 1000000)};

double qkv_patch_recovery(const patch_cells *c, size_t cell, size_t metric) {
    const double *clean = c->means, *corrupt = c->means + c->n_metrics;
    return (c->means[cell * c->n_metrics + metric] - corrupt[metric]) /
           (clean[metric] - corrupt[metric]);
}

/* ---- the specification ---- */

static json_t *prompt_json(const study_prompt *prompt) {
    if (prompt->text && prompt->flags & QKV_TOKENIZE_ADD_SPECIAL &&
        strlen(prompt->text) == prompt->length)
        return json_stringn(prompt->text, prompt->length);
    json_t *ids = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++)
        json_array_append_new(ids, json_integer(prompt->tokens[i]));
    return ids;
}

static json_t *pairs_json(const study_inputs *in, const json_t *answers) {
    json_t *pairs = json_array();
    for (size_t i = 0; i + 1 < in->prompts.n; i += 2) {
        json_t *pair = json_pack("{s:o, s:o}", "clean", prompt_json(&in->prompts.items[i]),
                                 "corrupt", prompt_json(&in->prompts.items[i + 1]));
        static const char *const keys[] = {"answer", "wrong"};
        for (size_t k = 0; k < 2; k++) {
            json_t *text = json_array_get(json_array_get(answers, i / 2), k);
            if (json_is_string(text)) json_object_set(pair, keys[k], text);
        }
        json_array_append_new(pairs, pair);
    }
    return pairs;
}

static json_t *lines_json(const char *lines) {
    json_t *list = json_array();
    while (lines && *lines) {
        const size_t n = strcspn(lines, "\n");
        json_array_append_new(list, json_stringn(lines, n));
        lines += n + (lines[n] == '\n');
    }
    return list;
}

static int read_answers(const patch_options *o, size_t n_pairs, json_t **out, qkv_error *err) {
    *out = o->answers ? qkv_json_parse(o->answers, strlen(o->answers), 0, NULL) : NULL;
    if (!o->answers || json_array_size(*out) == n_pairs) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`answers` is no JSON list of one item for each pair");
}

static int make_sweep(qkv_sweep **sweep, const study_inputs *in, const patch_options *o,
                      qkv_error *err) {
    json_t *answers = NULL;
    if (in->prompts.n % 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "patch wants pairs of prompts, clean and corrupt, and %zu are given",
                        in->prompts.n);
    int status = read_answers(o, in->prompts.n / 2, &answers, err);
    json_t *spec =
        json_pack("{s:o, s:o}", "pairs", pairs_json(in, answers), "metrics", lines_json(o->metric));
    const struct {
        const char *key, *text;
    } texts[] = {{"targets", o->site},        {"by", o->by},
                 {"direction", o->direction}, {"align", o->align},
                 {"positions", o->positions}, {"layers", o->layers},
                 {"heads", o->heads}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].text) json_object_set_new(spec, texts[i].key, json_string(texts[i].text));
    }
    if (in->prompts.items[0].text && in->prompts.items[0].flags & QKV_TOKENIZE_PARSE_SPECIAL)
        json_object_set_new(spec, "parse_special", json_true());
    char *text = spec ? json_dumps(spec, 0) : NULL;
    if (status == QKV_OK)
        status = text ? qkv_sweep_new(sweep, in->model, text, err) : qkv_fail_memory(err);
    free(text);
    json_decref(spec);
    json_decref(answers);
    return status;
}

/* ---- values ---- */

static int compute(const qkv_sweep *sweep, const study_inputs *in, double *values, qkv_error *err) {
    const size_t n_metrics = qkv_sweep_n_metrics(sweep);
    int64_t done = 0, n = 0;
    int status = QKV_OK;
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep) && status == QKV_OK; b++) {
        const int64_t first = qkv_sweep_block(sweep, b, &n);
        status = qkv_sweep_compute(sweep, in->session, b, values + (size_t)first * n_metrics, err);
        done += n;
        if (status == QKV_OK && in->progress &&
            in->progress(in->user, done, qkv_sweep_n_cells(sweep)) != 0)
            status = qkv_fail_cancelled(err);
    }
    return status;
}

static int read_metric(qkv_sweep_reader *file, const qkv_sweep *sweep, size_t metric,
                       double *values, qkv_error *err) {
    const size_t n = (size_t)qkv_sweep_n_cells(sweep), n_metrics = qkv_sweep_n_metrics(sweep);
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    size_t missing = 0;
    int status = qkv_sweep_reader_rows(file, qkv_sweep_metric(sweep, metric), &rows, err);
    for (size_t i = 0; i < n && qkv_sweep_rows_get(rows, i, &row); i++) {
        values[i * n_metrics + metric] = row.value;
        missing += row.missing != 0;
    }
    if (status == QKV_OK && (missing || qkv_sweep_rows_count(rows) != n))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s is unfinished: %zu of %zu cells are missing",
                          qkv_sweep_reader_get_info(file)->path, missing, n);
    qkv_sweep_rows_free(rows);
    return status;
}

/* Computes what the file does not hold yet, and reads it. */
static int share(const qkv_sweep *sweep, const study_inputs *in, qkv_error *err) {
    qkv_sweep_share_options how = QKV_SWEEP_SHARE_OPTIONS_INIT;
    int stopped = 0;
    how.progress = in->progress;
    how.user = in->user;
    const int status = qkv_sweep_share(sweep, in->results, &how, &stopped, err);
    if (status != QKV_OK || !stopped) return status;
    return qkv_fail(err, QKV_ERR_CANCELLED, "stopped; the same call goes on from %s", in->results);
}

static int read_values(const qkv_sweep *sweep, const qkv_model *model, const char *path,
                       double *values, qkv_error *err) {
    qkv_sweep_reader *file = NULL;
    char hash[33];
    int status = qkv_sweep_reader_open(&file, path, err);
    if (status == QKV_OK) status = qkv_model_hash(model, hash, err);
    const qkv_sweep_reader_info *info = qkv_sweep_reader_get_info(file);
    if (status == QKV_OK && (strcmp(info->spec_hash, qkv_sweep_hash(sweep)) != 0 ||
                             strcmp(info->model_hash, hash) != 0))
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s holds other patching, or that of another model", path);
    for (size_t m = 0; m < qkv_sweep_n_metrics(sweep) && status == QKV_OK; m++)
        status = read_metric(file, sweep, m, values, err);
    qkv_sweep_reader_close(file);
    return status;
}

static int take_means(patch_cells *c, const double *values, qkv_error *err) {
    const size_t size = c->n * c->n_metrics;
    c->means = qkv_calloc(size, sizeof *c->means);
    if (!c->means) return qkv_fail_memory(err);
    for (size_t i = 0; i < size * c->n_pairs; i++) c->means[i % size] += values[i];
    for (size_t i = 0; i < size; i++) c->means[i] /= (double)c->n_pairs;
    for (size_t m = 0; m < c->n_metrics; m++) {
        if (c->means[m] != c->means[c->n_metrics + m]) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "%s is %g for the clean and for the corrupt prompts: there is nothing to "
                        "recover",
                        qkv_sweep_metric(c->sweep, m), c->means[m]);
    }
    return QKV_OK;
}

/* ---- the study ---- */

static int make(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const patch_options *options = given;
    patch_cells cells = {0};
    double *values = NULL;
    int status = make_sweep(&cells.sweep, in, options, err);
    if (status == QKV_OK) {
        cells.n_pairs = in->prompts.n / 2;
        cells.n_metrics = qkv_sweep_n_metrics(cells.sweep);
        cells.n = (size_t)qkv_sweep_n_cells(cells.sweep) / cells.n_pairs;
        values =
            qkv_calloc((size_t)qkv_sweep_n_cells(cells.sweep) * cells.n_metrics, sizeof *values);
        if (!values) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK && in->results) {
        status = share(cells.sweep, in, err);
        if (status == QKV_OK)
            status = read_values(cells.sweep, in->model, in->results, values, err);
    } else if (status == QKV_OK) {
        status = compute(cells.sweep, in, values, err);
    }
    if (status == QKV_OK) status = take_means(&cells, values, err);
    if (status == QKV_OK) status = qkv_patch_show(&cells, study, in, options, err);
    free(values);
    free(cells.means);
    qkv_sweep_free(cells.sweep);
    return status;
}

const study_kind qkv_study_patch = {
    .name = "patch",
    .title = "activation patching between pairs of prompts",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .options_size = sizeof(patch_options),
    .least_prompts = 2,
    .most_prompts = 20000,
    .keeps_results = 1,
    .make = make,
};
