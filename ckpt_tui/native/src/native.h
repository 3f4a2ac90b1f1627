/* What the parts of `ckpt_tui.native._compiled` share. */
#ifndef CKPT_TUI_NATIVE_H
#define CKPT_TUI_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

/* Whether there is code for this processor in particular; `PORTABLE` builds the rest anywhere. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(PORTABLE)
#define X86 1
#else
#define X86 0
#endif

/* Bytes of an xxh3-128 digest. */
#define WIDTH 16

/* An integer as it stands in a composite: 8 bytes little-endian. */
static inline void put_integer(uint8_t *out, uint64_t value) {
    for (int byte = 0; byte < 8; byte++) out[byte] = (uint8_t)(value >> 8 * byte);
}

/* Bytes that somebody else keeps in memory. */
typedef struct {
    const char *at;
    uint32_t length;
} Text;

/* So many have numbers of 32 bits. */
#define MOST_NAMES 0x7fffffff

int is_names(PyObject *object);
Py_ssize_t names_count(PyObject *object);
Text names_text(PyObject *object, Py_ssize_t place);
PyObject *new_names(Text *texts, Py_ssize_t count, PyObject *owner);

int add_names(PyObject *module);
int add_sha256(PyObject *module);
PyObject *header_columns(PyObject *module, PyObject *args);
PyObject *leaf_ends(PyObject *module, PyObject *args);
PyObject *leaf_digests(PyObject *module, PyObject *args);
PyObject *segment_digests(PyObject *module, PyObject *args);
PyObject *pack_rows(PyObject *module, PyObject *args);
PyObject *use_sha256(PyObject *module, PyObject *name);

#endif
