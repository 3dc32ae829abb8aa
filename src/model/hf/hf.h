/*
 * The Hugging Face side of a family: how its config.json and the names of its tensors become those
 * of a GGUF file.
 *
 * A directory (config.json, *.safetensors, tokenizer.json) is opened as if it were the GGUF file
 * that llama.cpp's converter would make of it: config.c and rope_settings.c write the keys, tensor_map.c
 * finds the tensors, and nothing that uses qkv_gguf knows the difference. Tensors whose bytes can be
 * used as they are stay in the mapping; the others carry a maker (tensor_maker.c) and are made when
 * they are needed.
 *
 * What all families share is in the tables of config.c and tensor_map.c; a qkv_hf in a family's
 * file says the rest. A setting that transformers uses and this library does not implement is refused;
 * one that is in no table is unknown to transformers too, and named in a notice (unused_settings.c).
 * The language part of a larger model is taken out of it first (wrapper.c).
 */
#ifndef QKV_MODEL_HF_HF_H
#define QKV_MODEL_HF_HF_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/text.h"
#include "format/gguf_file.h"
#include "format/safetensors.h"
#include "model/family/family.h"

/* ---- makers ---- */

typedef struct qkv_maker_kind qkv_maker_kind;

/* How a tensor is made from others. */
typedef struct qkv_tensor_maker {
    qkv_gguf_maker base; /* what the file calls: tensor_maker.c */
    const qkv_maker_kind *kind;
    const qkv_st_tensor **sources;
    size_t n_sources;
    int32_t n_head, n_kv_head;
    qkv_mixer_shape mixer;
    int64_t n_skipped; /* rows */
    float *values;     /* instead of sources */
} qkv_tensor_maker;

struct qkv_maker_kind {
    /* Type and shape of what is made, or why it cannot be. Returns 1 where there is nothing to make:
     * the first source's bytes are it. */
    int (*plan)(const qkv_tensor_maker *maker, qkv_gguf_tensor *out, qkv_error *err);
    void (*make)(const qkv_tensor_maker *maker, const qkv_gguf_tensor *t, void *out);
};

/* Calls the kind's own function, with its own type. */
void qkv_tensor_make(const qkv_gguf_maker *maker, const qkv_gguf_tensor *t, void *out);

extern const qkv_maker_kind qkv_maker_copy;      /* as it is */
extern const qkv_maker_kind qkv_maker_transpose; /* the last two axes; vectors as they are */
extern const qkv_maker_kind qkv_maker_plus_one;  /* 1 + w, as F32 */
extern const qkv_maker_kind qkv_maker_stack;     /* several of one shape, outermost first */
extern const qkv_maker_kind qkv_maker_skip_rows; /* without the first n_skipped rows */
/* Rows of the queries, key and value of each group after another, to all queries, keys, values. */
extern const qkv_maker_kind qkv_maker_ungroup;
/* Rows of four blocks, each with its quarter of the queries, of the values and of the keys, to all queries,
 * keys, values. */
extern const qkv_maker_kind qkv_maker_from_quarters;
/* The first or the second half of the rows of each matrix of [E, 2F, D]. */
extern const qkv_maker_kind qkv_maker_first_rows, qkv_maker_second_rows;
/* Every other column, from the first or the second one on, of [E, D, 2F], as [E, F, D]; of biases
 * [E, 2F], as [E, F]. */
extern const qkv_maker_kind qkv_maker_even_columns, qkv_maker_odd_columns;
/* The first or the second half of the columns of the same. */
extern const qkv_maker_kind qkv_maker_first_columns, qkv_maker_second_columns;
/* mxfp4.c: blocks and their scales; all rows, or every other one. */
extern const qkv_maker_kind qkv_maker_mxfp4, qkv_maker_mxfp4_even, qkv_maker_mxfp4_odd;
/* mixer_makers.c: value heads that share a key head, which follow each other, dealt out instead. Of rows; of
 * rows after those of q and k; of columns; of a convolution; of decays. */
extern const qkv_maker_kind qkv_maker_dealt_heads, qkv_maker_dealt_values, qkv_maker_dealt_columns,
    qkv_maker_dealt_conv, qkv_maker_dealt_decay;
extern const qkv_maker_kind qkv_maker_conv;  /* [C, 1, taps] as [C, taps] */
extern const qkv_maker_kind qkv_maker_decay; /* -exp(A) */
/* Rows of q, k, v and z of each key head after another: those of q, k, v, or of z. */
extern const qkv_maker_kind qkv_maker_delta_qkv, qkv_maker_delta_gate;
extern const qkv_maker_kind qkv_maker_values; /* numbers computed from the settings */

/* ---- tensors ---- */

/* One name below a layer (or of the whole model), without what stands before it. Where `to` has no
 * dot, both `from`.weight and `from`.bias are meant; after '=' comes a name that has no such end. '#' in `from` counts from 0, "{a,b}" stands for a
 * and b: all of them are sources of one tensor. */
typedef struct qkv_hf_name {
    const char *from, *to;
    const qkv_maker_kind *maker; /* NULL: as it is */
} qkv_hf_name;

/* ---- settings ---- */

typedef struct qkv_hf qkv_hf;
typedef struct qkv_hf_config qkv_hf_config;

/* What is done with a setting. */
typedef enum qkv_hf_use {
    QKV_HF_INT,   /* written under `key` */
    QKV_HF_FLOAT, /* the same */
    QKV_HF_BOOL,  /* the same */
    QKV_HF_MUST,  /* must be `number` (true is 1) where it is given */
    QKV_HF_SKIP,  /* says nothing about the forward pass, or the tensors say it themselves */
    QKV_HF_WORD,  /* must be the text `key` where it is given */
    QKV_HF_TEXT,  /* no setting: `name` is the text written under `key`, where nothing is yet */
    QKV_HF_REFUSE /* transformers uses it and we do not: must be null, false, 0 or empty */
} qkv_hf_use;

typedef struct qkv_hf_setting {
    const char *name;
    qkv_hf_use use;
    const char *key; /* without ARCH. */
    double number;
} qkv_hf_setting;

/* A class of configurations, by the name that it has there. */
typedef struct qkv_hf_class {
    const char *model_type;
    const char *architecture; /* one of the family's */
    const char *defaults;     /* JSON: settings that a config may leave out */
    /* The same of those that only the language part of a larger model leaves out; NULL: it is never
     * a part of one. */
    const char *part_defaults;
} qkv_hf_class;

/* Which settings of a sliding window the class reads. */
enum qkv_hf_window {
    QKV_HF_WINDOW = 1,        /* sliding_window */
    QKV_HF_WINDOW_USE = 2,    /* use_sliding_window */
    QKV_HF_WINDOW_FIRST = 4,  /* max_window_layers */
    QKV_HF_WINDOW_PERIOD = 8, /* sliding_window_pattern */
    QKV_HF_WINDOW_TYPES = 16, /* layer_types */
    /* local_attention, of both sides, except in every global_attn_every_n_layers-th layer from the first */
    QKV_HF_WINDOW_LOCAL = 32
};

struct qkv_hf {
    const char *const *architectures; /* as config.json calls them; ends with NULL */
    const qkv_hf_class *classes;      /* ends with {NULL} */
    const struct qkv_hf *next;        /* another kind of directory of the same family, or NULL */
    const char *prefix;               /* of all tensors but the output's, optional in files */
    const char *other_prefix;         /* what stands there in other files, or NULL */
    const char *block;                /* what stands before a layer's number */
    const char *activation;           /* the setting that names it; NULL: hidden_act */
    const char *epsilon;              /* the norm's, where it has a name of its own */
    double fixed_epsilon;             /* the norm's, where the class reads no setting */
    /* RoPE's bases, where they have names of their own: of all layers, and of those with a window. */
    const char *rope_base, *local_base;
    const char *usual_activations;   /* names that here mean the family's own, "|a|b|" */
    const char *expert_architecture; /* the only one that has experts; NULL: all that can */
    const char *window_architecture; /* the only one that has a window; NULL: all */
    const qkv_hf_name *layer_names, *model_names; /* beyond the common ones; end with {NULL} */
    const qkv_hf_setting *settings;               /* the same */
    const char *
        ignored_part; /* tensors below it are not of the model: heads that predict further tokens */
    const qkv_hf_setting *rope_settings; /* the same, within RoPE's */
    /* Tensors of one number in each layer, and the list of them that a GGUF file has as a key; end with {NULL}. */
    const qkv_hf_name *layer_numbers;
    const char *const *ignored; /* ends of names of tensors that are not weights; ends with NULL */
    int plain_names;            /* the common names are not this family's */
    int plain_output;           /* nor is the output's, or it has none */
    int writes_sections;        /* the file has the sections of M-RoPE, also of a model of texts */
    int partial_rotary;         /* RoPE may turn a part of the channels */
    int rotary_dim;             /* this setting says how many, and is the only one of RoPE */
    const char *rotary_width;   /* the setting that says how many, where no share is given */
    int leaves_later_layers; /* layers past the last one predict further tokens, and are left out */
    int fixed_activation;    /* the class does not read its name */
    int yarn_is_longrope;    /* an old name */
    int dynamic_has_alpha;   /* scaling of type dynamic multiplies the base by a power of alpha */
    int longrope_has_magnitudes; /* longrope says what q and k are multiplied by: short_mscale, long_mscale */
    int window;                  /* set of qkv_hf_window; 0: there is none */
    int writes_no_window;     /* the file says 0 where there is none */
    int last_sees_all;        /* the last layer has no window, whatever the config says */
    int writes_window_layers; /* the file lists them, also where they are as the family's rule says */
    /* What tables cannot say. */
    int (*configure)(qkv_hf_config *config, qkv_error *err);
};

/* A model that has a language part, and others that are not loaded. */
typedef struct qkv_hf_wrapper {
    const char *architecture;
    const char *text_type; /* the model_type of a text_config that does not say it */
    int may_be_flat;       /* once it was saved without text_config, all settings side by side */
} qkv_hf_wrapper;

struct qkv_hf_config {
    json_t *settings; /* what no code has asked for yet */
    json_t *outer;    /* the same of the model that this is the language part of, or NULL */
    const qkv_hf_wrapper *wrapper; /* that model, or NULL */
    const qkv_hf_class *part;      /* the class of its language part, or NULL */
    qkv_text ignored;              /* names of settings without effect */
    size_t n_ignored;
    const char *path;         /* of config.json */
    const char *architecture; /* as config.json calls it */
    struct gguf_context *meta;
    const qkv_family *family;
    const qkv_hf *hf;
    int64_t n_layer, n_embd, n_ff, n_head, n_kv_head, head_dim, n_ctx;
    int64_t full_head_dim;                      /* head_dim of layers that see everything */
    int64_t first_position;                     /* the first that a token has */
    int tied;                                   /* 1, 0, or -1: not said */
    qkv_mixer_shape mixer;                      /* of a family that has one */
    float *rope_freqs, *rope_long, *rope_short; /* divisors of the frequencies, or NULL */
    size_t n_divisors;
};

/* config.c: the class of that name, or NULL. */
const qkv_hf_class *qkv_hf_class_find(const char *model_type);
/* config.c: chooses the family and writes the keys. The config is released by the caller, also
 * after a failure. */
int qkv_hf_config_read(qkv_hf_config *config, json_t *json, qkv_error *err);
void qkv_hf_config_release(qkv_hf_config *config);

/* wrapper.c: where the config is that of a larger model, its language part takes its place. */
int qkv_hf_unwrap(qkv_hf_config *config, qkv_error *err);
extern const qkv_hf_wrapper qkv_hf_wrappers[]; /* ends with {NULL} */
/* Of all such models, each ended by NULL: what stands before the names of the language part's tensors;
 * the parts that are not loaded, as tensors call them; settings that say nothing about language. */
extern const char *const qkv_hf_text_prefixes[], *const qkv_hf_other_parts[],
                                                     *const qkv_hf_other_settings[];

/* unused_settings.c: what no code has asked for is refused, said to have no effect, or known to have
 * none. */
int qkv_hf_check_unused(qkv_hf_config *config, qkv_error *err);
/* Adds a name to config->ignored; `object` stands before it, or is NULL. */
void qkv_hf_ignore(qkv_hf_config *config, const char *object, const char *name);
/* null, false, 0 or empty */
int qkv_hf_says_nothing(const json_t *value);

/* Take a setting out: 1 and the value; 0 when it is absent or null; a negative status when it is not
 * of this kind or out of range. */
int qkv_hf_take_int(qkv_hf_config *config, const char *name, int64_t low, int64_t high,
                    int64_t *value, qkv_error *err);
/* The same; what is above `high` counts as `high`. Some write 10^30 for "no limit". */
int qkv_hf_take_limit(qkv_hf_config *config, const char *name, int64_t high, int64_t *value,
                      qkv_error *err);
int qkv_hf_take_float(qkv_hf_config *config, const char *name, double low, double high,
                      double *value, qkv_error *err);
int qkv_hf_take_bool(qkv_hf_config *config, const char *name, int *value, qkv_error *err);
/* The value itself, the caller's to decref; NULL when it is absent or null. */
json_t *qkv_hf_take(qkv_hf_config *config, const char *name);

/* Write ARCH.key. */
void qkv_hf_set_int(qkv_hf_config *config, const char *key, int64_t value);
void qkv_hf_set_float(qkv_hf_config *config, const char *key, double value);
void qkv_hf_set_bool(qkv_hf_config *config, const char *key, int value);
void qkv_hf_set_text(qkv_hf_config *config, const char *key, const char *value);
/* A number for each layer. */
void qkv_hf_set_layers(qkv_hf_config *config, const char *key, const int32_t *values);

/* config.c: takes the settings of a table. */
int qkv_hf_apply_settings(qkv_hf_config *config, const qkv_hf_setting *settings, qkv_error *err);

/* rope_settings.c: base and scaling of RoPE. */
int qkv_hf_rope_read(qkv_hf_config *config, qkv_error *err);
/* The same of classes that read rotary_dim and nothing else: the base is 10000. */
int qkv_hf_rotary_dim_read(qkv_hf_config *config, qkv_error *err);

/* config.c, for `configure`: the settings of an object, as those of the whole. */
int qkv_hf_apply_object(qkv_hf_config *config, const char *name, const qkv_hf_setting *settings,
                        qkv_error *err);

/* config.c, for `configure`: query_pre_attn_scalar, written where it is not the usual one. */
int qkv_hf_read_query_scale(qkv_hf_config *config, qkv_error *err);

/* config.c, for `configure`: norm_topk_prob, written where it is not the family's rule. */
int qkv_hf_read_expert_norm(qkv_hf_config *config, qkv_error *err);

/* mixer_settings.c, for `configure`: a gated delta-net, and the layers that have it. */
int qkv_hf_read_delta_net(qkv_hf_config *config, qkv_error *err);
/* Short convolutions, the layers that have them, and the width of the feed-forward beside them. */
int qkv_hf_read_short_conv(qkv_hf_config *config, qkv_error *err);

/* window_settings.c: the sliding window. */
int qkv_hf_window_read(qkv_hf_config *config, qkv_error *err);

/* ---- the directory ---- */

/* What a qkv_gguf of a directory owns besides its parts. */
typedef struct qkv_hf_dir {
    char *path;
    qkv_st_list sources;
    qkv_tensor_maker **makers;
    size_t n_makers, makers_capacity;
    char **names; /* of the tensors */
    size_t n_names, names_capacity;
} qkv_hf_dir;

/* directory.c: opens a directory as a GGUF file. */
int qkv_hf_open(qkv_gguf **out, const char *path, qkv_error *err);
/* tensor_map.c: fills file->tensors. */
int qkv_hf_bind_tensors(qkv_gguf *file, const qkv_hf_config *config, qkv_error *err);

#endif
