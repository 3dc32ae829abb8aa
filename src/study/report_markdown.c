/* A report as Markdown: tables that read well as they are. */
#include <string.h>

#include "study/report.h"

/* Text that must not become markup. */
static void put_plain(qkv_text *text, const char *bytes, size_t length) {
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, bytes, length);
    for (const char *at = visible.length ? visible.data : ""; *at; at++) {
        if (strchr("\\`*_{}[]<>#|", *at)) qkv_text_puts(text, "\\");
        qkv_text_append(text, at, 1);
    }
    text->failed |= visible.failed;
    qkv_text_release(&visible);
}

static void put_row(qkv_text *text, const char *title, const report_panel *panel, int with_output) {
    qkv_text_puts(text, "| ");
    /* Asterisks mean here what they mean in the figure; a bar would end the cell. */
    for (const char *at = title; *at; at++) {
        if (*at == '|') qkv_text_puts(text, "\\");
        qkv_text_append(text, at, 1);
    }
    qkv_text_printf(text, " | **%s** |", panel->kind);
    for (int i = 0; i < REPORT_COLUMNS; i++) {
        qkv_text_puts(text, " ");
        qkv_report_put_number(text, panel->values[i]);
        qkv_text_puts(text, " |");
    }
    qkv_text_puts(text, " ");
    qkv_report_put_number(text, with_output ? panel->output_kl : 0);
    qkv_text_puts(text, " |\n");
}

static void put_panels(const report *r, qkv_text *text) {
    qkv_text_puts(text, "## Panels\n\n| panel | class |");
    for (int i = 0; i < REPORT_COLUMNS; i++) qkv_text_printf(text, " %s |", qkv_report_headings[i]);
    qkv_text_puts(text, " output KL |\n|---|---|");
    for (int i = 0; i <= REPORT_COLUMNS; i++) qkv_text_puts(text, "--:|");
    qkv_text_puts(text, "\n");
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        qkv_text name = {0};
        qkv_text_puts(&name, "unmodified");
        if (r->fig->prompts.n > 1) qkv_text_printf(&name, " (Input %zu)", p + 1);
        if (!name.failed) put_row(text, name.data, &r->plain[p], 0);
        qkv_text_release(&name);
    }
    for (size_t i = 0; i < r->n_panels; i++) {
        if (!r->panels[i].cell->edits[0]) continue; /* the unmodified one stands above */
        put_row(text, r->panels[i].cell->title, &r->panels[i], 1);
    }
    qkv_text_printf(text,
                    "\nClasses: %s. Changes are those from the unmodified pattern. Formulas: `qkv "
                    "metrics`.\n\n",
                    qkv_report_thresholds);
}

static void put_facts(const report *r, qkv_text *text) {
    qkv_text_puts(text, "## What holds\n\n| statement | | number |\n|---|---|---|\n");
    for (size_t i = 0; i < r->n_facts; i++) {
        qkv_text_printf(text, "| %s | %s%s%s | %s |\n", r->facts[i].name,
                        r->facts[i].verdict == REPORT_FAILS ? "**" : "",
                        qkv_report_verdicts[r->facts[i].verdict],
                        r->facts[i].verdict == REPORT_FAILS ? "**" : "", r->facts[i].text);
    }
    qkv_text_puts(text, "\n");
}

static void put_identical(const report *r, qkv_text *text) {
    qkv_text_puts(text, "## Identical panels\n\n");
    size_t n = 0;
    report_pair pair;
    for (size_t at = 0; qkv_report_next_pair(r, &at, &pair); n++) {
        qkv_text_printf(text, "- %s and %s: ", r->panels[pair.a].cell->title,
                        r->panels[pair.b].cell->title);
        if (pair.same) {
            qkv_text_puts(text, "bit for bit\n");
        } else {
            qkv_text_printf(text, "nearly, largest difference %.3g\n", pair.difference);
        }
    }
    if (n == 0) qkv_text_puts(text, "None.\n");
    qkv_text_printf(text, "\nNearly identical: largest difference of at most %g.\n", REPORT_NEAR);
}

void qkv_report_markdown(const report *r, qkv_text *text) {
    const qkv_figure *fig = r->fig;
    qkv_text_printf(text, "# %s\n\n", fig->title ? fig->title : "Attention weights");
    put_plain(text, r->fig->small_print, strlen(r->fig->small_print));
    qkv_text_puts(text, "\n\n");
    for (size_t p = 0; p < fig->prompts.n; p++) {
        qkv_text_printf(text, "- Input %zu, %zu tokens: ", p + 1, fig->prompts.items[p].n_tokens);
        if (fig->prompts.items[p].text) {
            put_plain(text, fig->prompts.items[p].text, fig->prompts.items[p].length);
        } else {
            qkv_text_puts(text, "given as token ids");
        }
        qkv_text_puts(text, "\n");
    }
    qkv_text_puts(text, "\n");
    if (r->n_facts) put_facts(r, text);
    put_panels(r, text);
    put_identical(r, text);
}
