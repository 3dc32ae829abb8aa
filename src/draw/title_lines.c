/* Titles of panels, broken into lines alike. */
#include "draw/panel_slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_PIECES = 40 }; /* longer titles are wrapped on their own */
static const double WIDEST =
    1.3; /* of a line's limit: a formula that is longer is broken after all */

/* What stays on one line: words, and formulas of several. */
typedef struct pieces {
    int n; /* 0: wrapped on its own */
    int start[MOST_PIECES];
    double left[MOST_PIECES], right[MOST_PIECES];
} pieces;

static double place_of(PangoLayoutLine *line, int index) {
    int x = 0;
    pango_layout_line_index_to_x(line, index, FALSE, &x);
    return (double)x / PANGO_SCALE;
}

/* Pieces end at spaces where a line may break. A title of several lines stays as it is. */
static void read_pieces(pieces *found, PangoLayout *words) {
    const char *text = pango_layout_get_text(words);
    int n_attributes = 0;
    const PangoLogAttr *at = pango_layout_get_log_attrs_readonly(words, &n_attributes);
    PangoLayoutLine *line = pango_layout_get_line_readonly(words, 0);
    found->n = 0;
    if (!*text || strchr(text, '\n')) return;
    int n = 0;
    found->start[0] = 0;
    const char *c = text;
    for (int i = 0; i < n_attributes; i++, c = *c ? g_utf8_next_char(c) : c) {
        const int is_end = *c == '\0';
        if (!is_end && (i == 0 || !at[i].is_line_break || c[-1] != ' ')) continue;
        const int index = (int)(c - text);
        int end = index;
        while (end > found->start[n] && text[end - 1] == ' ') end--;
        const double from = place_of(line, found->start[n]), to = place_of(line, end);
        found->left[n] = fmin(from, to);
        found->right[n] = fmax(from, to);
        n++;
        if (is_end || n == MOST_PIECES) break;
        found->start[n] = index;
    }
    if (n < MOST_PIECES) found->n = n;
}

/* How much of their lines the pieces first..last take, in the title of n pieces where it is most. */
static double share(const pieces *all, const qkv_panel_title *titles, size_t count, int n,
                    int first, int last) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].n != n) continue;
        most = fmax(most, (all[i].right[last] - all[i].left[first]) / titles[i].limit);
    }
    return most;
}

/* How much of its line the longest piece takes. */
static double longest_piece(const pieces *all, const qkv_panel_title *titles, size_t count, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, share(all, titles, count, n, i, i));
    return most;
}

/* Where lines begin in all titles of n pieces: as few lines as there can be, as even as they can be.
 * A line takes no more than `limit`, which is 1 or what the longest piece takes. Returns how many. */
static int choose_lines(int begins[MOST_PIECES], const pieces *all, const qkv_panel_title *titles,
                        size_t count, int n, double limit) {
    int lines[MOST_PIECES + 1] = {0}, before[MOST_PIECES + 1] = {0};
    double widest[MOST_PIECES + 1] = {0};
    for (int end = 1; end <= n; end++) {
        lines[end] = 0;
        for (int first = end - 1; first >= 0; first--) {
            const double taken = share(all, titles, count, n, first, end - 1);
            if (taken > limit || (first > 0 && !lines[first])) continue;
            const int now = lines[first] + 1;
            const double most = fmax(widest[first], taken);
            if (lines[end] && (now > lines[end] || (now == lines[end] && most >= widest[end])))
                continue;
            lines[end] = now;
            widest[end] = most;
            before[end] = first;
        }
    }
    for (int end = n, i = lines[n]; i > 0; end = before[end]) begins[--i] = before[end];
    return lines[n];
}

static int break_lines(PangoLayout *words, const pieces *own, const int *begins, int n_lines) {
    char *text = qkv_strdup(pango_layout_get_text(words));
    if (!text) return 0;
    for (int i = 1; i < n_lines; i++) text[own->start[begins[i]] - 1] = '\n';
    pango_layout_set_text(words, text, -1);
    free(text);
    return 1;
}

static int make_words(qkv_panel_title *title, double size, double limit,
                      const qkv_lettering *lettering, qkv_error *err) {
    if (title->words) g_object_unref(title->words);
    title->words = qkv_words_new(lettering, title->text, QKV_WORDS_TITLE, size, limit);
    return title->words ? QKV_OK : qkv_fail_memory(err);
}

/* Breaks all titles of as many pieces as the one at `index` has, if it is the first of them. */
static int break_group(qkv_title_lines *made, pieces *all, qkv_panel_title *titles, size_t n,
                       size_t index, double size, const qkv_lettering *lettering, qkv_error *err) {
    int begins[MOST_PIECES] = {0};
    const int n_pieces = all[index].n;
    for (size_t i = 0; i < index; i++) {
        if (all[i].n == n_pieces && n_pieces) return QKV_OK;
    }
    const double longest = longest_piece(all, titles, n, n_pieces);
    const double widest = lettering->least > 0 ? WIDEST : 1;
    const int n_lines =
        n_pieces ? choose_lines(begins, all, titles, n, n_pieces, fmax(longest, 1)) : 0;
    for (size_t i = index; i < n; i++) {
        if (!titles[i].text || all[i].n != n_pieces || (!n_pieces && i != index)) continue;
        if (!n_lines) {
            const int status = make_words(&titles[i], size, titles[i].limit, lettering, err);
            if (status != QKV_OK) return status;
        } else if (!break_lines(titles[i].words, &all[i], begins, n_lines)) {
            return qkv_fail_memory(err);
        } else if (longest > widest) {
            qkv_words_wrap(titles[i].words, titles[i].limit);
        }
        const int lines = pango_layout_get_line_count(titles[i].words);
        if (lines > made->lines) made->lines = lines;
    }
    if (longest > 1) made->fits = 0;
    return QKV_OK;
}

int qkv_title_lines_make(qkv_title_lines *made, qkv_panel_title *titles, size_t n, double size,
                         const qkv_lettering *lettering, qkv_error *err) {
    *made = (qkv_title_lines){0, 1};
    pieces *all = qkv_calloc(n, sizeof *all);
    int status = all ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (!titles[i].text) continue;
        status = make_words(&titles[i], size, 0, lettering, err);
        if (status == QKV_OK) read_pieces(&all[i], titles[i].words);
    }
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (titles[i].text) status = break_group(made, all, titles, n, i, size, lettering, err);
    }
    free(all);
    if (status != QKV_OK) qkv_title_lines_release(titles, n);
    return status;
}

void qkv_title_lines_release(qkv_panel_title *titles, size_t n) {
    for (size_t i = 0; i < n; i++) g_clear_object(&titles[i].words);
}
