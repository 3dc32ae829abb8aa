#include "kernel/grids.h"

#include <math.h>
#include <string.h>

#include "ggml.h"

struct qkv_grids qkv_grids;

/* A block of any of these types, and what becomes of it. */
enum { BLOCK_BYTES = 128, BLOCK_WEIGHTS = 256 };

static int read_block(enum ggml_type type, size_t size, int weights, const uint8_t *block,
                      float *out) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    if (traits->type_size != size || traits->blck_size != weights || !traits->to_float) return 0;
    traits->to_float(block, out, weights);
    return 1;
}

/* Each puts an index of up to eight, nine, ten or eleven bits into its place in a block. */
static void put_iq2_xxs(uint8_t *block, int group, int index) {
    block[2 + 8 * (group / 4) + group % 4] = (uint8_t)index;
}

static void put_iq2_xs(uint8_t *block, int group, int index) {
    block[2 + 2 * group] = (uint8_t)index;
    block[3 + 2 * group] = (uint8_t)(index >> 8);
}

static void put_iq2_s(uint8_t *block, int group, int index) {
    block[2 + group] = (uint8_t)index;
    block[66 + group / 4] |= (uint8_t)(index >> 8 << 2 * (group % 4));
}

static void put_iq3_xxs(uint8_t *block, int group, int index) {
    block[2 + group] = (uint8_t)index;
}

static void put_iq3_s(uint8_t *block, int group, int index) {
    block[2 + group] = (uint8_t)index;
    block[66 + group / 8] |= (uint8_t)(index >> 8 << group % 8);
}

static void put_iq1_s(uint8_t *block, int group, int index) {
    const int high = index >> 8 << 3 * (group % 4);
    block[2 + group] = (uint8_t)index;
    block[34 + 2 * (group / 4)] |= (uint8_t)high;
    block[35 + 2 * (group / 4)] |= (uint8_t)(high >> 8);
}

/* A table of `count` entries of `width` numbers. The scale of the block, in F16, is such that with all
 * other bits zero its weights are the numbers themselves (IQ1_S adds an eighth to each). */
typedef struct {
    enum ggml_type type;
    size_t size;
    uint16_t scale;
    int width, count;
    int8_t *table;
    void (*put)(uint8_t *block, int group, int index);
} grid;

static void learn_grid(const grid *g) {
    float weights[BLOCK_WEIGHTS];
    const int groups = BLOCK_WEIGHTS / g->width;
    for (int first = 0; first < g->count; first += groups) {
        uint8_t block[BLOCK_BYTES] = {(uint8_t)g->scale, (uint8_t)(g->scale >> 8)};
        for (int i = 0; i < groups; i++) g->put(block, i, first + i);
        if (!read_block(g->type, g->size, BLOCK_WEIGHTS, block, weights)) return;
        for (int i = 0; i < BLOCK_WEIGHTS; i++)
            g->table[first * g->width + i] = (int8_t)lrintf(weights[i]);
    }
}

/* The sixteen values of a nibble, in a block that starts with its scale: 1, as a number of either kind. */
static void learn_nibbles(void) {
    static const uint8_t one_f16[] = {0x00, 0x3c}, one_e8m0[] = {128};
    uint8_t iq4[18] = {0}, fp4[17] = {0};
    float weights[32];
    memcpy(iq4, one_f16, sizeof one_f16);
    memcpy(fp4, one_e8m0, sizeof one_e8m0);
    for (uint8_t i = 0; i < 16; i++) iq4[2 + i] = fp4[1 + i] = i;
    if (read_block(GGML_TYPE_IQ4_NL, sizeof iq4, 32, iq4, weights)) {
        for (int i = 0; i < 16; i++) qkv_grids.iq4[i] = (int8_t)lrintf(weights[i]);
    }
    if (read_block(GGML_TYPE_MXFP4, sizeof fp4, 32, fp4, weights)) {
        for (int i = 0; i < 16; i++) qkv_grids.fp4[i] = (int8_t)lrintf(weights[i]);
    }
}

/* Scales of eight bits are what weights of one are turned into. */
static void learn_scales(void) {
    float weights[64];
    for (int i = 0; i < 256; i++) {
        uint8_t mxfp4[17], nvfp4[36];
        memset(mxfp4, 0x11, sizeof mxfp4);
        memset(nvfp4, 0x11, sizeof nvfp4);
        mxfp4[0] = nvfp4[0] = (uint8_t)i;
        if (read_block(GGML_TYPE_MXFP4, sizeof mxfp4, 32, mxfp4, weights))
            qkv_grids.mxfp4_scale[i] = weights[0];
        if (read_block(GGML_TYPE_NVFP4, sizeof nvfp4, 64, nvfp4, weights))
            qkv_grids.nvfp4_scale[i] = weights[0];
    }
}

void qkv_grids_learn(void) {
    const uint16_t one = 0x3c00, four = 0x4400, eight = 0x4800;
    struct qkv_grids *g = &qkv_grids;
    const grid grids[] = {
        {GGML_TYPE_IQ2_XXS, 66, eight, 8, 256, *g->iq2_xxs, put_iq2_xxs},
        {GGML_TYPE_IQ2_XS, 74, eight, 8, 512, *g->iq2_xs, put_iq2_xs},
        {GGML_TYPE_IQ2_S, 82, eight, 8, 1024, *g->iq2_s, put_iq2_s},
        {GGML_TYPE_IQ3_XXS, 98, four, 4, 256, *g->iq3_xxs, put_iq3_xxs},
        {GGML_TYPE_IQ3_S, 110, one, 4, 512, *g->iq3_s, put_iq3_s},
        {GGML_TYPE_IQ1_S, 50, one, 8, 2048, *g->iq1, put_iq1_s},
    };
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) learn_grid(&grids[i]);
    learn_nibbles();
    learn_scales();
}
