/*
 * Mutations of a GGUF file that keep its structure: one key or tensor is changed or left out, and
 * lengths, counts, offsets and padding follow. Changes of single bytes mostly end at a length that
 * no longer fits.
 */
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "gguf.h"
#include "harness.h"
#include "mutators.h"
#include "support/dice.h"

enum { HEADER = 24, MAX_ENTRIES = 256, ALIGNMENT = 32, NAME_ROOM = 80, ENTRY_ROOM = 4096 };

typedef struct slice {
    const uint8_t *data;
    size_t size;
} slice;

/* A key is its name, and its type with the value. A tensor is its name, and its shape and type
 * without the offset; `data` are its weights. */
typedef struct entry {
    slice name, rest, data;
} entry;

typedef struct parts {
    entry keys[MAX_ENTRIES], tensors[MAX_ENTRIES];
    size_t n_keys, n_tensors;
} parts;

typedef struct cursor {
    const uint8_t *at, *end;
    int failed;
} cursor;

static uint64_t number(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static void put_number(uint8_t *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> 8 * i);
}

/* ---- reading ---- */

static void skip(cursor *c, uint64_t n) {
    if (n > (uint64_t)(c->end - c->at)) c->failed = 1;
    if (!c->failed) c->at += n;
}

static uint64_t take(cursor *c, int n) {
    const uint8_t *at = c->at;
    skip(c, (uint64_t)n);
    return c->failed ? 0 : number(at, n);
}

static void skip_value(cursor *c, uint64_t type) {
    static const uint8_t sizes[GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type >= GGUF_TYPE_COUNT) c->failed = 1;
    if (c->failed) return;
    if (type == GGUF_TYPE_STRING) {
        skip(c, take(c, 8));
    } else if (type == GGUF_TYPE_ARRAY) {
        uint64_t inner = take(c, 4), n = take(c, 8);
        if (inner == GGUF_TYPE_ARRAY) c->failed = 1;
        for (uint64_t i = 0; i < n && !c->failed; i++) skip_value(c, inner);
    } else {
        skip(c, sizes[type]);
    }
}

static slice since(const cursor *c, const uint8_t *start) {
    return (slice){start, (size_t)(c->at - start)};
}

static entry read_key(cursor *c) {
    entry e = {0};
    const uint8_t *start = c->at;
    skip(c, take(c, 8));
    e.name = since(c, start);
    start = c->at;
    skip_value(c, take(c, 4));
    e.rest = since(c, start);
    return e;
}

/* Bytes of a tensor's data, by n_dims, dims, type; 0 where they mean nothing. */
static size_t data_size(slice rest) {
    uint64_t n_dims = number(rest.data, 4), count = 1;
    uint64_t type = number(rest.data + 4 + 8 * n_dims, 4);
    for (uint64_t i = 0; i < n_dims; i++) {
        uint64_t n = number(rest.data + 4 + 8 * i, 8);
        if (n > 1 << 20 || count > 1 << 20) return 0;
        count *= n;
    }
    if (type >= GGML_TYPE_COUNT || ggml_blck_size((enum ggml_type)type) == 0) return 0;
    size_t size = count / (size_t)ggml_blck_size((enum ggml_type)type);
    return size * ggml_type_size((enum ggml_type)type);
}

/* data.data is an offset until the data's start is known. */
static entry read_tensor(cursor *c, uint64_t *offset) {
    entry e = {0};
    const uint8_t *start = c->at;
    skip(c, take(c, 8));
    e.name = since(c, start);
    start = c->at;
    uint64_t n_dims = take(c, 4);
    if (n_dims > GGML_MAX_DIMS) c->failed = 1;
    skip(c, 8 * n_dims + 4);
    if (c->failed) return e;
    e.rest = since(c, start);
    *offset = take(c, 8);
    return e;
}

static int parse(parts *p, const uint8_t *data, size_t size) {
    static uint64_t offsets[MAX_ENTRIES];
    if (size < HEADER) return 0;
    cursor c = {data + HEADER, data + size, 0};
    p->n_tensors = number(data + 8, 8);
    p->n_keys = number(data + 16, 8);
    if (p->n_tensors > MAX_ENTRIES || p->n_keys > MAX_ENTRIES) return 0;
    for (size_t i = 0; i < p->n_keys && !c.failed; i++) p->keys[i] = read_key(&c);
    for (size_t i = 0; i < p->n_tensors && !c.failed; i++)
        p->tensors[i] = read_tensor(&c, &offsets[i]);
    if (c.failed) return 0;
    size_t start = ((size_t)(c.at - data) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (size_t i = 0; i < p->n_tensors; i++) {
        size_t wanted = data_size(p->tensors[i].rest);
        if (start > size || offsets[i] > size - start || wanted > size - start - offsets[i])
            continue;
        p->tensors[i].data = (slice){data + start + offsets[i], wanted};
    }
    return 1;
}

/* ---- changing: the new bytes are in `room` ---- */

static uint64_t some_number(dice *d, uint64_t old) {
    static const uint64_t numbers[] = {
        0,    1,       2,          3,         4,          5,          8,          16,        255,
        1024, 1 << 20, UINT32_MAX, INT64_MAX, UINT64_MAX, 0x3f800000, 0x7f800000, 0x7fc00000};
    switch (dice_below(d, 4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return old ^ (uint64_t)1 << dice_below(d, 64);
    default:
        return numbers[dice_below(d, sizeof numbers / sizeof *numbers)];
    }
}

/* A length and a string at `from`, with other bytes in the string. */
static size_t change_string(uint8_t *room, const uint8_t *from, size_t most) {
    size_t length = (size_t)number(from, 8);
    if (length > most) length = most;
    memcpy(room + 8, from + 8, length);
    length = LLVMFuzzerMutate(room + 8, length, most);
    put_number(room, length, 8);
    return 8 + length;
}

static slice change_array(uint8_t *room, slice old, dice *d) {
    memcpy(room, old.data, old.size);
    uint64_t inner = number(old.data + 4, 4), n = number(old.data + 8, 8);
    if (n == 0) return (slice){room, old.size};
    cursor c = {old.data + 16, old.data + old.size, 0};
    for (uint64_t i = dice_below(d, n); i > 0; i--) skip_value(&c, inner);
    size_t before = (size_t)(c.at - old.data);
    const uint8_t *item = c.at;
    skip_value(&c, inner);
    size_t width = (size_t)(c.at - item), now = 0;
    uint64_t what = dice_below(d, 4);
    if (what == 0) { /* without it */
        put_number(room + 8, n - 1, 8);
    } else if (what == 1) { /* twice */
        put_number(room + 8, n + 1, 8);
        memcpy(room + before, item, width);
        memcpy(room + before + width, item, width);
        now = 2 * width;
    } else if (inner == GGUF_TYPE_STRING) {
        now = change_string(room + before, item, NAME_ROOM);
    } else {
        put_number(room + before, some_number(d, number(item, (int)width)), (int)width);
        now = width;
    }
    size_t behind = old.size - before - width;
    memcpy(room + before + now, item + width, behind);
    return (slice){room, before + now + behind};
}

static slice change_value(uint8_t *room, slice old, dice *d) {
    uint64_t type = number(old.data, 4);
    if (type == GGUF_TYPE_ARRAY) return change_array(room, old, d);
    memcpy(room, old.data, 4);
    if (type == GGUF_TYPE_STRING)
        return (slice){room, 4 + change_string(room + 4, old.data + 4, NAME_ROOM)};
    int width = (int)old.size - 4;
    put_number(room + 4, some_number(d, number(old.data + 4, width)), width);
    /* Another type of the same width. */
    if (dice_below(d, 8) == 0) put_number(room, type ^ dice_below(d, 4), 4);
    return (slice){room, old.size};
}

static slice change_tensor(uint8_t *room, slice old, dice *d) {
    size_t n_dims = (size_t)number(old.data, 4);
    memcpy(room, old.data, old.size);
    size_t which = (size_t)dice_below(d, n_dims + 2);
    if (which < n_dims) {
        uint8_t *at = room + 4 + 8 * which;
        put_number(at, some_number(d, number(at, 8)), 8);
    } else if (which == n_dims) {
        put_number(room + 4 + 8 * n_dims, dice_below(d, GGML_TYPE_COUNT), 4);
    } else if (n_dims < GGML_MAX_DIMS) { /* one more axis of length 1 */
        memcpy(room + 4 + 8 * n_dims + 8, old.data + 4 + 8 * n_dims, 4);
        put_number(room + 4 + 8 * n_dims, 1, 8);
        put_number(room, n_dims + 1, 4);
        return (slice){room, old.size + 8};
    }
    return (slice){room, old.size};
}

static void remove_entry(entry *entries, size_t *n, size_t index) {
    memmove(entries + index, entries + index + 1, (*n - index - 1) * sizeof *entries);
    (*n)--;
}

/* A change of the type alone leaves a value that cannot be gone through. */
static int is_whole(slice value) {
    cursor c = {value.data, value.data + value.size, 0};
    skip_value(&c, take(&c, 4));
    return !c.failed && c.at == c.end;
}

/* One change; 0 when it cannot be made. */
static int change(parts *p, uint8_t *room, dice *d) {
    int tensor = dice_below(d, 3) == 0;
    entry *entries = tensor ? p->tensors : p->keys;
    size_t *n = tensor ? &p->n_tensors : &p->n_keys;
    if (*n == 0) return 0;
    size_t index = (size_t)dice_below(d, *n);
    entry *e = &entries[index];
    if (e->rest.size + e->name.size > ENTRY_ROOM / 2) return 0;
    if (!tensor && !is_whole(e->rest)) return 0;
    switch (dice_below(d, 8)) {
    case 0:
        remove_entry(entries, n, index);
        return 1;
    case 1:
        e->name = (slice){room, change_string(room, e->name.data, NAME_ROOM)};
        return 1;
    case 2: /* the name of another one */
        e->name = entries[dice_below(d, *n)].name;
        return 1;
    default:
        e->rest = tensor ? change_tensor(room, e->rest, d) : change_value(room, e->rest, d);
        if (tensor && e->data.data) e->data.size = data_size(e->rest);
        return 1;
    }
}

/* ---- writing ---- */

typedef struct writer {
    uint8_t *data;
    size_t size, max;
    int failed;
} writer;

/* NULL data: zeros. */
static void append(writer *w, const uint8_t *data, size_t size) {
    if (size > w->max - w->size) w->failed = 1;
    if (w->failed) return;
    if (data)
        memcpy(w->data + w->size, data, size);
    else
        memset(w->data + w->size, 0, size);
    w->size += size;
}

static void append_padding(writer *w) {
    append(w, NULL, (ALIGNMENT - w->size % ALIGNMENT) % ALIGNMENT);
}

static void write_parts(writer *w, const parts *p, const uint8_t *magic, const uint8_t *end) {
    uint8_t bytes[8];
    uint64_t offset = 0;
    append(w, magic, 8);
    put_number(bytes, p->n_tensors, 8);
    append(w, bytes, 8);
    put_number(bytes, p->n_keys, 8);
    append(w, bytes, 8);
    for (size_t i = 0; i < p->n_keys; i++) {
        append(w, p->keys[i].name.data, p->keys[i].name.size);
        append(w, p->keys[i].rest.data, p->keys[i].rest.size);
    }
    for (size_t i = 0; i < p->n_tensors; i++) {
        append(w, p->tensors[i].name.data, p->tensors[i].name.size);
        append(w, p->tensors[i].rest.data, p->tensors[i].rest.size);
        put_number(bytes, offset, 8);
        append(w, bytes, 8);
        offset += (p->tensors[i].data.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    append_padding(w);
    for (size_t i = 0; i < p->n_tensors; i++) {
        const slice t = p->tensors[i].data;
        size_t there = t.data && t.size > (size_t)(end - t.data) ? (size_t)(end - t.data) : t.size;
        if (t.data) append(w, t.data, there);
        append(w, NULL, t.data ? t.size - there : t.size);
        append_padding(w);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    static parts p;
    static uint8_t rooms[3][ENTRY_ROOM], out[1 << 16];
    dice d = {seed};
    if (seed % 4 == 0 || !parse(&p, data, size)) return LLVMFuzzerMutate(data, size, max_size);
    for (uint64_t i = dice_below(&d, 3) + 1; i > 0; i--) change(&p, rooms[i - 1], &d);
    writer w = {out, 0, max_size < sizeof out ? max_size : sizeof out, 0};
    write_parts(&w, &p, data, data + size);
    if (w.failed) return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, out, w.size);
    return w.size;
}
