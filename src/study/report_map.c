/*
 * The maps of an HTML report: cells, tokens at both axes, a colour bar, and a small script that tells
 * query, key and weight under the pointer. Numbers and tokens stand in the page as data; the script
 * puts them into the page as text only, so that a token can never become markup.
 */
#include <math.h>
#include <string.h>

#include "study/report.h"

/* Larger maps are pooled by their largest weight to this many cells on a side. */
enum { MAP_CELLS = 64 };
/* In units of the drawing, of which a card is about 350 pixels wide. */
enum { MAP_SIDE = 270, MAP_LEFT = 72, MAP_TOP = 4, MAP_BELOW = 72 };
enum { NO_COLOR = 1 << 24 };
enum { LABEL_CHARACTERS = 9, BAR_STEPS = 64, BAR_WIDTH = 320, BAR_TICKS = 5 };
static const double LABEL_PITCH = 10.5, LABEL_SIZE = 9.5;

const char qkv_report_script[] =
    "(function(){\n"
    "var tip=document.getElementById('tip');\n"
    "function span(i,n,side){var a=Math.ceil(i*n/side),b=Math.ceil((i+1)*n/side)-1;return [a,b]}\n"
    "function name(word,p,r){var t=document.getElementById('tokens'+p).children;\n"
    "return r[0]===r[1]?word+' '+r[0]+' \\u201c'+t[r[0]].textContent+'\\u201d'\n"
    ":(word==='query'?'queries ':'keys ')+r[0]+'\\u2013'+r[1]}\n"
    "document.querySelectorAll('svg.map').forEach(function(map){\n"
    "var d=map.dataset,n=+d.n,side=+d.side,w=d.weights.split(' '),f=map.querySelector('.frame');\n"
    "map.addEventListener('mousemove',function(e){\n"
    "var b=f.getBoundingClientRect(),c=Math.floor((e.clientX-b.left)/b.width*side),\n"
    "r=Math.floor((e.clientY-b.top)/b.height*side);\n"
    "if(c<0||r<0||c>=side||r>=side){tip.hidden=true;return}\n"
    "var v=w[r*side+c];\n"
    "tip.textContent=name('query',d.prompt,span(r,n,side))+', '+name('key',d.prompt,span(c,n,side))\n"
    "+': '+(v==='m'?'not visible':(side<n?'largest weight ':'weight ')+v);\n"
    "tip.hidden=false;\n"
    "tip.style.left=Math.min(e.clientX+14,innerWidth-tip.offsetWidth-8)+'px';\n"
    "tip.style.top=(e.clientY+16)+'px'});\n"
    "map.addEventListener('mouseleave',function(){tip.hidden=true})})})();\n";

/* ---- colours ---- */

/* Do the colours of the figure mean the weights of whole maps? Those of differences do not, nor
 * those that were stretched for the keys that are left when the first ones are skipped. */
static int has_range_of_maps(const qkv_figure *fig) {
    const qkv_figure_options *o = &fig->options;
    const int is_given = o->range[0] != 0 || o->range[1] != 0;
    return !fig->is_signed && (is_given || o->skip_keys == 0);
}

/* The look of the figure. */
static qkv_grid_style map_style(const report *r) {
    const qkv_figure *fig = r->fig;
    qkv_grid_style style = QKV_GRID_STYLE_INIT;
    style.scale = fig->scale;
    style.gamma = fig->gamma;
    style.log_floor = qkv_figure_log_floor(fig);
    style.colormap = fig->colormap;
    style.masked = fig->masked;
    if (has_range_of_maps(fig)) {
        style.low = fig->low;
        style.high = fig->high;
    }
    return style;
}

/* The value at a place of the bar, 0 to 1. */
static double value_at(const qkv_grid_style *style, double place) {
    const double length = style->high - style->low;
    if (style->scale == QKV_SCALE_LOG) {
        return style->log_floor * pow(style->high / style->log_floor, place);
    }
    if (style->scale == QKV_SCALE_POWER) place = pow(place, 1 / style->gamma);
    return style->low + length * place;
}

static void put_hatching(qkv_text *text) {
    qkv_text_puts(text, "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" "
                        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
                        "<rect width=\"1\" height=\"5\" fill=\"#b4b4b4\"/></pattern></defs>");
}

void qkv_report_put_bar(const report *r, qkv_text *text) {
    const qkv_grid_style style = map_style(r);
    qkv_text_printf(text,
                    "<svg class=\"bar\" viewBox=\"-24 0 %d 44\" width=\"%d\" height=\"44\" "
                    "role=\"img\" aria-label=\"colours from %.3g to %.3g\">",
                    BAR_WIDTH + 48, BAR_WIDTH + 48, value_at(&style, 0), value_at(&style, 1));
    if (style.masked == QKV_MASKED_HATCH) put_hatching(text);
    for (int i = 0; i < BAR_STEPS; i++) {
        const double value = value_at(&style, (i + 0.5) / BAR_STEPS);
        qkv_text_printf(text, "<rect x=\"%d\" y=\"14\" width=\"%d\" height=\"12\" fill=\"#%06x\"/>",
                        i * BAR_WIDTH / BAR_STEPS, BAR_WIDTH / BAR_STEPS + 1,
                        (unsigned)qkv_grid_color(&style, value));
    }
    for (int i = 0; i <= BAR_TICKS; i++) {
        const double place = (double)i / BAR_TICKS;
        qkv_text_printf(text, "<text x=\"%d\" y=\"40\" text-anchor=\"middle\">%.2g</text>",
                        i * BAR_WIDTH / BAR_TICKS, value_at(&style, place));
    }
    qkv_text_printf(
        text, "<text x=\"%d\" y=\"9\" text-anchor=\"middle\">Attention Weight%s</text></svg>\n",
        BAR_WIDTH / 2,
        style.scale == QKV_SCALE_LOG     ? " (log scale)"
        : style.scale == QKV_SCALE_POWER ? " (power scale)"
                                         : "");
}

/* ---- cells ---- */

static size_t map_side(size_t n) {
    return n < MAP_CELLS ? n : MAP_CELLS;
}

/* The first position of a cell of a pooled axis. */
static size_t cell_start(size_t cell, size_t n) {
    const size_t side = map_side(n);
    return (cell * n + side - 1) / side;
}

/* The largest weight of a cell; NaN where no query of it sees any of its keys and all are 0. */
static double pooled(const report *r, size_t prompt, const float *map, size_t row, size_t col) {
    const size_t n = r->fig->prompts.items[prompt].n_tokens;
    double most = NAN;
    for (size_t q = cell_start(row, n); q < cell_start(row + 1, n); q++) {
        const report_keys keys = r->visible[prompt][q];
        for (size_t k = cell_start(col, n); k < cell_start(col + 1, n); k++) {
            const int seen = (k >= keys.first && k < keys.end) || map[q * n + k] != 0;
            if (seen) most = fmax(most, (double)map[q * n + k]);
        }
    }
    return most;
}

/* NO_COLOR: a mask took it away, and what lies below shows. */
static unsigned color_of(const qkv_grid_style *style, double value) {
    if (isnan(value) && style->masked != QKV_MASKED_ZERO) return NO_COLOR;
    return (unsigned)qkv_grid_color(style, isnan(value) ? 0 : value);
}

/* One rectangle for each run of cells of a colour: a triangle of masked cells is a few runs. */
static void put_cells(const report *r, qkv_text *text, size_t prompt, const float *map) {
    const qkv_grid_style style = map_style(r);
    const size_t side = map_side(r->fig->prompts.items[prompt].n_tokens);
    qkv_text_printf(text,
                    "<g transform=\"translate(%d %d) scale(%.6g)\" "
                    "shape-rendering=\"crispEdges\">",
                    MAP_LEFT, MAP_TOP, (double)MAP_SIDE / (double)side);
    for (size_t row = 0; row < side; row++) {
        for (size_t col = 0; col < side;) {
            const unsigned color = color_of(&style, pooled(r, prompt, map, row, col));
            const size_t first = col++;
            while (col < side && color_of(&style, pooled(r, prompt, map, row, col)) == color) col++;
            if (color == NO_COLOR) continue;
            qkv_text_printf(text,
                            "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"1\" "
                            "fill=\"#%06x\"/>",
                            first, row, col - first, color);
        }
    }
    qkv_text_puts(text, "</g>");
}

static void put_weights(const report *r, qkv_text *text, size_t prompt, const float *map) {
    const size_t side = map_side(r->fig->prompts.items[prompt].n_tokens);
    for (size_t i = 0; i < side * side; i++) {
        const double value = pooled(r, prompt, map, i / side, i % side);
        if (i) qkv_text_puts(text, " ");
        if (isnan(value)) {
            qkv_text_puts(text, "m");
        } else {
            qkv_text_printf(text, "%.3g", value);
        }
    }
}

/* ---- axes ---- */

static void put_label(qkv_text *text, const char *label) {
    const size_t length = strlen(label), cut = qkv_utf8_prefix(label, length, LABEL_CHARACTERS);
    qkv_report_put_escaped(text, label, cut);
    if (cut < length) qkv_text_puts(text, "\xe2\x80\xa6");
}

/* Tokens while every cell is one, else positions; thinned out where they do not fit. */
static void put_axes(const report *r, qkv_text *text, size_t prompt) {
    const study_prompt *input = &r->fig->prompts.items[prompt];
    const size_t n = input->n_tokens, side = map_side(n);
    const double pitch = (double)MAP_SIDE / (double)side;
    const size_t step = (size_t)ceil(LABEL_PITCH / pitch);
    for (size_t i = 0; i < side; i += step) {
        const double at = ((double)i + 0.5) * pitch + LABEL_SIZE * 0.36;
        qkv_text label = {0};
        qkv_text_printf(&label, "%zu", cell_start(i, n));
        const char *shown = side < n ? label.data : input->labels[i];
        qkv_text_printf(text, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", MAP_LEFT - 4,
                        MAP_TOP + at);
        if (!label.failed) put_label(text, shown);
        qkv_text_printf(text,
                        "</text><text transform=\"translate(%.1f %d) rotate(-90)\" "
                        "text-anchor=\"end\">",
                        MAP_LEFT + at, MAP_TOP + MAP_SIDE + 4);
        if (!label.failed) put_label(text, shown);
        qkv_text_puts(text, "</text>");
        text->failed |= label.failed;
        qkv_text_release(&label);
    }
    qkv_text_printf(text,
                    "<text class=\"axis\" transform=\"translate(10 %d) rotate(-90)\" "
                    "text-anchor=\"middle\">Query</text><text class=\"axis\" x=\"%d\" y=\"%d\" "
                    "text-anchor=\"middle\">Key</text>",
                    MAP_TOP + MAP_SIDE / 2, MAP_LEFT + MAP_SIDE / 2,
                    MAP_TOP + MAP_SIDE + MAP_BELOW - 4);
}

void qkv_report_put_map(const report *r, qkv_text *text, size_t prompt, const float *map) {
    const size_t n = r->fig->prompts.items[prompt].n_tokens;
    qkv_text_printf(text,
                    "<svg class=\"map\" viewBox=\"0 0 %d %d\" role=\"img\" "
                    "aria-label=\"attention weights\" data-prompt=\"%zu\" data-n=\"%zu\" "
                    "data-side=\"%zu\" data-weights=\"",
                    MAP_LEFT + MAP_SIDE + 4, MAP_TOP + MAP_SIDE + MAP_BELOW, prompt, n,
                    map_side(n));
    put_weights(r, text, prompt, map);
    qkv_text_puts(text, "\">");
    if (r->fig->masked == QKV_MASKED_HATCH) {
        qkv_text_printf(text,
                        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                        "fill=\"url(#hatch)\"/>",
                        MAP_LEFT, MAP_TOP, MAP_SIDE, MAP_SIDE);
    }
    put_cells(r, text, prompt, map);
    qkv_text_printf(text, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                    MAP_LEFT, MAP_TOP, MAP_SIDE, MAP_SIDE);
    put_axes(r, text, prompt);
    qkv_text_puts(text, "</svg>\n");
}

/* What the script names tokens with. */
void qkv_report_put_tokens(const report *r, qkv_text *text) {
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        const study_prompt *input = &r->fig->prompts.items[p];
        qkv_text_printf(text, "<ol hidden id=\"tokens%zu\">", p);
        for (size_t i = 0; i < input->n_tokens; i++) {
            qkv_text_puts(text, "<li>");
            qkv_report_put_escaped(text, input->labels[i], strlen(input->labels[i]));
            qkv_text_puts(text, "</li>");
        }
        qkv_text_puts(text, "</ol>\n");
    }
}

void qkv_report_put_masked(const report *r, qkv_text *text) {
    if (r->fig->masked == QKV_MASKED_ZERO) return;
    qkv_text_printf(text, " %s cells are keys that the query does not see.",
                    r->fig->masked == QKV_MASKED_HATCH ? "Hatched" : "White");
}

void qkv_report_put_pooling(const report *r, qkv_text *text) {
    size_t longest = 0;
    for (size_t p = 0; p < r->fig->prompts.n; p++) {
        const size_t n = r->fig->prompts.items[p].n_tokens;
        if (n > longest) longest = n;
    }
    if (longest <= MAP_CELLS) return;
    qkv_text_printf(text,
                    " Maps of more than %d tokens are drawn with %d cells on a side, each "
                    "the largest of its weights; the numbers are of all weights.",
                    (int)MAP_CELLS, (int)MAP_CELLS);
}
