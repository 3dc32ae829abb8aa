/*
 * qkv heads from the inside: what every head does, as scores and one label each.
 *
 *     head_labels.c          options, labels, scores on texts
 *     head_labels_repeats.c  scores on random tokens that come twice
 *     head_labels_names.c    name movers, on prompts with an answer in them
 *     head_labels_show.c     tables and pictures
 */
#ifndef QKV_STUDY_HEAD_LABELS_H
#define QKV_STUDY_HEAD_LABELS_H

#include "study/study.h"

/* X(id, name, letter, title, threshold), in the order in which labels are given: a head has the first
 * whose threshold its score reaches. What a head does for some tokens comes before where it rests. */
#define HEAD_BEHAVIOUR_LIST(X)                                                                     \
    X(NAME_MOVER, name_mover, "N", "Name mover", 0.3)                                              \
    X(INDUCTION, induction, "I", "Induction", 0.4)                                                 \
    X(DUPLICATE, duplicate, "D", "Duplicate token", 0.4)                                           \
    X(PREVIOUS, previous, "P", "Previous token", 0.4)                                              \
    X(SELF, self, "S", "Self", 0.4)                                                                \
    X(SINK, sink, "F", "First token (sink)", 0.5)

typedef enum head_behaviour {
#define HEAD_ENUM(id, name, letter, title, threshold) HEAD_##id,
    HEAD_BEHAVIOUR_LIST(HEAD_ENUM)
#undef HEAD_ENUM
        HEAD_BEHAVIOURS
} head_behaviour;

typedef struct head_behaviour_info {
    const char *name, *letter, *title;
    double threshold; /* unless told otherwise */
} head_behaviour_info;

extern const head_behaviour_info qkv_head_behaviours[HEAD_BEHAVIOURS];

/* 0 and NULL: the default. */
typedef struct heads_options {
#define HEAD_FIELD(id, name, letter, title, threshold) double name;
    HEAD_BEHAVIOUR_LIST(HEAD_FIELD) /* thresholds */
#undef HEAD_FIELD
    int64_t length;    /* tokens before they come again; 0: 50, or as many as the model takes */
    int64_t sequences; /* 0: 4 */
    int64_t seed;
    int64_t top;       /* heads listed for each label; 0: 10 */
    const char *pairs; /* lines of prompt, tab, answer */
} heads_options;

typedef struct head_scores {
    size_t n_layer, n_head;
    double *of[HEAD_BEHAVIOURS]; /* [layer][head]: means over texts; NULL: not looked at */
    double *lowest[HEAD_BEHAVIOURS], *highest[HEAD_BEHAVIOURS]; /* likewise: of a single text */
    double *name_attention, *name_copying;                      /* with name movers */
    double thresholds[HEAD_BEHAVIOURS];
    int32_t *repeats; /* the random tokens, sequence by sequence */
    size_t repeat_tokens, n_sequences;
    size_t length;
    size_t n_pairs;
} head_scores;

/* The label of a head, or -1; a score that is NaN reaches nothing. */
int qkv_head_label(const double scores[HEAD_BEHAVIOURS], const double thresholds[HEAD_BEHAVIOURS]);
/* Of one of many. */
int qkv_head_scores_label(const head_scores *s, size_t index);

/* What one text gives, for the lowest and the highest. */
void qkv_head_scores_note(head_scores *s, head_behaviour behaviour, size_t index, double value);

int qkv_head_scores_draw(head_scores *s, const study_inputs *in, const heads_options *options,
                         qkv_error *err);
int qkv_head_scores_repeats(head_scores *s, const study_inputs *in, qkv_error *err);
int qkv_head_scores_names(head_scores *s, const study_inputs *in, const char *pairs,
                          qkv_error *err);
int qkv_head_scores_show(const head_scores *s, qkv_study *study, const study_inputs *in,
                         const heads_options *options, qkv_error *err);

#endif
