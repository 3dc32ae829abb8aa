/*
 * What transformers computed with a real model (tests/real/NAME.safetensors), for scripts:
 *
 *     real_results get EXPECTED text|ids|edits      the prompt; its tokens, with commas; an edit a line
 *     real_results get EXPECTED forced              the tokens and the greedy continuation, but its last
 *     real_results compare EXPECTED OUT             patterns, logits, hidden states of a run
 *     real_results greedy EXPECTED OUT              each greedy token is the likeliest, in logits of `forced`
 *     real_results generated EXPECTED OUT.jsonl     qkv generate wrote the greedy tokens
 *
 * Says how far apart the two are, and fails where that is too far.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/compare.h"
#include "support/tensor_file.h"

/* Patterns in absolute terms, the rest against the largest value. */
static const double bound = 5e-6;

static void give_up(const char *what) {
    fprintf(stderr, "real_results: %s\n", what);
    exit(2);
}

static tensor_file *open_file(const char *path) {
    tensor_file *file = tensor_file_open(path);
    if (!file) give_up(path);
    return file;
}

/* A list of the metadata, the caller's to decref. */
static json_t *list_of(const tensor_file *file, const char *key) {
    const char *text = tensor_file_metadata(file, key);
    json_t *list = text ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_array(list)) give_up(key);
    return list;
}

static file_tensor tensor_of(const tensor_file *file, const char *name) {
    file_tensor t;
    if (!tensor_file_get(file, name, &t)) give_up(name);
    return t;
}

/* ---- get ---- */

static size_t print_numbers(const json_t *list, size_t n, size_t printed) {
    for (size_t i = 0; i < n; i++, printed++)
        printf("%s%d", printed ? "," : "", (int)json_integer_value(json_array_get(list, i)));
    return printed;
}

static int get(const tensor_file *expected, const char *what) {
    if (strcmp(what, "text") == 0) return puts(tensor_file_metadata(expected, "text")) < 0;
    const int forced = strcmp(what, "forced") == 0;
    json_t *list = list_of(expected, forced ? "ids" : what), *greedy = list_of(expected, "greedy");
    if (strcmp(what, "edits") == 0) {
        for (size_t i = 1; i < json_array_size(list); i++)
            puts(json_string_value(json_array_get(list, i)));
    } else {
        const size_t n = print_numbers(list, json_array_size(list), 0);
        if (forced) print_numbers(greedy, json_array_size(greedy) - 1, n);
        puts("");
    }
    json_decref(list);
    json_decref(greedy);
    return 0;
}

/* ---- compare ---- */

/* 1 when it is too far. */
static int judge(const char *name, const float *actual, const file_tensor *expected, size_t from,
                 size_t n, int relative) {
    const difference d = compare_floats(actual, expected->data + from, n);
    const double distance = relative ? d.max / d.scale : d.max;
    const int bad = !(distance <= bound);
    printf("%-16s %.2e%s\n", name, distance, bad ? "  too far" : "");
    return bad;
}

static int compare_one(const char *out_name, const tensor_file *out, const file_tensor *expected,
                       size_t from, size_t n, int relative) {
    const file_tensor actual = tensor_of(out, out_name);
    if (actual.count != n) give_up(out_name);
    return judge(out_name, actual.data, expected, from, n, relative);
}

/* A variant's patterns begin with the layer that is edited: the number after the '@'. */
static int first_layer(const tensor_file *expected, size_t variant) {
    json_t *edits = list_of(expected, "edits");
    const char *text = json_string_value(json_array_get(edits, variant));
    const char *at = text ? strchr(text, '@') : NULL;
    const int layer = at ? (int)strtol(at + 1, NULL, 10) : 0;
    json_decref(edits);
    return layer;
}

static int compare_variant(const tensor_file *expected, const tensor_file *out, size_t variant,
                           size_t *n_compared) {
    char name[64];
    file_tensor t;
    snprintf(name, sizeof name, "v%zu/pattern", variant);
    t = tensor_of(expected, name);
    const int layers = (int)t.shape[0], first = first_layer(expected, variant);
    const size_t n = t.count / (size_t)layers;
    int bad = 0;
    for (int i = 0; i < layers; i++, ++*n_compared) {
        snprintf(name, sizeof name, "v%zu/pattern.%d", variant, first + i);
        bad |= compare_one(name, out, &t, (size_t)i * n, n, 0);
    }
    snprintf(name, sizeof name, "v%zu/logits", variant);
    const int has_logits = tensor_file_get(expected, name, &t);
    if (has_logits) bad |= compare_one(name, out, &t, 0, t.count, 1);
    snprintf(name, sizeof name, "v%zu/hidden", variant);
    if (!has_logits) {
        t = tensor_of(expected, name);
        snprintf(name, sizeof name, "v%zu/resid_post.%d", variant, layers - 1);
        bad |= compare_one(name, out, &t, 0, t.count, 1);
    }
    ++*n_compared;
    return bad;
}

static int compare(const tensor_file *expected, const tensor_file *out) {
    json_t *edits = list_of(expected, "edits");
    size_t n = 0;
    int bad = 0;
    for (size_t v = 0; v < json_array_size(edits); v++)
        bad |= compare_variant(expected, out, v, &n);
    json_decref(edits);
    printf("%zu tensors compared\n", n);
    return bad || n == 0;
}

/* ---- greedy ---- */

static size_t likeliest(const float *logits, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (logits[i] > logits[best]) best = i;
    }
    return best;
}

static int check_greedy(const tensor_file *expected, const tensor_file *out) {
    json_t *ids = list_of(expected, "ids"), *greedy = list_of(expected, "greedy");
    const file_tensor logits = tensor_of(out, "v0/logits");
    const size_t n_ids = json_array_size(ids), n = json_array_size(greedy);
    const size_t width = (size_t)logits.shape[1];
    int bad = n == 0 || (size_t)logits.shape[0] != n_ids + n - 1;
    for (size_t i = 0; i < n && !bad; i++) {
        const size_t wanted = (size_t)json_integer_value(json_array_get(greedy, i));
        const size_t token = likeliest(logits.data + (n_ids - 1 + i) * width, width);
        bad = token != wanted;
        if (bad) printf("greedy token %zu is %zu, and should be %zu\n", i, token, wanted);
    }
    if (!bad) printf("%zu greedy tokens\n", n);
    json_decref(ids);
    json_decref(greedy);
    return bad;
}

/* The first line of what qkv generate wrote has these ids. */
static int check_generated(const tensor_file *expected, const char *path) {
    FILE *lines = fopen(path, "r");
    json_t *greedy = list_of(expected, "greedy");
    json_t *line = lines ? json_loadf(lines, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (!line) give_up(path);
    const int bad = !json_equal(json_object_get(line, "ids"), greedy);
    printf("%zu generated tokens%s\n", json_array_size(greedy), bad ? " differ" : "");
    json_decref(line);
    json_decref(greedy);
    fclose(lines);
    return bad;
}

int main(int argc, char **argv) {
    if (argc != 4) give_up("get|compare|greedy|generated EXPECTED WHAT");
    tensor_file *expected = open_file(argv[2]), *out = NULL;
    int bad = 2;
    if (strcmp(argv[1], "get") == 0) {
        bad = get(expected, argv[3]);
    } else if (strcmp(argv[1], "generated") == 0) {
        bad = check_generated(expected, argv[3]);
    } else {
        out = open_file(argv[3]);
        bad = strcmp(argv[1], "greedy") == 0 ? check_greedy(expected, out) : compare(expected, out);
    }
    tensor_file_close(out);
    tensor_file_close(expected);
    return bad;
}
