#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "qkv/hooks.h"
#include "run/notation/notation.h"

/* A number at *at, which is moved past it. One that counts from the end is written as what it is,
 * unless there is no such one: the parser says so. */
static int copy_number(qkv_text *out, const char **at, int64_t n) {
    const int from_end = **at == '-';
    const size_t digits = strspn(*at + from_end, "0123456789");
    int64_t value;
    if (!qkv_parse_int(*at + from_end, digits, &value)) return 0;
    if (from_end && value >= 1 && value <= n)
        qkv_text_printf(out, "%lld", (long long)(n - value));
    else
        qkv_text_append(out, *at, digits + (size_t)from_end);
    *at += digits + (size_t)from_end;
    return 1;
}

static int copy_letter(qkv_text *out, const char **at, char letter) {
    if (!letter || **at != letter) return 0;
    qkv_text_append(out, (*at)++, 1);
    return 1;
}

/* * | 3 | 2-4 | 0,2,-3--1, up to what is none of it. */
static void copy_list(qkv_text *out, const char **at, int64_t n, char letter) {
    if (copy_letter(out, at, '*')) return;
    do {
        copy_letter(out, at, letter);
        if (!copy_number(out, at, n)) return;
        if (copy_letter(out, at, '-') && !copy_number(out, at, n)) return;
    } while (copy_letter(out, at, ','));
}

static void copy_site(qkv_text *out, const char **at, const qkv_hparams *hp) {
    const size_t site = strcspn(*at, "@.[{=: ");
    qkv_text_append(out, *at, site);
    *at += site;
    if (copy_letter(out, at, '@')) copy_list(out, at, hp->n_layer, 0);
}

/* Where layers have different numbers of heads, none is the last one of all: 0. */
static int32_t heads_counted(const qkv_hparams *hp, char letter) {
    const int32_t most = letter == 'h' ? hp->largest.n_head : hp->largest.n_kv_head;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        if ((letter == 'h' ? hp->layers[il].n_head : hp->layers[il].n_kv_head) != most) return 0;
    }
    return most;
}

static void copy_place(qkv_text *out, const char **at, const qkv_hparams *hp) {
    char place[QKV_HOOK_SIZE];
    const char *translated = place;
    const size_t hook = qkv_hook_read(place, *at);
    copy_site(out, hook ? &translated : at, hp);
    *at += hook;
    if (**at != '.' || ((*at)[1] != 'h' && (*at)[1] != 'g')) return;
    const char letter = (*at)[1];
    copy_letter(out, at, '.');
    copy_list(out, at, heads_counted(hp, letter), letter);
}

int qkv_notation_canonical(const qkv_hparams *hp, char **text, qkv_error *err) {
    static const char freeze[] = "freeze:";
    const char *at = *text;
    qkv_text out = {0};
    while (qkv_is_space(*at)) at++;
    if (strncmp(at, freeze, sizeof freeze - 1) == 0) at += sizeof freeze - 1;
    qkv_text_append(&out, *text, (size_t)(at - *text));
    copy_place(&out, &at, hp);
    qkv_text_puts(&out, at);
    if (out.failed) {
        qkv_text_release(&out);
        return qkv_fail_memory(err);
    }
    free(*text);
    *text = out.data;
    return QKV_OK;
}
