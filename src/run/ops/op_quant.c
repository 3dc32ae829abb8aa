#include "run/ops/op_quant.h"

#include <math.h>

#include "run/notation/notation_cursor.h"
#include "run/ops/edit_apply.h"
#include "run/plan/plan.h"

static int parse(qkv_edit *edit, const char *text, qkv_error *err) {
    qkv_quant_rule *rule = &edit->quant;
    *rule = (qkv_quant_rule){.group = 32};
    const qkv_argument list[] = {{"bits", &rule->bits, 1, 8, NULL, 1},
                                 {"axis", &rule->axis, 0, 0, "channel|token", 1},
                                 {"group", &rule->group, 1, INT32_MAX, NULL, 0},
                                 {"keep", &rule->keep, 0, INT32_MAX, NULL, 0},
                                 {"per", &rule->per_query, 0, 0, "text|query", 0},
                                 {"prompt", &rule->prompt, 0, INT32_MAX, NULL, 0}};
    rule->prompt = -1;
    const int status = qkv_arguments_read(text, list, sizeof list / sizeof *list, err);
    if (status != QKV_OK) return status;
    if (rule->prompt >= 0 && !rule->per_query)
        return qkv_fail(err, QKV_ERR_SYNTAX, "prompt= goes with per=query");
    if (!rule->per_query || rule->axis != QKV_QUANT_CHANNEL) return QKV_OK;
    if (rule->keep && rule->keep % rule->group == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "per=query quantises keep=%lld tokens at a time: give a multiple of group=%lld",
                    (long long)rule->keep, (long long)rule->group);
}

static int read(qkv_cursor *c, qkv_edit *edit) {
    const int status = qkv_cursor_read(c, edit, parse);
    if (status == QKV_OK && edit->quant.per_query) edit->flags |= QKV_EDIT_BY_QUERY;
    return status;
}

/* ---- checks ---- */

static int check_groups(const qkv_plan *plan, const qkv_edit *edit, qkv_error *err) {
    const qkv_hparams *hp = &plan->model->hp;
    if (edit->quant.axis != QKV_QUANT_TOKEN) return QKV_OK;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const int64_t width = qkv_site_width(edit->where.site, hp, il, plan->text.n_positions);
        if (!edit->where.layers[il] || width % edit->quant.group == 0) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "edit '%s': groups of %lld do not divide the %lld channels of %s",
                        edit->text, (long long)edit->quant.group, (long long)width,
                        qkv_site_name(edit->where.site));
    }
    return QKV_OK;
}

static int check_queries(const qkv_plan *plan, qkv_edit *edit, qkv_error *err) {
    const qkv_edit_range *text = &plan->text;
    if (!qkv_site_is_cached(edit->where.site))
        return qkv_fail(err, QKV_ERR_PLAN, "edit '%s': per=query is for k_rot and v, not for %s",
                        edit->text, qkv_site_name(edit->where.site));
    if (!plan->model->hp.causal)
        return qkv_fail(
            err, QKV_ERR_PLAN,
            "edit '%s': per=query is for models whose queries come one after the other, "
            "not for an encoder",
            edit->text);
    if (edit->quant.prompt < 0)
        edit->quant.prompt = text->n_prompt < text->n_positions ? text->n_prompt : 0;
    if (edit->quant.prompt < text->n_positions) return QKV_OK;
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' can have no effect: it acts on queries after the prompt, and the "
                    "text has %lld tokens",
                    edit->text, (long long)text->n_positions);
}

static int check(const qkv_plan *plan, qkv_variant *variant, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < variant->n_edits && status == QKV_OK; i++) {
        qkv_edit *edit = &variant->edits[i];
        if (edit->op != QKV_OP_QUANT) continue;
        status = check_groups(plan, edit, err);
        if (status == QKV_OK && edit->quant.per_query) status = check_queries(plan, edit, err);
    }
    return status;
}

static const char *needs_text(const qkv_edit *edit) {
    const qkv_quant_rule *rule = &edit->quant;
    if (rule->axis == QKV_QUANT_TOKEN && rule->keep == 0 && !rule->per_query) return NULL;
    return "quantises groups of tokens and leaves the last ones, which change with every token";
}

int64_t qkv_quant_seen(const qkv_quant_rule *rule, int64_t query) {
    if (query < rule->prompt) return 0;
    if (rule->axis == QKV_QUANT_CHANNEL) return query / rule->keep * rule->keep;
    return query > rule->keep ? query - rule->keep : 0;
}

/* ---- arithmetic ---- */

/* The nearest of the levels between least and most; ties go to the even level. */
static float rounded(const qkv_quant_rule *rule, float x, float least, float most) {
    const float levels = (float)((1 << rule->bits) - 1), step = (most - least) / levels;
    if (!(step > 0)) return x; /* all are equal */
    const float level = rintf((x - least) / step);
    return fminf(fmaxf(level, 0), levels) * step + least;
}

/* Least and largest values of a row's groups: of the token, or of all the tokens of its group. By the
 * place of the channel in memory. */
static void find_range(const qkv_quant_rule *rule, const qkv_view *view, const float *head,
                       int64_t row, float *least, float *most) {
    const int64_t width = view->width;
    if (rule->axis == QKV_QUANT_CHANNEL) {
        const int64_t from = row / rule->group * rule->group;
        for (int64_t c = 0; c < width; c++) least[c] = most[c] = head[from * view->row_stride + c];
        for (int64_t t = from + 1; t < from + rule->group; t++) {
            for (int64_t c = 0; c < width; c++) {
                const float x = head[t * view->row_stride + c];
                if (x < least[c]) least[c] = x;
                if (x > most[c]) most[c] = x;
            }
        }
        return;
    }
    const float *values = head + row * view->row_stride;
    for (int64_t from = 0; from < width; from += rule->group) {
        float low = INFINITY, high = -INFINITY;
        for (int64_t c = from; c < from + rule->group; c++) {
            low = fminf(low, values[qkv_view_place(view, c)]);
            high = fmaxf(high, values[qkv_view_place(view, c)]);
        }
        for (int64_t c = from; c < from + rule->group; c++) {
            least[qkv_view_place(view, c)] = low;
            most[qkv_view_place(view, c)] = high;
        }
    }
}

/* Tokens of the view before this one are quantised; of per=query, as the last query sees them. */
static int64_t end_of_groups(const qkv_quant_rule *rule, const qkv_view *view) {
    const int64_t all = view->first_row + view->n_rows, n = all - rule->keep;
    if (rule->per_query) return qkv_quant_seen(rule, all - 1) - view->first_row;
    if (n <= 0) return 0;
    return (rule->axis == QKV_QUANT_CHANNEL ? n / rule->group * rule->group : n) - view->first_row;
}

static uint64_t apply_head(const qkv_edit *edit, const qkv_view *view, int32_t head, int64_t first,
                           int64_t end, float *scratch) {
    const qkv_quant_rule *rule = &edit->quant;
    const qkv_selector *where = &edit->where;
    const int64_t last = end_of_groups(rule, view);
    const float *src = view->src + head * view->src_head_stride;
    float *dst = view->dst + head * view->head_stride;
    float *least = scratch, *most = scratch + view->width;
    uint64_t changed = 0;
    int64_t known = -1; /* group of tokens whose range is there */
    for (int64_t t = first; t < end && t < last; t++) {
        if (where->rows && !where->rows[view->first_row + t]) continue;
        const int64_t group = rule->axis == QKV_QUANT_CHANNEL ? t / rule->group : t;
        if (group != known) find_range(rule, view, src, t, least, most);
        known = group;
        for (int64_t c = 0; c < view->width; c++) {
            const int64_t at = t * view->row_stride + c;
            if (where->channels && !where->channels[qkv_view_channel(view, c)]) continue;
            dst[at] = rounded(rule, src[at], least[c], most[c]);
            changed += !(dst[at] == src[at]);
        }
    }
    return changed;
}

const qkv_operation qkv_operation_quant = {
    .read = read, .check = check, .needs_text = needs_text, .apply_head = apply_head};
