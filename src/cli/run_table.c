/* A result as a short table or as JSON: what each edit changed, the range of every captured tensor, what
 * happened to attention, and the tokens that come next. */
#include "cli/run_changes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/messages.h"
#include "qkv/edit_data.h"
#include "qkv/store.h"

typedef struct summary {
    double min, max, mean;
} summary;

/* Of the values that there are: scores that an edit has masked are -inf, and count for nothing. */
static summary summarize(const qkv_tensor *tensor) {
    int64_t n = 1, counted = 0;
    for (int32_t d = 0; d < tensor->n_dims; d++) n *= tensor->shape[d];
    summary all = {0};
    for (int64_t i = 0; i < n; i++) {
        const double x = tensor->data[i];
        if (!isfinite(x)) continue;
        if (!counted || x < all.min) all.min = x;
        if (!counted || x > all.max) all.max = x;
        all.mean += x;
        counted++;
    }
    if (counted) all.mean /= (double)counted;
    return all;
}

static void print_edit(const qkv_result *result, size_t v, size_t e) {
    printf("v%zu  %s  ", v, qkv_result_edit_text(result, v, e));
    if (qkv_result_edit_ran(result, v, e)) {
        const uint64_t selected = qkv_result_edit_selected(result, v, e);
        printf("changed %" PRIu64 " of %" PRIu64 " value%s\n",
               qkv_result_edit_changed(result, v, e), selected, qkv_plural(selected));
    } else {
        printf("not computed: nothing that is captured depends on it\n");
    }
    const char *note = qkv_result_edit_note(result, v, e);
    if (note) printf("    %s\n", note);
}

static void print_edits(const qkv_result *result) {
    for (size_t v = 1; v < qkv_result_n_variants(result); v++) {
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++) print_edit(result, v, e);
    }
    if (qkv_result_n_variants(result) > 1) putchar('\n');
}

static void print_tensor(size_t variant, qkv_site site, int32_t layer, const qkv_tensor *tensor,
                         int width) {
    char name[QKV_STORE_NAME_SIZE], shape[96] = "";
    qkv_store_name(name, variant, site, layer, tensor->reduction);
    for (int32_t d = 0; d < tensor->n_dims; d++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%s%" PRId64, d ? "," : "", tensor->shape[d]);
    }
    const summary all = summarize(tensor);
    qkv_print(stdout, "%-*s  %-14s  %12.6g  %12.6g  %12.6g\n", width, name, shape, all.min, all.max,
              all.mean);
}

/* Of the column of names. */
static int name_width(const qkv_result *result) {
    size_t width = 18, variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++) {
        char name[QKV_STORE_NAME_SIZE];
        qkv_store_name(name, variant, site, layer, tensor.reduction);
        if (strlen(name) > width) width = strlen(name);
    }
    return (int)width;
}

int cli_print_result(const cli_outcome *outcome, qkv_error *err) {
    const qkv_result *result = outcome->result;
    cli_changes changes = {0};
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    const int width = name_width(result);
    print_edits(result);
    printf("%-*s  %-14s  %12s  %12s  %12s\n", width, "tensor", "shape", "min", "max", "mean");
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++) {
        print_tensor(variant, site, layer, &tensor, width);
    }
    const int status = cli_changes_find(&changes, outcome, err);
    if (status == QKV_OK) {
        cli_changes_print(&changes, outcome);
        cli_map_print(&changes, outcome);
        cli_next_line_print(outcome);
    }
    cli_changes_release(&changes);
    return status;
}

/* ---- as JSON ---- */

static json_t *edit_json(const qkv_result *result, size_t v, size_t e) {
    const int ran = qkv_result_edit_ran(result, v, e);
    const char *note = qkv_result_edit_note(result, v, e);
    json_t *json = json_pack(
        "{s:I, s:o, s:b, s:o, s:I}", "variant", (json_int_t)v, "edit",
        qkv_json_text(qkv_result_edit_text(result, v, e)), "computed", ran, "changed",
        ran ? json_integer((json_int_t)qkv_result_edit_changed(result, v, e)) : json_null(),
        "selected", (json_int_t)qkv_result_edit_selected(result, v, e));
    if (note) qkv_json_put(json, "note", qkv_json_text(note));
    return json;
}

static json_t *tensor_json(size_t variant, qkv_site site, int32_t layer, const qkv_tensor *tensor) {
    char name[QKV_STORE_NAME_SIZE];
    const summary all = summarize(tensor);
    json_t *shape = json_array();
    qkv_store_name(name, variant, site, layer, tensor->reduction);
    for (int32_t d = 0; d < tensor->n_dims; d++)
        qkv_json_push(shape, json_integer(tensor->shape[d]));
    return json_pack("{s:s, s:I, s:s, s:o, s:o, s:f, s:f, s:f}", "name", name, "variant",
                     (json_int_t)variant, "site", qkv_site_name(site), "layer",
                     qkv_site_has_layer(site) ? json_integer(layer) : json_null(), "shape", shape,
                     "min", all.min, "max", all.max, "mean", all.mean);
}

json_t *cli_result_json(const cli_outcome *outcome) {
    const qkv_result *result = outcome->result;
    cli_changes changes = {0};
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    json_t *edits = json_array(), *tensors = json_array();
    for (size_t v = 1; v < qkv_result_n_variants(result); v++) {
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++)
            qkv_json_push(edits, edit_json(result, v, e));
    }
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &tensor); i++)
        qkv_json_push(tensors, tensor_json(variant, site, layer, &tensor));
    const int found = cli_changes_find(&changes, outcome, NULL) == QKV_OK;
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o}", "edits", edits, "tensors", tensors, "changes",
                  found ? cli_changes_json(&changes) : NULL, "next", cli_next_line_json(outcome));
    cli_changes_release(&changes);
    return json;
}

static void warn_edit(const qkv_result *result, size_t variant, size_t edit) {
    cli_warn("%s (v%zu) %s", qkv_result_edit_text(result, variant, edit), variant,
             qkv_result_edit_ran(result, variant, edit)
                 ? "changed no value"
                 : "was not computed: nothing that is captured depends on it");
}

void cli_warn_unchanged(const qkv_result *result) {
    for (size_t v = 1; v < qkv_result_n_variants(result); v++) {
        for (size_t e = 0; e < qkv_result_n_edits(result, v); e++) {
            if (qkv_result_edit_is_idle(result, v, e)) warn_edit(result, v, e);
        }
    }
}
