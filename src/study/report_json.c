/* A report as JSON: all numbers, and every pair of panels. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "study/report.h"

static json_t *values_of(const report_panel *panel) {
    json_t *values = json_object();
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        qkv_json_put(values, qkv_report_metrics[i], qkv_json_real(panel->values[i]));
    }
    return values;
}

static json_t *describe_panel(const report *r, size_t i) {
    const report_panel *panel = &r->panels[i];
    json_t *differences = json_array();
    for (size_t k = 0; k < r->n_panels; k++) {
        qkv_json_push(differences, qkv_json_real(qkv_report_difference(r, i, k)));
    }
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:s, s:o, s:o, s:i, s:o}", "row", (int)panel->row,
                     "col", (int)panel->col, "input", (int)panel->cell->prompt, "title",
                     qkv_json_text(panel->cell->title), "edits", qkv_json_text(panel->cell->edits),
                     "class", panel->kind, "metrics", values_of(panel), "output_kl",
                     qkv_json_real(panel->output_kl), "identical_to", (int)panel->same_as,
                     "max_differences", differences);
}

json_t *qkv_report_facts_json(const report *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_facts; i++) {
        const report_fact *fact = &r->facts[i];
        qkv_json_push(list, json_pack("{s:s, s:o, s:s, s:s}", "statement", fact->name, "number",
                                      qkv_json_real(fact->number), "verdict",
                                      qkv_report_verdicts[fact->verdict], "text", fact->text));
    }
    return list;
}

static char *dump_report(const report *r) {
    json_t *panels = json_array(), *plain = json_array();
    for (size_t i = 0; i < r->n_panels; i++) qkv_json_push(panels, describe_panel(r, i));
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        qkv_json_push(plain, json_pack("{s:s, s:o}", "class", r->plain[p].kind, "metrics",
                                       values_of(&r->plain[p])));
    }
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:{s:f, s:f, s:f, s:f, s:f}, s:o, s:o, s:o}", "about",
                  qkv_json_text(r->fig->small_print), "facts", qkv_report_facts_json(r), "classes",
                  qkv_report_thresholds, "thresholds", "uniform", REPORT_UNIFORM, "sink",
                  REPORT_SINK, "diagonal", REPORT_DIAGONAL, "saturated", REPORT_SATURATED,
                  "nearly_identical", REPORT_NEAR, "unmodified", plain, "panels", panels, "recipe",
                  qkv_json_parse(r->fig->recipe, strlen(r->fig->recipe), JSON_ALLOW_NUL, NULL));
    if (r->fig->options.no_recipe) json_object_del(json, "recipe");
    char *dump = json ? qkv_json_dump(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    return dump;
}

int qkv_report_json(const report *r, qkv_text *text, qkv_error *err) {
    const qkv_locale host = qkv_locale_enter();
    char *dump = dump_report(r);
    qkv_locale_leave(host);
    if (!dump) return qkv_fail_memory(err);
    qkv_text_puts(text, dump);
    qkv_text_puts(text, "\n");
    free(dump);
    return QKV_OK;
}
