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

#include "base/json.h"
#include "base/memory.h"
#include "base/steps.h"
#include "qkv/sweep_reader.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

#define DIRECTIONS "auto|denoise|noise|both"
#define TEXT_FIELD(member, value, help)                                                            \
    FIELD(patch_options, member, TEXT, value, 0, STUDY_MOST_TEXT, help)
#define LIST_FIELD(member, value, help)                                                            \
    FIELD(patch_options, member, LIST, value, 0, STUDY_MOST_TEXT, help)

static const field fields[] = {
    FIELD(
        patch_options, pairs, FILE, "FILE", 0, 1 << 28,
        "several pairs in place of `clean` and `corrupt`, whose means are taken: CSV, the same with "
        "tabs, or JSON Lines, with clean, corrupt and, where wanted, answer and wrong"),
    LIST_FIELD(
        site, "SITES",
        "what is patched: resid_pre, attn_out, mlp_out, resid_post, z, q, k, v, q_in, k_in, v_in "
        "(default resid_pre,z); may be repeated"),
    TEXT_FIELD(
        by, "position|head",
        "sites with heads: one position at all heads, one head at all positions (default), or "
        "position,head for both"),
    LIST_FIELD(
        metric, "METRIC",
        "logit_diff:A/B, logit:A or kl, of the tokens with these texts; prob:A, logprob:A or "
        "logprob_diff:A/B, of texts of one token or more; may be repeated"),
    LIST_FIELD(
        receiver, "WHERE",
        "path patching: only what heads change by way of these receivers counts; q@9.h9, k@9.h9 or "
        "v@9.h9 (what that head's queries, keys or values read), resid_pre@9, resid_post@9 or "
        "logits; may be repeated"),
    FIELD_FLAGGED(patch_options, freeze_mlps,
                  "with `receiver`: paths through feed-forward blocks do not count"),
    FIELD_WORDS(
        patch_options, direction, DIRECTIONS,
        "run the corrupt prompt and patch in the clean one (denoise; default), the other way round (noise; default with `receiver`), or both"),
    TEXT_FIELD(
        align, "prefix|suffix|MAP",
        "prompts of different length: which positions stand for one another, counted from the "
        "beginning, from the end, or as a map clean=corrupt, e.g. 0-3=0-3,5=6"),
    TEXT_FIELD(positions, "LIST", "positions of the clean prompt, e.g. 2-5,9 (default: all)"),
    TEXT_FIELD(layers, "LAYERS", "layers, e.g. 3, 0-5,7 or -1 (default: all)"),
    TEXT_FIELD(heads, "HEADS", "query heads, in the same notation"),
    FIELD(patch_options, top, INT, "N", 1, 1000000,
          "how many of the largest effects of each site are in the first table (default 10)"),
    TEXT_FIELD(answers, "JSON",
               "answers of the pairs, [[answer, wrong], ...], for metrics that name no tokens"),
};

double qkv_patch_recovery(const patch_cells *c, size_t cell, size_t metric) {
    const double *clean = c->means, *corrupt = c->means + c->n_metrics;
    return (c->means[cell * c->n_metrics + metric] - corrupt[metric]) /
           (clean[metric] - corrupt[metric]);
}

void qkv_patch_range(const patch_cells *c, size_t cell, size_t metric, double *lowest,
                     double *highest) {
    *lowest = *highest = (double)NAN;
    for (size_t p = 0; p < c->n_pairs; p++) {
        const double *of = c->values + p * c->n * c->n_metrics;
        const double clean = of[metric], corrupt = of[c->n_metrics + metric];
        const double recovery = (of[cell * c->n_metrics + metric] - corrupt) / (clean - corrupt);
        if (!isfinite(recovery)) continue; /* both prompts of the pair have the same value */
        *lowest = fmin(*lowest, recovery);
        *highest = fmax(*highest, recovery);
    }
}

/* ---- the specification ---- */

/* NULL where memory was short: what it becomes part of is spoiled, too. */
static json_t *whole(json_t *value) {
    if (!qkv_json_is_spoiled(value)) return value;
    json_decref(value);
    return NULL;
}

/* The prompts' answers; the prompts themselves have tokens already. */
static json_t *pairs_json(const study_inputs *in, const json_t *answers) {
    json_t *pairs = json_array();
    for (size_t i = 0; i < in->prompts.n / 2; i++) {
        json_t *pair = json_object();
        static const char *const keys[] = {"answer", "wrong"};
        for (size_t k = 0; k < 2; k++) {
            json_t *text = json_array_get(json_array_get(answers, i), k);
            if (json_is_string(text)) qkv_json_put(pair, keys[k], json_incref(text));
        }
        qkv_json_push(pairs, whole(pair));
    }
    return whole(pairs);
}

static json_t *lines_json(const char *lines) {
    json_t *list = json_array();
    while (lines && *lines) {
        const size_t n = strcspn(lines, "\n");
        qkv_json_push(list, json_stringn(lines, n));
        lines += n + (lines[n] == '\n');
    }
    return whole(list);
}

/* Sites stand in lines, between commas, or both. */
static json_t *sites_json(const char *lines) {
    char *text = qkv_strdup(lines);
    for (char *at = text; at && *at; at++) {
        if (*at == '\n') *at = ',';
    }
    json_t *sites = text ? qkv_json_text(text) : NULL;
    free(text);
    return sites;
}

static int read_answers(const patch_options *o, size_t n_pairs, json_t **out, qkv_error *err) {
    *out = o->answers ? qkv_json_parse(o->answers, strlen(o->answers), 0, NULL) : NULL;
    if (!o->answers || json_array_size(*out) == n_pairs) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`answers` is not a JSON list of one item for each pair");
}

static int check(qkv_study *study, const void *given, qkv_error *err) {
    const patch_options *o = given;
    if (!o->metric)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "give a metric, e.g. `metric` 'logit_diff: river/ church'");
    if (o->pairs && study->n_given)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "give `pairs`, or `clean` and `corrupt`, not both");
    if (o->pairs) return qkv_patch_pairs_take(study, o->pairs, err);
    if (study->n_given == 0 || study->n_given % 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "give two prompts with `clean` and `corrupt`, or many with `pairs`");
    return QKV_OK;
}

static int make_sweep(qkv_sweep **sweep, const study_inputs *in, const void *given,
                      qkv_error *err) {
    static const char *const directions[] = {NULL, "denoise", "noise", "both"};
    const patch_options *o = given;
    json_t *answers = NULL;
    int status = read_answers(o, in->prompts.n / 2, &answers, err);
    json_t *spec =
        json_pack("{s:o, s:o}", "pairs", pairs_json(in, answers), "metrics", lines_json(o->metric));
    if (o->site) qkv_json_put(spec, "targets", sites_json(o->site));
    const struct {
        const char *key, *text;
    } texts[] = {{"by", o->by},         {"direction", directions[o->direction]},
                 {"align", o->align},   {"positions", o->positions},
                 {"layers", o->layers}, {"heads", o->heads}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].text) qkv_json_put(spec, texts[i].key, json_string(texts[i].text));
    }
    if (o->receiver) qkv_json_put(spec, "receivers", lines_json(o->receiver));
    if (o->freeze_mlps) qkv_json_put(spec, "freeze_mlps", json_true());
    if (in->prompts.items[0].text && in->prompts.items[0].flags & QKV_TOKENIZE_PARSE_SPECIAL)
        qkv_json_put(spec, "parse_special", json_true());
    if (status == QKV_OK)
        status = qkv_json_is_spoiled(spec)
                     ? qkv_fail_memory(err)
                     : qkv_sweep_make(sweep, in->model, spec, &in->prompts, err);
    json_decref(spec);
    json_decref(answers);
    return status;
}

/* ---- values ---- */

static int compute(const qkv_sweep *sweep, const study_inputs *in, double *values, qkv_error *err) {
    const size_t n_metrics = qkv_sweep_n_metrics(sweep);
    const int64_t wanted = qkv_sweep_n_cells(sweep);
    int64_t done = 0, n = 0;
    int status = qkv_study_begin(in, "cells", (size_t)wanted, err);
    if (status != QKV_OK) return status;
    for (int64_t b = 0; b < qkv_sweep_n_blocks(sweep) && status == QKV_OK; b++) {
        const int64_t first = qkv_sweep_block(sweep, b, &n);
        status = qkv_study_reach(in, (double)(done), (double)(n), err);
        if (status == QKV_OK)
            status =
                qkv_sweep_compute(sweep, in->session, b, values + (size_t)first * n_metrics, err);
        done += n;
    }
    return qkv_study_end(in, status);
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

/* Processes compute it, and not the session: its callback hears of it all the same. */
static int on_progress(void *user, int64_t done, int64_t wanted) {
    (void)wanted;
    return qkv_study_reach(user, (double)done, 0, NULL) != QKV_OK;
}

/* Computes what the file does not hold yet, and reads it. */
static int share(const qkv_sweep *sweep, const study_inputs *in, qkv_error *err) {
    qkv_sweep_share_options how = QKV_SWEEP_SHARE_OPTIONS_INIT;
    study_inputs own = *in;
    int stopped = 0;
    how.progress = on_progress;
    how.user = &own;
    int status = qkv_study_begin(in, "cells", (size_t)qkv_sweep_n_cells(sweep), err);
    if (status != QKV_OK) return status;
    status = qkv_sweep_share(sweep, in->results, &how, &stopped, err);
    if (status == QKV_OK && stopped)
        status =
            qkv_fail(err, QKV_ERR_CANCELLED, "stopped; the same call resumes from %s", in->results);
    return qkv_study_end(in, status);
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
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT, "%s holds the results of another sweep or model", path);
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

/* ---- what was taken for what ---- */

/* Texts that are tokens only with a space before them. */
static int warn_blanks(qkv_study *study, const qkv_sweep *sweep, const patch_options *o,
                       qkv_error *err) {
    json_t *metrics = lines_json(o->metric), *answers = NULL;
    const qkv_patching *patching = sweep->patching;
    const int status =
        metrics ? read_answers(o, patching->n_pairs, &answers, err) : qkv_fail_memory(err);
    for (size_t i = 0; i < json_array_size(metrics); i++) {
        const char *given = json_string_value(json_array_get(metrics, i));
        if (strcmp(given, qkv_sweep_metric(sweep, i)) != 0)
            qkv_study_warn(study, "metric '%s' is taken as '%s': spaces belong to tokens", given,
                           qkv_sweep_metric(sweep, i));
    }
    const char *warning;
    for (size_t i = 0; (warning = qkv_sweep_warning(sweep, i)); i++)
        qkv_study_warn(study, "%s", warning);
    size_t n = 0;
    for (size_t i = 0; i < 2 * json_array_size(answers); i++) {
        const char *given =
            json_string_value(json_array_get(json_array_get(answers, i / 2), i % 2));
        const char *taken = patching->pairs[i / 2].texts[i % 2];
        n += given && (!taken || strcmp(given, taken) != 0);
    }
    if (n)
        qkv_study_warn(
            study,
            "%zu of the pairs' answers are tokens only with a space before them, and are "
            "taken so",
            n);
    json_decref(answers);
    json_decref(metrics);
    return status;
}

/* ---- the study ---- */

static int make(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const patch_options *options = given;
    patch_cells cells = {0};
    double *values = NULL;
    int status = qkv_study_get_sweep(study, in, options, &cells.sweep, err);
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
    cells.values = values;
    if (status == QKV_OK) status = warn_blanks(study, cells.sweep, options, err);
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
    .description =
        "Activation patching. Runs one prompt with a piece of the other put in, for every layer and "
        "every position or head, and reads a metric from the logits after the last token. Every "
        "value is put on the scale on which the corrupt prompt is 0 and the clean one 1: recovery = "
        "(m - m_corrupt) / (m_clean - m_corrupt). Denoising runs the corrupt prompt with a piece of "
        "the clean one: a high recovery means that the piece is enough. Noising runs the clean one "
        "with a piece of the corrupt one: a low recovery means that the piece was needed.\n"
        "\n"
        "A space before a word belongs to it: ' river' and 'river' are different tokens. A text that "
        "is a token only with a space before it is taken so, and a warning says it; of two that are "
        "compared, both are then taken with a space. logit_diff and logit are of one token each. "
        "logprob is the log-probability of an answer of one token or more, which then follows both "
        "prompts; logprob_diff is the difference of two; patches by head act on the answer's tokens, "
        "too. '\\/' is a slash, and @N at the end looks after token N of the prompt (negative: from "
        "the end) instead of the last. kl is the KL from the clean prompt's distribution, in nats.\n"
        "\n"
        "With `receiver`, path patching (Wang et al., arXiv 2211.00593). Each head before the "
        "receivers is a sender: the prompt is run with the sender's z from the other prompt, and all "
        "later heads frozen as they are without it; feed-forward blocks are computed anew. What the "
        "receivers then would read is put into them in a second run, where nothing is frozen, and "
        "the metric is read there. To the logits the first run is all. The picture has senders.\n"
        "\n"
        "The picture 'positions' has layers and tokens, 'heads' layers and heads. A CSV has every "
        "cell.\n",
    .examples =
        "qkv patch --clean 'The river runs past the city, and people swim in the' \\\n"
        "    --corrupt 'The church runs past the city, and people swim in the' \\\n"
        "    --metric 'logit_diff: river/ church' -o patch.png -o heads.png:heads -o patch.sqlite\n"
        "qkv patch --clean 'The river runs past the city, and people swim in the' \\\n"
        "    --corrupt 'The church runs past the city, and people swim in the' \\\n"
        "    --metric 'logit_diff: river/ church' --receiver q@5.h1 -o paths.png -o paths.sqlite\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .prompt_names = "clean|corrupt",
    .check = check,
    .cells = make_sweep,
    .options_size = sizeof(patch_options),
    .least_prompts = 2,
    .most_prompts = 20000,
    .keeps_results = 1,
    .make = make,
};
