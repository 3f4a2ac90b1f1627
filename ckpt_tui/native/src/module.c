/* `ckpt_tui.native._compiled`: the functions, and what each is called. `_compiled.pyi` says what they do. */
#include "native.h"

static PyMethodDef methods[] = {
    {"header_columns", header_columns, METH_VARARGS, NULL},
    {"leaf_digests", leaf_digests, METH_VARARGS, NULL},
    {"leaf_ends", leaf_ends, METH_VARARGS, NULL},
    {"pack_rows", pack_rows, METH_VARARGS, NULL},
    {"segment_digests", segment_digests, METH_VARARGS, NULL},
    {"use_sha256", use_sha256, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_names},
    {Py_mod_exec, add_sha256},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ckpt_tui.native._compiled",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&definition); }
