/* The list of metrics as data, and their names and parameters as text. */
#include "measure/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"

typedef struct definition {
    unsigned needs;
    int n_parameters;
    double defaults[QKV_METRIC_PARAMETERS];
} definition;

/* clang-format off */
#define DEFINE(id, name, title, unit, scope, needs, n, p, q, ...) [QKV_METRIC_##id] = {(needs), (n), {(p), (q)}},
static const definition definitions[QKV_METRIC_COUNT] = {QKV_METRIC_LIST(DEFINE)};
#undef DEFINE

#define NEEDS_TEXT(n)                                                                              \
    ((n) & NEED_LAST ? "final_norm"                                                                \
     : (n) & (NEED_LOGITS | NEED_ALL_LOGITS)                                                       \
         ? ((n) & NEED_BASELINE ? "logits, baseline" : "logits")                                   \
     : (n) & NEED_RESID ? "resid_post"                                                             \
     : (n) & NEED_Z ? "z"                                                                          \
     : (n) & NEED_K_ROT ? "k_rot"                                                                  \
     : (n) & NEED_Q_ROT ? "q_rot"                                                                  \
     : (n) & NEED_K ? "k"                                                                          \
     : (n) & NEED_Q ? "q"                                                                          \
     : (n) & NEED_O ? "pattern, v, output projection"                                              \
     : (n) & NEED_V ? "pattern, v"                                                                 \
     : (n) & NEED_MAP ? "pattern, whole"                                                           \
     : (n) & NEED_BASELINE ? "pattern, baseline" : "pattern")

#define DESCRIBE(id, name_, title_, unit_, scope_, needs_, n, p, q, parameters_, range_, undefined_, source_,     \
                 formula_)                                                                         \
    [QKV_METRIC_##id] = {.name = (name_), .formula = (formula_), .range = (range_),                \
                         .needs = NEEDS_TEXT(needs_), .source = (source_),                         \
                         .parameters = (parameters_), .undefined = (undefined_),                   \
                         .scope = QKV_SCOPE_##scope_,                                              \
                         .compares = ((needs_) & NEED_BASELINE) != 0, .title = (title_),           \
                         .unit = (unit_)},
static const qkv_metric_info infos[QKV_METRIC_COUNT] = {QKV_METRIC_LIST(DESCRIBE)};
#undef DESCRIBE
/* clang-format on */

const qkv_metric_info *qkv_metric_get(size_t index) {
    return index < QKV_METRIC_COUNT ? &infos[index] : NULL;
}

static qkv_metric find(const char *name, size_t length) {
    for (int i = 0; i < QKV_METRIC_COUNT; i++) {
        if (strlen(infos[i].name) == length && memcmp(infos[i].name, name, length) == 0)
            return (qkv_metric)i;
    }
    return QKV_METRIC_COUNT;
}

const qkv_metric_info *qkv_metric_find(const char *name) {
    return name ? qkv_metric_get((size_t)find(name, strlen(name))) : NULL;
}

const char *qkv_metric_scope_name(qkv_metric_scope scope) {
    static const char *const names[] = {"head", "layer", "variant", "prompt set"};
    return (unsigned)scope <= QKV_SCOPE_SET ? names[scope] : NULL;
}

/* ---- parameters ---- */

/* The words that a parameter may be, which its value counts through; NULL where it is a number. */
static const char *const *words_of(qkv_metric id, int parameter) {
    static const char *const spaces[] = {
        [QKV_SPACE_PROMPT] = "prompt", [QKV_SPACE_FEATURE] = "feature", NULL};
    return id == QKV_METRIC_SUBSPACE_ANGLE && parameter == 1 ? spaces : NULL;
}

/* "ratio" of "size = 100, ratio = 1000". */
static const char *parameter_name(qkv_metric id, int parameter, size_t *length) {
    const char *at = infos[id].parameters;
    for (int i = 0; i < parameter; i++) at = strstr(at, ", ") + 2;
    *length = strcspn(at, " ");
    return at;
}

/* ---- titles ---- */

static int has_defaults(const qkv_chosen_metric *metric) {
    const double *defaults = definitions[metric->id].defaults;
    int i = 0;
    while (i < definitions[metric->id].n_parameters && metric->parameters[i] == defaults[i]) i++;
    return i == definitions[metric->id].n_parameters;
}

/* "key = 4": the names of the parameters, with their values. */
static void append_parameters(qkv_text *out, const qkv_chosen_metric *metric) {
    if (has_defaults(metric)) {
        const char *all = infos[metric->id].parameters;
        if (*all) qkv_text_printf(out, ", %s", all);
        return;
    }
    for (int i = 0; i < definitions[metric->id].n_parameters; i++) {
        const char *const *words = words_of(metric->id, i);
        size_t length;
        const char *name = parameter_name(metric->id, i, &length);
        qkv_text_printf(out, ", %.*s = ", (int)length, name);
        if (words) qkv_text_puts(out, words[(size_t)metric->parameters[i]]);
        if (!words) qkv_text_printf(out, "%g", metric->parameters[i]);
    }
}

int qkv_metric_title(const char *metric, char **title, qkv_error *err) {
    qkv_chosen_metric read;
    qkv_text text = {0};
    QKV_NEED(err, title);
    *title = NULL;
    QKV_NEED(err, metric);
    const int status = qkv_metric_parse(&read, metric, strlen(metric), NULL);
    if (status == QKV_ERR_MEMORY) return qkv_fail_memory(err);
    if (status == QKV_OK) {
        const qkv_metric_info *info = &infos[read.id];
        qkv_text_puts(&text, info->title);
        append_parameters(&text, &read);
        if (info->unit[0]) qkv_text_printf(&text, " (%s)", info->unit);
        free(read.text);
    } else {
        qkv_text_puts(&text, metric);
    }
    if (!text.failed) *title = text.data;
    if (text.failed) qkv_text_release(&text);
    return *title ? QKV_OK : qkv_fail_memory(err);
}

unsigned qkv_metric_needs(qkv_metric id) {
    return definitions[id].needs;
}

/* ---- names ---- */

static int fail_parameters(qkv_metric id, const char *text, size_t length, qkv_error *err) {
    if (definitions[id].n_parameters == 0)
        return qkv_fail(err, QKV_ERR_SYNTAX, "metric '%.*s': %s takes no parameters", (int)length,
                        text, infos[id].name);
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    "metric '%.*s': by default %s; after the colon stand values, or NAME=VALUE, "
                    "separated by '/'",
                    (int)length, text, infos[id].parameters);
}

/* Positions, keys and ranks are whole numbers; thresholds are not. */
static int is_valid(qkv_metric id, double value) {
    if (!isfinite(value)) return 0;
    switch (id) {
    case QKV_METRIC_SINK:
        return value >= 0 && value < 1e9 && value == floor(value);
    case QKV_METRIC_OUTPUT_KL:
    case QKV_METRIC_TOP1_CHANGED:
        return fabs(value) < 1e9 && value == floor(value);
    case QKV_METRIC_ANSWER:
        return value >= 1 && value < 1e9 && value == floor(value);
    case QKV_METRIC_SUBSPACE_ANGLE:
        return value >= 1 && value <= 1024 && value == floor(value);
    default:
        return value >= 0;
    }
}

static int parse_value(qkv_chosen_metric *out, int parameter, const char *at, size_t length) {
    const char *const *words = words_of(out->id, parameter);
    double *value = &out->parameters[parameter];
    if (!words) return qkv_parse_double(at, length, value) && is_valid(out->id, *value);
    for (size_t i = 0; words[i]; i++) {
        *value = (double)i;
        if (strlen(words[i]) == length && memcmp(words[i], at, length) == 0) return 1;
    }
    return 0;
}

/* "2", which is the parameter `next`, or "rank=2". Returns which it was; -1: neither. */
static int parse_piece(qkv_chosen_metric *out, int next, const char *at, size_t length) {
    const int n = definitions[out->id].n_parameters;
    const char *equals = memchr(at, '=', length);
    const char *value = equals ? equals + 1 : at;
    for (int i = equals ? 0 : next; i < n; i++) {
        size_t own;
        const char *name = parameter_name(out->id, i, &own);
        if (!equals || (own == (size_t)(equals - at) && memcmp(name, at, own) == 0))
            return parse_value(out, i, value, (size_t)(at + length - value)) ? i : -1;
    }
    return -1;
}

/* Each at most once; those without a name count on from the one before. */
static int parse_parameters(qkv_chosen_metric *out, const char *text, size_t length, const char *at,
                            qkv_error *err) {
    const char *end = text + length;
    unsigned given = 0;
    for (int next = 0;; next++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash ? slash : end;
        next = parse_piece(out, next, at, (size_t)(stop - at));
        if (next < 0 || given & 1u << next) return fail_parameters(out->id, text, length, err);
        given |= 1u << next;
        if (!slash) return QKV_OK;
        at = slash + 1;
    }
}

static int fail_name(const char *name, size_t length, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, length);
    for (int i = 0; i < QKV_METRIC_COUNT; i++) qkv_nearest_try(&near, infos[i].name);
    return qkv_fail(err, QKV_ERR_SYNTAX, "there is no metric '%.*s'%s; 'qkv metrics' lists them",
                    (int)length, name, qkv_nearest_hint(&near));
}

int qkv_metric_parse(qkv_chosen_metric *out, const char *text, size_t length, qkv_error *err) {
    *out = (qkv_chosen_metric){0};
    const char *colon = memchr(text, ':', length);
    out->id = find(text, colon ? (size_t)(colon - text) : length);
    if (out->id == QKV_METRIC_COUNT)
        return fail_name(text, colon ? (size_t)(colon - text) : length, err);
    memcpy(out->parameters, definitions[out->id].defaults, sizeof out->parameters);
    int status = colon ? parse_parameters(out, text, length, colon + 1, err) : QKV_OK;
    if (status != QKV_OK) return status;
    out->text = qkv_strndup(text, length);
    return out->text ? QKV_OK : qkv_fail_memory(err);
}
