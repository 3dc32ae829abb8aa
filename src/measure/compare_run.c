/*
 * One prompt through both models, a pair of passes after the other. The first model's pass keeps the
 * rows of patterns that the pass names, and its captured tensors; the second model's are compared with
 * them as they come.
 *
 * Where the second model is edited, what the edits cannot change does not come for the variant: there
 * the second model's own baseline counts. So everything is found twice, and chosen when all passes are
 * over. Rows are added one by one in their order, so that the sums have the same bits however the work
 * was cut.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/logits.h"
#include "base/memory.h"
#include "measure/compare.h"
#include "run/run.h"
#include "run/session.h"

/* What was found on the prompt, for the second model's baseline and its variant. */
typedef struct found {
    double (*heads)[QKV_METRIC_SUMS];
    uint8_t *has_head;
    compare_states *layers;
    uint8_t *has_layer;
    compare_position *positions; /* of the prompt */
    int has_logits;
} found;

typedef struct pair {
    const qkv_compare *compare;
    const int32_t *tokens;
    int64_t n_tokens;
    compare_pass pass;
    float *kept;        /* rows of the first model */
    qkv_result *result; /* its captured tensors */
    found found[2];
} pair;

static size_t head_index(const pair *p, int32_t layer, int32_t head) {
    return (size_t)layer * (size_t)p->pass.n_head + (size_t)head;
}

/* ---- patterns ---- */

/* Where the first model's row is kept, or NULL: another pass has it. */
static float *kept_row(const pair *p, const qkv_rows *rows, int64_t row) {
    const compare_rows *mine = &p->pass.rows[head_index(p, rows->layer, rows->head)];
    if (row < mine->first || row >= mine->end) return NULL;
    return p->kept + mine->at + (size_t)((row - mine->first) * p->n_tokens);
}

static void keep_rows(void *user, const qkv_rows *rows) {
    const pair *p = user;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        float *to = kept_row(p, rows, rows->first_row + r);
        if (!to) continue;
        memcpy(to, rows->data + r * rows->n_keys, (size_t)rows->n_keys * sizeof *to);
        memset(to + rows->n_keys, 0, (size_t)(p->n_tokens - rows->n_keys) * sizeof *to);
    }
}

/* Keys beyond a block's have no weight in either model: they are those that no query of it sees. */
static void compare_rows_of(void *user, const qkv_rows *rows) {
    const pair *p = user;
    const size_t head = head_index(p, rows->layer, rows->head);
    const found *to = &p->found[rows->variant];
    to->has_head[head] = 1;
    for (int64_t r = 0; r < rows->n_rows; r++) {
        const float *first = kept_row(p, rows, rows->first_row + r);
        if (!first) continue;
        const qkv_row row = {.query = rows->first_row + r,
                             .n_tokens = p->n_tokens,
                             .n_keys = rows->n_keys,
                             .end = rows->n_keys,
                             .weights = rows->data + r * rows->n_keys,
                             .baseline = first,
                             .tokens = p->tokens};
        qkv_metric_add_row(p->compare->distance.id, &row, to->heads[head]);
    }
}

/* ---- residual streams ---- */

static double length_of(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* By the sum and the difference of the unit vectors: exact for small angles, where the arc cosine of a
 * product is not. */
static void add_state(compare_states *to, const float *a, const float *b, int64_t n) {
    const double pi = 3.14159265358979323846;
    const double length_a = length_of(a, n), length_b = length_of(b, n);
    double apart = 0, together = 0, error = 0;
    if (length_a == 0 || length_b == 0) return;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)a[i] / length_a, y = (double)b[i] / length_b;
        const double difference = (double)b[i] - (double)a[i];
        apart += (x - y) * (x - y);
        together += (x + y) * (x + y);
        error += difference * difference;
    }
    to->angle += 2 * atan2(sqrt(apart), sqrt(together)) * 180 / pi;
    to->error += sqrt(error) / length_a;
    to->n++;
}

static void compare_layer(const pair *p, const found *to, int32_t layer, const float *first,
                          const float *second) {
    const int64_t n = p->pass.n_embd;
    to->has_layer[layer] = 1;
    for (int64_t t = 0; t < p->n_tokens; t++)
        add_state(&to->layers[layer], first + t * n, second + t * n, n);
}

/* ---- logits ---- */

static compare_position compare_logits(const pair *p, int64_t position,
                                       const float *const rows[2]) {
    const size_t n = (size_t)p->pass.n_vocab;
    compare_position out = {.loss = {NAN, NAN}};
    qkv_log_sum sums[2];
    for (int m = 0; m < 2; m++) {
        sums[m] = qkv_log_sum_exp(rows[m], n);
        size_t best = 0;
        for (size_t i = 1; i < n; i++) best = rows[m][i] > rows[m][best] ? i : best;
        out.tokens[m] = (int32_t)best;
        out.probabilities[m] = exp(qkv_logit_log_p(rows[m][best], sums[m]));
        if (position + 1 < p->n_tokens)
            out.loss[m] = -qkv_logit_log_p(rows[m][p->tokens[position + 1]], sums[m]);
    }
    out.kl = qkv_logits_kl(rows[0], sums[0], rows[1], sums[1], n);
    return out;
}

static void compare_outputs(const pair *p, found *to, const float *first, const float *second) {
    to->has_logits = 1;
    for (int64_t t = p->pass.first_logit; t < p->pass.end_logit; t++) {
        const int64_t at = (t - p->pass.first_logit) * p->pass.n_vocab;
        const float *const rows[2] = {first + at, second + at};
        to->positions[t] = compare_logits(p, t, rows);
    }
}

static int compare_tensor(void *user, size_t variant, qkv_site site, int32_t layer,
                          const qkv_tensor *tensor, qkv_error *err) {
    pair *p = user;
    qkv_tensor first = QKV_TENSOR_INIT;
    if (!qkv_result_get(p->result, 0, site, layer, &first))
        return qkv_fail(err, QKV_ERR_BACKEND, "the first model gave no such tensor");
    if (site == QKV_SITE_LOGITS)
        compare_outputs(p, &p->found[variant], first.data, tensor->data);
    else
        compare_layer(p, &p->found[variant], layer, first.data, tensor->data);
    return QKV_OK;
}

/* ---- a pair of passes ---- */

static int run_first(pair *p, qkv_session *session, qkv_error *err) {
    const qkv_observer observer = {.size = sizeof observer, .user = p, .rows = keep_rows};
    qkv_plan *plan = NULL;
    int status = qkv_plan_new(&plan, p->compare->models[0], p->tokens, (size_t)p->n_tokens, err);
    if (status == QKV_OK) status = qkv_compare_pass_plan(&p->pass, plan, err);
    if (status == QKV_OK) status = qkv_session_observe(session, &p->result, plan, &observer, err);
    qkv_plan_free(plan);
    return status;
}

/* Several edits may run in several passes: the largest counts of any pass are what they did. */
static void count_edits(const qkv_result *result, compare_sums *sums) {
    uint64_t changed = 0, selected = 0;
    for (size_t i = 0; i < qkv_result_n_edits(result, 1); i++) {
        changed += qkv_result_edit_changed(result, 1, i);
        selected += qkv_result_edit_selected(result, 1, i);
    }
    if (changed > sums->changed) sums->changed = changed;
    sums->selected = selected;
}

static int run_second(pair *p, qkv_session *session, compare_sums *sums, qkv_error *err) {
    const qkv_observer observer = {
        .size = sizeof observer, .user = p, .rows = compare_rows_of, .tensor = compare_tensor};
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    int status = qkv_plan_new(&plan, p->compare->models[1], p->tokens, (size_t)p->n_tokens, err);
    if (status == QKV_OK && p->compare->edits)
        status = qkv_plan_add_variant(plan, p->compare->edits, NULL, err);
    if (status == QKV_OK) status = qkv_compare_pass_plan(&p->pass, plan, err);
    if (status == QKV_OK) status = qkv_session_observe(session, &result, plan, &observer, err);
    if (status == QKV_OK && p->compare->edits) count_edits(result, sums);
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* The variant's where it came. */
static void add_found(const pair *p, compare_sums *sums, compare_position *positions) {
    const found *base = &p->found[0], *edited = &p->found[1];
    for (size_t h = 0; h < (size_t)p->pass.n_layer * (size_t)p->pass.n_head; h++) {
        const found *from = edited->has_head[h] ? edited : base;
        qkv_compare_add_distance(p->compare->distance.id, sums->heads[h], from->heads[h]);
    }
    for (int32_t l = 0; l < p->pass.n_layer; l++) {
        const compare_states *from = edited->has_layer[l] ? &edited->layers[l] : &base->layers[l];
        sums->layers[l].angle += from->angle;
        sums->layers[l].error += from->error;
        sums->layers[l].n += from->n;
    }
    const compare_position *from = edited->has_logits ? edited->positions : base->positions;
    for (int64_t t = 0; t < p->n_tokens; t++) positions[t] = from[t];
}

/* Both sessions tell of the whole, whichever of them computes. */
static int reach(qkv_session *const sessions[2], double done, qkv_error *err) {
    int status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++)
        status = qkv_session_reach(sessions[m], done, 1, err);
    return status;
}

/* Number `at` of all pairs. */
static int run_pair(pair *p, qkv_session *const sessions[2], double at, compare_sums *sums,
                    qkv_error *err) {
    p->kept = malloc((p->pass.n_kept ? p->pass.n_kept : 1) * sizeof *p->kept);
    int status = p->kept ? reach(sessions, 2 * at, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = run_first(p, sessions[0], err);
    if (status == QKV_OK) status = reach(sessions, 2 * at + 1, err);
    if (status == QKV_OK) status = run_second(p, sessions[1], sums, err);
    sums->n_passes++;
    qkv_result_free(p->result);
    free(p->kept);
    p->result = NULL;
    p->kept = NULL;
    return status;
}

/* ---- a prompt ---- */

static int allocate(pair *p, size_t memory, qkv_error *err) {
    const size_t layers = (size_t)p->compare->n_layer;
    const size_t heads = layers * (size_t)p->compare->n_head;
    for (int v = 0; v < 2; v++) {
        found *f = &p->found[v];
        f->heads = qkv_calloc(heads, sizeof *f->heads);
        f->has_head = qkv_calloc(heads, 1);
        f->layers = qkv_calloc(layers, sizeof *f->layers);
        f->has_layer = qkv_calloc(layers, 1);
        f->positions = qkv_calloc((size_t)p->n_tokens, sizeof *f->positions);
        if (!f->heads || !f->has_head || !f->layers || !f->has_layer || !f->positions)
            return qkv_fail_memory(err);
    }
    return qkv_compare_pass_new(&p->pass, p->compare, p->n_tokens, memory, err);
}

static void release(pair *p) {
    for (int v = 0; v < 2; v++) {
        free(p->found[v].heads);
        free(p->found[v].has_head);
        free(p->found[v].layers);
        free(p->found[v].has_layer);
        free(p->found[v].positions);
    }
    qkv_compare_pass_release(&p->pass);
}

int qkv_compare_run(const qkv_compare *compare, qkv_session *const sessions[2],
                    const int32_t *tokens, size_t n_tokens, compare_sums *sums,
                    compare_position *positions, qkv_error *err) {
    pair p = {.compare = compare, .tokens = tokens, .n_tokens = (int64_t)n_tokens};
    compare_cursor cursor = {0};
    const size_t memory = compare->memory ? compare->memory : sessions[0]->memory_budget;
    double n = 0;
    int status = allocate(&p, memory, err);
    if (status == QKV_OK) {
        while (qkv_compare_pass_next(&p.pass, &cursor)) n++;
        cursor = (compare_cursor){0};
        for (int m = 0; m < 2; m++)
            (void)qkv_session_begin_work(sessions[m], "passes", 2 * n, NULL);
        for (double at = 0; status == QKV_OK && qkv_compare_pass_next(&p.pass, &cursor); at++)
            status = run_pair(&p, sessions, at, sums, err);
        for (int m = 0; m < 2; m++) (void)qkv_session_end_work(sessions[m], status);
    }
    if (status == QKV_OK) add_found(&p, sums, positions);
    release(&p);
    return status;
}
