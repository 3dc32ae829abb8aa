/*
 * NumPy's .npy and .npz: where each array lies, and what it is, in the same list as safetensors' tensors.
 *
 * A .npy is a magic, a version, a length, a Python dictionary (descr, fortran_order, shape) and the
 * values. An .npz is a ZIP archive of them. Read are arrays of numbers as NumPy writes them by default:
 * little-endian, row-major, and archives without compression (numpy.savez); anything else is refused by
 * name. Every array is checked to lie inside the file.
 */
#ifndef QKV_FORMAT_NUMPY_H
#define QKV_FORMAT_NUMPY_H

#include "format/json_scan.h"
#include "format/safetensors.h"

int qkv_is_npy(const unsigned char *data, size_t size);
int qkv_is_npz(const unsigned char *data, size_t size);

/* One array under a name of the caller's. */
int qkv_npy_read(qkv_st_list *list, const unsigned char *data, size_t size, const char *name,
                 const char *path, qkv_error *err);
/* All of an archive; *metadata is the text of its array __metadata__, of length 0 without one. */
int qkv_npz_read(qkv_st_list *list, const qkv_mapping *map, const char *path,
                 qkv_json_span *metadata, qkv_error *err);

#endif
