/*
 * A report as one HTML page that needs nothing else: statements with their numbers, a map of every
 * panel (report_map.c; identical ones once), and the whole table.
 */
#include <stdio.h>
#include <string.h>

#include "study/report.h"

static const char style_text[] =
    ":root{--ink:#1d2430;--soft:#5c6675;--line:#e3e7ee;--card:#fff;--page:#f5f7fa}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:36px 24px 64px}\n"
    "h1{font-size:26px;line-height:1.25;margin:0 0 6px}\n"
    "h2{font-size:18px;margin:36px 0 12px}\n"
    "p{margin:6px 0}\n"
    ".soft{color:var(--soft);font-size:13.5px}\n"
    ".facts{list-style:none;margin:0;padding:0;background:var(--card);border:1px solid var(--line);"
    "border-radius:10px;overflow:hidden}\n"
    ".facts li{display:grid;grid-template-columns:26px 300px 1fr;gap:12px;padding:10px 16px;"
    "border-top:1px solid var(--line);align-items:baseline}\n"
    ".facts li:first-child{border-top:0}\n"
    ".mark{font-weight:700;text-align:center}\n"
    ".yes{color:#18794e}.no{color:#c62a2f}.none{color:#8b95a5}\n"
    ".grid{display:grid;gap:16px;grid-template-columns:repeat(3,minmax(0,1fr));margin:12px 0}\n"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px "
    "16px}\n"
    ".card ul{list-style:none;font-size:14.5px;font-weight:600;margin:0 0 10px;padding:0;"
    "min-height:2.9em;line-height:1.45}\n"
    ".map{width:100%;display:block}.map text{font-size:9.5px;fill:var(--ink)}\n"
    ".map .axis{font-size:11px;fill:var(--soft)}\n"
    ".frame{fill:none;stroke:#555;stroke-width:.8}\n"
    ".bar{display:block}.bar text{font-size:10.5px;fill:var(--soft)}\n"
    "#tip{position:fixed;background:#1d2430;color:#fff;font-size:13px;padding:4px 9px;"
    "border-radius:6px;pointer-events:none;max-width:420px;overflow-wrap:anywhere}\n"
    "#tip[hidden]{display:none}\n"
    ".badge{float:right;font-size:12px;font-weight:600;border-radius:99px;padding:1px 10px;"
    "margin-left:8px}\n"
    ".sink{background:#fde3d8;color:#9a3412}.uniform{background:#dcebfb;color:#1c508f}\n"
    ".diagonal{background:#e5defa;color:#54389c}.mixed{background:#e9edf2;color:#48525f}\n"
    "dl{display:grid;grid-template-columns:1fr auto;gap:1px 10px;margin:10px 0 0;font-size:13px}\n"
    "dt{color:var(--soft)}dd{margin:0;text-align:right}\n"
    "dd,td{font-variant-numeric:tabular-nums}\n"
    ".wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}"
    "\n"
    "table{border-collapse:collapse;width:100%;font-size:13px;white-space:nowrap}\n"
    "th,td{padding:6px 5px;text-align:right;border-top:1px solid var(--line)}\n"
    "thead th{border-top:0;color:var(--soft);font-weight:600;vertical-align:bottom;"
    "white-space:normal}\n"
    "th:first-child,td:first-child,td:nth-child(2){text-align:left}\n"
    "td:first-child{white-space:normal;min-width:150px}\n"
    "@media(max-width:760px){.grid{grid-template-columns:1fr!important}"
    ".facts li{grid-template-columns:26px 1fr}.facts li span:last-child{grid-column:2}}\n";

void qkv_report_put_escaped(qkv_text *text, const char *bytes, size_t length) {
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, bytes, length);
    for (const char *at = visible.length ? visible.data : ""; *at; at++) {
        switch (*at) {
        case '&':
            qkv_text_puts(text, "&amp;");
            break;
        case '<':
            qkv_text_puts(text, "&lt;");
            break;
        case '"':
            qkv_text_puts(text, "&quot;");
            break;
        default:
            qkv_text_append(text, at, 1);
        }
    }
    text->failed |= visible.failed;
    qkv_text_release(&visible);
}

static void put_text(qkv_text *text, const char *string) {
    qkv_report_put_escaped(text, string, strlen(string));
}

/* A title of the figure: text between asterisks is in italics, \* is an asterisk. */
static void put_title(qkv_text *text, const char *title) {
    int italic = 0;
    for (const char *at = title; *at; at++) {
        if (*at == '\\' && at[1] == '*') {
            at++;
            qkv_text_puts(text, "*");
        } else if (*at == '*') {
            italic = !italic;
            qkv_text_puts(text, italic ? "<em>" : "</em>");
        } else if (*at == '-') {
            qkv_text_puts(text, "\xe2\x80\x91"); /* one that lines are not broken behind: 1e-10 */
        } else {
            const size_t n = 1 + strcspn(at + 1, "*\\-");
            qkv_report_put_escaped(text, at, n);
            at += n - 1;
        }
    }
    if (italic) qkv_text_puts(text, "</em>");
}

/* ---- cards ---- */

static void put_pair(qkv_text *text, const char *name, double value) {
    qkv_text_printf(text, "<dt>%s</dt><dd>", name);
    qkv_report_put_number(text, value);
    qkv_text_puts(text, "</dd>");
}

/* The unmodified pattern of a prompt, or a panel; and all panels that have the same bits. */
typedef struct group {
    const report_panel *panel;
    const float *map;
    size_t prompt, first; /* first: number of the panel; n_panels for the unmodified pattern */
} group;

/* Is this panel bit for bit the unmodified pattern? */
static int is_plain(const report *r, size_t panel) {
    const figure_cell *cell = r->panels[panel].cell;
    const size_t n = r->fig->prompts.items[cell->prompt].n_tokens;
    return memcmp(cell->pattern, r->fig->plain[cell->prompt], n * n * sizeof(float)) == 0;
}

static int belongs(const report *r, const group *g, size_t panel) {
    if (r->panels[panel].cell->prompt != g->prompt) return 0;
    return g->first == r->n_panels ? is_plain(r, panel) : r->panels[panel].same_as == g->first;
}

/* All names of a group, each once: those of a grid may come twice. */
static void put_names(const report *r, qkv_text *text, const group *g) {
    if (g->first == r->n_panels) {
        qkv_text_puts(text, "<li>Unmodified");
        if (r->fig->prompts.n > 1) qkv_text_printf(text, " (Input %zu)", g->prompt + 1);
        qkv_text_puts(text, "</li>");
    }
    for (size_t i = 0; i < r->n_panels; i++) {
        const figure_cell *cell = r->panels[i].cell;
        if (!belongs(r, g, i) || (g->first == r->n_panels && cell->edits[0] == '\0')) continue;
        qkv_text_puts(text, "<li>");
        put_title(text, cell->title[0] ? cell->title : "Unmodified");
        qkv_text_puts(text, "</li>");
    }
}

static void put_card(const report *r, qkv_text *text, const group *g) {
    static const int shown[] = {REPORT_first_column, REPORT_diagonal,   REPORT_near_diagonal,
                                REPORT_far,          REPORT_uniformity, REPORT_tv};
    qkv_text_printf(text, "<div class=\"card\"><span class=\"badge %s\">%s</span><ul>",
                    g->panel->kind, g->panel->kind);
    put_names(r, text, g);
    qkv_text_puts(text, "</ul>\n");
    qkv_report_put_map(r, text, g->prompt, g->map);
    qkv_text_puts(text, "<dl>");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        put_pair(text, qkv_report_headings[shown[i]], g->panel->values[shown[i]]);
    }
    qkv_text_puts(text, "</dl></div>\n");
}

/* Identical panels are shown once, under all their names. */
static void put_prompt_cards(const report *r, qkv_text *text, size_t prompt) {
    put_card(r, text, &(group){&r->plain[prompt], r->fig->plain[prompt], prompt, r->n_panels});
    for (size_t i = 0; i < r->n_panels; i++) {
        const report_panel *panel = &r->panels[i];
        if (panel->cell->prompt != prompt || panel->same_as != i || is_plain(r, i)) continue;
        put_card(r, text, &(group){panel, panel->cell->pattern, prompt, i});
    }
}

static void put_cards(const report *r, qkv_text *text) {
    qkv_text_puts(text, "<h2>Panels</h2>\n");
    qkv_report_put_bar(r, text);
    qkv_report_put_tokens(r, text);
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        qkv_text_puts(text, "<div class=\"grid\">\n");
        put_prompt_cards(r, text, p);
        qkv_text_puts(text, "</div>\n");
    }
    qkv_text_puts(text, "<p class=\"soft\">");
    put_text(text, qkv_report_thresholds);
    qkv_text_puts(text, ". Panels with the same bits are shown once.");
    qkv_report_put_masked(r, text);
    qkv_text_puts(text, " Point at a cell for its numbers.");
    qkv_report_put_pooling(r, text);
    qkv_text_puts(text, "</p>\n<div id=\"tip\" hidden></div>\n");
}

/* ---- tables ---- */

static void put_table_row(qkv_text *text, const char *title, const report_panel *panel,
                          double output_kl) {
    qkv_text_puts(text, "<tr><td>");
    put_title(text, title);
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
                        "Formulas: <code>qkv metrics</code>.</p>\n");
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
        put_text(text, fact->name);
        qkv_text_puts(text, "</strong><span class=\"soft\">");
        put_text(text, fact->text);
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
        put_title(text, r->panels[pair.a].cell->title);
        qkv_text_puts(text, " and ");
        put_title(text, r->panels[pair.b].cell->title);
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
    const qkv_figure *fig = r->fig;
    const char *title = fig->title ? fig->title : "Attention weights";
    qkv_text_puts(text, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                        "<title>");
    put_text(text, title);
    qkv_text_printf(text, "</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>", style_text);
    put_text(text, title);
    qkv_text_puts(text, "</h1>\n<p class=\"soft\">");
    put_text(text, r->fig->small_print);
    qkv_text_puts(text, "</p>\n");
    for (size_t p = 0; p < fig->prompts.n; p++) {
        qkv_text_printf(text, "<p class=\"soft\">Input %zu, %zu tokens: ", p + 1,
                        fig->prompts.items[p].n_tokens);
        if (fig->prompts.items[p].text) {
            qkv_report_put_escaped(text, fig->prompts.items[p].text, fig->prompts.items[p].length);
        } else {
            qkv_text_puts(text, "given as token ids");
        }
        qkv_text_puts(text, "</p>\n");
    }
    if (r->n_facts) put_facts(r, text);
    put_cards(r, text);
    put_table(r, text);
    put_identical(r, text);
    qkv_text_printf(text, "</main>\n<script>\n%s</script></body></html>\n", qkv_report_script);
}
