/*
 * What the tests of qkv_figure share: a session on the default model, a prompt of a few ids, and
 * figures that are expected to be made. Whatever fails here fails the running cmocka test.
 */
#ifndef QKV_TESTS_SUPPORT_FIGURE_MAKER_H
#define QKV_TESTS_SUPPORT_FIGURE_MAKER_H

#include "qkv/figure.h"
#include "support/engine.h"

enum { FIGURE_N_TOKENS = 5, FIGURE_LAYER = 3, FIGURE_HEAD = 1 };
extern const int32_t FIGURE_TOKENS[FIGURE_N_TOKENS];

/* Between these two, which are the setup and the teardown of a group of tests. */
extern engine figure_engine;
int figure_open(void **state);
int figure_close(void **state);

qkv_prompt figure_ids(void);
qkv_figure_side figure_side(const char *label, const char *edits);
/* One prompt at the layer and head above. */
qkv_figure_options figure_options_for(const qkv_prompt *prompt);

/* The function of every kind. */
extern int (*const figure_makers[QKV_FIGURE_KINDS])(qkv_figure **, qkv_session *,
                                                    const qkv_figure_options *, qkv_error *);
/* The caller's to free. */
qkv_figure *make_figure(qkv_figure_kind kind, const qkv_figure_options *options);
qkv_figure_panel figure_panel(const qkv_figure *figure, size_t row, size_t col);
qkv_figure_info figure_info(const qkv_figure *figure);

#endif
