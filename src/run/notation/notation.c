/*
 * A hand-written descent over `SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]`. A cursor walks over the
 * text; every function consumes its part or fails with a message about the whole text. Operations and their
 * arguments are in notation_ops.c.
 */
#include "run/notation/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "qkv/hooks.h"
#include "run/notation/notation_cursor.h"
#include "run/run.h"
#include "run/site.h"

/* ---- sites ---- */

/* Does the text begin with the word, but for the end of a plural or a shortening? "query" is what
 * the queries are looked for under, and "attn" the attention weights. */
static int is_described(const char *text, const char *word) {
    size_t same = 0;
    while (word[same] && qkv_lower(word[same]) == text[same]) same++;
    return same >= 3 && same + 1 >= strlen(word);
}

/* Some models multiply z by a gate before the output projection. */
static int fail_gate(qkv_cursor *c) {
    return qkv_cursor_fail(
        c, QKV_ERR_PLAN,
        "no supported architecture has attention gates; z is what heads pass on, and the "
        "feed-forward's gate is part of mlp_act");
}

static int fail_site(qkv_cursor *c, const char *name) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (int i = 0; i < QKV_SITE_COUNT; i++) {
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_site_name((qkv_site)i));
        qkv_nearest_try(&near, qkv_site_name((qkv_site)i));
    }
    for (int i = 0; i < QKV_SITE_COUNT && !near.best[0]; i++) {
        if (is_described(qkv_site_description((qkv_site)i), name))
            near = qkv_nearest_named(qkv_site_name((qkv_site)i));
    }
    int status = *name
                     ? qkv_cursor_fail(c, QKV_ERR_SYNTAX, "there is no site '%s'%s; sites are %s",
                                       name, qkv_nearest_hint(&near), known.data ? known.data : "")
                     : qkv_cursor_fail(c, QKV_ERR_SYNTAX, "it must begin with a site; sites are %s",
                                       known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

/* Names of hooks that have a site were replaced by it. */
static int fail_hook(qkv_cursor *c) {
    char hook[128], place[QKV_HOOK_SIZE];
    qkv_error why = {0};
    snprintf(hook, sizeof hook, "%.*s", (int)strcspn(c->at, "@[{=: "), c->at);
    (void)qkv_hook_translate(place, hook, &why);
    return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "%s", why.message);
}

static int parse_site(qkv_cursor *c, qkv_site *site) {
    /* Also what no site has, so that the message names the whole word. */
    size_t length = 0;
    qkv_cursor_begin(c, "@.[{=:");
    if (strncmp(c->at, "blocks.", 7) == 0) return fail_hook(c);
    while (qkv_is_letter(c->at[length]) || c->at[length] == '_' || c->at[length] == '-') length++;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)length, c->at);
    *site = qkv_site_by_name(name);
    if (strcmp(name, "gate") == 0) return fail_gate(c);
    if (length == 0 || length >= sizeof name || *site == QKV_SITE_COUNT) return fail_site(c, name);
    c->at += length;
    return QKV_OK;
}

/* ---- lists of layers and heads: 3 | 2-4 | 0,2,5-7 | * ---- */

static int fail_from_end(qkv_cursor *c, int64_t n, const char *what) {
    return qkv_cursor_fail(
        c, QKV_ERR_PLAN,
        "%s %.*s is out of range; the model has %ss 0 to %lld, or from the end -%lld to -1", what,
        (int)strspn(c->at + 1, "0123456789") + 1, c->at, what, (long long)n - 1, (long long)n);
}

static int parse_list_item(qkv_cursor *c, uint8_t *map, int64_t n, const char *what) {
    int64_t first, last;
    qkv_cursor_begin(c, ",.[{=");
    if (*c->at == '-' && strspn(c->at + 1, "0123456789"))
        return fail_from_end(c, n, what); /* those that there are have their numbers by now */
    if (!qkv_cursor_number(c, &first))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX,
                               "expected a %s number (0 to %lld) or * before '%s'", what,
                               (long long)n - 1, c->at);
    last = first;
    if (qkv_cursor_take(c, '-') && *c->at == '-' && strspn(c->at + 1, "0123456789"))
        return fail_from_end(c, n, what);
    if (c->at[-1] == '-' && !qkv_cursor_number(c, &last))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "the range of %ss has no end before '%s'", what,
                               c->at);
    if (first >= n || last >= n)
        return qkv_cursor_fail(c, QKV_ERR_PLAN,
                               "%s %lld is out of range; the model has %ss 0 to %lld", what,
                               (long long)(first >= n ? first : last), what, (long long)n - 1);
    if (last < first)
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "the range of %ss %lld-%lld is empty", what,
                               (long long)first, (long long)last);
    memset(map + first, 1, (size_t)(last - first + 1));
    return QKV_OK;
}

static int select_all(qkv_cursor *c, uint8_t **map, int64_t n) {
    *map = qkv_calloc((size_t)n, 1);
    if (!*map) return qkv_fail_memory(c->err);
    memset(*map, 1, (size_t)n);
    return QKV_OK;
}

/* Fills *map with n bytes. `letter` may stand again before each item of a list of heads. */
static int parse_list(qkv_cursor *c, uint8_t **map, int64_t n, char letter, const char *what) {
    if (qkv_cursor_take(c, '*')) return select_all(c, map, n);
    *map = qkv_calloc((size_t)n, 1);
    if (!*map) return qkv_fail_memory(c->err);
    do {
        if (letter && *c->at == letter) c->at++;
        int status = parse_list_item(c, *map, n, what);
        if (status != QKV_OK) return status;
    } while (qkv_cursor_take(c, ','));
    return QKV_OK;
}

/* Layers that have no such tensor: named, they are an error; of all layers, they are left out. */
static int check_layers(qkv_cursor *c, qkv_selector *where, int all) {
    const qkv_hparams *hp = c->notation->hp;
    const char *name = qkv_site_name(where->site);
    for (int32_t il = 0; il < hp->n_layer; il++) {
        if (!where->layers[il] || qkv_site_is_in_layer(where->site, hp, il)) continue;
        where->layers[il] = 0;
        const int32_t from = hp->layers[il].kv_layer;
        if (all) continue;
        return qkv_cursor_fail(
            c, QKV_ERR_PLAN,
            "layer %d has no %s of its own: it uses the keys and values of layer %d; %s@%d is "
            "what it sees",
            il, name, from, name, from);
    }
    return QKV_OK;
}

static int parse_layers(qkv_cursor *c, qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    if (!qkv_site_has_layer(where->site)) {
        const char *name = qkv_site_name(where->site);
        if (*c->at == '@') {
            qkv_cursor_begin(c, ".[{=");
            return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no layer; leave out '@...'", name);
        }
        const int is_there =
            where->site == QKV_SITE_FINAL_NORM ? hp->has_final_norm : hp->has_logits;
        if (!is_there && hp->has_final_norm)
            return qkv_cursor_fail(c, QKV_ERR_PLAN,
                                   "this model has no %s; its output is final_norm", name);
        if (!is_there)
            return qkv_cursor_fail(c, QKV_ERR_PLAN,
                                   "this model has no %s; its output is resid_post@%d", name,
                                   hp->n_layer - 1);
        return QKV_OK;
    }
    if (qkv_site_get_axes(where->site) == QKV_AXES_NEURON && hp->n_expert)
        return qkv_cursor_fail(
            c, QKV_ERR_PLAN,
            "this model's feed-forward is a choice of experts: no neurons are common to "
            "all tokens; mlp_out is what it adds");
    if (!qkv_cursor_take(c, '@')) {
        if (strcmp(c->kind, "capture") != 0 || (*c->at && *c->at != ':' && *c->at != '{'))
            return qkv_cursor_fail(c, QKV_ERR_SYNTAX,
                                   "expected '@' and layers (0 to %d, or *) after the site %s%s",
                                   hp->n_layer - 1, qkv_site_name(where->site),
                                   *c->at == '.' ? "; heads follow the layers" : "");
        /* a capture of every layer */
        const int status = select_all(c, &where->layers, hp->n_layer);
        return status == QKV_OK ? check_layers(c, where, 1) : status;
    }
    const int all = *c->at == '*';
    const int status = parse_list(c, &where->layers, hp->n_layer, 0, "layer");
    return status == QKV_OK ? check_layers(c, where, all) : status;
}

static int32_t heads_of(const qkv_selector *where, const qkv_layer_shape *shape) {
    return where->letter == 'g' ? shape->n_kv_head : shape->n_head;
}

/* A head that some selected layer lacks. */
static int check_heads(qkv_cursor *c, const qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const int32_t own = heads_of(where, &hp->layers[il]);
        if (!where->layers[il]) continue;
        for (int32_t h = own; h < where->n_heads; h++) {
            if (!where->heads[h]) continue;
            return qkv_cursor_fail(c, QKV_ERR_PLAN,
                                   "%s head %d is out of range; layer %d has %d: %c0 to %c%d",
                                   where->letter == 'g' ? "key/value" : "query", h, il, own,
                                   where->letter, where->letter, own - 1);
        }
    }
    return QKV_OK;
}

static int parse_heads(qkv_cursor *c, qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    qkv_cursor_begin(c, "[{=");
    if (!qkv_cursor_take(c, '.')) return QKV_OK;
    qkv_site_axes axes = qkv_site_get_axes(where->site);
    const char *site = qkv_site_name(where->site);
    if (!qkv_site_has_heads(where->site))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has no heads", site);
    if (*c->at != 'h' && *c->at != 'g')
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "heads start with h (query heads, 0 to %d)%s",
                               hp->largest.n_head - 1,
                               axes == QKV_AXES_KEYVALUE ? " or g (key/value heads)" : "");
    where->letter = *c->at++;
    if (where->letter == 'g' && axes != QKV_AXES_KEYVALUE)
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s has query heads only: h0 to h%d", site,
                               hp->largest.n_head - 1);
    where->n_heads = heads_of(where, &hp->largest);
    const int all = *c->at == '*';
    const int status = parse_list(c, &where->heads, where->n_heads, where->letter,
                                  where->letter == 'g' ? "key/value head" : "query head");
    return status == QKV_OK && !all ? check_heads(c, where) : status;
}

/* ---- tokens: [5] [1:] [:4] [2:8] [-1] [0,3,5:7]; on maps [ROWS,COLUMNS]; {channels} alike ---- */

static qkv_axis channel_axis(const qkv_cursor *c, const qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    const int64_t n =
        qkv_site_width(where->site, hp, qkv_selector_first_layer(where, hp), c->notation->n_tokens);
    return (qkv_axis){"channel", qkv_site_name(where->site), n, n, '{', '}'};
}

/* Channels are counted in one way only. */
static int check_widths(qkv_cursor *c, const qkv_selector *where, int64_t n) {
    const qkv_hparams *hp = c->notation->hp;
    for (int32_t il = 0; where->layers && il < hp->n_layer; il++) {
        const int64_t own = qkv_site_width(where->site, hp, il, c->notation->n_tokens);
        if (!where->layers[il] || own == n) continue;
        return qkv_cursor_fail(c, QKV_ERR_PLAN,
                               "%s has %lld channels in layer %d and %lld in layer %d; name "
                               "channels of layers that have equally many",
                               qkv_site_name(where->site), (long long)n,
                               qkv_selector_first_layer(where, hp), (long long)own, il);
    }
    return QKV_OK;
}

static int parse_index_item(qkv_cursor *c, const qkv_axis *a, uint8_t *map) {
    qkv_error own = {0};
    int64_t first, end;
    qkv_cursor_begin(c, ",]}=");
    const int status = qkv_indices_take(&c->at, a, &first, &end, &own);
    if (status != QKV_OK) return qkv_cursor_fail(c, status, "%s", own.message);
    memset(map + first, 1, (size_t)(end - first));
    return QKV_OK;
}

static int parse_index_map(qkv_cursor *c, const qkv_axis *a, uint8_t **map) {
    *map = qkv_calloc((size_t)a->n, 1);
    return *map ? parse_index_item(c, a, *map) : qkv_fail_memory(c->err);
}

static int expect_close(qkv_cursor *c, const qkv_axis *a) {
    if (qkv_cursor_take(c, a->close)) return QKV_OK;
    qkv_cursor_begin(c, "=");
    return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected '%c' before '%s'", a->close, c->at);
}

/* [TOKENS<-TOKENS], whose right side is read when the other prompt is known. */
static int skip_pairs(qkv_cursor *c, const char *start, qkv_site site) {
    if (strncmp(c->at, "<-", 2) != 0 || strcmp(c->kind, "edit") != 0) return QKV_OK;
    qkv_cursor_begin(c, "]");
    if (qkv_site_get_axes(site) == QKV_AXES_MAP)
        return qkv_cursor_fail(
            c, QKV_ERR_PLAN,
            "%s has a value for each pair of tokens; '<-' is for sites with one row a "
            "token",
            qkv_site_name(site));
    c->pairs = start;
    c->at += strcspn(c->at, "]");
    return QKV_OK;
}

static int parse_tokens(qkv_cursor *c, qkv_selector *where) {
    const qkv_axis tokens = qkv_cursor_tokens(c);
    if (!qkv_cursor_take(c, '[')) return QKV_OK;
    const char *start = c->at;
    int status = parse_index_map(c, &tokens, &where->rows);
    if (qkv_site_get_axes(where->site) == QKV_AXES_MAP) {
        if (status == QKV_OK && qkv_cursor_take(c, ','))
            status = parse_index_map(c, &tokens, &where->cols);
    } else {
        while (status == QKV_OK && qkv_cursor_take(c, ','))
            status = parse_index_item(c, &tokens, where->rows);
    }
    if (status == QKV_OK) status = skip_pairs(c, start, where->site);
    return status == QKV_OK ? expect_close(c, &tokens) : status;
}

static int parse_channels(qkv_cursor *c, qkv_selector *where) {
    const qkv_axis channels = channel_axis(c, where);
    qkv_cursor_begin(c, "=");
    if (!qkv_cursor_take(c, '{')) return QKV_OK;
    if (qkv_site_get_axes(where->site) == QKV_AXES_MAP)
        return qkv_cursor_fail(c, QKV_ERR_PLAN,
                               "%s has keys and no channels: [ROWS,COLUMNS] selects them",
                               qkv_site_name(where->site));
    int status = check_widths(c, where, channels.n);
    if (status == QKV_OK) status = parse_index_map(c, &channels, &where->channels);
    while (status == QKV_OK && qkv_cursor_take(c, ','))
        status = parse_index_item(c, &channels, where->channels);
    if (status == QKV_OK) status = expect_close(c, &channels);
    qkv_cursor_begin(c, "=");
    if (status == QKV_OK && *c->at == '[')
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "tokens stand before channels: %s[...]{...}",
                               qkv_site_name(where->site));
    return status;
}

/* ---- the whole ---- */

static int expect_end(qkv_cursor *c) {
    qkv_cursor_begin(c, "");
    return *c->at ? qkv_cursor_fail(c, QKV_ERR_SYNTAX, "unexpected text '%s'", c->at) : QKV_OK;
}

/* Edits are joined by ' + '. A '+' that is left inside of one belongs to a number (1e+3), or was
 * meant to join: then what is after it begins like an edit. */
static int check_joints(qkv_cursor *c) {
    for (const char *at = strchr(c->text, '+'); at; at = strchr(at + 1, '+')) {
        const char *next = at + 1, *last = at;
        while (qkv_is_space(*next)) next++;
        while (last > c->text && qkv_is_space(last[-1])) last--;
        if (qkv_is_letter(*next))
            return qkv_cursor_fail(
                c, QKV_ERR_SYNTAX,
                "edits are joined by ' + ', with a space on both sides: '%.*s + %s'",
                (int)(last - c->text), c->text, next);
    }
    for (const char *at = c->text; *at; at++) {
        if (qkv_is_space(*at))
            return qkv_cursor_fail(c, QKV_ERR_SYNTAX,
                                   "an edit has no spaces inside, only around its ' + '");
    }
    return QKV_OK;
}

/* freeze:SITE@..., which is another way to write SITE@...=freeze. */
static int take_freeze(qkv_cursor *c, qkv_edit *edit) {
    static const char word[] = "freeze:";
    if (strncmp(c->at, word, sizeof word - 1) != 0) return 0;
    c->at += sizeof word - 1;
    qkv_edit_set_op(edit, QKV_OP_FREEZE);
    return 1;
}

/* Nothing but another prompt has tokens to take. */
static int check_pairs(qkv_cursor *c, const qkv_edit *edit) {
    if (!c->pairs || edit->from) return QKV_OK;
    c->at = c->pairs;
    qkv_cursor_begin(c, "]");
    return qkv_cursor_fail(c, QKV_ERR_PLAN,
                           "'<-' takes tokens of another prompt: write patch:NAME");
}

static int parse_edit(qkv_cursor *c, qkv_edit *edit) {
    qkv_cursor_begin(c, "");
    int status = check_joints(c);
    const int freezes = take_freeze(c, edit);
    if (status == QKV_OK) status = parse_site(c, &edit->where.site);
    if (status == QKV_OK) status = parse_layers(c, &edit->where);
    if (status == QKV_OK) status = parse_heads(c, &edit->where);
    if (status == QKV_OK) status = parse_tokens(c, &edit->where);
    if (status == QKV_OK) status = parse_channels(c, &edit->where);
    if (status == QKV_OK && freezes) status = check_pairs(c, edit);
    if (status == QKV_OK && freezes) return expect_end(c);
    qkv_cursor_begin(c, "=");
    if (status == QKV_OK && !qkv_cursor_take(c, '='))
        status =
            *c->at ? qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected '=' and an operation before '%s'",
                                     c->at)
                   : qkv_cursor_fail(c, QKV_ERR_SYNTAX, "expected '=' and an operation at the end");
    if (status == QKV_OK) status = qkv_notation_op(c, edit);
    if (status == QKV_OK) status = check_pairs(c, edit);
    return status == QKV_OK ? expect_end(c) : status;
}

/* A copy without the white space around it. */
static char *trimmed(const char *text, size_t length) {
    while (length && qkv_is_space(text[0])) text++, length--;
    while (length && qkv_is_space(text[length - 1])) length--;
    return qkv_strndup(text, length);
}

int qkv_notation_edit(const qkv_notation *notation, qkv_edit *edit, const char *text, size_t length,
                      qkv_error *err) {
    *edit = (qkv_edit){0};
    edit->text = trimmed(text, length);
    if (!edit->text) return qkv_fail_memory(err);
    const size_t given = strlen(edit->text);
    int status = qkv_notation_canonical(notation->hp, &edit->text, err);
    if (status != QKV_OK) {
        qkv_edit_release(edit);
        return status;
    }
    qkv_cursor c = {
        .notation = notation, .kind = "edit", .text = edit->text, .at = edit->text, .err = err};
    status = *edit->text ? parse_edit(&c, edit)
                         : qkv_fail(err, QKV_ERR_SYNTAX,
                                    "an edit is empty; it should look like q@3.h5=scale:1e-3");
    if (status != QKV_OK) {
        /* Parts of a text that was rewritten are not those of the given one. */
        if (notation->mistake && strlen(edit->text) != given)
            *notation->mistake = (qkv_span){0, given};
        qkv_edit_release(edit);
        return status;
    }
    edit->selected = qkv_selector_count(&edit->where, notation->hp, notation->n_tokens);
    return QKV_OK;
}

/* ---- captures ---- */

#define MAX_POOLED_SIDE 16384

static int parse_side(qkv_cursor *c, qkv_capture *capture) {
    int pooled =
        capture->reduction == QKV_REDUCTION_MEAN || capture->reduction == QKV_REDUCTION_MAX;
    const char *name = qkv_reduction_name(capture->reduction);
    if (!pooled) return QKV_OK;
    if (!qkv_cursor_take(c, '=') || !qkv_cursor_number(c, &capture->side))
        return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "%s needs the number of cells, e.g. %s=256", name,
                               name);
    if (capture->side < 1 || capture->side > MAX_POOLED_SIDE)
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "%lld cells are out of range; give 1 to %d",
                               (long long)capture->side, MAX_POOLED_SIDE);
    return QKV_OK;
}

static int parse_reduction(qkv_cursor *c, qkv_capture *capture) {
    if (!qkv_cursor_take(c, ':')) return QKV_OK;
    if (!qkv_site_is_weights(capture->where.site))
        return qkv_cursor_fail(c, QKV_ERR_PLAN, "only the pattern can be reduced, not %s",
                               qkv_site_name(capture->where.site));
    size_t length = strcspn(c->at, "=");
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(c->at, length);
    for (int i = QKV_REDUCTION_NONE + 1; i < QKV_REDUCTION_COUNT; i++) {
        const char *name = qkv_reduction_name((qkv_reduction)i);
        qkv_text_printf(&known, "%s%s", known.length ? ", " : "", name);
        qkv_nearest_try(&near, name);
        if (strlen(name) != length || strncmp(name, c->at, length) != 0) continue;
        capture->reduction = (qkv_reduction)i;
    }
    int status = QKV_OK;
    if (capture->reduction == QKV_REDUCTION_NONE)
        status =
            qkv_cursor_fail(c, QKV_ERR_SYNTAX, "there is no reduction '%s'%s; reductions are %s",
                            c->at, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    if (status == QKV_OK && capture->reduction == QKV_REDUCTION_SINK && !c->notation->hp->has_sink)
        status =
            qkv_cursor_fail(c, QKV_ERR_PLAN, "this model has no learned sinks: its rows sum to 1");
    if (status != QKV_OK) return status;
    c->at += length;
    return parse_side(c, capture);
}

int qkv_notation_capture(const qkv_notation *notation, qkv_capture *capture, const char *text,
                         qkv_error *err) {
    *capture = (qkv_capture){.text = text};
    qkv_selector *where = &capture->where;
    char *copy = trimmed(text, strlen(text));
    if (!copy) return qkv_fail_memory(err);
    int status = qkv_notation_canonical(notation->hp, &copy, err);
    qkv_cursor c = {.notation = notation, .kind = "capture", .text = copy, .at = copy, .err = err};
    if (status == QKV_OK) status = parse_site(&c, &where->site); /* which begins the first part */
    if (status == QKV_OK) status = parse_layers(&c, where);
    if (status == QKV_OK) status = parse_heads(&c, where);
    if (status == QKV_OK && !qkv_site_has_layer(where->site)) status = parse_tokens(&c, where);
    if (status == QKV_OK) status = parse_channels(&c, where);
    if (status == QKV_OK) status = parse_reduction(&c, capture);
    if (status == QKV_OK) status = expect_end(&c);
    if (status != QKV_OK) qkv_selector_release(where);
    free(copy);
    return status;
}
