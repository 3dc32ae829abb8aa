/* How much one request may ask for. /api/state tells. */
#ifndef QKV_SERVER_LIMITS_H
#define QKV_SERVER_LIMITS_H

enum {
    QKV_LIMIT_SIDE = 2048,         /* rows and columns of one head's map in an answer */
    QKV_LIMIT_OVERVIEW_SIDE = 128, /* the same of the small maps of all heads */
    QKV_LIMIT_GENERATE = 512,      /* tokens that are generated */
    QKV_LIMIT_EPSILONS = 200,      /* points of a curve */
    QKV_LIMIT_TOP = 200,           /* most likely tokens */
    QKV_LIMIT_STUDY_PROMPTS = 64,  /* of a study */
    QKV_LIMIT_STUDY_TOKENS = 4096, /* of all its prompts */
    QKV_LIMIT_STUDY_CELLS = 8192   /* of a study that has cells, times its metrics */
};

#endif
