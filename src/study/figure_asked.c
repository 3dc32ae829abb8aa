/*
 * Fields of figures that stand for several options of theirs: what is asked becomes options, and options become what is
 * asked again, for recipes.
 */
#include "study/figure.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "study/study.h"

/* ---- scale, range, heads ---- */

static void take_scale(const figure_asked *asked, qkv_figure_options *o) {
    enum { AUTO, LINEAR };
    o->always_linear = asked->scale == LINEAR;
    o->scale = asked->scale == AUTO ? QKV_SCALE_LINEAR : (qkv_scale)(asked->scale - LINEAR);
}

static int take_range(const figure_asked *asked, qkv_figure_options *o, qkv_error *err) {
    const char *text = asked->range, *comma = text ? strchr(text, ',') : NULL;
    if (!text) return QKV_OK;
    o->auto_range = strcmp(text, "auto") == 0;
    if (o->auto_range) return QKV_OK;
    if (comma && qkv_parse_double(text, (size_t)(comma - text), &o->range[0]) &&
        qkv_parse_double(comma + 1, strlen(comma + 1), &o->range[1]) && o->range[0] < o->range[1])
        return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`range` wants two numbers LO,HI with LO below HI, or auto, not '%.80s'", text);
}

/* One head, several, or auto. */
static int take_heads(const figure_asked *asked, qkv_figure_options *o, qkv_error *err) {
    const char *text = asked->head;
    if (!text || strcmp(text, "auto") == 0) return QKV_OK;
    const int from_end = *text == '-';
    const size_t digits = strspn(text + from_end, "0123456789");
    if (digits == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`head` wants a head, several such as 1,3 or 0-3, or auto, not '%.80s'",
                        text);
    if (text[digits + (size_t)from_end] || digits > 8) {
        o->heads = text;
    } else {
        const int32_t number = (int32_t)strtol(text + from_end, NULL, 10);
        o->head = from_end ? QKV_FROM_END(number) : number;
    }
    return QKV_OK;
}

int qkv_figure_take_asked(figure_asked *asked, qkv_error *err) {
    take_scale(asked, &asked->options);
    const int status = take_range(asked, &asked->options, err);
    return status == QKV_OK ? take_heads(asked, &asked->options, err) : status;
}

/* ---- rows and columns ---- */

/* The end of the label; NULL: there is none. A backslash makes '=' a part of it. */
static char *label_end(char *line) {
    char *at = strchr(line, '=');
    while (at && at > line && at[-1] == '\\') at = strchr(at + 1, '=');
    return at;
}

static void drop_backslashes(char *label) {
    char *to = label;
    for (const char *at = label; *at; at++) {
        if (*at != '\\' || at[1] != '=') *to++ = *at;
    }
    *to = '\0';
}

/* SITE@LAYERS=OP: the label was forgotten, and what it is taken for makes no sense. */
static int check_side(char *line, const char *name, qkv_error *err) {
    const char *equals = label_end(line);
    if (!equals)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` wants LABEL=EDITS, not '%s'", name, line);
    if (memchr(line, '@', (size_t)(equals - line)) && equals[1] && !strchr(equals, '@'))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`%s` wants LABEL=EDITS, and '%s' has no label; write 'Name=%s'", name,
                        line, line);
    return QKV_OK;
}

int qkv_figure_take_sides(char *text, const char *name, qkv_figure_side **sides, size_t *n,
                          qkv_error *err) {
    size_t lines = text != NULL;
    int status = QKV_OK;
    for (const char *at = text; at && *at; at++) lines += *at == '\n';
    *sides = qkv_calloc(lines, sizeof **sides);
    if (!*sides) return qkv_fail_memory(err);
    for (char *line = text; line && status == QKV_OK;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        status = check_side(line, name, err);
        if (status != QKV_OK) break;
        char *equals = label_end(line);
        *equals = '\0';
        drop_backslashes(line);
        (*sides)[*n] = (qkv_figure_side)QKV_FIGURE_SIDE_INIT;
        (*sides)[*n].label = line;
        (*sides)[(*n)++].edits = equals + 1;
        line = end ? end + 1 : NULL;
    }
    return status;
}

/* ---- back to fields, for recipes ---- */

/* Texts of fields that stand for several options. */
typedef struct figure_texts {
    qkv_text row, col, range, head;
} figure_texts;

/* LABEL=EDITS, one to a line. */
static void write_sides(qkv_text *out, const qkv_figure_side *sides, size_t n) {
    for (size_t i = 0; i < n; i++) {
        qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
        qkv_sized_read_item(&side, sizeof side, sides, i, "qkv_figure_side", NULL);
        if (i) qkv_text_puts(out, "\n");
        for (const char *at = side.label ? side.label : ""; *at; at++) {
            if (*at == '=') qkv_text_puts(out, "\\");
            qkv_text_append(out, *at == '\n' ? " " : at, 1);
        }
        qkv_text_printf(out, "=%s", side.edits ? side.edits : "");
    }
}

static void write_range(qkv_text *out, const qkv_figure_options *o) {
    if (o->auto_range) {
        qkv_text_puts(out, "auto");
    } else if (o->range[0] != 0 || o->range[1] != 0) {
        qkv_text_append_number(out, o->range[0]);
        qkv_text_puts(out, ",");
        qkv_text_append_number(out, o->range[1]);
    }
}

static void write_heads(qkv_text *out, const qkv_figure_options *o) {
    if (o->heads)
        qkv_text_puts(out, o->heads);
    else if (o->head < QKV_AUTO)
        qkv_text_printf(out, "-%d", (int)QKV_FROM_END(o->head));
    else if (o->head != QKV_AUTO)
        qkv_text_printf(out, "%d", (int)o->head);
}

/* The second text of a pair is in the prompt's text by now. */
int qkv_figure_write_fields(qkv_figure_kind kind, const qkv_figure_options *o, json_t **work,
                            json_t **look, qkv_error *err) {
    const study_kind *of = qkv_study_find_kind(qkv_figure_kind_name(kind));
    figure_texts texts = {0};
    write_sides(&texts.row, o->rows, o->n_rows);
    write_sides(&texts.col, o->cols, o->n_cols);
    write_range(&texts.range, o);
    if (kind == QKV_FIGURE_PATTERN) write_heads(&texts.head, o);
    const int failed =
        texts.row.failed || texts.col.failed || texts.range.failed || texts.head.failed;
    const figure_asked asked = {
        .options = *o,
        .scale = o->always_linear || o->scale ? (int)o->scale + 1 : 0,
        .range = texts.range.data,
        .head = texts.head.data,
        .row = texts.row.data,
        .col = texts.col.data,
    };
    *work = failed ? NULL : qkv_fields_write(&of->fields, &asked);
    *look = failed ? NULL : qkv_fields_write(&of->look, &asked);
    qkv_text_release(&texts.row);
    qkv_text_release(&texts.col);
    qkv_text_release(&texts.range);
    qkv_text_release(&texts.head);
    if (*work && *look) return QKV_OK;
    json_decref(*work);
    json_decref(*look);
    return qkv_fail_memory(err);
}
