/* A report as parts of its figure's page: statements with their numbers, the whole table, and which panels are the same. */
#include <stdio.h>

#include "study/html_page.h"
#include "study/report.h"

static json_t *describe_row(const char *title, const report_panel *panel, double output_kl) {
    json_t *row = json_pack("[o, s]", qkv_json_text(title), panel->kind);
    for (int i = 0; i < REPORT_COLUMNS; i++) qkv_json_push(row, qkv_json_real(panel->values[i]));
    qkv_json_push(row, qkv_json_real(output_kl));
    return row;
}

static json_t *describe_rows(const report *r) {
    json_t *rows = json_array();
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        char title[48] = "unmodified";
        if (r->fig->prompts.n > 1) snprintf(title, sizeof title, "unmodified (Input %zu)", p + 1);
        qkv_json_push(rows, describe_row(title, &r->plain[p], 0));
    }
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = &r->panels[i];
        if (panel->cell->edits[0])
            qkv_json_push(rows, describe_row(panel->cell->title, panel, panel->output_kl));
    }
    return rows;
}

static json_t *describe_table(const report *r) {
    json_t *columns = json_pack("[s, s]", "panel", "class"), *rows = describe_rows(r);
    const json_int_t n = (json_int_t)json_array_size(rows);
    for (int i = 0; i < REPORT_COLUMNS; i++)
        qkv_json_push(columns, json_string(qkv_report_headings[i]));
    qkv_json_push(columns, json_string("output KL"));
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:o, s:I, s:o, s:o}", "type", "table", "name", "report", "title",
        "All numbers", "titled", 1, "digits", 3, "columns", columns, "n_rows", n, "rows", rows,
        "note",
        json_sprintf("Changes are those from the unmodified pattern. Output KL is that "
                     "of the next token's distribution. Formulas: qkv metrics. Classes "
                     "are %s.",
                     qkv_report_thresholds));
}

static json_t *describe_pairs(const report *r) {
    json_t *items = json_array();
    report_pair pair;
    for (size_t at = 0; qkv_report_next_pair(r, &at, &pair);) {
        qkv_text text = {0};
        qkv_text_printf(&text, "%s and %s: ", r->panels[pair.a].cell->title,
                        r->panels[pair.b].cell->title);
        if (pair.same)
            qkv_text_puts(&text, "bit for bit");
        else
            qkv_text_printf(&text, "nearly, largest difference %.3g", pair.difference);
        qkv_json_push(items, text.failed ? NULL : qkv_json_text(text.data));
        qkv_text_release(&text);
    }
    qkv_text note = {0}; /* a number with a point, under every locale */
    qkv_text_printf(&note, "Nearly: largest difference of at most %g.", REPORT_NEAR);
    json_t *part = json_pack("{s:s, s:s, s:o, s:o}", "type", "list", "title", "Identical panels",
                             "items", items, "note", note.failed ? NULL : json_string(note.data));
    qkv_text_release(&note);
    return part;
}

void qkv_report_parts(const report *r, json_t *parts) {
    if (r->n_facts)
        qkv_json_push(parts, json_pack("{s:s, s:s, s:o}", "type", "facts", "title", "What holds",
                                       "items", qkv_report_facts_json(r)));
    qkv_json_push(parts, describe_table(r));
    qkv_json_push(parts, describe_pairs(r));
}
