/* One node of the tree is chosen and changed, removed, or replaced by another one. */
#include "mutators.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support/dice.h"

/* Where a value stands: in an object under a key, or in an array at an index. */
typedef struct place {
    json_t *parent;
    const char *key;
    size_t index;
    json_t *value;
} place;

enum { MAX_PLACES = 4096 };

typedef struct tree {
    place places[MAX_PLACES];
    size_t count;
} tree;

static void collect(tree *t, json_t *parent) {
    const char *key;
    size_t index;
    json_t *value;
    json_object_foreach(parent, key, value) {
        if (t->count < MAX_PLACES) t->places[t->count++] = (place){parent, key, 0, value};
        collect(t, value);
    }
    json_array_foreach(parent, index, value) {
        if (t->count < MAX_PLACES) t->places[t->count++] = (place){parent, NULL, index, value};
        collect(t, value);
    }
}

static json_t *anything(dice *d) {
    static const json_int_t numbers[] = {0,       1,       -1,         2,           3,
                                         7,       8,       64,         255,         4096,
                                         1 << 20, 1 << 24, 2147483647, 4294967296,  INT64_MAX,
                                         -2,      65536,   1000000007, -2147483648, INT64_MIN};
    static const double reals[] = {0.0, -0.5, 0.25, 1.0, 1e-30, 1e30, 1e308, 10000.0, -1e9};
    static const char *const texts[] = {"", "a", "\xe2\x96\x81", "<s>", "true", "../x"};
    switch (dice_below(d, 7)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(dice_below(d, 2));
    case 2:
        return json_real(reals[dice_below(d, sizeof reals / sizeof *reals)]);
    case 3:
        return json_string(texts[dice_below(d, sizeof texts / sizeof *texts)]);
    case 4:
        return dice_below(d, 2) ? json_array() : json_object();
    default:
        return json_integer(numbers[dice_below(d, sizeof numbers / sizeof *numbers)]);
    }
}

static json_t *changed_number(dice *d, json_int_t n) {
    const uint64_t u = (uint64_t)n;
    switch (dice_below(d, 5)) {
    case 0:
        return json_integer((json_int_t)(u + 1));
    case 1:
        return json_integer((json_int_t)(u - 1));
    case 2:
        return json_integer((json_int_t)(u * 2));
    case 3:
        return json_integer(n / 2);
    default:
        return json_integer((json_int_t)(u ^ (uint64_t)1 << dice_below(d, 64)));
    }
}

/* Bytes of a string changed by libFuzzer itself, as long as it stays UTF-8. */
static json_t *changed_text(const json_t *value) {
    uint8_t text[256];
    size_t length = json_string_length(value);
    if (length > sizeof text / 2) length = sizeof text / 2;
    memcpy(text, json_string_value(value), length);
    length = LLVMFuzzerMutate(text, length, sizeof text);
    return json_stringn((const char *)text, length);
}

/* A new reference, or NULL: leave it. */
static json_t *replacement(const tree *t, dice *d, const json_t *old) {
    uint64_t kind = dice_below(d, 4);
    if (kind == 0) return anything(d);
    if (kind == 1) return json_deep_copy(t->places[dice_below(d, t->count)].value);
    if (json_is_integer(old)) return changed_number(d, json_integer_value(old));
    if (json_is_string(old)) return changed_text(old);
    return anything(d);
}

static void insert(const place *at, const place *other, dice *d) {
    json_t *copy = json_deep_copy(other->value);
    if (at->key)
        json_object_set_new(at->parent, other->key ? other->key : "a", copy);
    else
        json_array_insert_new(at->parent, dice_below(d, 2) ? at->index : at->index + 1, copy);
}

static void remove_place(const place *at) {
    if (at->key)
        json_object_del(at->parent, at->key);
    else
        json_array_remove(at->parent, at->index);
}

static void mutate(tree *t, json_t *root, dice *d) {
    t->count = 0;
    collect(t, root);
    if (t->count == 0) return;
    const place *at = &t->places[dice_below(d, t->count)];
    uint64_t what = dice_below(d, 6);
    if (what == 0) {
        remove_place(at);
    } else if (what == 1) {
        insert(at, &t->places[dice_below(d, t->count)], d);
    } else {
        json_t *value = replacement(t, d, at->value);
        if (value && at->key)
            json_object_set_new(at->parent, at->key, value);
        else if (value)
            json_array_set_new(at->parent, at->index, value);
    }
}

size_t fuzz_mutate_json(uint8_t *data, size_t size, size_t max_size, size_t before, size_t length,
                        unsigned seed) {
    static tree t;
    dice d = {seed};
    json_t *root = json_loadb((const char *)data + before, length, 0, NULL);
    if (!root) return 0;
    for (uint64_t i = dice_below(&d, 3) + 1; i > 0; i--) mutate(&t, root, &d);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    size_t n = text ? strlen(text) : 0, behind = size - before - length;
    if (n > 0 && before + n + behind <= max_size) {
        memmove(data + before + n, data + before + length, behind);
        memcpy(data + before, text, n);
    } else {
        n = 0;
    }
    free(text);
    return n;
}
