/* Files of tensors read back: values and metadata come out as they went in, and malformed files are
 * refused in one line. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "qkv/store.h"
#include "qkv/store_reader.h"
#include "store/store_formats.h"

static char path[64];

static void write_bytes(const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void test_safetensors(void **state) {
    (void)state;
    const float values[] = {1, -2.5f, 3, 4, 5, 1e-30f};
    qkv_store_tensor tensors[2] = {QKV_STORE_TENSOR_INIT, QKV_STORE_TENSOR_INIT};
    const char *const metadata[] = {"tokens", "[1,2]", "prompt", "A \"text\"", "odd", "[not JSON"};
    tensors[0].name = "b";
    tensors[0].data = values;
    tensors[0].n_dims = 2;
    tensors[0].shape[0] = 2;
    tensors[0].shape[1] = 3;
    tensors[1] = tensors[0];
    tensors[1].name = "a";
    tensors[1].n_dims = 1;
    tensors[1].shape[0] = 1;
    qkv_error err = {0};
    /* Names of several lengths, so that the header needs spaces after it. */
    for (int extra = 0; extra < 9; extra++) {
        char name[16];
        snprintf(name, sizeof name, "b%.*s", extra, "xxxxxxxxx");
        tensors[0].name = name;
        assert_int_equal(qkv_store_write_tensors(tensors, 2, metadata, 3, path, &err), QKV_OK);
        qkv_store_reader *file = NULL;
        qkv_store_item item = QKV_STORE_ITEM_INIT;
        double back[6];
        assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_OK);
        assert_string_equal(qkv_store_reader_format(file), "safetensors");
        assert_string_equal(
            qkv_store_reader_metadata(file),
            "{\"tokens\":[1,2],\"prompt\":\"A \\\"text\\\"\",\"odd\":\"[not JSON\"}");
        assert_int_equal(qkv_store_reader_item(file, 0, &item), 1);
        assert_string_equal(item.name, "a"); /* by name */
        assert_int_equal(qkv_store_reader_item(file, 1, &item), 1);
        assert_string_equal(item.type, "F32");
        assert_int_equal(item.n_dims, 2);
        assert_int_equal(item.shape[1], 3);
        assert_int_equal(item.n_values, 6);
        assert_int_equal(qkv_store_reader_item(file, 2, &item), 0);
        assert_int_equal(qkv_store_reader_values(file, 1, 0, 6, back, &err), QKV_OK);
        for (int i = 0; i < 6; i++) assert_true(back[i] == (double)values[i]);
        assert_memory_equal(qkv_store_reader_data(file, 1), values, 6 * sizeof *values);
        assert_int_equal(qkv_store_reader_values(file, 1, 5, 2, back, &err), QKV_ERR_ARGUMENT);
        qkv_store_reader_close(file);
    }
}

/* The first byte of a header's length may be any: a brace, a bracket or a space makes no JSON of it. */
static void test_safetensors_lengths(void **state) {
    (void)state;
    const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    const float value = 2.5f;
    for (size_t length = sizeof header; length < sizeof header + 256; length++) {
        unsigned char bytes[512] = {(unsigned char)length, (unsigned char)(length >> 8)};
        memset(bytes + 8, ' ', length);
        memcpy(bytes + 8, header, sizeof header - 1);
        memcpy(bytes + 8 + length, &value, sizeof value);
        write_bytes(bytes, 8 + length + sizeof value);
        qkv_error err = {0};
        qkv_store_reader *file = NULL;
        double back = 0;
        assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_OK);
        assert_string_equal(qkv_store_reader_format(file), "safetensors");
        assert_int_equal(qkv_store_reader_values(file, 0, 0, 1, &back, &err), QKV_OK);
        assert_true(back == 2.5);
        qkv_store_reader_close(file);
    }
}

/* A .npy of one type, made by hand. */
static size_t make_npy(unsigned char *out, const char *header, const void *data, size_t n) {
    const size_t length = strlen(header);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (unsigned char)length;
    out[9] = 0;
    memcpy(out + 10, header, length);
    memcpy(out + 10 + length, data, n);
    return 10 + length + n;
}

static void check_refused(const unsigned char *bytes, size_t n) {
    qkv_error err = {0};
    qkv_store_reader *file = NULL;
    write_bytes(bytes, n);
    assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_ERR_FORMAT);
    assert_null(file);
    assert_true(err.message[0] != '\0');
}

static void test_npy(void **state) {
    (void)state;
    static const char good[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1), }\n";
    const int64_t numbers[] = {-7, 40};
    unsigned char bytes[512];
    double back[2];
    qkv_error err = {0};
    qkv_store_reader *file = NULL;
    qkv_store_item item = QKV_STORE_ITEM_INIT;
    const size_t n = make_npy(bytes, good, numbers, sizeof numbers);
    write_bytes(bytes, n);
    assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_OK);
    assert_string_equal(qkv_store_reader_format(file), "npy");
    assert_string_equal(qkv_store_reader_metadata(file), "{}");
    assert_int_equal(qkv_store_reader_item(file, 0, &item), 1);
    assert_string_equal(item.type, "I64");
    assert_int_equal(item.n_dims, 2);
    assert_int_equal(qkv_store_reader_values(file, 0, 0, 2, back, &err), QKV_OK);
    assert_true(back[0] == -7 && back[1] == 40);
    qkv_store_reader_close(file);
    for (size_t cut = 0; cut < n; cut++) check_refused(bytes, cut);
    static const char *const bad[] = {
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2\n",
        "{'descr': '<f4', 'shape': (2,), }\n",
        "{}\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(bytes, make_npy(bytes, bad[i], numbers, sizeof numbers));
}

/* An archive of one array and its metadata, and of what is wrong with each byte count. */
static size_t put_member(unsigned char *out, size_t at, const char *name, const unsigned char *data,
                         size_t n) {
    const size_t length = strlen(name);
    memset(out + at, 0, 30);
    memcpy(out + at, "PK\x03\x04", 4);
    out[at + 26] = (unsigned char)length;
    memcpy(out + at + 30, name, length);
    memcpy(out + at + 30 + length, data, n);
    return at + 30 + length + n;
}

static size_t put_central(unsigned char *out, size_t at, const char *name, size_t n, size_t place,
                          int method) {
    const size_t length = strlen(name);
    memset(out + at, 0, 46);
    memcpy(out + at, "PK\x01\x02", 4);
    out[at + 10] = (unsigned char)method;
    out[at + 20] = out[at + 24] = (unsigned char)n;
    out[at + 28] = (unsigned char)length;
    out[at + 42] = (unsigned char)(place & 0xff);
    out[at + 43] = (unsigned char)(place >> 8);
    memcpy(out + at + 46, name, length);
    return at + 46 + length;
}

static size_t make_npz(unsigned char *out, int method) {
    static const char array[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    static const char text[] = "{'descr': '|S14', 'fortran_order': False, 'shape': (), }\n";
    const float numbers[] = {0.5f, 2};
    unsigned char a[128], b[128];
    const size_t n = make_npy(a, array, numbers, sizeof numbers);
    const size_t m = make_npy(b, text, "{\"tokens\":[1]}", 14);
    const size_t second = put_member(out, 0, "v0/z.1.npy", a, n);
    const size_t central = put_member(out, second, "__metadata__.npy", b, m);
    size_t at = put_central(out, central, "v0/z.1.npy", n, 0, method);
    at = put_central(out, at, "__metadata__.npy", m, second, method);
    memset(out + at, 0, 22);
    memcpy(out + at, "PK\x05\x06", 4);
    out[at + 8] = out[at + 10] = 2;
    out[at + 16] = (unsigned char)(central & 0xff);
    out[at + 17] = (unsigned char)(central >> 8);
    return at + 22;
}

static void test_npz(void **state) {
    (void)state;
    unsigned char bytes[1024];
    double back[2];
    qkv_error err = {0};
    qkv_store_reader *file = NULL;
    qkv_store_item item = QKV_STORE_ITEM_INIT;
    const size_t n = make_npz(bytes, 0);
    write_bytes(bytes, n);
    assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_OK);
    assert_string_equal(qkv_store_reader_format(file), "npz");
    assert_string_equal(qkv_store_reader_metadata(file), "{\"tokens\":[1]}");
    assert_int_equal(qkv_store_reader_item(file, 0, &item), 1);
    assert_string_equal(item.name, "v0/z.1");
    assert_int_equal(qkv_store_reader_item(file, 1, NULL), 0);
    assert_int_equal(qkv_store_reader_values(file, 0, 0, 2, back, &err), QKV_OK);
    assert_true(back[0] == 0.5 && back[1] == 2);
    qkv_store_reader_close(file);
    for (size_t cut = 0; cut < n; cut++) check_refused(bytes, cut);
    /* Whatever a byte is changed to, the reader stays inside the file. */
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 0xff;
        write_bytes(bytes, n);
        if (qkv_store_reader_open(&file, path, &err) == QKV_OK) {
            for (size_t k = 0; qkv_store_reader_item(file, k, &item); k++)
                qkv_store_reader_values(file, k, 0, item.n_values < 2 ? item.n_values : 2, back,
                                        NULL);
        }
        qkv_store_reader_close(file);
        bytes[i] ^= 0xff;
    }
    check_refused(bytes, make_npz(bytes, 8)); /* compressed */
}

static void test_json(void **state) {
    (void)state;
    static const char good[] =
        "{\"metadata\": {\"tokens\": [1]}, \"tensors\": {\"a\": {\"shape\": [2, "
        "1], \"data\": [[1.5], [null]]}}}";
    static const char *const bad[] = {
        "{",
        "{}",
        "{\"tensors\": {\"a\": {}}}",
        "{\"tensors\": {\"a\": {\"shape\": [2], \"data\": [1]}}}",
        "{\"tensors\": {\"a\": {\"shape\": [1], \"data\": [[1]]}}}",
        "{\"tensors\": {\"a\": {\"shape\": [999999999, 999999999], \"data\": []}}}",
        "{\"tensors\": {\"a\": {\"shape\": [-1], \"data\": []}}}",
    };
    double back[2];
    qkv_error err = {0};
    qkv_store_reader *file = NULL;
    write_bytes(good, strlen(good));
    assert_int_equal(qkv_store_reader_open(&file, path, &err), QKV_OK);
    assert_string_equal(qkv_store_reader_metadata(file), "{\"tokens\":[1]}");
    assert_int_equal(qkv_store_reader_values(file, 0, 0, 2, back, &err), QKV_OK);
    assert_true(back[0] == 1.5 && isnan(back[1]));
    qkv_store_reader_close(file);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused((const unsigned char *)bad[i], strlen(bad[i]));
}

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/qkv_reader_XXXXXX");
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd >= 0 ? 0 : -1;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors), cmocka_unit_test(test_safetensors_lengths),
        cmocka_unit_test(test_npy),         cmocka_unit_test(test_npz),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
