/*
 * A report within the page of its figure: statements with their numbers, the whole table, and which
 * panels are the same. The maps are the page's own, alive (living.h).
 */
#include <stdio.h>
#include <string.h>

#include "study/living.h"
#include "study/report.h"

/* ---- tables ---- */

static void put_table_row(qkv_text *text, const char *title, const report_panel *panel,
                          double output_kl) {
    qkv_text_puts(text, "<tr><td>");
    qkv_html_put_title(text, title);
    qkv_text_printf(text, "</td><td>%s</td>", panel->kind);
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        qkv_text_puts(text, "<td>");
        qkv_report_put_number(text, panel->values[i]);
        qkv_text_puts(text, "</td>");
    }
    qkv_text_puts(text, "<td>");
    qkv_report_put_number(text, output_kl);
    qkv_text_puts(text, "</td></tr>\n");
}

static void put_table(const report *r, qkv_text *text) {
    qkv_text_puts(text, "<h2>All numbers</h2>\n<div class=\"wide\"><table><thead><tr><th>panel</th>"
                        "<th>class</th>");
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        qkv_text_printf(text, "<th>%s</th>", qkv_report_headings[i]);
    }
    qkv_text_puts(text, "<th>output KL</th></tr></thead><tbody>\n");
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        char title[48] = "unmodified";
        if (r->fig->prompts.n > 1) snprintf(title, sizeof title, "unmodified (Input %zu)", p + 1);
        put_table_row(text, title, &r->plain[p], 0);
    }
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = &r->panels[i];
        if (panel->cell->edits[0]) {
            put_table_row(text, panel->cell->title, panel, panel->output_kl);
        }
    }
    qkv_text_puts(text, "</tbody></table></div>\n<p class=\"soft\">Changes are those from the "
                        "unmodified pattern. Output KL is that of the next token's distribution. "
                        "Formulas: <code>qkv metrics</code>. Classes are ");
    qkv_html_put(text, qkv_report_thresholds);
    qkv_text_puts(text, ".</p>\n");
}

static void put_facts(const report *r, qkv_text *text) {
    static const char *const marks[] = {"\xe2\x9c\x97", "\xe2\x9c\x93", "\xe2\x80\x93"};
    static const char *const classes[] = {"no", "yes", "none"};
    qkv_text_puts(text, "<h2>What holds</h2>\n<ul class=\"facts\">\n");
    for (size_t i = 0; i < r->n_facts; i++) {
        const report_fact *fact = &r->facts[i];
        qkv_text_printf(text, "<li><span class=\"mark %s\" title=\"%s\">%s</span><strong>",
                        classes[fact->verdict], qkv_report_verdicts[fact->verdict],
                        marks[fact->verdict]);
        qkv_html_put(text, fact->name);
        qkv_text_puts(text, "</strong><span class=\"soft\">");
        qkv_html_put(text, fact->text);
        qkv_text_puts(text, "</span></li>\n");
    }
    qkv_text_puts(text, "</ul>\n");
}

static void put_identical(const report *r, qkv_text *text) {
    qkv_text_puts(text, "<h2>Identical panels</h2>\n<ul class=\"soft\">\n");
    size_t n = 0;
    report_pair pair;
    for (size_t at = 0; qkv_report_next_pair(r, &at, &pair); n++) {
        qkv_text_puts(text, "<li>");
        qkv_html_put_title(text, r->panels[pair.a].cell->title);
        qkv_text_puts(text, " and ");
        qkv_html_put_title(text, r->panels[pair.b].cell->title);
        if (pair.same) {
            qkv_text_puts(text, ": bit for bit</li>\n");
        } else {
            qkv_text_printf(text, ": nearly, largest difference %.3g</li>\n", pair.difference);
        }
    }
    if (n == 0) qkv_text_puts(text, "<li>None.</li>\n");
    qkv_text_printf(text,
                    "</ul>\n<p class=\"soft\">Nearly: largest difference of at most %g.</p>\n",
                    REPORT_NEAR);
}

void qkv_report_html(const report *r, qkv_text *text) {
    qkv_text_puts(text, "<div class=\"report\">\n");
    if (r->n_facts) put_facts(r, text);
    put_table(r, text);
    put_identical(r, text);
    qkv_text_puts(text, "</div>\n");
}
