/*
 * Path patching (Wang et al., arXiv 2211.00593): what each head, a sender, changes by way of given
 * receivers. Two plans for every block of senders:
 *
 *     1  one prompt is run, with the sender's z from the other one. All later heads are frozen at the
 *        unedited run; feed-forward blocks are computed anew, unless they are frozen, too. What each
 *        receiver would read is kept.
 *     2  the prompt is run with that put into the receivers, and nothing frozen.
 *
 * Receivers are inputs of single heads (q@9.h9: its queries) or the residual stream. Towards the logits
 * the first plan is all there is. A sender reaches receivers of later layers only.
 */
#include "sweep/patching_paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "qkv/edit_data.h"
#include "run/run.h"
#include "run/site.h"
#include "sweep/sweep.h"

/* ---- receivers ---- */

static const struct {
    const char *name;
    qkv_site site;     /* that is set */
    qkv_site captured; /* what it would read */
} kinds[] = {{"q", QKV_SITE_Q_IN, QKV_SITE_RESID_PRE},
             {"k", QKV_SITE_K_IN, QKV_SITE_RESID_PRE},
             {"v", QKV_SITE_V_IN, QKV_SITE_RESID_PRE},
             {"q_in", QKV_SITE_Q_IN, QKV_SITE_RESID_PRE},
             {"k_in", QKV_SITE_K_IN, QKV_SITE_RESID_PRE},
             {"v_in", QKV_SITE_V_IN, QKV_SITE_RESID_PRE},
             {"resid_pre", QKV_SITE_RESID_PRE, QKV_SITE_RESID_PRE},
             {"resid_post", QKV_SITE_RESID_POST, QKV_SITE_RESID_POST}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

#define TO_LOGITS "logits"

static int32_t n_layers_of(const qkv_sweep *s) {
    return qkv_model_get_info(s->model)->n_layer;
}

/* Is it what a head reads, with an axis of heads? */
static int is_input(qkv_site site) {
    return site == QKV_SITE_Q_IN || site == QKV_SITE_K_IN || site == QKV_SITE_V_IN;
}

static int fail_receiver(const char *text, const char *why, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_SYNTAX, "receiver '%s': %s", text, why);
}

static int find_kind(const char *text, size_t *kind, qkv_error *err) {
    const size_t length = strcspn(text, "@.[{");
    qkv_nearest near = qkv_nearest_of(text, length);
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0)
            return *kind = i, QKV_OK;
        qkv_nearest_try(&near, kinds[i].name);
    }
    qkv_nearest_try(&near, TO_LOGITS);
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    "'%s' is not a receiver%s; receivers are q@9.h9, k@9.h9, v@9.h9, resid_pre@9, "
                    "resid_post@9 and " TO_LOGITS,
                    text, qkv_nearest_hint(&near));
}

/* "q@9.h9[-1]": the site, the layers, and what follows them. */
static int read_receiver(qkv_spec *spec, const char *text, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    qkv_patch_receiver r = {0};
    size_t kind = 0;
    if (strcmp(text, TO_LOGITS) == 0) p->to_logits = 1;
    int status = p->to_logits ? QKV_OK : find_kind(text, &kind, err);
    const char *at = strchr(text, '@');
    if (status == QKV_OK && !p->to_logits && !at)
        status = fail_receiver(text, "which layer? Write e.g. q@9.h9", err);
    if (status == QKV_OK && strchr(text, '{'))
        status = fail_receiver(text, "a receiver has no channels", err);
    if (status != QKV_OK) return status;
    r.site = kinds[kind].site;
    r.captured = kinds[kind].captured;
    r.text = qkv_strdup(text);
    r.rest = qkv_strdup(at ? at + 1 + strcspn(at + 1, ".[") : "");
    if (r.text && r.rest && QKV_PUSH(p->receivers, p->receivers_capacity, p->n_receivers, r))
        return QKV_OK;
    free(r.text);
    free(r.rest);
    return qkv_fail_memory(err);
}

/* What all receivers are set to, in layers that a sender reaches; `name` writes the operation. */
typedef void name_input(qkv_text *out, const qkv_patch_receiver *r, int32_t layer, void *user);

static int is_reached(const qkv_patch_receiver *r, int32_t sender, int32_t layer) {
    return r->layers[layer] && (r->site == QKV_SITE_RESID_POST ? layer >= sender : layer > sender);
}

/* *out is NULL where no receiver is set. */
static int receiver_edits(const qkv_sweep *s, int32_t sender, name_input *name, void *user,
                          char **out, qkv_error *err) {
    const qkv_patching *p = s->patching;
    qkv_text text = {0}, op = {0};
    for (size_t i = 0; i < p->n_receivers; i++) {
        const qkv_patch_receiver *r = &p->receivers[i];
        for (int32_t il = 0; il < n_layers_of(s); il++) {
            op.length = 0;
            if (is_reached(r, sender, il)) name(&op, r, il, user);
            if (op.length)
                qkv_text_printf(&text, "%s%s@%d%s=%s", text.length ? " + " : "",
                                qkv_site_name(r->site), (int)il, r->rest, op.data);
        }
    }
    const int failed = text.failed || op.failed;
    qkv_text_release(&op);
    if (failed) qkv_text_release(&text);
    *out = text.data;
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static void name_zero(qkv_text *out, const qkv_patch_receiver *r, int32_t layer, void *user) {
    (void)r, (void)layer, (void)user;
    qkv_text_puts(out, "zero");
}

/* The layers of a receiver, as the notation of edits has them. */
static int take_layers(const qkv_sweep *s, qkv_patch_receiver *r, qkv_error *err) {
    const int32_t n_layer = n_layers_of(s);
    const qkv_own_prompt *prompt = &s->prompts[0];
    qkv_plan *plan = NULL;
    qkv_edit_info info = QKV_EDIT_INFO_INIT;
    qkv_text edit = {0};
    qkv_error why = {0};
    qkv_text_printf(&edit, "%s%s=zero", qkv_site_name(r->site), strchr(r->text, '@'));
    r->layers = qkv_calloc((size_t)n_layer, 1);
    if (edit.failed || !r->layers) {
        qkv_text_release(&edit);
        return qkv_fail_memory(err);
    }
    int status = qkv_plan_new(&plan, s->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK && (qkv_plan_add_variant(plan, edit.data, NULL, &why) != QKV_OK ||
                             !qkv_plan_get_edit(plan, 1, 0, &info)))
        status = fail_receiver(r->text, why.message, err);
    if (status == QKV_OK && info.layers) memcpy(r->layers, info.layers, (size_t)n_layer);
    qkv_plan_free(plan);
    qkv_text_release(&edit);
    return status;
}

/* Together they must be one variant of every prompt, whatever its length. */
static int check_together(const qkv_sweep *s, qkv_error *err) {
    char *edits = NULL;
    int status = receiver_edits(s, -1, name_zero, NULL, &edits, err);
    for (size_t i = 0; i < s->n_prompts && status == QKV_OK; i++) {
        qkv_plan *plan = NULL;
        qkv_error why = {0};
        status = qkv_plan_new(&plan, s->model, s->prompts[i].tokens, s->prompts[i].n_tokens, err);
        if (status == QKV_OK && qkv_plan_add_variant(plan, edits, NULL, &why) != QKV_OK)
            status = qkv_fail(err, QKV_ERR_PLAN, "receivers: %s", why.message);
        qkv_plan_free(plan);
        if (!strchr(edits, '[')) break; /* nothing depends on the length */
    }
    free(edits);
    return status;
}

/* Where attention and feed-forward of a layer read the same, the sender's own layer has nothing to freeze,
 * and the plan says so. */
static int find_parallel(const qkv_sweep *s, int *is_parallel, qkv_error *err) {
    qkv_plan *plan = NULL;
    const qkv_own_prompt *prompt = &s->prompts[0];
    const int status = qkv_plan_new(&plan, s->model, prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK)
        *is_parallel =
            qkv_plan_add_variant(plan, "z@0=zero + freeze:mlp_out@0", NULL, NULL) != QKV_OK;
    qkv_plan_free(plan);
    return status;
}

/* The last layer that senders may be in. */
static int32_t last_sender(const qkv_sweep *s) {
    const int32_t n_layer = n_layers_of(s);
    for (int32_t il = n_layer - 1; il >= 0 && !s->patching->to_logits; il--) {
        for (size_t i = 0; i < s->patching->n_receivers; i++) {
            const qkv_patch_receiver *r = &s->patching->receivers[i];
            if (r->layers[il]) return r->site == QKV_SITE_RESID_POST ? il : il - 1;
        }
    }
    return n_layer - 1;
}

/* Layers from which no path leads to a receiver are left out, or wrong where they were given. */
static int take_senders(qkv_spec *spec, qkv_error *err) {
    qkv_sweep *s = spec->sweep;
    const int32_t last = last_sender(s);
    size_t n = 0;
    while (n < s->n_layers && s->layers[n] <= last) n++;
    if (n < s->n_layers && json_object_get(spec->object, "layers"))
        return qkv_fail(err, QKV_ERR_PLAN,
                        "layers are those of senders: from layer %d no path leads to a receiver",
                        (int)s->layers[n]);
    if (n == 0)
        return qkv_fail(err, QKV_ERR_PLAN, "no head stands before the receivers: none can send");
    s->n_layers = n;
    return QKV_OK;
}

static int check_keys(const qkv_spec *spec, qkv_error *err) {
    const json_t *targets = json_object_get(spec->object, "targets");
    const json_t *first = json_is_array(targets) ? json_array_get(targets, 0) : targets;
    const char *only = json_array_size(targets) < 2 ? json_string_value(first) : NULL;
    if (targets && (!only || strcmp(only, "z") != 0))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "with receivers, senders are heads (z): leave out "
                        "targets");
    if (json_object_get(spec->object, "by") || json_object_get(spec->object, "positions"))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "with receivers, senders are heads at all positions: leave out by and "
                        "positions");
    return QKV_OK;
}

int qkv_patching_receivers(qkv_spec *spec, qkv_error *err) {
    qkv_sweep *s = spec->sweep;
    qkv_patching *p = s->patching;
    const json_t *list = json_object_get(spec->object, "receivers");
    const json_t *freeze = json_object_get(spec->object, "freeze_mlps");
    const size_t n = json_is_array(list) ? json_array_size(list) : list != NULL;
    if (freeze && !json_is_boolean(freeze))
        return qkv_fail(err, QKV_ERR_SYNTAX, "freeze_mlps is true or false");
    if (!list && freeze)
        return qkv_fail(err, QKV_ERR_SYNTAX, "freeze_mlps is for paths: give receivers, too");
    if (!list) return QKV_OK;
    p->freeze_mlps = json_is_true(freeze);
    int status = n ? check_keys(spec, err)
                   : qkv_fail(err, QKV_ERR_SYNTAX, "receivers is a list of texts: q@9.h9");
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const char *text = json_string_value(json_is_array(list) ? json_array_get(list, i) : list);
        status = text ? read_receiver(spec, text, err)
                      : qkv_fail(err, QKV_ERR_SYNTAX, "receivers is a list of texts: q@9.h9");
    }
    if (status == QKV_OK && p->to_logits && p->n_receivers > 1)
        status = qkv_fail(err, QKV_ERR_SYNTAX,
                          TO_LOGITS " must be the only receiver: every path "
                                    "leads there");
    for (size_t i = 0; i < p->n_receivers && !p->to_logits && status == QKV_OK; i++)
        status = take_layers(s, &p->receivers[i], err);
    if (status == QKV_OK && !p->to_logits) status = check_together(s, err);
    if (status == QKV_OK) status = find_parallel(s, &p->is_parallel, err);
    return status == QKV_OK ? take_senders(spec, err) : status;
}

void qkv_patching_receivers_free(qkv_patching *p) {
    for (size_t i = 0; i < p->n_receivers; i++) {
        free(p->receivers[i].text);
        free(p->receivers[i].rest);
        free(p->receivers[i].layers);
    }
    free(p->receivers);
}

/* ---- the sender's edits ---- */

static void freeze_range(qkv_text *out, qkv_site site, int32_t first, int32_t last) {
    if (first == last) qkv_text_printf(out, " + freeze:%s@%d", qkv_site_name(site), (int)first);
    if (first < last)
        qkv_text_printf(out, " + freeze:%s@%d-%d", qkv_site_name(site), (int)first, (int)last);
}

static int has_site(const qkv_sweep *s, qkv_site site, int32_t layer) {
    return qkv_site_is_in_layer(site, &s->model->hp, layer);
}

/* Where the site holds all that attention, or what stands for it, adds. */
static int is_frozen_at(const qkv_sweep *s, qkv_site site, int32_t layer) {
    if (site == QKV_SITE_ATTN_OUT && has_site(s, QKV_SITE_Z, layer)) return 0; /* z is held */
    return has_site(s, site, layer);
}

/* In runs of layers that have the site. */
static void freeze(const qkv_sweep *s, qkv_text *out, qkv_site site, int32_t first, int32_t last) {
    for (int32_t il = first; il <= last; il++) {
        if (!is_frozen_at(s, site, il)) continue;
        int32_t end = il;
        while (end < last && is_frozen_at(s, site, end + 1)) end++;
        freeze_range(out, site, il, end);
        il = end;
    }
}

void qkv_patching_append_freezes(const qkv_sweep *s, int32_t sender, qkv_text *out) {
    const int32_t last = last_sender(s);
    const int32_t mlp = sender + (s->patching->is_parallel ? 1 : 0);
    freeze(s, out, QKV_SITE_Z, sender + 1, last);
    freeze(s, out, QKV_SITE_GATE, sender + 1, last);
    if (s->model->hp.mixer_kind != QKV_MIXER_NONE)
        freeze(s, out, QKV_SITE_ATTN_OUT, sender + 1, last);
    if (s->patching->freeze_mlps) freeze(s, out, QKV_SITE_MLP_OUT, mlp, last);
}

/* ---- what receivers read ---- */

/* One sender's inputs are named c3_q_in_9: the number of the cell, the site and the layer. */
typedef struct collecting {
    const qkv_sweep *sweep;
    qkv_edit_data *data;
    size_t n_tokens;
    int32_t n_layer;
    uint8_t *arrived; /* cells × layers × sites that are captured */
} collecting;

enum { PRE, POST, N_CAPTURED };

static int captured_number(qkv_site site) {
    return site == QKV_SITE_RESID_POST ? POST : PRE;
}

static uint8_t *arrived_at(const collecting *c, size_t cell, int32_t layer, qkv_site captured) {
    return &c->arrived[(cell * (size_t)c->n_layer + (size_t)layer) * N_CAPTURED +
                       (size_t)captured_number(captured)];
}

enum { NAME_SIZE = 64 };

static void write_name(char name[NAME_SIZE], size_t cell, qkv_site site, int32_t layer) {
    snprintf(name, NAME_SIZE, "c%zu_%s_%d", cell, qkv_site_name(site), (int)layer);
}

/* Receivers at one site and layer share their input. */
static int is_first_at(const qkv_patching *p, size_t receiver, int32_t layer) {
    for (size_t i = 0; i < receiver; i++) {
        if (p->receivers[i].site == p->receivers[receiver].site && p->receivers[i].layers[layer])
            return 0;
    }
    return 1;
}

static int take_input(void *user, size_t variant, qkv_site site, int32_t layer,
                      const qkv_tensor *tensor, qkv_error *err) {
    collecting *c = user;
    const qkv_patching *p = c->sweep->patching;
    const int64_t T = tensor->shape[0], D = tensor->shape[1];
    const int64_t rows[] = {T, D}, by_head[] = {T, 1, D};
    int status = QKV_OK;
    if (variant == 0) return QKV_OK;
    for (size_t i = 0; i < p->n_receivers && status == QKV_OK; i++) {
        const qkv_patch_receiver *r = &p->receivers[i];
        const int has_heads = is_input(r->site);
        char name[NAME_SIZE];
        if (r->captured != site || !r->layers[layer] || !is_first_at(p, i, layer)) continue;
        write_name(name, variant - 1, r->site, layer);
        status = qkv_edit_data_add_vector(c->data, name, tensor->data, has_heads ? by_head : rows,
                                          has_heads ? 3 : 2, err);
    }
    *arrived_at(c, variant - 1, layer, site) = 1;
    return status;
}

/* Everything that a receiver reads after this layer. */
static int add_captures(const qkv_sweep *s, int32_t sender, qkv_plan *plan, qkv_error *err) {
    static const qkv_site sites[] = {QKV_SITE_RESID_PRE, QKV_SITE_RESID_POST};
    int status = QKV_OK;
    for (int32_t il = 0; il < n_layers_of(s); il++) {
        for (size_t k = 0; k < N_CAPTURED && status == QKV_OK; k++) {
            int wanted = 0;
            char capture[NAME_SIZE];
            for (size_t i = 0; i < s->patching->n_receivers; i++)
                wanted |= s->patching->receivers[i].captured == sites[k] &&
                          is_reached(&s->patching->receivers[i], sender, il);
            snprintf(capture, sizeof capture, "%s@%d", qkv_site_name(sites[k]), (int)il);
            if (wanted) status = qkv_plan_add_capture(plan, capture, err);
        }
    }
    return status;
}

typedef struct named_cell {
    const collecting *of;
    size_t cell;
} named_cell;

/* Where nothing arrived, the receiver reads what it reads without the patch. */
static void name_vector(qkv_text *out, const qkv_patch_receiver *r, int32_t layer, void *user) {
    const named_cell *named = user;
    char name[NAME_SIZE];
    if (!*arrived_at(named->of, named->cell, layer, r->captured)) return;
    write_name(name, named->cell, r->site, layer);
    qkv_text_printf(out, "set:@%s", name);
}

static int add_senders(const qkv_sweep *s, qkv_plan *plan, int64_t first, size_t n, size_t n_more,
                       qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const qkv_cell cell = qkv_patching_cell(s, first + (int64_t)i);
        char *edit = qkv_patching_edit(s, &cell, n_more);
        status = edit ? qkv_plan_add_variant(plan, edit, NULL, err) : qkv_fail_memory(err);
        free(edit);
    }
    return status;
}

int qkv_path_plan(const qkv_sweep *s, qkv_plan *plan, int64_t first, size_t n, size_t n_more,
                  qkv_error *err) {
    const int32_t sender = qkv_patching_cell(s, first).layer;
    int status = qkv_plan_prepare(plan, "resid_pre", err);
    if (status == QKV_OK) status = add_captures(s, sender, plan, err);
    return status == QKV_OK ? add_senders(s, plan, first, n, n_more, err) : status;
}

int qkv_path_collect(const qkv_sweep *s, qkv_session *session, qkv_plan *plan, int64_t first,
                     size_t n, qkv_path_inputs *out, qkv_error *err) {
    const int32_t sender = qkv_patching_cell(s, first).layer;
    collecting c = {.sweep = s, .n_layer = n_layers_of(s)};
    qkv_observer observer = QKV_OBSERVER_INIT;
    qkv_result *result = NULL;
    observer.tensor = take_input;
    observer.user = &c;
    c.arrived = qkv_calloc(n * (size_t)c.n_layer * N_CAPTURED, 1);
    out->edits = qkv_calloc(n, sizeof *out->edits);
    out->n = n;
    int status = c.arrived && out->edits ? qkv_edit_data_new(&c.data, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_session_observe(session, &result, plan, &observer, err);
    qkv_result_free(result);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        named_cell named = {&c, i};
        status = receiver_edits(s, sender, name_vector, &named, &out->edits[i], err);
    }
    out->data = c.data;
    free(c.arrived);
    return status;
}

void qkv_path_inputs_release(qkv_path_inputs *inputs) {
    for (size_t i = 0; inputs->edits && i < inputs->n; i++) free(inputs->edits[i]);
    free((void *)inputs->edits);
    qkv_edit_data_free(inputs->data);
    *inputs = (qkv_path_inputs){0};
}

int qkv_path_zero_edit(const qkv_sweep *s, const qkv_cell *cell, char **out, qkv_error *err) {
    return receiver_edits(s, cell->layer, name_zero, NULL, out, err);
}

/* Inputs of a few senders at a time are in memory: a vector for each receiver's site and layer. */
size_t qkv_path_most_cells(const qkv_sweep *s, size_t n_tokens) {
    const double most = 64e6 / sizeof(float);
    double each = 0;
    for (size_t i = 0; i < s->patching->n_receivers; i++) {
        for (int32_t il = 0; il < n_layers_of(s); il++)
            each += s->patching->receivers[i].layers[il] && is_first_at(s->patching, i, il);
    }
    each *= (double)n_tokens * (double)qkv_model_get_info(s->model)->n_embd;
    return each < most ? (size_t)(most / each) : 1;
}
