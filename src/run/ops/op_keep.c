#include "run/ops/op_keep.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"
#include "run/plan/plan.h"
#include "run/run.h"

/* ---- what is remembered ---- */

int qkv_keep_state_new(qkv_keep_state *state, int64_t n_heads, int64_t n_tokens, qkv_error *err) {
    const size_t n = (size_t)(n_heads * n_tokens);
    *state = (qkv_keep_state){.n = n_tokens,
                              .weight = qkv_calloc(n, sizeof *state->weight),
                              .gone = qkv_calloc(n, sizeof *state->gone)};
    if (state->weight && state->gone) return QKV_OK;
    qkv_keep_state_release(state);
    return qkv_fail_memory(err);
}

void qkv_keep_state_release(qkv_keep_state *state) {
    free(state->weight);
    free(state->gone);
    *state = (qkv_keep_state){0};
}

/* ---- text ---- */

static int parse_h2o(qkv_keep_rule *rule, const char *text, qkv_error *err) {
    *rule = (qkv_keep_rule){.method = QKV_METHOD_H2O};
    const qkv_argument list[] = {{"budget", &rule->budget, 1, INT32_MAX, NULL, 1},
                                 {"recent", &rule->recent, 1, INT32_MAX, NULL, 1},
                                 {"prompt", &rule->prompt, 0, INT32_MAX, NULL, 0},
                                 {"rule", &rule->evaluates, 0, 0, "paper|lm_eval", 0}};
    const int status = qkv_arguments_read(text, list, sizeof list / sizeof *list, err);
    if (status != QKV_OK || rule->recent <= rule->budget) return status;
    return qkv_fail(err, QKV_ERR_PLAN, "recent=%lld is more than budget=%lld, which includes it",
                    (long long)rule->recent, (long long)rule->budget);
}

static int parse_snapkv(qkv_keep_rule *rule, const char *text, qkv_error *err) {
    *rule = (qkv_keep_rule){.method = QKV_METHOD_SNAPKV, .window = 32, .kernel = 5, .prompt = -1};
    const qkv_argument list[] = {{"budget", &rule->budget, 2, INT32_MAX, NULL, 1},
                                 {"window", &rule->window, 1, INT32_MAX, NULL, 0},
                                 {"kernel", &rule->kernel, 1, INT32_MAX, NULL, 0},
                                 {"pool", &rule->pool, 0, 0, "avg|max", 0},
                                 {"prompt", &rule->prompt, 1, INT32_MAX, NULL, 0}};
    const int status = qkv_arguments_read(text, list, sizeof list / sizeof *list, err);
    if (status != QKV_OK) return status;
    if (rule->kernel % 2 == 0)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "kernel=%lld is even; neighbours to both sides need an "
                        "odd one",
                        (long long)rule->kernel);
    if (rule->window >= rule->budget)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "budget=%lld leaves nothing beside window=%lld, which it includes",
                        (long long)rule->budget, (long long)rule->window);
    return QKV_OK;
}

static int parse(qkv_edit *edit, const char *text, qkv_error *err) {
    static const struct {
        const char *name;
        int (*parse)(qkv_keep_rule *, const char *, qkv_error *);
    } methods[] = {{"h2o", parse_h2o}, {"snapkv", parse_snapkv}};
    const size_t length = strcspn(text, ",");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strlen(methods[i].name) == length && strncmp(text, methods[i].name, length) == 0)
            return methods[i].parse(&edit->keep, text + length + (text[length] == ','), err);
    }
    return qkv_fail(err, QKV_ERR_SYNTAX, "keep is by h2o or snapkv, not '%.*s'", (int)length, text);
}

static int read(qkv_cursor *c, qkv_edit *edit) {
    return qkv_cursor_read(c, edit, parse);
}

/* ---- checks ---- */

static int meet(const qkv_edit *a, const qkv_edit *b, const qkv_hparams *hp) {
    qkv_selector x = a->where, y = b->where;
    x.rows = y.rows = NULL;
    return qkv_selector_overlap(&x, &y, hp, 1);
}

static int check_edit(const qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    const int64_t n = plan->text.n_positions;
    qkv_keep_rule *rule = &edit->keep;
    if (edit->where.cols && memchr(edit->where.cols, 0, (size_t)n))
        return qkv_fail(err, QKV_ERR_PLAN, "edit '%s': keep looks at all keys; select queries only",
                        edit->text);
    if (!plan->model->hp.causal)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': keep is for models whose queries come one after the other, not "
                        "for an encoder",
                        edit->text);
    if (rule->prompt < 0) rule->prompt = plan->text.n_prompt;
    if (rule->prompt < n) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' can have no effect: it acts on queries after the prompt, and the "
                    "text has %lld tokens; say with prompt=N where the prompt ends",
                    edit->text, (long long)n);
}

static int check(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    for (size_t i = 0; i < variant->n_edits; i++) {
        qkv_edit *edit = &variant->edits[i];
        if (edit->op != QKV_OP_KEEP) continue;
        const int status = check_edit(plan, edit, err);
        if (status != QKV_OK) return status;
        for (size_t k = 0; k < i; k++) {
            if (variant->edits[k].op == QKV_OP_KEEP &&
                meet(&variant->edits[k], edit, &plan->model->hp))
                return qkv_fail(err, QKV_ERR_PLAN, "edits '%s' and '%s' keep keys of the same head",
                                edit->text, variant->edits[k].text);
        }
    }
    return QKV_OK;
}

/* ---- one row ---- */

/* A query with the keys that it can see, [first, end), and what its head remembers. */
typedef struct row {
    const qkv_keep_rule *rule;
    int64_t query, first, end;
    const float *scores; /* by the key's number */
    const float *sink;   /* of the head; NULL: none */
    double *weight;
    uint8_t *gone;
} row;

/* Adds the weights of the softmax over the keys that are left, or over all. */
static void add_weights(const row *r, int over_all) {
    double largest = r->sink ? (double)*r->sink : -INFINITY;
    for (int64_t j = r->first; j < r->end; j++) {
        if (over_all || !r->gone[j]) largest = fmax(largest, (double)r->scores[j]);
    }
    double sum = r->sink ? exp((double)*r->sink - largest) : 0;
    for (int64_t j = r->first; j < r->end; j++) {
        if (over_all || !r->gone[j]) sum += exp((double)r->scores[j] - largest);
    }
    for (int64_t j = r->first; j < r->end; j++) {
        if (over_all || !r->gone[j]) r->weight[j] += exp((double)r->scores[j] - largest) / sum;
    }
}

/* Of the keys before the last `recent`, those with least weight go until `budget` are left in all; of
 * equal ones the earlier. */
static void drop_lightest(const row *r, int64_t budget, int64_t recent) {
    int64_t left = 0;
    for (int64_t j = r->first; j < r->end; j++) left += !r->gone[j];
    for (; left > budget; left--) {
        int64_t lightest = -1;
        for (int64_t j = r->first; j <= r->query - recent; j++) {
            if (!r->gone[j] && (lightest < 0 || r->weight[j] < r->weight[lightest])) lightest = j;
        }
        if (lightest < 0) return;
        r->gone[lightest] = 1;
    }
}

static void step_h2o(const row *r, int selected) {
    const qkv_keep_rule *rule = r->rule;
    const int drops = selected && r->query >= rule->prompt;
    if (drops && rule->evaluates) /* the heavy keys, of which the query's own is one */
        drop_lightest(r, rule->budget - rule->recent + 1, 1);
    else if (drops)
        drop_lightest(r, rule->budget, rule->recent);
    add_weights(r, !drops || rule->evaluates);
}

static double pooled(const row *r, int64_t key, int64_t n) {
    const int64_t half = r->rule->kernel / 2;
    double sum = 0, most = 0;
    for (int64_t j = key - half; j <= key + half; j++) {
        const double x = j >= 0 && j < n ? r->weight[j] : 0;
        sum += x;
        most = fmax(most, x);
    }
    return r->rule->pool ? most : sum;
}

typedef struct vote {
    double weight;
    int64_t key;
} vote;

static int by_weight(const void *left, const void *right) {
    const vote *a = left, *b = right;
    if (a->weight > b->weight || a->weight < b->weight) return a->weight > b->weight ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

/* Out of memory, the keys that were not looked at stay: see apply_head. */
static int count_votes(const row *r) {
    const int64_t n = r->rule->prompt - r->rule->window;
    vote *votes = qkv_calloc((size_t)n, sizeof *votes);
    if (!votes) return 0;
    for (int64_t j = 0; j < n; j++) votes[j] = (vote){pooled(r, j, n), j};
    qsort(votes, (size_t)n, sizeof *votes, by_weight);
    for (int64_t k = r->rule->budget - r->rule->window; k < n; k++) r->gone[votes[k].key] = 1;
    free(votes);
    return 1;
}

static int step_snapkv(const row *r) {
    const qkv_keep_rule *rule = r->rule;
    if (rule->prompt < rule->budget) return 1;
    if (r->query < rule->prompt) {
        if (r->query >= rule->prompt - rule->window) add_weights(r, 1);
        return 1;
    }
    return r->query > rule->prompt || count_votes(r);
}

/* ---- one head ---- */

static const float *sink_of(const qkv_view *view, int32_t head) {
    const struct ggml_tensor *sinks = view->model->layers[view->layer].w[QKV_LAYER_SINKS];
    return sinks ? (const float *)sinks->data + head : NULL;
}

static uint64_t hide(const row *r, float *dst) {
    uint64_t n = 0;
    for (int64_t j = r->first; j < r->end; j++) {
        if (!r->gone[j] || (r->rule->evaluates && r->query - j < r->rule->recent)) continue;
        dst[j] = -INFINITY;
        n++;
    }
    return n;
}

/* All rows; the first row of the text begins anew. */
static uint64_t apply_head(const qkv_edit *edit, const qkv_view *view, int32_t head,
                           int64_t first_row, int64_t end_row, float *scratch) {
    assert(first_row == 0 && end_row == view->n_rows);
    (void)first_row, (void)end_row, (void)scratch;
    const int32_t number = view->first_head + head;
    const qkv_keep_state *state = view->keep;
    row r = {.rule = &edit->keep,
             .sink = sink_of(view, number),
             .weight = state->weight + number * state->n,
             .gone = state->gone + number * state->n};
    uint64_t changed = 0;
    if (view->first_row == 0) {
        memset(r.weight, 0, (size_t)state->n * sizeof *r.weight);
        memset(r.gone, 0, (size_t)state->n);
    }
    for (int64_t t = 0; t < view->n_rows; t++) {
        const int64_t at = head * view->head_stride + t * view->row_stride - view->first_col;
        r.query = view->first_row + t;
        qkv_visible_keys(view->model, view->layer, view->first_col + view->n_cols, r.query,
                         &r.first, &r.end);
        if (r.first < view->first_col) r.first = view->first_col;
        r.scores = view->src + at;
        const int selected = !edit->where.rows || edit->where.rows[r.query];
        if (r.rule->method == QKV_METHOD_H2O)
            step_h2o(&r, selected);
        else if (!step_snapkv(&r))
            *view->failed = 1;
        if (selected && r.query >= r.rule->prompt) changed += hide(&r, view->dst + at);
    }
    return changed;
}

const qkv_operation qkv_operation_keep = {.read = read, .check = check, .apply_head = apply_head};
