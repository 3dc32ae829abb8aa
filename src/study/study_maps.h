/*
 * The attention that cells of a study's pictures open in a page: the scores of every head, unedited, for
 * the prompts that pictures are linked to. The page makes maps of them (attention.js).
 */
#ifndef QKV_STUDY_STUDY_MAPS_H
#define QKV_STUDY_STUDY_MAPS_H

#include "study/study.h"

/* Adds "attention" to the data of a page: null where no picture is linked, or all is too much. Called
 * while the study has its inputs. */
int qkv_study_take_maps(qkv_study *study, const study_inputs *in, qkv_error *err);

/* html_study.c: appends the page. */
int qkv_study_html(const qkv_study *study, const study_look *look, qkv_text *out, qkv_error *err);

#endif
