/* xxh3-128 of very many short pieces: one call for all of them. */
#include "native.h"

#if X86
#include "xxh_x86dispatch.h" /* as wide as this processor can */
#else
#define XXH_INLINE_ALL
#include "xxhash.h"
#endif

/* Longest head that a digest may stand behind. */
#define LONGEST_HEAD 240

/* In the canonical form: big-endian. */
static void write_digest(uint8_t *out, const void *data, size_t length) {
    XXH128_hash_t hash = XXH3_128bits(data, length);
    for (int byte = 0; byte < 8; byte++) {
        out[byte] = (uint8_t)(hash.high64 >> (56 - 8 * byte));
        out[8 + byte] = (uint8_t)(hash.low64 >> (56 - 8 * byte));
    }
}

/* leaf_digests(data, ends, first, last): `ends` are 64-bit offsets, and piece i lies from ends[i] to ends[i + 1], counted
 * from ends[first], where `data` begins. */
PyObject *leaf_digests(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer data, ends;
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(args, "y*y*nn:leaf_digests", &data, &ends, &first, &last)) return NULL;
    PyObject *made = NULL;
    const uint64_t *at = ends.buf;
    int fits = 0 <= first && first <= last && last < ends.len / (Py_ssize_t)sizeof *at;
    for (Py_ssize_t i = first; fits && i < last; i++) fits = at[i] <= at[i + 1];
    if (!fits || at[last] - at[first] > (uint64_t)data.len) {
        PyErr_SetString(PyExc_ValueError, "the pieces do not lie within the data");
    } else if ((made = PyBytes_FromStringAndSize(NULL, (last - first) * WIDTH))) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(made);
        const uint8_t *begin = data.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = first; i < last; i++, out += WIDTH)
            write_digest(out, begin + (at[i] - at[first]), (size_t)(at[i + 1] - at[i]));
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&ends);
    return made;
}

/* headed_digests(heads, digests): of each head, a bytes object, with the digest after it that is its own. */
PyObject *headed_digests(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *heads, *made = NULL;
    Py_buffer digests;
    if (!PyArg_ParseTuple(args, "O!y*:headed_digests", &PyList_Type, &heads, &digests)) return NULL;
    Py_ssize_t count = PyList_GET_SIZE(heads);
    if (digests.len != count * WIDTH) {
        PyErr_SetString(PyExc_ValueError, "as many heads are needed as digests");
        goto out;
    }
    if (!(made = PyBytes_FromStringAndSize(NULL, count * WIDTH))) goto out;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(made), joined[LONGEST_HEAD + WIDTH];
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *head = PyList_GET_ITEM(heads, i);
        if (!PyBytes_Check(head) || PyBytes_GET_SIZE(head) > LONGEST_HEAD) {
            PyErr_SetString(PyExc_ValueError, "a head is bytes, and short");
            Py_CLEAR(made);
            goto out;
        }
        size_t length = (size_t)PyBytes_GET_SIZE(head);
        memcpy(joined, PyBytes_AS_STRING(head), length);
        memcpy(joined + length, (const uint8_t *)digests.buf + i * WIDTH, WIDTH);
        write_digest(out + i * WIDTH, joined, length + WIDTH);
    }
out:
    PyBuffer_Release(&digests);
    return made;
}
