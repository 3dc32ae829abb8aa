/*
 * A hand-written descent over `SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]`. A cursor walks over the
 * text; every function consumes its part or fails with a message about the whole text.
 */
#include "run/notation.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"
#include "run/custom.h"
#include "run/indices.h"
#include "run/other_prompt.h"
#include "run/site.h"
#include "run/vector.h"

typedef struct cursor {
    const qkv_notation *notation;
    const char *kind; /* "edit" or "capture", for messages */
    const char *text; /* NUL-terminated copy of the whole */
    const char *at;
    const char *part;  /* where what is being read begins: what a message is about */
    const char *stops; /* characters that end it */
    const char *pairs; /* behind the '[' of tokens with '<-'; NULL: they have none */
    qkv_error *err;
} cursor;

/* From here on messages are about the next part, up to one of `stops`. */
static void begin_part(cursor *c, const char *stops) {
    c->part = c->at;
    c->stops = stops;
}

static int fail_at(cursor *c, int status, const char *format, ...) QKV_PRINTF(3, 4);

static int fail_at(cursor *c, int status, const char *format, ...) {
    char detail[600];
    va_list args;
    va_start(args, format);
    qkv_vformat(detail, sizeof detail, format, args);
    va_end(args);
    if (c->notation->mistake) {
        const size_t length = strcspn(c->part, c->stops);
        const size_t taken = c->at > c->part ? (size_t)(c->at - c->part) : 0;
        *c->notation->mistake =
            (qkv_span){(size_t)(c->part - c->text), length > taken ? length : taken};
    }
    return qkv_fail(c->err, status, "%s '%s': %s", c->kind, c->text, detail);
}

static int take(cursor *c, char wanted) {
    if (*c->at != wanted) return 0;
    c->at++;
    return 1;
}

/* ---- sites ---- */

/* Does the text begin with the word, but for the end of a plural or a shortening? "query" is what
 * the queries are looked for under, and "attn" the attention weights. */
static int is_described(const char *text, const char *word) {
    size_t same = 0;
    while (word[same] && qkv_lower(word[same]) == text[same]) same++;
    return same >= 3 && same + 1 >= strlen(word);
}

/* Some models multiply z by a gate before the output projection. */
static int fail_gate(cursor *c) {
    return fail_at(
        c, QKV_ERR_PLAN,
        "no supported architecture has attention gates; z is what heads pass on, and the "
        "feed-forward's gate is part of mlp_act");
}

static int fail_site(cursor *c, const char *name) {
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
    int status = *name ? fail_at(c, QKV_ERR_SYNTAX, "there is no site '%s'%s; sites are %s", name,
                                 qkv_nearest_hint(&near), known.data ? known.data : "")
                       : fail_at(c, QKV_ERR_SYNTAX, "it must begin with a site; sites are %s",
                                 known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static int parse_site(cursor *c, qkv_site *site) {
    /* Also what no site has, so that the message names the whole word. */
    size_t length = 0;
    begin_part(c, "@.[{=:");
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

/* A number without a sign at the cursor; 0 when there is none. */
static int take_number(cursor *c, int64_t *value) {
    size_t digits = strspn(c->at, "0123456789");
    if (!qkv_parse_int(c->at, digits, value)) return 0;
    c->at += digits;
    return 1;
}

static int parse_list_item(cursor *c, uint8_t *map, int64_t n, const char *what) {
    int64_t first, last;
    begin_part(c, ",.[{=");
    if (!take_number(c, &first))
        return fail_at(c, QKV_ERR_SYNTAX, "expected a %s number (0 to %lld) or * before '%s'", what,
                       (long long)n - 1, c->at);
    last = first;
    if (take(c, '-') && !take_number(c, &last))
        return fail_at(c, QKV_ERR_SYNTAX, "the range of %ss has no end before '%s'", what, c->at);
    if (first >= n || last >= n)
        return fail_at(c, QKV_ERR_PLAN, "%s %lld is out of range; the model has %ss 0 to %lld",
                       what, (long long)(first >= n ? first : last), what, (long long)n - 1);
    if (last < first)
        return fail_at(c, QKV_ERR_PLAN, "the range of %ss %lld-%lld is empty", what,
                       (long long)first, (long long)last);
    memset(map + first, 1, (size_t)(last - first + 1));
    return QKV_OK;
}

static int select_all(cursor *c, uint8_t **map, int64_t n) {
    *map = qkv_calloc((size_t)n, 1);
    if (!*map) return qkv_fail_memory(c->err);
    memset(*map, 1, (size_t)n);
    return QKV_OK;
}

/* Fills *map with n bytes. `letter` may stand again before each item of a list of heads. */
static int parse_list(cursor *c, uint8_t **map, int64_t n, char letter, const char *what) {
    if (take(c, '*')) return select_all(c, map, n);
    *map = qkv_calloc((size_t)n, 1);
    if (!*map) return qkv_fail_memory(c->err);
    do {
        if (letter && *c->at == letter) c->at++;
        int status = parse_list_item(c, *map, n, what);
        if (status != QKV_OK) return status;
    } while (take(c, ','));
    return QKV_OK;
}

static int parse_layers(cursor *c, qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    if (!qkv_site_has_layer(where->site)) {
        const char *name = qkv_site_name(where->site);
        if (*c->at == '@') {
            begin_part(c, ".[{=");
            return fail_at(c, QKV_ERR_PLAN, "%s has no layer; leave out '@...'", name);
        }
        if (!hp->has_logits)
            return fail_at(c, QKV_ERR_PLAN, "this model has no %s; its output is resid_post@%d",
                           name, hp->n_layer - 1);
        return QKV_OK;
    }
    if (where->site == QKV_SITE_MLP_ACT && hp->n_expert)
        return fail_at(c, QKV_ERR_PLAN,
                       "this model's feed-forward is a choice of experts: no neurons are common to "
                       "all tokens; mlp_out is what it adds");
    if (!take(c, '@')) {
        if (strcmp(c->kind, "capture") != 0 || (*c->at && *c->at != ':' && *c->at != '{'))
            return fail_at(c, QKV_ERR_SYNTAX,
                           "expected '@' and layers (0 to %d, or *) behind the site %s%s",
                           hp->n_layer - 1, qkv_site_name(where->site),
                           *c->at == '.' ? "; heads follow the layers" : "");
        return select_all(c, &where->layers, hp->n_layer); /* a capture of every layer */
    }
    return parse_list(c, &where->layers, hp->n_layer, 0, "layer");
}

static int parse_heads(cursor *c, qkv_selector *where) {
    const qkv_hparams *hp = c->notation->hp;
    begin_part(c, "[{=");
    if (!take(c, '.')) return QKV_OK;
    qkv_site_axes axes = qkv_site_get_axes(where->site);
    const char *site = qkv_site_name(where->site);
    if (qkv_site_n_heads(where->site, hp) == 0)
        return fail_at(c, QKV_ERR_PLAN, "%s has no heads", site);
    if (*c->at != 'h' && *c->at != 'g')
        return fail_at(c, QKV_ERR_SYNTAX, "heads start with h (query heads, 0 to %d)%s",
                       hp->n_head - 1, axes == QKV_AXES_KEYVALUE ? " or g (key/value heads)" : "");
    where->letter = *c->at++;
    if (where->letter == 'g' && axes != QKV_AXES_KEYVALUE)
        return fail_at(c, QKV_ERR_PLAN, "%s has query heads only: h0 to h%d", site, hp->n_head - 1);
    where->n_heads = where->letter == 'g' ? hp->n_kv_head : hp->n_head;
    return parse_list(c, &where->heads, where->n_heads, where->letter,
                      where->letter == 'g' ? "key/value head" : "query head");
}

/* ---- tokens: [5] [1:] [:4] [2:8] [-1] [0,3,5:7]; on maps [ROWS,COLUMNS]; {channels} alike ---- */

static qkv_axis token_axis(const cursor *c) {
    const qkv_notation *notation = c->notation;
    const int is_longer = notation->n_prompt && notation->n_prompt < notation->n_tokens;
    return (qkv_axis){.one = "token",
                      .whole = is_longer ? "the prompt with all new tokens" : "the prompt",
                      .n = notation->n_tokens,
                      .end = notation->n_prompt ? notation->n_prompt : notation->n_tokens,
                      .open = '[',
                      .close = ']'};
}

static qkv_axis channel_axis(const cursor *c, qkv_site site) {
    const int64_t n = qkv_site_width(site, c->notation->hp, c->notation->n_tokens);
    return (qkv_axis){"channel", qkv_site_name(site), n, n, '{', '}'};
}

static int parse_index_item(cursor *c, const qkv_axis *a, uint8_t *map) {
    qkv_error own = {0};
    int64_t first, end;
    begin_part(c, ",]}=");
    const int status = qkv_indices_take(&c->at, a, &first, &end, &own);
    if (status != QKV_OK) return fail_at(c, status, "%s", own.message);
    memset(map + first, 1, (size_t)(end - first));
    return QKV_OK;
}

static int parse_index_map(cursor *c, const qkv_axis *a, uint8_t **map) {
    *map = qkv_calloc((size_t)a->n, 1);
    return *map ? parse_index_item(c, a, *map) : qkv_fail_memory(c->err);
}

static int expect_close(cursor *c, const qkv_axis *a) {
    if (take(c, a->close)) return QKV_OK;
    begin_part(c, "=");
    return fail_at(c, QKV_ERR_SYNTAX, "expected '%c' before '%s'", a->close, c->at);
}

/* [TOKENS<-TOKENS], whose right side is read when the other prompt is known. */
static int skip_pairs(cursor *c, const char *start, qkv_site site) {
    if (strncmp(c->at, "<-", 2) != 0 || strcmp(c->kind, "edit") != 0) return QKV_OK;
    begin_part(c, "]");
    if (qkv_site_get_axes(site) == QKV_AXES_MAP)
        return fail_at(c, QKV_ERR_PLAN,
                       "%s has a value for each pair of tokens; '<-' is for sites with one row a "
                       "token",
                       qkv_site_name(site));
    c->pairs = start;
    c->at += strcspn(c->at, "]");
    return QKV_OK;
}

static int parse_tokens(cursor *c, qkv_selector *where) {
    const qkv_axis tokens = token_axis(c);
    if (!take(c, '[')) return QKV_OK;
    const char *start = c->at;
    int status = parse_index_map(c, &tokens, &where->rows);
    if (qkv_site_get_axes(where->site) == QKV_AXES_MAP) {
        if (status == QKV_OK && take(c, ',')) status = parse_index_map(c, &tokens, &where->cols);
    } else {
        while (status == QKV_OK && take(c, ',')) status = parse_index_item(c, &tokens, where->rows);
    }
    if (status == QKV_OK) status = skip_pairs(c, start, where->site);
    return status == QKV_OK ? expect_close(c, &tokens) : status;
}

static int parse_channels(cursor *c, qkv_selector *where) {
    const qkv_axis channels = channel_axis(c, where->site);
    begin_part(c, "=");
    if (!take(c, '{')) return QKV_OK;
    if (qkv_site_get_axes(where->site) == QKV_AXES_MAP)
        return fail_at(c, QKV_ERR_PLAN, "%s has keys and no channels: [ROWS,COLUMNS] selects them",
                       qkv_site_name(where->site));
    int status = parse_index_map(c, &channels, &where->channels);
    while (status == QKV_OK && take(c, ','))
        status = parse_index_item(c, &channels, where->channels);
    if (status == QKV_OK) status = expect_close(c, &channels);
    begin_part(c, "=");
    if (status == QKV_OK && *c->at == '[')
        return fail_at(c, QKV_ERR_SYNTAX, "tokens stand before channels: %s[...]{...}",
                       qkv_site_name(where->site));
    return status;
}

/* ---- operations ---- */

/* A finite number that F32 holds in full precision, up to `end` (NULL: the rest). */
static int take_float(cursor *c, char stop, float *value, const char *what) {
    const char *end = stop ? strchr(c->at, stop) : NULL;
    size_t length = end ? (size_t)(end - c->at) : strlen(c->at);
    double number;
    begin_part(c, stop ? "," : "");
    if (!qkv_parse_double(c->at, length, &number))
        return fail_at(c, QKV_ERR_SYNTAX, "expected %s, not '%.*s'", what, (int)length, c->at);
    *value = (float)number;
    if (!isfinite(*value))
        return fail_at(c, QKV_ERR_PLAN, "%.*s is not a finite number of single precision",
                       (int)length, c->at);
    if (fabsf(*value) < FLT_MIN && !qkv_text_is_zero(c->at, length))
        return fail_at(c, QKV_ERR_PLAN,
                       "%.*s is too small for single precision, which ends at 1.2e-38; write 0",
                       (int)length, c->at);
    c->at += length;
    return QKV_OK;
}

/* What all heads read is one tensor, and so is its mean over them. */
static int fail_equal_heads(cursor *c, const qkv_edit *edit) {
    return fail_at(c, QKV_ERR_PLAN,
                   "every head reads the same %s: a mean over heads would change nothing",
                   qkv_site_name(qkv_site_unedited(edit->where.site)));
}

/* The mean over heads without the head itself; where heads are shared, without the one that it reads. */
static int parse_mean_others(cursor *c, qkv_edit *edit) {
    edit->axis = QKV_MEAN_HEAD;
    edit->others = 1;
    c->at += strlen("others");
    if (qkv_site_is_input(edit->where.site)) return fail_equal_heads(c, edit);
    if (qkv_site_n_heads(edit->where.site, c->notation->hp) > 1) return QKV_OK;
    return fail_at(c, QKV_ERR_PLAN, "%s has no other heads to take the mean over",
                   qkv_site_name(edit->where.site));
}

/* The mean over the plan's set of prompts: all their tokens, or those at the same position. */
static int parse_mean_set(cursor *c, qkv_edit *edit) {
    static const char each[] = ",per=position";
    edit->axis = QKV_MEAN_SET;
    c->at += strlen("set");
    if (strncmp(c->at, each, sizeof each - 1) == 0) {
        edit->axis = QKV_MEAN_SET_POSITION;
        c->at += sizeof each - 1;
    }
    if (*c->at)
        return fail_at(c, QKV_ERR_SYNTAX,
                       "a mean over a set is mean:set, or mean:set,per=position; not 'set%s'",
                       c->at);
    return QKV_OK;
}

static int parse_mean(cursor *c, qkv_edit *edit) {
    static const char *const axes[] = {
        [QKV_MEAN_HEAD] = "head", [QKV_MEAN_TOKEN] = "token", [QKV_MEAN_DIM] = "dim"};
    if (strcmp(c->at, "others") == 0) return parse_mean_others(c, edit);
    if (strncmp(c->at, "set", 3) == 0 && (!c->at[3] || c->at[3] == ','))
        return parse_mean_set(c, edit);
    for (int i = 0; i < 3; i++) {
        if (strcmp(c->at, axes[i]) != 0) continue;
        edit->axis = (qkv_mean_axis)i;
        c->at += strlen(axes[i]);
        if (i == QKV_MEAN_HEAD && qkv_site_is_input(edit->where.site))
            return fail_equal_heads(c, edit);
        if (i == QKV_MEAN_HEAD && qkv_site_n_heads(edit->where.site, c->notation->hp) == 0)
            return fail_at(c, QKV_ERR_PLAN, "%s has no heads to take the mean over",
                           qkv_site_name(edit->where.site));
        return QKV_OK;
    }
    return fail_at(c, QKV_ERR_SYNTAX,
                   "mean is taken over head, others, token, dim or set, not '%s'", c->at);
}

/* ,seed=N, or nothing. */
static int parse_seed(cursor *c, qkv_edit *edit) {
    int64_t seed;
    if (!take(c, ',')) return QKV_OK;
    begin_part(c, "");
    if (strncmp(c->at, "seed=", 5) != 0)
        return fail_at(c, QKV_ERR_SYNTAX, "expected seed=N, not '%s'", c->at);
    c->at += 5;
    if (!take_number(c, &seed))
        return fail_at(c, QKV_ERR_SYNTAX, "the seed must be a whole number, not '%s'", c->at);
    edit->seed = (uint64_t)seed;
    return QKV_OK;
}

static int parse_noise(cursor *c, qkv_edit *edit) {
    int status = take_float(c, ',', &edit->a, "a standard deviation");
    if (status != QKV_OK) return status;
    if (!(edit->a > 0))
        return fail_at(c, QKV_ERR_PLAN, "the standard deviation of noise must be above 0");
    return parse_seed(c, edit);
}

static int parse_clamp(cursor *c, qkv_edit *edit) {
    int status = take_float(c, ',', &edit->a, "a lower bound");
    if (status != QKV_OK) return status;
    if (!take(c, ',')) return fail_at(c, QKV_ERR_SYNTAX, "clamp needs two bounds, clamp:lo,hi");
    status = take_float(c, 0, &edit->b, "an upper bound");
    if (status != QKV_OK) return status;
    if (edit->a > edit->b)
        return fail_at(c, QKV_ERR_PLAN, "the lower bound of clamp is above the upper one");
    return QKV_OK;
}

/* Which token of the other prompt each selected one takes. */
static int parse_pairs(cursor *c, qkv_edit *edit, const qkv_source *source) {
    char whole[80];
    snprintf(whole, sizeof whole, "the prompt '%.60s'", source->name);
    const qkv_axis own = token_axis(c);
    const qkv_axis other = {"token", whole, source->n_prompt, source->n_prompt, '[', ']'};
    qkv_error why = {0};
    const int status = qkv_indices_pair(&edit->from, c->pairs, &own, &other, &why);
    if (status == QKV_OK) return QKV_OK;
    c->at = c->pairs;
    begin_part(c, "]");
    return fail_at(c, status, "%s", why.message);
}

static int parse_patch(cursor *c, qkv_edit *edit) {
    static const char drawn[] = "resample";
    const qkv_notation *notation = c->notation;
    const size_t length = strcspn(c->at, ",");
    if (length == sizeof drawn - 1 && memcmp(c->at, drawn, length) == 0) {
        edit->resample = 1;
        c->at += length;
        return parse_seed(c, edit);
    }
    for (size_t i = 0; i < notation->n_sources; i++) {
        if (notation->sources[i].is_drawn || strcmp(c->at, notation->sources[i].name) != 0)
            continue;
        edit->source = i;
        c->at += strlen(c->at);
        return c->pairs ? parse_pairs(c, edit, &notation->sources[i]) : QKV_OK;
    }
    return fail_at(c, QKV_ERR_PLAN, "there is no other prompt named '%s' to patch from", c->at);
}

static int parse_custom(cursor *c, qkv_edit *edit) {
    const qkv_notation *notation = c->notation;
    for (size_t i = 0; i < notation->n_customs; i++) {
        if (strcmp(c->at, qkv_custom_name(notation->customs[i])) != 0) continue;
        edit->custom = notation->customs[i];
        c->at += strlen(c->at);
        return QKV_OK;
    }
    return fail_at(c, QKV_ERR_PLAN,
                   "no function named '%s' is registered here; custom is for programs and Python, "
                   "in runs, measurements, next tokens and generation",
                   c->at);
}

/* @NAME, and of add ,by=F. */
static int parse_vector(cursor *c, qkv_edit *edit) {
    const char *name = c->at + 1;
    const size_t length = strcspn(name, ",");
    qkv_text why = {0};
    if (*c->at != '@')
        return fail_at(c, QKV_ERR_SYNTAX, "expected a vector, @FILE#NAME, not '%s'", c->at);
    int status = qkv_vector_take(c->notation, edit, name, length, &why);
    if (status != QKV_OK) fail_at(c, status, "%s", why.data ? why.data : "out of memory");
    qkv_text_release(&why);
    if (status != QKV_OK) return status;
    c->at = name + length;
    edit->a = 1;
    if (edit->op != QKV_OP_ADD || strncmp(c->at, ",by=", 4) != 0) return QKV_OK;
    c->at += 4;
    return take_float(c, 0, &edit->a, "a factor");
}

/* Operations with arguments of their own read the rest of the text. */
static int parse_with(cursor *c, qkv_edit *edit,
                      int (*parse)(qkv_edit *, const char *, qkv_error *)) {
    qkv_error own = {0};
    const int status = parse(edit, c->at, &own);
    if (status != QKV_OK) return fail_at(c, status, "%s", own.message);
    c->at += strlen(c->at);
    return QKV_OK;
}

static int parse_arguments(cursor *c, qkv_edit *edit) {
    const int may_be_vector = edit->op == QKV_OP_ADD || edit->op == QKV_OP_SET;
    begin_part(c, "");
    if (edit->op == QKV_OP_REMOVE || (may_be_vector && *c->at == '@')) return parse_vector(c, edit);
    switch (edit->op) {
    case QKV_OP_MASK:
        return parse_with(c, edit, qkv_mask_parse);
    case QKV_OP_KEEP:
        return parse_with(c, edit, qkv_keep_parse);
    case QKV_OP_QUANT:
        return parse_with(c, edit, qkv_quant_parse);
    case QKV_OP_MEAN:
        return parse_mean(c, edit);
    case QKV_OP_NOISE:
        return parse_noise(c, edit);
    case QKV_OP_CLAMP:
        return parse_clamp(c, edit);
    case QKV_OP_PATCH:
        return parse_patch(c, edit);
    case QKV_OP_CUSTOM:
        return parse_custom(c, edit);
    default:
        return take_float(c, 0, &edit->a, edit->op == QKV_OP_SCALE ? "a factor" : "a value");
    }
}

static int fail_op(cursor *c, int length) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(c->at, (size_t)length);
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        if (i == QKV_OP_CUSTOM && c->notation->n_customs == 0) continue; /* nothing it could name */
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_op_name((size_t)i));
        qkv_nearest_try(&near, qkv_op_name((size_t)i));
    }
    int status = fail_at(c, QKV_ERR_SYNTAX, "there is no operation '%.*s'%s; operations are %s",
                         length, c->at, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static int parse_op(cursor *c, qkv_edit *edit) {
    size_t length = strcspn(c->at, ":=");
    begin_part(c, ":=");
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        const char *name = qkv_op_name((size_t)i);
        if (strlen(name) != length || strncmp(name, c->at, length) != 0) continue;
        edit->op = (qkv_op)i;
        c->at += length;
        if (qkv_edit_masks(edit) && edit->where.site != QKV_SITE_SCORES)
            return fail_at(c, QKV_ERR_PLAN, "%s is for scores, before the softmax, not for %s",
                           name, qkv_site_name(edit->where.site));
        if (edit->op == QKV_OP_QUANT && qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
            return fail_at(c, QKV_ERR_PLAN, "quant is for what has channels, not for %s",
                           qkv_site_name(edit->where.site));
        if (edit->op == QKV_OP_ZERO || edit->op == QKV_OP_FREEZE ||
            (edit->op == QKV_OP_MASK && !*c->at))
            return QKV_OK; /* anything behind it is caught as trailing text */
        if (!take(c, ':') || !*c->at)
            return fail_at(c, QKV_ERR_SYNTAX, "%s needs %s behind a colon%s", name,
                           qkv_op_arguments((size_t)i), *c->at == '=' ? ", not behind '='" : "");
        return parse_arguments(c, edit);
    }
    return fail_op(c, (int)length);
}

/* ---- the whole ---- */

static int expect_end(cursor *c) {
    begin_part(c, "");
    return *c->at ? fail_at(c, QKV_ERR_SYNTAX, "unexpected text '%s'", c->at) : QKV_OK;
}

/* Edits are joined by ' + '. A '+' that is left inside of one belongs to a number (1e+3), or was
 * meant to join: then what is behind it begins like an edit. */
static int check_joints(cursor *c) {
    for (const char *at = strchr(c->text, '+'); at; at = strchr(at + 1, '+')) {
        const char *next = at + 1, *last = at;
        while (qkv_is_space(*next)) next++;
        while (last > c->text && qkv_is_space(last[-1])) last--;
        if (qkv_is_letter(*next))
            return fail_at(c, QKV_ERR_SYNTAX,
                           "edits are joined by ' + ', with a space on both sides: '%.*s + %s'",
                           (int)(last - c->text), c->text, next);
    }
    for (const char *at = c->text; *at; at++) {
        if (qkv_is_space(*at))
            return fail_at(c, QKV_ERR_SYNTAX,
                           "an edit has no spaces inside, only around its ' + '");
    }
    return QKV_OK;
}

/* freeze:SITE@..., which is another way to write SITE@...=freeze. */
static int take_freeze(cursor *c, qkv_edit *edit) {
    static const char word[] = "freeze:";
    if (strncmp(c->at, word, sizeof word - 1) != 0) return 0;
    c->at += sizeof word - 1;
    edit->op = QKV_OP_FREEZE;
    return 1;
}

/* Nothing but another prompt has tokens to take. */
static int check_pairs(cursor *c, const qkv_edit *edit) {
    if (!c->pairs || edit->from) return QKV_OK;
    c->at = c->pairs;
    begin_part(c, "]");
    return fail_at(c, QKV_ERR_PLAN, "'<-' takes tokens of another prompt: write patch:NAME");
}

static int parse_edit(cursor *c, qkv_edit *edit) {
    begin_part(c, "");
    int status = check_joints(c);
    const int freezes = take_freeze(c, edit);
    if (status == QKV_OK) status = parse_site(c, &edit->where.site);
    if (status == QKV_OK) status = parse_layers(c, &edit->where);
    if (status == QKV_OK) status = parse_heads(c, &edit->where);
    if (status == QKV_OK) status = parse_tokens(c, &edit->where);
    if (status == QKV_OK) status = parse_channels(c, &edit->where);
    if (status == QKV_OK && freezes) status = check_pairs(c, edit);
    if (status == QKV_OK && freezes) return expect_end(c);
    begin_part(c, "=");
    if (status == QKV_OK && !take(c, '='))
        status =
            *c->at ? fail_at(c, QKV_ERR_SYNTAX, "expected '=' and an operation before '%s'", c->at)
                   : fail_at(c, QKV_ERR_SYNTAX, "expected '=' and an operation at the end");
    if (status == QKV_OK) status = parse_op(c, edit);
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
    cursor c = {
        .notation = notation, .kind = "edit", .text = edit->text, .at = edit->text, .err = err};
    int status = *edit->text ? parse_edit(&c, edit)
                             : qkv_fail(err, QKV_ERR_SYNTAX,
                                        "an edit is empty; it should look like q@3.h5=scale:1e-3");
    if (status != QKV_OK) {
        qkv_edit_release(edit);
        return status;
    }
    edit->selected = qkv_selector_count(&edit->where, notation->hp, notation->n_tokens);
    return QKV_OK;
}

/* ---- captures ---- */

#define MAX_POOLED_SIDE 16384

static int parse_side(cursor *c, qkv_capture *capture) {
    int pooled =
        capture->reduction == QKV_REDUCTION_MEAN || capture->reduction == QKV_REDUCTION_MAX;
    const char *name = qkv_reduction_name(capture->reduction);
    if (!pooled) return QKV_OK;
    if (!take(c, '=') || !take_number(c, &capture->side))
        return fail_at(c, QKV_ERR_SYNTAX, "%s needs the number of cells, e.g. %s=256", name, name);
    if (capture->side < 1 || capture->side > MAX_POOLED_SIDE)
        return fail_at(c, QKV_ERR_PLAN, "%lld cells are out of range; give 1 to %d",
                       (long long)capture->side, MAX_POOLED_SIDE);
    return QKV_OK;
}

static int parse_reduction(cursor *c, qkv_capture *capture) {
    if (!take(c, ':')) return QKV_OK;
    if (capture->where.site != QKV_SITE_PATTERN)
        return fail_at(c, QKV_ERR_PLAN, "only the pattern can be reduced, not %s",
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
        status = fail_at(c, QKV_ERR_SYNTAX, "there is no reduction '%s'%s; reductions are %s",
                         c->at, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    if (status == QKV_OK && capture->reduction == QKV_REDUCTION_SINK && !c->notation->hp->has_sink)
        status = fail_at(c, QKV_ERR_PLAN, "this model has no learned sinks: its rows sum to 1");
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
    cursor c = {.notation = notation, .kind = "capture", .text = copy, .at = copy, .err = err};
    int status = parse_site(&c, &where->site); /* which begins the first part */
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
