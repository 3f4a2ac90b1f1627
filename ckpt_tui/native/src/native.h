/* What the parts of `ckpt_tui.native._compiled` share. */
#ifndef CKPT_TUI_NATIVE_H
#define CKPT_TUI_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

/* Bytes of an xxh3-128 digest. */
#define WIDTH 16

int add_sha256(PyObject *module);
PyObject *header_columns(PyObject *module, PyObject *args);
PyObject *leaf_digests(PyObject *module, PyObject *args);
PyObject *headed_digests(PyObject *module, PyObject *args);
PyObject *pack_rows(PyObject *module, PyObject *args);

#endif
