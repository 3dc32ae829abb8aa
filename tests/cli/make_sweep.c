/*
 * The results file of a sweep, for the cases of `qkv plot`:
 *
 *     make_sweep FILE LAYERS HEADS PROMPTS TARGETS OPS EPSILONS METRICS [CELLS-DONE]
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/sweep_maker.h"

int main(int argc, char **argv) {
    if (argc < 9) {
        fprintf(stderr, "make_sweep: too few arguments\n");
        return 2;
    }
    const sweep_shape shape = {.layers = atoi(argv[2]),
                               .heads = atoi(argv[3]),
                               .prompts = atoi(argv[4]),
                               .targets = argv[5],
                               .ops = argv[6],
                               .epsilons = argv[7],
                               .metrics = argv[8],
                               .done = argc > 9 ? atoll(argv[9]) : -1};
    return make_sweep(argv[1], &shape) ? 0 : 1;
}
