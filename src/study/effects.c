/*
 * Effects: every combination of prompts, layers, heads, sites and operations, measured. The cells are those of a sweep
 * (qkv/sweep.h), made of the options, of a specification, or of a recipe that people write; here they are computed.
 *
 * Results are read from a file, the caller's or a temporary one, so that charts and tables are those of `qkv plot`.
 */
#include "study/effects.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/temporary.h"
#include "study/recipe.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

#define PLACES "auto|layer|output"
#define TEXT_FIELD(member, value, help)                                                            \
    FIELD(effects_options, member, TEXT, value, 0, STUDY_MOST_TEXT, help)

/* clang-format off: a field to two or three lines */
static const field fields[] = {
    TEXT_FIELD(targets, "SITES",
               "what is edited, e.g. q,k (default q,k,v); none is the unedited model"),
    TEXT_FIELD(ops, "OPS", "what is done to it, e.g. scale,mean:head,zero (default scale)"),
    TEXT_FIELD(epsilon, "LIST",
               "numbers for scale, set, add and noise, e.g. 0.5,1e-3 or logspace:1e-10,1,13"),
    TEXT_FIELD(layers, "LAYERS",
               "layers, e.g. 3, 0-5,7 or -1 (default: each of them); all: together in one edit"),
    TEXT_FIELD(heads, "HEADS", "query heads, in the same notation"),
    TEXT_FIELD(metrics, "NAMES",
               "what is measured (default sink,entropy_norm,tv; at the output "
               "output_kl,delta_loss,top1_changed)"),
    FIELD_WORDS(effects_options, at, PLACES,
                "where it is measured: in the edited layer and head, or at the model's output "
                "(default: where the metrics belong)"),
    FIELD(effects_options, length, INT, "N", 1, 1 << 30,
          "cut prompts to their first N tokens; a shorter one is an error"),
    FIELD(
        effects_options, spec, FILE, "FILE", 0, 1 << 28,
        "the same as JSON: the specification of a sweep, or a recipe with one; other options come on top of it"),
    FIELD(
        effects_options, top, INT, "N", 1, 2000,
        "how many cells of each metric are in the first table, and heads in a ranking (default 10)"),
    FIELD_WORDS(
        effects_options, chart, "auto|heatmap|lines|ranking",
        "what is drawn of each metric (default lines where there are several \xce\xb5, else heatmap)"),
    FIELD_FLAGGED(effects_options, change,
                  "draw the difference from the unedited value, for which none is among `targets`"),
    FIELD_WORDS(
        effects_options, band, "auto|range|sd|none",
        "band over the prompts: smallest to largest value (default), or one standard deviation to both sides"),
    FIELD_WORDS(effects_options, order, "auto|largest|smallest|magnitude",
                "which heads come first in a ranking (default largest; magnitude with `change`)"),
    FIELD_WORDS(effects_options, scale, "auto|linear|log", "scale of the values (default linear)"),
    FIELD_WORDS(effects_options, axis, "auto|linear|log",
                "axis of \xce\xb5 (default log, on which 0 stands apart)"),
    FIELD(effects_options, range, RANGE, "LO,HI", 0, 0,
          "range of the values (default: from the data)"),
};
/* clang-format on */

/* ---- the specification ---- */

static int read_recipe(json_t **recipe, const effects_options *o, qkv_error *err) {
    if (o->spec) return qkv_recipe_read(recipe, o->spec, err);
    *recipe = json_pack("{s:{}}", "sweep");
    return *recipe ? QKV_OK : qkv_fail_memory(err);
}

/* Options come on top of what the specification says. "model" is for programs that open one. */
static void set_keys(json_t *spec, const effects_options *o) {
    static const char *const places[] = {NULL, "layer", "output"};
    const struct {
        const char *key, *text;
    } texts[] = {{"targets", o->targets}, {"ops", o->ops},     {"epsilon", o->epsilon},
                 {"layers", o->layers},   {"heads", o->heads}, {"metrics", o->metrics},
                 {"at", places[o->at]}};
    json_object_del(spec, "model");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].text) qkv_json_put(spec, texts[i].key, json_string(texts[i].text));
    }
    if (o->length) qkv_json_put(spec, "length", json_integer(o->length));
}

/* Prompts that are given take the place of those in the specification. */
static void set_prompts(json_t *spec, const qkv_own_prompts *prompts) {
    if (prompts->n == 0) return;
    json_object_del(spec, "prompts");
    if (prompts->items[0].text && prompts->items[0].flags & QKV_TOKENIZE_PARSE_SPECIAL)
        qkv_json_put(spec, "parse_special", json_true());
}

/* What cannot be drawn is told before anything is computed. */
static int check_chart(const effects_options *o, const qkv_sweep *sweep, qkv_error *err) {
    enum { HEATMAP = 1, LINES, RANKING };
    for (size_t i = 0; i < sweep->n_settings && sweep->n_targets; i++) {
        const qkv_setting *setting = &sweep->settings[i];
        const int repeats = i && strcmp(setting->op, sweep->settings[i - 1].op) == 0;
        if (o->chart == LINES && isnan(setting->epsilon))
            return qkv_fail(
                err, QKV_ERR_ARGUMENT,
                "lines go along \xce\xb5, and the operation '%s' has none; draw a heatmap",
                setting->op);
        if ((o->chart == HEATMAP || o->chart == RANKING) && repeats)
            return qkv_fail(
                err, QKV_ERR_ARGUMENT,
                "a heatmap and a ranking are of one \xce\xb5, and '%s' has several: give one "
                "with `epsilon`, or draw lines",
                setting->op);
    }
    if (!o->order || o->chart == RANKING) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`order` is of `chart` ranking");
}

static int make_sweep(qkv_sweep **sweep, const study_inputs *in, const void *given,
                      qkv_error *err) {
    const effects_options *o = given;
    json_t *recipe = NULL;
    int status = read_recipe(&recipe, o, err);
    json_t *spec = json_object_get(recipe, "sweep");
    if (status == QKV_OK) {
        set_keys(spec, o);
        set_prompts(spec, &in->prompts);
        status =
            qkv_json_is_spoiled(spec)
                ? qkv_fail_memory(err)
                : qkv_sweep_make(sweep, in->model, spec, in->prompts.n ? &in->prompts : NULL, err);
    }
    if (status == QKV_OK) status = qkv_recipe_check_sweep(recipe, *sweep, err);
    if (status == QKV_OK) status = check_chart(o, *sweep, err);
    if (status == QKV_OK && o->change && !(*sweep)->baseline)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`change` is the difference from the unedited value: add none to "
                          "`targets`");
    json_decref(recipe);
    if (status == QKV_OK) return QKV_OK;
    qkv_sweep_free(*sweep);
    *sweep = NULL;
    return status;
}

static int check(qkv_study *study, const void *given, qkv_error *err) {
    const effects_options *o = given;
    json_t *recipe = NULL;
    int status = read_recipe(&recipe, o, err);
    const json_t *spec = json_object_get(recipe, "sweep");
    if (status == QKV_OK && qkv_patching_is_meant(spec))
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "this specification patches pairs of prompts, which 'qkv patch' does");
    if (status == QKV_OK && !study->n_given && !json_object_get(spec, "prompts"))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "give prompts, or a `spec` that has some");
    json_decref(recipe);
    return status;
}

/* ---- results ---- */

/* Computes what the file does not hold yet. */
static int run_cells(const effects *e, const char *path, qkv_error *err) {
    qkv_sweep_writer *results = NULL;
    int status = qkv_sweep_writer_open(&results, e->sweep, path, NULL, err);
    if (status == QKV_OK)
        status = qkv_sweep_run(e->sweep, e->in->session, results, NULL, NULL, err);
    const int closed = qkv_sweep_writer_close(results, status == QKV_OK ? err : NULL);
    return status == QKV_OK ? closed : status;
}

/* ---- the study ---- */

static int show(effects *e, qkv_study *study, const char *path, qkv_error *err) {
    const char *title = json_string_value(json_object_get(e->recipe, "title"));
    int status = qkv_sweep_reader_open(&e->file, path, err);
    if (status != QKV_OK) return status;
    qkv_study_set_title(study, "%s", title ? title : "Means of metrics under edits");
    status = qkv_study_link_tokens(study, e->in->model, e->sweep->prompts[0].tokens,
                                   e->sweep->prompts[0].n_tokens, err);
    if (status == QKV_OK) status = qkv_effects_show(e, study, err);
    qkv_sweep_reader_close(e->file);
    return status;
}

/* A set of heads, which is looked for when the cells are there, makes it work of two parts. */
static int compute(effects *e, qkv_study *study, const char *path, qkv_error *err) {
    const int has_heads = json_object_get(e->recipe, "greedy") != NULL;
    int status = has_heads ? qkv_study_begin(e->in, "parts", 2, err) : QKV_OK;
    if (status != QKV_OK) return status;
    if (has_heads) status = qkv_study_reach(e->in, 0, 1, err);
    if (status == QKV_OK) status = run_cells(e, path, err);
    if (status == QKV_OK && has_heads) status = qkv_study_reach(e->in, 1, 1, err);
    if (status == QKV_OK) status = show(e, study, path, err);
    return has_heads ? qkv_study_end(e->in, status) : status;
}

static int make(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    effects e = {.options = given, .in = in};
    qkv_scratch temporary = {0};
    int status = read_recipe(&e.recipe, e.options, err);
    if (status == QKV_OK) status = qkv_study_get_sweep(study, in, given, &e.sweep, err);
    if (status == QKV_OK && !in->results) status = qkv_scratch_make(&temporary, "qkv-effects", err);
    if (status == QKV_OK)
        status = compute(&e, study, in->results ? in->results : temporary.file.name, err);
    qkv_scratch_remove(&temporary);
    qkv_sweep_free(e.sweep);
    json_decref(e.recipe);
    return status;
}

const study_kind qkv_study_effects = {
    .name = "effects",
    .title = "what edits of every layer and head do to metrics, as tables and charts",
    .description =
        "Edits one site of one head at a time, for every combination of layers, heads, sites and "
        "operations, and measures what changes: a sweep. Means are over the prompts.\n"
        "\n"
        "The first table has the largest means of each metric, the table 'means' all of them with "
        "their least and largest prompt. There is a chart for each metric and operation: a heatmap of "
        "layers and heads, lines against \xce\xb5, or a ranking of heads.\n"
        "\n"
        "A specification is a JSON object with keys of the names of these options, and "
        "'prompts'. A recipe has it as 'sweep', and may say in 'tables' which means are shown and "
        "ask with 'greedy' for a set of heads; docs/sweeps.md describes them.\n",
    .examples =
        "qkv effects -p 'The river runs past the mill.' --targets q,k --epsilon 0.5,0.1,0.01 \\\n"
        "    --metrics sink,tv -o sink.png:sink -o tv.png:tv -o means.csv\n"
        "qkv effects -p 'The river runs past the mill.' --targets z --ops zero --at output -o kl.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .check = check,
    .cells = make_sweep,
    .options_size = sizeof(effects_options),
    .most_prompts = 20000,
    .keeps_results = 1,
    .make = make,
};
