/* A readable summary: for every variant and metric the mean and the extremes, and where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/measure.h"

typedef struct measure_line {
    size_t n, n_undefined;
    double sum, min, max;
    int32_t layer, head; /* of the largest value */
    int prompt;
} measure_line;

const char *measure_variant_name(const measure_names *names, size_t variant) {
    return variant ? names->variants->items[variant - 1].value : "baseline";
}

int measure_summary_new(measure_summary *summary, const measure_names *names, qkv_error *err) {
    summary->n_variants = names->variants->n + 1;
    while (qkv_measure_text(names->measure, summary->n_metrics)) summary->n_metrics++;
    summary->lines = qkv_calloc(summary->n_variants * summary->n_metrics, sizeof(measure_line));
    return summary->lines ? QKV_OK : qkv_fail_memory(err);
}

void measure_summary_add(measure_summary *summary, int prompt, const qkv_table *table) {
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        qkv_measurement row = QKV_MEASUREMENT_INIT;
        qkv_table_get(table, i, &row);
        measure_line *line = &summary->lines[row.variant * summary->n_metrics + row.metric];
        if (isnan(row.value)) {
            line->n_undefined++;
            continue;
        }
        if (line->n == 0 || row.value < line->min) line->min = row.value;
        if (line->n == 0 || row.value > line->max) {
            line->max = row.value;
            line->layer = row.layer;
            line->head = row.head;
            line->prompt = prompt;
        }
        line->sum += row.value;
        line->n++;
    }
}

/* "layer 5, head 0, prompt 2"; of a single prompt and the whole model there is nothing to say. */
static void print_place(const measure_line *line, size_t n_prompts) {
    const char *comma = "";
    if (line->layer >= 0) {
        printf("layer %d", (int)line->layer);
        comma = ", ";
    }
    if (line->head >= 0) printf(", head %d", (int)line->head);
    if (line->prompt >= 0 && n_prompts > 1) printf("%sprompt %d", comma, line->prompt);
}

static void print_line(const measure_line *line, const char *name, int width, size_t n_prompts) {
    printf("%-*s", width, name);
    if (line->n == 0) {
        printf("  %s\n", line->n_undefined ? "undefined" : "no value");
        return;
    }
    qkv_print(stdout, "  %11.5g  %11.5g  %11.5g  ", line->sum / (double)line->n, line->min,
              line->max);
    if (line->max > line->min) print_place(line, n_prompts);
    if (line->n_undefined) printf(" (%zu undefined)", line->n_undefined);
    putchar('\n');
}

void measure_summary_print(const measure_summary *summary, const measure_names *names) {
    int width = 12;
    for (size_t i = 0; i < summary->n_metrics; i++) {
        const int length = (int)strlen(qkv_measure_text(names->measure, i));
        if (length > width) width = length;
    }
    for (size_t v = 0; v < summary->n_variants; v++) {
        printf("%s%s\n", v ? "\n" : "", measure_variant_name(names, v));
        printf("%-*s  %11s  %11s  %11s  %s\n", width, "metric", "mean", "min", "max", "max at");
        for (size_t i = 0; i < summary->n_metrics; i++) {
            print_line(&summary->lines[v * summary->n_metrics + i],
                       qkv_measure_text(names->measure, i), width, names->n_prompts);
        }
    }
}

/* ---- as JSON ---- */

static json_t *number_or_null(int is_known, int64_t value) {
    return is_known ? json_integer(value) : json_null();
}

/* Where the largest value is; what it has no place in is null. */
static json_t *line_json(const measure_line *line, const char *metric) {
    json_t *json = json_pack("{s:s, s:I, s:I}", "metric", metric, "n", (json_int_t)line->n,
                             "undefined", (json_int_t)line->n_undefined);
    if (line->n == 0) return json;
    json_t *place =
        json_pack("{s:o, s:o, s:o}", "prompt", number_or_null(line->prompt >= 0, line->prompt),
                  "layer", number_or_null(line->layer >= 0, line->layer), "head",
                  number_or_null(line->head >= 0, line->head));
    json_object_set_new(json, "mean", qkv_json_real(line->sum / (double)line->n));
    json_object_set_new(json, "min", qkv_json_real(line->min));
    json_object_set_new(json, "max", qkv_json_real(line->max));
    json_object_set_new(json, "max_at", place);
    return json;
}

json_t *measure_summary_json(const measure_summary *summary, const measure_names *names) {
    json_t *variants = json_array();
    for (size_t v = 0; v < summary->n_variants; v++) {
        json_t *metrics = json_array();
        for (size_t i = 0; i < summary->n_metrics; i++) {
            const measure_line *line = &summary->lines[v * summary->n_metrics + i];
            json_array_append_new(metrics, line_json(line, qkv_measure_text(names->measure, i)));
        }
        json_array_append_new(variants, json_pack("{s:o, s:o}", "variant",
                                                  qkv_json_text(measure_variant_name(names, v)),
                                                  "metrics", metrics));
    }
    return json_pack("{s:I, s:o}", "prompts", (json_int_t)names->n_prompts, "variants", variants);
}

void measure_summary_release(measure_summary *summary) {
    free(summary->lines);
    *summary = (measure_summary){0};
}
