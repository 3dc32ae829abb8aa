/*
 * The notation of edits and captures: what is accepted, and what is refused with which words. The
 * model has 3 layers, 4 query heads, 2 key/value heads, and the prompt 6 tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/run.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

static const int32_t tokens[] = {1, 40, 60, 80, 100, 120};
enum { T = sizeof tokens / sizeof *tokens };

static engine eng;

static int open_model(void **state) {
    static const tiny_options options = {"llama", .n_kv_head = 2};
    (void)state;
    engine_open(&eng, tiny_model(&options, "notation.gguf"), 1);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    engine_close(&eng);
    scratch_remove();
    return 0;
}

static qkv_plan *new_plan(void) {
    static const int32_t other[T] = {1, 50, 70, 90, 110, 130};
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    expect_ok(qkv_plan_new(&plan, eng.model, tokens, T, &err), &err, "plan");
    expect_ok(qkv_plan_add_source(plan, "src", other, T, &err), &err, "source");
    return plan;
}

/* ---- edits that are accepted, and how many elements they select ---- */

static const struct {
    const char *text;
    unsigned selected; /* per edit, the first one's */
} accepted[] = {
    {"q@0=zero", 6 * 4 * 8},
    {"q@0.h1=scale:0.5", 6 * 8},
    {"q@0-2.h1=scale:0.5", 3 * 6 * 8},
    {"q@0,2.h0,2-3=scale:-1e-3", 2 * 3 * 6 * 8},
    {"q@*.h*=scale:+0.5", 3 * 6 * 4 * 8},
    {"q@*=scale:0", 3 * 6 * 4 * 8},
    {"k@1.g0=mean:head", 6 * 8},
    {"k@1.g*=mean:head", 2 * 6 * 8},
    {"k@1.g0=mean:others", 6 * 8},
    {"k@1.h3=mean:token", 6 * 8},
    {"k@1=mean:dim", 2 * 6 * 8},
    {"v@1.g0-1=set:-3", 2 * 6 * 8},
    {"k_rot@2.g1=add:1e-2", 6 * 8},
    {"q_rot@2.h3=clamp:-1,1", 6 * 8},
    {"q@1[0]=zero", 4 * 8},
    {"q@1[-1]=zero", 4 * 8},
    {"q@1[1:]=zero", 5 * 4 * 8},
    {"q@1[:4]=zero", 4 * 4 * 8},
    {"q@1[2:5]=zero", 3 * 4 * 8},
    {"q@1[:]=zero", 6 * 4 * 8},
    {"q@1[0,3,4:6]=zero", 4 * 4 * 8},
    {"q@1.h2[0,3]=zero", 2 * 8},
    {"q@1.h2[0,:]=zero", 6 * 8},
    {"q@1.h2[3,0:4,2]=zero", 4 * 8},
    {"q@1[-2:]=zero", 2 * 4 * 8},
    {"pattern@1.h2[:,0]=set:0", 6},
    {"pattern@1.h2[3,:]=set:0", 6},
    {"pattern@1[3,0]=set:0", 4},
    {"pattern@1[2:,:3]=set:0", 4 * 4 * 3},
    {"scores@0=add:1", 4 * 6 * 6},
    {"scores@0=mask:sink=1,recent=2", 4 * 6 * 6},
    {"scores@0.h1[2:,:]=mask:recent=2,sink=0", 4 * 6},
    {"scores@0-1.h1[1:,0]=mask", 2 * 5},
    {"scores@0=mask:band=3", 4 * 6 * 6},
    {"scores@0=mask:sink=1,recent=2,positions=cache", 4 * 6 * 6},
    {"scores@0=mask:sink=1,recent=2,positions=text", 4 * 6 * 6},
    {"scores@0.h1=mask:sink=1,recent=2,positions=cache + "
     "scores@0.h2=mask:sink=2,recent=2,positions=cache",
     6 * 6},
    {"scores@0=keep:h2o,budget=3,recent=2,rule=lm_eval", 4 * 6 * 6},
    {"k_rot@0=quant:bits=2,axis=channel,group=2,keep=4,per=query", 6 * 2 * 8},
    {"v@0.g1=quant:bits=2,axis=token,group=4,per=query,prompt=5", 6 * 8},
    {"v@0.g1=quant:bits=2,axis=token,group=4,per=text", 6 * 8},
    {"scores@0=keep:h2o,budget=3,recent=2", 4 * 6 * 6},
    {"scores@0.h1[2:]=keep:h2o,recent=1,budget=3,prompt=4", 4 * 6},
    {"scores@0.h1[2:,:]=keep:snapkv,budget=3,window=2,kernel=1,prompt=5", 4 * 6},
    {"scores@0=keep:snapkv,budget=3,window=1,pool=max,prompt=5", 4 * 6 * 6},
    {"k_rot@0=quant:bits=2,axis=channel,group=3,keep=1", 6 * 2 * 8},
    {"v@0.g1=quant:bits=8,axis=token,group=4", 6 * 8},
    {"v@0.h1[1:3]{0:4}=quant:axis=token,group=8,bits=1", 2 * 4},
    {"resid_post@0=quant:bits=4,axis=token", 6 * 32},
    {"scores@0.h0[-1,0]=add:1", 1},
    {"resid_pre@0=scale:0.9", 6 * 32},
    {"resid_post@2[-1]=zero", 32},
    {"attn_out@1[2]=mean:token", 32},
    {"mlp_out@1=mean:dim", 6 * 32},
    {"logits=scale:0.5", 6 * TINY_VOCAB},
    {"logits[-1]=zero", TINY_VOCAB},
    {"final_norm=scale:0.5", 6 * 32},
    {"mlp_act@1[2]=zero", 64},
    {"mlp_act@*{5,-1}=set:3", 3 * 6 * 2},
    {"final_norm[-1]{3}=zero", 1},
    {"q@1=noise:0.1", 6 * 4 * 8},
    {"q@1=noise:0.1,seed=7", 6 * 4 * 8},
    {"z@1.h0=patch:src", 6 * 8},
    {"q@0.h1=scale:0.5 + v@2.g0=zero", 6 * 8},
    {"k@1.g0=zero + k@1.h2=zero + k@1.h3=scale:2", 6 * 8},
    {"q@1[0]=zero + q@1[1:]=scale:2", 4 * 8},
    {"pattern@1[:,0]=zero + pattern@1[:,1]=zero", 4 * 6},
    {"resid_post@1{3}=zero", 6},
    {"resid_post@1[0]{2,7}=set:0", 2},
    {"resid_post@0-1{-1}=set:0", 2 * 6},
    {"q@1.h2{0:4}=zero", 6 * 4},
    {"q@1.h2[1:3]{:,0}=zero", 2 * 8},
    {"k@1.g1{-2:}=mean:dim", 6 * 2},
    {"v@1.h1{1,3,5:7}=noise:0.1", 6 * 4},
    {"z@2{0}=patch:src", 6 * 4},
    {"z@1[5<-0]=patch:src", 4 * 8},
    {"z@1.h0[1:4<-2:5]=patch:src", 3 * 8},
    {"z@1.h0[-1,0,2:4<-0,0,-3:-1]=patch:src", 4 * 8},
    {"resid_pre@0[:<-:]{3}=patch:src", 6},
    {"mlp_out@2[-1]{31}=mean:token", 1},
    {"logits{0,5}=zero", 6 * 2},
    {"logits[-1]{7}=add:1", 1},
    {"q@1{0:4}=zero + q@1{4:}=scale:2", 6 * 4 * 4},
    {"freeze:mlp_out@* + z@1.h0=zero", 3 * 6 * 32},
    {"freeze:z@2.h1,3[1:]{0:2} + z@1.h0=zero", 2 * 5 * 2},
    {"freeze:final_norm[-1] + resid_post@2=scale:2", 32},
    {"mlp_out@1-2=freeze + z@1.h0=zero", 2 * 6 * 32},
    {"freeze:z@1.h1 + v@1=zero", 6 * 8},
    {"q@1[0]{0:4}=zero + q@1[1]{0:4}=scale:2", 4 * 4},
};

static void edits_that_are_accepted(void **state) {
    (void)state;
    qkv_error err = {0};
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        qkv_plan *plan = new_plan();
        qkv_result *result = NULL;
        size_t index = 0;
        const int status = qkv_plan_add_variant(plan, accepted[i].text, &index, &err);
        expect_ok(status, &err, accepted[i].text);
        assert_int_equal(index, 1);
        assert_int_equal(qkv_plan_n_variants(plan), 2);
        assert_string_equal(qkv_plan_variant_text(plan, 0), "");
        assert_string_equal(qkv_plan_variant_text(plan, 1), accepted[i].text);
        expect_ok(qkv_plan_add_capture(plan, "logits", &err), &err, "logits");
        expect_ok(qkv_session_run(eng.session, &result, plan, &err), &err, accepted[i].text);
        const uint64_t selected = qkv_result_edit_selected(result, 1, 0);
        if (selected != accepted[i].selected)
            fail_msg("'%s' selects %llu elements, not %u", accepted[i].text,
                     (unsigned long long)selected, accepted[i].selected);
        qkv_result_free(result);
        qkv_plan_free(plan);
    }
}

/* ---- other ways to write a place: what plans hold is the notation's own ---- */

static const struct {
    const char *given, *held;
} rewritten[] = {
    {"q@-1=zero", "q@2=zero"},
    {"q@-3--1=zero", "q@0-2=zero"},
    {"q@0--2=zero", "q@0-1=zero"},
    {"q@0,-1=zero", "q@0,2=zero"},
    {"q@1.h-1=zero", "q@1.h3=zero"},
    {"q@*.h-1=zero", "q@*.h3=zero"},
    {"q@-1.h*=zero", "q@2.h*=zero"},
    {"k@-2.g-1[-1]{-1}=zero", "k@1.g1[-1]{-1}=zero"},
    {"q@1.h0,h-1=zero", "q@1.h0,h3=zero"},
    {"freeze:mlp_out@-1 + z@0=zero", "freeze:mlp_out@2 + z@0=zero"},
    {" z@0=zero +  q@-1=add:-1 ", "z@0=zero + q@2=add:-1"},
    {"resid_post@-1[2]=add:-1e-2", "resid_post@2[2]=add:-1e-2"},
    {"blocks.1.attn.hook_q=zero", "q@1=zero"},
    {"blocks.1.attn.hook_q.h-1[1:]=scale:0.5", "q@1.h3[1:]=scale:0.5"},
    {"blocks.*.hook_mlp_out[0]{3}=zero", "mlp_out@*[0]{3}=zero"},
    {"freeze:blocks.2.hook_mlp_out + blocks.0.attn.hook_z.h1=zero",
     "freeze:mlp_out@2 + z@0.h1=zero"},
    {"blocks.1.attn.hook_pattern.h2[:,0]=set:0", "pattern@1.h2[:,0]=set:0"},
    {"blocks.-1.attn.hook_z.h-1=zero", "z@2.h3=zero"},
    {"ln_final.hook_normalized[-1]{3}=scale:0.5", "final_norm[-1]{3}=scale:0.5"},
};

static void other_ways_to_write_a_place(void **state) {
    (void)state;
    qkv_error err = {0};
    for (size_t i = 0; i < sizeof rewritten / sizeof *rewritten; i++) {
        qkv_plan *plan = new_plan();
        qkv_result *result = NULL;
        expect_ok(qkv_plan_add_variant(plan, rewritten[i].given, NULL, &err), &err,
                  rewritten[i].given);
        assert_string_equal(qkv_plan_variant_text(plan, 1), rewritten[i].held);
        expect_ok(qkv_plan_add_variant(plan, rewritten[i].held, NULL, &err), &err,
                  rewritten[i].held);
        expect_ok(qkv_plan_add_capture(plan, "logits", &err), &err, "logits");
        expect_ok(qkv_session_run(eng.session, &result, plan, &err), &err, rewritten[i].given);
        for (size_t e = 0; e < qkv_result_n_edits(result, 2); e++) {
            assert_string_equal(qkv_result_edit_text(result, 1, e),
                                qkv_result_edit_text(result, 2, e));
            assert_int_equal(qkv_result_edit_selected(result, 1, e),
                             qkv_result_edit_selected(result, 2, e));
        }
        qkv_result_free(result);
        qkv_plan_free(plan);
    }
}

static void captures_written_otherwise(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"resid_post@-1", "resid_post@2"},
        {"blocks.1.attn.hook_z.h-2", "z@1.h2"},
        {"pattern@-2--1.h-1:first", "pattern@1-2.h3:first"},
        {"blocks.*.attn.hook_pattern:mean=2", "pattern@*:mean=2"},
        {"blocks.-3.hook_resid_post", "resid_post@0"},
        {"ln_final.hook_normalized", "final_norm"},
        {"ln_final.hook_normalized[-1]", "final_norm[-1]"}};
    qkv_error err = {0};
    qkv_plan *plan = new_plan();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_ok(qkv_plan_add_capture(plan, texts[i][0], &err), &err, texts[i][0]);
        assert_string_equal(qkv_plan_capture_text(plan, i), texts[i][1]);
    }
    qkv_plan_free(plan);
}

/* ---- edits that are refused, with a word that the message must have ---- */

static const struct {
    const char *text, *word;
} refused[] = {
    /* arguments with names */
    {"scores@0=mask:", "needs"},
    {"scores@0=mask:2", "NAME=VALUE"},
    {"scores@0=mask:sinks=2", "did you mean 'sink'"},
    /* names that are mistyped, and marks in the wrong place */
    {"Q@1=zero", "there is no site 'Q' (did you mean 'q'?); sites are resid_pre, q, k"},
    {"resid-pre@1=zero", "did you mean 'resid_pre'"},
    {"w@1=zero", "there is no site 'w'; sites are"},
    {"q@1=Zero", "there is no operation 'Zero' (did you mean 'zero'?); operations are scale"},
    {"q@1=scael:0.5", "did you mean 'scale'"},
    {"q@1=scale=0.5", "not after '='"},
    {"q@1=zero+k@1=zero", "with a space on both sides: 'q@1=zero + k@1=zero'"},
    {"q@1=zero +k@1=zero", "with a space on both sides: 'q@1=zero + k@1=zero'"},
    {"q@1 = zero", "an edit has no spaces inside"},
    {"q.h1@1=zero", "heads follow the layers"},
    {"@1=zero", "it must begin with a site"},
    {"scores@0=mask:sink", "NAME=VALUE"},
    {"scores@0=mask:sink=", "whole number"},
    {"scores@0=mask:sink=2.5", "whole number"},
    {"scores@0=mask:sink=-1", "out of range"},
    {"scores@0=mask:band=0", "out of range"},
    {"scores@0=mask:sink=99999999999999999999,recent=1", "whole number"},
    {"scores@0=mask:sink=1,sink=2", "twice"},
    {"scores@0=mask:recent=1,", "last comma"},
    {"scores@0=mask=2", "="},
    {"scores@0=mask:sink=1,positions=cache", "goes with sink= and recent="},
    {"scores@0=mask:band=2,positions=cache", "goes with sink= and recent="},
    {"scores@0=mask:sink=1,recent=2,positions=here", "text|cache"},
    {"scores@0[:,:3]=mask:sink=1,recent=2,positions=cache + "
     "scores@0[:,3:]=mask:sink=2,recent=2,positions=cache",
     "the same queries"},
    {"scores@0=keep:h2o,budget=3,recent=1,rule=code", "paper|lm_eval"},
    {"k_rot@0=quant:bits=2,axis=channel,group=2,per=query", "a multiple of group=2"},
    {"k_rot@0=quant:bits=2,axis=channel,group=2,keep=3,per=query", "a multiple of group=2"},
    {"k@0=quant:bits=2,axis=token,group=4,per=query", "is for k_rot and v"},
    {"v@0=quant:bits=2,axis=token,group=4,per=query,prompt=6", "no effect"},
    {"v@0=quant:bits=2,axis=token,group=4,prompt=5", "goes with per=query"},
    {"pattern@0=mask", "is for scores"},
    {"q@0=mask:sink=1", "is for scores"},
    {"logits=mask", "is for scores"},
    {"scores@0=mask + scores@0=add:1", "overlap"},
    {"scores@0=keep", "needs"},
    {"scores@0=keep:", "needs"},
    {"scores@0=keep:h3o,budget=3", "h2o or snapkv"},
    {"scores@0=keep:h2o", "budget= is missing"},
    {"scores@0=keep:h2o,budget=3", "recent= is missing"},
    {"scores@0=keep:h2o,budget=3,recent=4", "more than budget"},
    {"scores@0=keep:h2o,budget=3,recent=0", "out of range"},
    {"scores@0=keep:h2o,budget=3,recent=1,prompt=6", "no effect"},
    {"scores@0=keep:h2o,budget=3,window=1", "no argument 'window'"},
    {"scores@0=keep:snapkv,budget=3,window=2", "say with prompt=N"},
    {"scores@0=keep:snapkv,budget=3,window=3,prompt=5", "leaves nothing"},
    {"scores@0=keep:snapkv,budget=3,window=2,kernel=2,prompt=5", "odd"},
    {"scores@0=keep:snapkv,budget=3,window=2,pool=min,prompt=5", "avg|max"},
    {"scores@0[:,1]=keep:h2o,budget=3,recent=1", "all keys"},
    {"pattern@0=keep:h2o,budget=3,recent=1", "is for scores"},
    {"scores@0[:3]=keep:h2o,budget=3,recent=1 + scores@0[3:]=keep:h2o,budget=3,recent=1",
     "same head"},
    {"v@0=quant", "needs"},
    {"v@0=quant:bits=2", "axis= is missing"},
    {"v@0=quant:axis=token", "bits= is missing"},
    {"v@0=quant:bits=0,axis=token", "out of range"},
    {"v@0=quant:bits=16,axis=token", "out of range"},
    {"v@0=quant:bits=2,axis=head", "channel|token"},
    {"v@0=quant:bits=2,axis=token,group=3", "do not divide"},
    {"v@0=quant:bits=2,axis=token,group=0", "out of range"},
    {"scores@0=quant:bits=2,axis=token", "not for scores"},
    {"pattern@0=quant:bits=2,axis=channel", "not for pattern"},
    /* no notation at all */
    {"", "edit"},
    {" ", "edit"},
    {"+", "edit"},
    {"q@0=zero +", "edit"},
    {"q@0=zero + ", "edit"},
    {" + q@0=zero", "edit"},
    {"q@0", "="},
    {"=zero", "site"},
    {"q@0=", "operation"},
    {"q=zero", "layer"},
    {"q@=zero", "layer"},
    {"q@x=zero", "layer"},
    {"q@0.=zero", "head"},
    {"q@0.h=zero", "head"},
    {"q@0.3=zero", "head"},
    {"q@0.x3=zero", "head"},
    {"q@0.h1-=zero", "head"},
    {"q@0,=zero", "layer"},
    {"q@0[=zero", "token"},
    {"q@0[]=zero", "token"},
    {"q@0[a]=zero", "token"},
    {"q@0[1:2:3]=zero", "]"},
    {"q@0]=zero", "q@0]"},
    {"q@0 .h1=zero", "q@0"},
    {"q@0.h1=zero garbage", "zero"},
    {"q@99999999999999999999=zero", "0 to 2"},
    /* out of range: the message says what the range is */
    {"q@3=zero", "0 to 2"},
    {"q@1-3=zero", "0 to 2"},
    {"q@2-1=zero", "2-1"},
    {"q@0.h4=zero", "0 to 3"},
    {"q@0.h2-1=zero", "2-1"},
    {"k@0.g2=zero", "0 to 1"},
    {"k@0.h4=zero", "0 to 3"},
    {"q@0[6]=zero", "0 to 5"},
    {"q@0[-7]=zero", "0 to 5"},
    {"q@0[2:7]=zero", "0 to 5"},
    {"pattern@0[0,6]=zero", "0 to 5"},
    /* matches nothing */
    {"q@0[3:3]=zero", "q@0[3:3]"},
    {"q@0[6:]=zero", "q@0[6:]"},
    {"q@0[4:2]=zero", "q@0[4:2]"},
    {"pattern@0[:0,:]=zero", "pattern@0"},
    /* sites */
    {"query@0=zero", "query"},
    {"Q@0=zero", "resid_pre"},
    {"logits@0=zero", "layer"},
    {"logits@*=zero", "layer"},
    {"final_norm@0=zero", "no layer"},
    {"mlp_act@0.h1=zero", "no heads"},
    {"mlp_act@0{64}=zero", "channels 0 to 63"},
    {"mlp_act=zero", "layers"},
    {"final_norm.h0=zero", "no heads"},
    {"final_norm=mean:head", "no heads"},
    {"final_norm[0]=zero + final_norm{3}=zero", "overlap"},
    /* heads where there are none, or of the wrong kind */
    {"resid_pre@0.h1=zero", "head"},
    {"attn_out@0.h*=zero", "head"},
    {"mlp_out@0.g0=zero", "head"},
    {"resid_post@0.h0=zero", "head"},
    {"logits.h0=zero", "logits"},
    {"q@0.g0=zero", "h"},
    {"q_rot@0.g0=zero", "h"},
    {"z@0.g0=zero", "h"},
    {"pattern@0.g0=zero", "h"},
    {"scores@0.g0=zero", "h"},
    {"resid_pre@0=mean:head", "head"},
    {"resid_pre@0=mean:others", "no other heads"},
    {"q@0=mean:nobody", "head, others, token, dim or set"},
    {"attn_out@0=mean:head", "head"},
    {"logits=mean:head", "head"},
    /* operations */
    {"q@0=double:2", "double"},
    {"q@0=scale", "scale"},
    {"q@0=scale:", "scale"},
    {"q@0=scale:x", "x"},
    {"q@0=scale:1,2", "scale"},
    {"q@0=scale:0.5x", "0.5x"},
    {"q@0=scale:nan", "finite"},
    {"q@0=scale:inf", "finite"},
    {"q@0=scale:-inf", "finite"},
    {"q@0=scale:1e999", "finite"},
    {"q@0=scale:1e39", "1e39"},
    {"q@0=set:nan", "finite"},
    {"q@0=set", "set"},
    {"q@0=add:infinity", "finite"},
    {"q@0=add", "add"},
    {"q@0=zero:1", "zero"},
    {"q@0=mean", "mean"},
    {"q@0=mean:", "mean"},
    {"q@0=mean:layer", "layer"},
    {"q@0=noise", "noise"},
    {"q@0=noise:-1", "noise"},
    {"q@0=noise:nan", "finite"},
    {"q@0=noise:1,seed=", "seed"},
    {"q@0=noise:1,seed=x", "seed"},
    {"q@0=noise:1,sead=3", "sead"},
    {"q@0=clamp:1", "clamp"},
    {"q@0=clamp:2,1", "clamp"},
    {"q@0=clamp:0,inf", "finite"},
    {"q@0=clamp:1,2,3", "clamp"},
    {"q@0=patch", "patch"},
    {"q@0=patch:", "patch"},
    {"q@0=patch:nowhere", "nowhere"},
    {"q@0[1<-2]=patch:nowhere", "nowhere"},
    {"q@0[1<-2]=patch:resample", "takes tokens of another prompt"},
    {"q@0[1<-2]=zero", "takes tokens of another prompt"},
    {"q@0[1<-2]=mean:set", "takes tokens of another prompt"},
    {"freeze:q@1[1<-2] + q@0=zero", "takes tokens of another prompt"},
    {"q@0[1:3<-2]=patch:src", "2 tokens before '<-' and 1 after it"},
    {"q@0[1<-2:4]=patch:src", "1 token before '<-' and 2 after it"},
    {"q@0[1,1<-2,3]=patch:src", "token 1 stands twice"},
    {"q@0[1<-6]=patch:src", "the prompt 'src' has tokens 0 to 5"},
    {"q@0[6<-1]=patch:src", "the prompt has tokens 0 to 5"},
    {"q@0[1<--7]=patch:src", "token -7 is out of range"},
    {"q@0[1<-]=patch:src", "expected a token"},
    {"q@0[<-1]=patch:src", "expected a token"},
    {"q@0[1<-x]=patch:src", "expected a token"},
    {"q@0[1<-2<-3]=patch:src", "expected ']'"},
    {"q@0[1<-2=patch:src", "']'"},
    {"q@0[1<2]=patch:src", "']'"},
    {"pattern@0[1<-2]=patch:src", "value for each pair of tokens"},
    {"scores@0[1,0<-2,1]=patch:src", "value for each pair of tokens"},
    {"q@0=patch:resample", "no set of prompts"},
    {"q@0=patch:resample,seed=x", "whole number"},
    {"q@0=patch:resample,seeds=1", "seed=N"},
    {"q@0=mean:set", "no set of prompts"},
    {"q@0=mean:set,per=token", "mean:set,per=position"},
    {"q@0=mean:set,", "mean:set,per=position"},
    /* overlaps */
    {"q@0=zero + q@0=zero", "overlap"},
    {"q@0=zero + q@0-1.h2[3]=scale:2", "overlap"},
    {"k@1.g0=zero + k@1.h1=scale:2", "overlap"},
    {"k@1=zero + k@1.h1=scale:2", "overlap"},
    {"v@1.h0=zero + v@1.h0-1=scale:2", "overlap"},
    {"q@1[0:3]=zero + q@1[2]=scale:2", "overlap"},
    {"pattern@1[:,0]=zero + pattern@1[3,:]=zero", "overlap"},
    {"logits=zero + logits[-1]=scale:2", "overlap"},
    {"q@1=zero + q@1{3}=scale:2", "overlap"},
    {"freeze:z@1 + z@1.h0=zero", "overlap"},
    {"freeze:z@1 + freeze:z@0-1.h2 + v@0=zero", "overlap"},
    /* frozen */
    {"freeze:z@1", "no effect"},
    {"freeze:z@1 + mlp_out@1=zero", "no effect"},
    {"freeze:z@0-1 + freeze:q@0", "no effect"},
    {"freeze:logits + freeze:mlp_out@*", "no effect"},
    {"freeze:", "site"},
    {"freeze:zz@1 + q@0=zero", "zz"},
    {"freeze:z@1=zero + q@0=zero", "=zero"},
    {"freeze:z + q@0=zero", "layers"},
    {"freeze:z@9 + q@0=zero", "0 to 2"},
    {"z@1=freeze:1 + q@0=zero", "freeze"},
    {"q@1.h2[0]{0:4}=zero + q@1{3}=scale:2", "overlap"},
    /* channels */
    {"q@0{8}=zero", "channels 0 to 7"},
    {"q@0{-9}=zero", "channels 0 to 7"},
    {"resid_post@0{32}=zero", "resid_post has channels 0 to 31"},
    {"q@0{2:9}=zero", "channels 0 to 7"},
    {"q@0{3:3}=zero", "{3:3} matches no channel"},
    {"q@0{=zero", "channel"},
    {"q@0{}=zero", "channel"},
    {"q@0{x}=zero", "channel"},
    {"q@0{-}=zero", "channel number"},
    {"q@0{1=zero", "'}'"},
    {"q@0{1}{2}=zero", "{2}"},
    {"q@0{1}[0]=zero", "tokens stand before channels"},
    {"q{1}=zero", "layers"},
    {"pattern@0{1}=zero", "no channels"},
    {"scores@0[1,:]{1}=zero", "no channels"},
    {"logits{999999}=zero", "channels 0 to"},
    /* layers and heads from the end, and hooks */
    {"q@-4=zero",
     "layer -4 is out of range; the model has layers 0 to 2, or from the end -3 to -1"},
    {"q@0--9=zero", "layer -9 is out of range"},
    {"q@-0=zero", "layer -0 is out of range"},
    {"q@-=zero", "expected a layer number"},
    {"q@--1=zero", "expected a layer number"},
    {"q@-1-0=zero", "the range of layers 2-0 is empty"},
    {"q@1.h-5=zero", "query head -5 is out of range"},
    {"k@1.g-3=zero", "key/value head -3 is out of range"},
    {"blocks.1.attn.hook_quack=zero", "did you mean 'attn.hook_q'"},
    {"blocks.1.attn.hook_q2=zero", "has no site here"},
    {"blocks.1.hook_resid_mid=zero", "the sum of resid_pre and attn_out"},
    {"blocks.x.attn.hook_q=zero", "must have a layer"},
    {"blocks.9.attn.hook_q=zero", "layer 9 is out of range"},
    {"blocks.-4.attn.hook_q=zero", "layer -4 is out of range"},
    {"ln_final.hook_normalized@1=zero", "@1"},
    {"blocks.1.attn.hook_q@2=zero", "@2"},
};

static void edits_that_are_refused(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        qkv_plan *plan = new_plan();
        qkv_error err = {0};
        size_t index = 77;
        const int status = qkv_plan_add_variant(plan, refused[i].text, &index, &err);
        const int expected = status == QKV_ERR_SYNTAX || status == QKV_ERR_PLAN;
        if (!expected || !strstr(err.message, refused[i].word) || strchr(err.message, '\n')) {
            print_error("'%s': status %d, message '%s' should have '%s'\n", refused[i].text, status,
                        err.message, refused[i].word);
            wrong++;
        }
        /* a refused variant leaves the plan as it was, and err may be NULL */
        assert_int_equal(qkv_plan_n_variants(plan), status == QKV_OK ? 2 : 1);
        if (status != QKV_OK)
            assert_int_equal(qkv_plan_add_variant(plan, refused[i].text, NULL, NULL), status);
        qkv_plan_free(plan);
    }
    assert_int_equal(wrong, 0);
}

/* The message names the edit that is at fault among several. */
/* Which part of a refused text is wrong. */
static const struct {
    const char *text, *part;
    size_t at;
} mistakes[] = {
    {"q@3.h1=zero", "3", 2},
    {"q@0.h9=zero", "9", 5},
    {"q@0.h1,9=zero", "9", 7},
    {"q@0.x1=zero", ".x1", 3},
    {"mlp_out@0.h1=zero", ".h1", 9},
    {"kk@1=zero", "kk", 0},
    {"q@0[2:99]=zero", "2:99", 4},
    {"q@0[1,99]=zero", "99", 6},
    {"q@0[1=zero", "", 5},
    {"q@0{99}=zero", "99", 4},
    {"pattern@0{1}=zero", "{1}", 9},
    {"q@0=skale:1", "skale", 4},
    {"q@0=scale:abc", "abc", 10},
    {"q@0=clamp:x,1", "x", 10},
    {"q@0=clamp:1,x", "x", 12},
    {"q@0=noise:1,sed=2", "sed=2", 12},
    {"q@0=zero:1", ":1", 8},
    {"q@0", "", 3},
    {"logits@1=zero", "@1", 6},
    {"scores@0=mask:sing=1", "sing=1", 14},
    {"q@0=mask", "mask", 4},
    {"q@0=patch:none", "none", 10},
    {"  q@0=zero  +   v@7=zero", "7", 18},
    {"q@0=zero + ", "", 11},
    {"q@0 =zero", "q@0 =zero", 0},
    {"q@0=zero + q@0.h1=zero", "q@0=zero + q@0.h1=zero", 0},
    {"q@-9=zero", "-9", 2},
    {"z@-1=zero + q@0.h9=zero", "9", 17},
    {"z@0=zero + blocks.1.attn.hook_q.h9=zero", "blocks.1.attn.hook_q.h9=zero", 11},
};

static void mistakes_have_places(void **state) {
    (void)state;
    size_t at = 5, length = 5;
    qkv_plan *plan = new_plan();
    assert_int_equal(qkv_plan_mistake(plan, &at, &length), 0);
    assert_true(at == 0 && length == 0);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        assert_int_not_equal(qkv_plan_add_variant(plan, mistakes[i].text, NULL, NULL), QKV_OK);
        assert_int_equal(qkv_plan_mistake(plan, NULL, NULL), 1);
        assert_int_equal(qkv_plan_mistake(plan, &at, &length), 1);
        const int same = at == mistakes[i].at && length == strlen(mistakes[i].part) &&
                         strncmp(mistakes[i].text + at, mistakes[i].part, length) == 0;
        if (!same)
            fail_msg("'%s': %zu bytes at %zu, not '%s'", mistakes[i].text, length, at,
                     mistakes[i].part);
    }
    assert_int_equal(qkv_plan_add_variant(plan, "q@0=zero", NULL, NULL), QKV_OK);
    assert_int_equal(qkv_plan_mistake(plan, &at, &length), 0);
    /* Files are named without their folders: places would be those of another text. */
    assert_int_not_equal(qkv_plan_add_variant(plan, "z@0=add:@/tmp/a#b", NULL, NULL), QKV_OK);
    assert_int_equal(qkv_plan_mistake(plan, &at, &length), 0);
    qkv_plan_free(plan);
}

static void messages_name_the_edit(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_plan *plan = new_plan();
    assert_true(qkv_plan_add_variant(plan, "q@0=zero + k@1.g7=zero", NULL, &err) != QKV_OK);
    assert_non_null(strstr(err.message, "k@1.g7=zero"));
    assert_null(strstr(err.message, "q@0=zero"));
    assert_true(qkv_plan_add_variant(plan, "q@0=zero + q@0.h1=scale:3", NULL, &err) != QKV_OK);
    assert_non_null(strstr(err.message, "q@0=zero"));
    assert_non_null(strstr(err.message, "q@0.h1=scale:3"));
    qkv_plan_free(plan);
}

/* ---- captures ---- */

static const struct {
    const char *text, *word; /* word NULL: accepted */
} captures[] = {
    {"pattern@0", NULL},
    {"pattern@0-2.h1", NULL},
    {"pattern@0,2.h0,3", NULL},
    {"pattern@*", NULL},
    {" pattern@1 ", NULL},
    {"pattern", NULL},
    {"q@1.h2", NULL},
    {"k@1.g1", NULL},
    {"v@*.g*", NULL},
    {"resid_pre@0", NULL},
    {"logits", NULL},
    {"", "site"},
    {"pattern@", "layer"},
    {"pattern@3", "0 to 2"},
    {"pattern@1.h4", "0 to 3"},
    {"pattern@1.g0", "h"},
    {"k@1.g2", "0 to 1"},
    {"patern@1", "did you mean 'pattern'"},
    {"pattern@1:First", "did you mean 'first'"},
    {"resid_pre@1.h0", "head"},
    {"logits@0", "layer"},
    {"logits.h0", "logits"},
    {"pattern@1=zero", "="},
    {"pattern@1.", "head"},
    {"pattern@1.h", "head"},
    {"pattern@2-1", "2-1"},
    {"resid_post@*{3}", NULL},
    {"resid_post{-1}", NULL},
    {"q@1.h2{0:4,7}", NULL},
    {"final_norm", NULL},
    {"final_norm[-1]{3}", NULL},
    {"final_norm@1", "no layer"},
    {"logits{0:3}", NULL},
    {"logits[-1]{5}", NULL},
    {"q@1{8}", "0 to 7"},
    {"pattern@1{0}", "no channels"},
    {"q@1{0}:first", "reduced"},
    {"q@1{", "channel"},
};

static void capture_notation(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
        qkv_plan *plan = new_plan();
        qkv_error err = {0};
        const int status = qkv_plan_add_capture(plan, captures[i].text, &err);
        const char *word = captures[i].word;
        const int refusal = status == QKV_ERR_SYNTAX || status == QKV_ERR_PLAN;
        if (word ? !refusal || !strstr(err.message, word) : status != QKV_OK) {
            print_error("'%s': status %d, message '%s' should have '%s'\n", captures[i].text,
                        status, err.message, word ? word : "(accepted)");
            wrong++;
        }
        qkv_plan_free(plan);
    }
    assert_int_equal(wrong, 0);
}

/* ---- sources ---- */

static void sources_are_checked(void **state) {
    (void)state;
    static const int32_t bad[T] = {1, 50, TINY_VOCAB, 90, 110, 130};
    static const int32_t good[T] = {1, 50, 51, 90, 110, 130};
    qkv_error err = {0};
    qkv_plan *plan = new_plan();
    assert_true(qkv_plan_add_source(plan, "resample", good, T, &err) != QKV_OK);
    assert_true(qkv_plan_add_source(plan, "resample,b", good, T, &err) != QKV_OK);
    expect_ok(qkv_plan_add_source(plan, "short", good, T - 1, &err), &err, "short");
    assert_true(qkv_plan_add_variant(plan, "q@0=patch:short", NULL, &err) == QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "has 5 tokens but the plan's prompt 6"));
    expect_ok(qkv_plan_add_variant(plan, "q@0[5<-4]=patch:short", NULL, &err), &err, "pairs");
    assert_true(qkv_plan_add_variant(plan, "q@0[5<-5]=patch:short", NULL, &err) == QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "the prompt 'short' has tokens 0 to 4"));
    assert_int_equal(qkv_plan_source_length(plan, 1), T - 1);
    assert_true(qkv_plan_add_source(plan, "other", bad, T, &err) != QKV_OK);
    assert_true(qkv_plan_add_source(plan, "src", good, T, &err) != QKV_OK);
    assert_non_null(strstr(err.message, "src"));
    assert_true(qkv_plan_add_source(plan, "", good, T, &err) != QKV_OK);
    expect_ok(qkv_plan_add_source(plan, "other", good, T, &err), &err, "other");
    expect_ok(qkv_plan_add_variant(plan, "q@0=patch:other", NULL, &err), &err, "patch");
    qkv_plan_free(plan);
}

/* What an edit was understood as. */
static void edits_are_told(void **state) {
    (void)state;
    qkv_error err = {0};
    qkv_plan *plan = new_plan();
    qkv_edit_info info = QKV_EDIT_INFO_INIT;
    expect_ok(qkv_plan_add_variant(plan, "k@1.g0[1:3]=scale:0.5 + v@*=zero", NULL, &err), &err,
              "variant");
    assert_int_equal(qkv_plan_get_edit(plan, 1, 0, &info), 1);
    assert_string_equal(info.text, "k@1.g0[1:3]=scale:0.5");
    assert_int_equal(info.site, QKV_SITE_K);
    assert_string_equal(info.op, "scale");
    assert_true(info.number == 0.5);
    assert_int_equal(info.head_kind, 'g');
    assert_int_equal(info.layers[0], 0);
    assert_int_equal(info.layers[1], 1);
    assert_int_equal(info.heads[0], 1);
    for (int i = 0; i < T; i++) assert_int_equal(info.rows[i], i == 1 || i == 2);
    assert_null(info.cols);
    assert_null(info.channels);
    assert_int_equal(info.n_channels, 8);
    /* The query heads of the group, and no others. */
    const int32_t shared_by = eng.info->n_head / eng.info->n_kv_head;
    for (int32_t h = 0; h < eng.info->n_head; h++) {
        assert_int_equal(qkv_plan_edit_covers(plan, 1, 0, 1, h), h < shared_by);
        assert_int_equal(qkv_plan_edit_covers(plan, 1, 0, 0, h), 0);
        assert_int_equal(qkv_plan_edit_covers(plan, 1, 1, 0, h), 1);
    }
    assert_int_equal(qkv_plan_get_edit(plan, 1, 1, &info), 1);
    assert_string_equal(info.op, "zero");
    assert_int_equal(info.head_kind, 0);
    assert_null(info.rows);
    assert_int_equal(qkv_plan_get_edit(plan, 1, 2, &info), 0);
    expect_ok(qkv_plan_add_variant(plan, "resid_post@1{2,-1}=set:3 + pattern@0=zero", NULL, &err),
              &err, "channels");
    assert_int_equal(qkv_plan_get_edit(plan, 2, 0, &info), 1);
    assert_int_equal(info.n_channels, eng.info->n_embd);
    for (int64_t i = 0; i < info.n_channels; i++)
        assert_int_equal(info.channels[i], i == 2 || i == info.n_channels - 1);
    assert_int_equal(qkv_plan_get_edit(plan, 2, 1, &info), 1);
    assert_int_equal(info.n_channels, 0);
    qkv_plan_free(plan);
}

static void site_names(void **state) {
    (void)state;
    for (int s = 0; s < QKV_SITE_COUNT; s++)
        assert_int_equal(qkv_site_by_name(qkv_site_name((qkv_site)s)), s);
    assert_int_equal(qkv_site_by_name("nothing"), QKV_SITE_COUNT);
    assert_int_equal(qkv_site_by_name(""), QKV_SITE_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_that_are_accepted),
        cmocka_unit_test(other_ways_to_write_a_place),
        cmocka_unit_test(captures_written_otherwise),
        cmocka_unit_test(edits_that_are_refused),
        cmocka_unit_test(mistakes_have_places),
        cmocka_unit_test(messages_name_the_edit),
        cmocka_unit_test(capture_notation),
        cmocka_unit_test(sources_are_checked),
        cmocka_unit_test(site_names),
        cmocka_unit_test(edits_are_told),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
