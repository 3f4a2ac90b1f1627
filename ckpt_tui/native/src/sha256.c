/* SHA-256 (FIPS 180-4) of one message, or of two at once on one core. */
#include "native.h"

#include "compress.h"

static const Value BEGINNING = {
    {0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667},
    {0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372},
};

static const Kernel *kernel; /* in use */

typedef struct {
    PyObject_HEAD Value value;
    uint64_t length;
    uint8_t rest[BLOCK]; /* the bytes after the last whole block */
    /* Set, under the GIL, while a thread works on it without: two at once would make a digest of neither. */
    int busy;
} Sha256;

/* A message's bytes as they are taken in. */
typedef struct {
    Sha256 *hash;
    const uint8_t *at;
    size_t left;
} Lane;

static void blocks(Lane *lane, size_t count) {
    Value *value = &lane->hash->value;
    const uint8_t *at = lane->at;
    kernel->one(&value, &at, count);
    lane->at += count * BLOCK;
    lane->left -= count * BLOCK;
}

/* Complete the block that the last update left. */
static void begin(Lane *lane) {
    Sha256 *hash = lane->hash;
    size_t held = hash->length % BLOCK;
    hash->length += lane->left;
    if (!held) return;
    size_t taken = lane->left < BLOCK - held ? lane->left : BLOCK - held;
    memcpy(hash->rest + held, lane->at, taken);
    lane->at += taken;
    lane->left -= taken;
    if (held + taken == BLOCK) {
        Value *value = &hash->value;
        const uint8_t *at = hash->rest;
        kernel->one(&value, &at, 1);
    }
}

/* All other whole blocks, and keep what is left. */
static void end(Lane *lane) {
    blocks(lane, lane->left / BLOCK);
    if (lane->left) memcpy(lane->hash->rest, lane->at, lane->left);
}

static void absorb_two(Lane *one, Lane *other) {
    begin(one);
    begin(other);
    size_t both = (one->left < other->left ? one->left : other->left) / BLOCK;
    Value *values[2] = {&one->hash->value, &other->hash->value};
    const uint8_t *messages[2] = {one->at, other->at};
    kernel->two(values, messages, both);
    one->at += both * BLOCK, one->left -= both * BLOCK;
    other->at += both * BLOCK, other->left -= both * BLOCK;
    end(one);
    end(other);
}

static int claim(Sha256 *hash) {
    if (hash->busy) {
        PyErr_SetString(PyExc_RuntimeError, "this hash is being updated by another thread");
        return 0;
    }
    return hash->busy = 1;
}

static PyObject *new_sha256(PyTypeObject *type, PyObject *args, PyObject *named) {
    if (PyTuple_GET_SIZE(args) || (named && PyDict_GET_SIZE(named))) {
        PyErr_SetString(PyExc_TypeError, "Sha256() takes no arguments");
        return NULL;
    }
    Sha256 *self = (Sha256 *)type->tp_alloc(type, 0);
    if (self) self->value = BEGINNING;
    return (PyObject *)self;
}

static void free_sha256(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *update(PyObject *object, PyObject *data) {
    Sha256 *self = (Sha256 *)object;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)) return NULL;
    if (!claim(self)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    Lane lane = {self, view.buf, (size_t)view.len};
    Py_BEGIN_ALLOW_THREADS
    begin(&lane);
    end(&lane);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *digest(PyObject *object, PyObject *Py_UNUSED(none)) {
    Sha256 *self = (Sha256 *)object;
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "this hash is being updated by another thread");
        return NULL;
    }
    uint8_t padded[2 * BLOCK] = {0};
    size_t held = self->length % BLOCK, count = held < BLOCK - 8 ? 1 : 2;
    memcpy(padded, self->rest, held);
    padded[held] = 0x80;
    for (int byte = 0; byte < 8; byte++)
        padded[count * BLOCK - 1 - byte] = (uint8_t)(self->length * 8 >> 8 * byte);
    Value value = self->value, *values = &value;
    const uint8_t *messages = padded;
    kernel->one(&values, &messages, count);
    const uint32_t words[8] = {value.abef[3], value.abef[2], value.cdgh[3], value.cdgh[2],
                               value.abef[1], value.abef[0], value.cdgh[1], value.cdgh[0]};
    uint8_t written[32];
    for (int word = 0; word < 8; word++)
        for (int byte = 0; byte < 4; byte++) written[4 * word + byte] = (uint8_t)(words[word] >> (24 - 8 * byte));
    return PyBytes_FromStringAndSize((const char *)written, sizeof written);
}

static PyObject *update_with(PyObject *object, PyObject *args) {
    Sha256 *one = (Sha256 *)object, *other;
    Py_buffer first, second;
    if (!PyArg_ParseTuple(args, "y*O!y*:update_with", &first, Py_TYPE(object), &other, &second)) return NULL;
    PyObject *result = NULL;
    if (claim(one)) { /* which fails for `other` where it is the same hash */
        if (claim(other)) {
            Lane lanes[2] = {{one, first.buf, (size_t)first.len}, {other, second.buf, (size_t)second.len}};
            Py_BEGIN_ALLOW_THREADS
            absorb_two(&lanes[0], &lanes[1]);
            Py_END_ALLOW_THREADS
            other->busy = 0;
            result = Py_NewRef(Py_None);
        }
        one->busy = 0;
    }
    PyBuffer_Release(&first);
    PyBuffer_Release(&second);
    return result;
}

static PyMethodDef sha256_methods[] = {
    {"update", update, METH_O, NULL},
    {"update_with", update_with, METH_VARARGS, NULL},
    {"digest", digest, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sha256_slots[] = {
    {Py_tp_new, new_sha256},
    {Py_tp_dealloc, free_sha256},
    {Py_tp_methods, sha256_methods},
    {0, NULL},
};

static PyType_Spec sha256_spec = {
    .name = "ckpt_tui.native._compiled.Sha256",
    .basicsize = sizeof(Sha256),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sha256_slots,
};

/* use_sha256(name): for tests, which try them all. */
PyObject *use_sha256(PyObject *Py_UNUSED(module), PyObject *name) {
    Kernels found = kernels();
    for (int i = 0; i < found.count; i++) {
        if (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, found.all[i].name)) continue;
        kernel = &found.all[i];
        Py_RETURN_NONE;
    }
    PyErr_SetString(PyExc_ValueError, "no kernel of this name runs on this processor");
    return NULL;
}

/* `SHA256_KERNELS`, the one in use first, `ABREAST`, and `Sha256` where there is any. */
int add_sha256(PyObject *module) {
    Kernels found = kernels();
    kernel = found.best;
    PyObject *names = PyTuple_New(found.count);
    if (!names) return -1;
    for (int i = 0; i < found.count; i++) {
        /* The best one takes the place of the first. */
        const Kernel *one = i == 0 ? found.best : &found.all[i] == found.best ? &found.all[0] : &found.all[i];
        PyObject *name = PyUnicode_FromString(one->name);
        if (!name) break;
        PyTuple_SET_ITEM(names, i, name);
    }
    int failed = PyErr_Occurred() || PyModule_AddObjectRef(module, "SHA256_KERNELS", names);
    Py_DECREF(names);
    if (failed || PyModule_AddIntConstant(module, "ABREAST", found.abreast)) return -1;
    if (!found.count) return 0;
    PyObject *type = PyType_FromSpec(&sha256_spec);
    if (!type) return -1;
    failed = PyModule_AddObjectRef(module, "Sha256", type);
    Py_DECREF(type);
    return failed;
}
