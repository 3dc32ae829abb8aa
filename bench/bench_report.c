/*
 * What was measured, as a table or as JSON with every sample; and whether the targets hold.
 *
 * Ratios are those of medians. A target that misses one of its measurements is left out.
 */
#define _DEFAULT_SOURCE /* getloadavg */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "bench.h"
#include "qkv/version.h"

#define MIB (1024.0 * 1024.0)

enum unit { UNIT_TIMES, UNIT_SECONDS, UNIT_BYTES };

/* What a value is divided by, or what is taken off it. */
enum { BY_NOTHING = -1, LESS_FILE = -2 };

typedef struct target {
    const char *name;
    int id, by;
    enum unit unit;
    double limit;
    size_t max_tokens; /* 0: holds for every length */
} target;

static const target targets[] = {
    {"grid / trunk", BENCH_GRID, BENCH_TRUNK, UNIT_TIMES, 1.15, 0},
    {"sweep / forward", BENCH_SWEEP, BENCH_FORWARD, UNIT_TIMES, 1.5, 0},
    {"epsilon", BENCH_EPSILON, BY_NOTHING, UNIT_SECONDS, 5e-3, 128},
    {"token-4 / token", BENCH_TOKENS, BENCH_TOKEN, UNIT_TIMES, 1.5, 0},
    {"memory - file", BENCH_MEMORY, LESS_FILE, UNIT_BYTES, 100 * MIB, 0},
};
enum { TARGET_COUNT = sizeof targets / sizeof *targets };

/* ---- numbers ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct summary {
    double median, least, most;
} summary;

/* 0 when there are no samples, or no memory to sort them in. */
static int summarise(const bench_samples *samples, summary *out) {
    if (!samples->values || samples->n == 0) return 0;
    const size_t n = samples->n;
    double *sorted = qkv_calloc(n, sizeof *sorted);
    if (!sorted) return 0;
    memcpy(sorted, samples->values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    *out = (summary){(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[0], sorted[n - 1]};
    free(sorted);
    return 1;
}

static int value_of(const bench_case *c, const target *t, double *value) {
    summary top, bottom;
    if (t->max_tokens && c->setting->n_tokens > t->max_tokens) return 0;
    if (!summarise(&c->samples[t->id], &top)) return 0;
    *value = top.median;
    if (t->by == LESS_FILE) *value -= (double)c->info->file_size;
    if (t->by < 0) return 1;
    if (!summarise(&c->samples[t->by], &bottom) || bottom.median <= 0) return 0;
    *value /= bottom.median;
    return 1;
}

/* ---- the table ---- */

static void print_number(enum unit unit, double value) {
    static const char *const formats[] = {"%8.2f x  ", "%8.2f ms ", "%8.1f MiB"};
    static const double factors[] = {1, 1e3, 1 / MIB};
    qkv_print(stdout, formats[unit], value * factors[unit]);
}

static void print_heading(const bench_case *c) {
    const qkv_model_info *info = c->info;
    qkv_print(stdout,
              "%s: %" PRId32 " layer%s, %" PRId32 " head%s, %" PRId32
              " key/value head%s, D %" PRId32 ", %.1f MiB\n",
              c->name, info->n_layer, qkv_plural((uint64_t)info->n_layer), info->n_head,
              qkv_plural((uint64_t)info->n_head), info->n_kv_head,
              qkv_plural((uint64_t)info->n_kv_head), info->n_embd, (double)info->file_size / MIB);
    printf("%zu token%s, layer %" PRId32 ", ", c->setting->n_tokens,
           qkv_plural(c->setting->n_tokens), c->layer);
    if (c->setting->n_threads) {
        printf("%" PRId32 " thread%s", c->setting->n_threads,
               qkv_plural((uint64_t)c->setting->n_threads));
    } else {
        printf("all %ld cores", sysconf(_SC_NPROCESSORS_ONLN));
    }
    printf(", %zu round%s\n", c->setting->n_rounds, qkv_plural(c->setting->n_rounds));
}

static void print_measurement(const bench_case *c, int id) {
    summary s;
    if (!summarise(&c->samples[id], &s)) return;
    const enum unit unit = id == BENCH_MEMORY ? UNIT_BYTES : UNIT_SECONDS;
    printf("  %-14s", bench_names[id]);
    print_number(unit, s.median);
    print_number(unit, s.least);
    print_number(unit, s.most);
    printf("   %s\n", bench_whats[id]);
}

static void print_target(const bench_case *c, const target *t, int *any) {
    double value;
    if (!value_of(c, t, &value)) return;
    printf("%s  %-17s", *any ? "" : "\n", t->name);
    *any = 1;
    print_number(t->unit, value);
    printf("  at most");
    print_number(t->unit, t->limit);
    printf("   %s\n", value <= t->limit ? "holds" : "DOES NOT HOLD");
}

void bench_print_table(const bench_case *cases, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (k) putchar('\n');
        print_heading(&cases[k]);
        printf("\n  %-14s%8s    %8s    %8s\n", "", "median", "least", "most");
        for (int i = 0; i < BENCH_COUNT; i++) print_measurement(&cases[k], i);
        int any = 0;
        for (int i = 0; i < TARGET_COUNT; i++) print_target(&cases[k], &targets[i], &any);
    }
}

/* ---- JSON ---- */

static json_t *measurement_json(const bench_case *c, int id) {
    const bench_samples *samples = &c->samples[id];
    summary s;
    if (!summarise(samples, &s)) return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < samples->n; i++) {
        qkv_json_push(list, json_real(samples->values[i]));
    }
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:o}", "what", bench_whats[id], "unit",
                     id == BENCH_MEMORY ? "bytes" : "seconds", "median", s.median, "least", s.least,
                     "most", s.most, "samples", list);
}

static json_t *targets_json(const bench_case *c) {
    json_t *list = json_array();
    for (int i = 0; i < TARGET_COUNT; i++) {
        double value;
        if (!value_of(c, &targets[i], &value)) continue;
        qkv_json_push(list,
                      json_pack("{s:s, s:f, s:f, s:b}", "name", targets[i].name, "value", value,
                                "at_most", targets[i].limit, "holds", value <= targets[i].limit));
    }
    return list;
}

static json_t *case_json(const bench_case *c) {
    const qkv_model_info *info = c->info;
    json_t *measured = json_object();
    for (int i = 0; i < BENCH_COUNT; i++) {
        json_t *one = measurement_json(c, i);
        if (one) qkv_json_put(measured, bench_names[i], one);
    }
    return json_pack("{s:o, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:o, s:o}", "name",
                     qkv_json_text(c->name), "architecture", info->architecture, "types",
                     info->tensor_types, "layers", (int)info->n_layer, "heads", (int)info->n_head,
                     "kv_heads", (int)info->n_kv_head, "width", (int)info->n_embd, "ff",
                     (int)info->n_ff, "vocab", (int)info->n_vocab, "file_size",
                     (json_int_t)info->file_size, "layer", (int)c->layer, "measurements", measured,
                     "targets", targets_json(c));
}

/* The processor as Linux calls it, "" elsewhere. */
static void read_processor(char *out, size_t size) {
    char line[256];
    out[0] = '\0';
    FILE *stream = fopen("/proc/cpuinfo", "r");
    while (stream && fgets(line, sizeof line, stream)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (stream) fclose(stream);
}

static json_t *machine_json(void) {
    char processor[200];
    double load = 0;
    read_processor(processor, sizeof processor);
    if (getloadavg(&load, 1) != 1) load = -1;
    return json_pack("{s:o, s:I, s:f}", "processor", qkv_json_text(processor), "cores",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "load_average", load);
}

int bench_print_json(const bench_case *cases, size_t n, qkv_error *err) {
    const bench_setting *setting = cases[0].setting;
    json_t *models = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(models, case_json(&cases[i]));
    json_t *json = json_pack("{s:s, s:o, s:I, s:I, s:I, s:o}", "version", qkv_version(), "machine",
                             machine_json(), "tokens", (json_int_t)setting->n_tokens, "threads",
                             (json_int_t)setting->n_threads, "rounds",
                             (json_int_t)setting->n_rounds, "models", models);
    const int printed = qkv_json_print(json, stdout, JSON_INDENT(2));
    json_decref(json);
    if (printed != 0) return qkv_fail_memory(err);
    putchar('\n');
    return QKV_OK;
}
