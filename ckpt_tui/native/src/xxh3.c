/* xxh3-128 of very many short pieces: one call for all of them. */
#include "native.h"

#if X86
#include "xxh_x86dispatch.h" /* as wide as this processor can */
#else
#define XXH_INLINE_ALL
#include "xxhash.h"
#endif

/* More than any file has. */
#define MOST_LEAVES ((uint64_t)1 << 40)
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

/* leaf_ends(lengths, leaf): where leaves of at most so many bytes end that segments of these lengths, one behind the
 * other, are cut into: 64-bit offsets, the first of them 0. */
PyObject *leaf_ends(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *lengths;
    unsigned long long leaf;
    if (!PyArg_ParseTuple(args, "O!K:leaf_ends", &PyList_Type, &lengths, &leaf)) return NULL;
    uint64_t count = 1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lengths); i++) {
        uint64_t length = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(lengths, i));
        if (length == (uint64_t)-1 && PyErr_Occurred()) return NULL;
        uint64_t more = leaf ? length / leaf + (length % leaf != 0) : MOST_LEAVES;
        if (more >= MOST_LEAVES - count) {
            PyErr_SetString(PyExc_ValueError, "these are no lengths of a file's segments");
            return NULL;
        }
        count += more;
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint64_t)));
    if (!made) return NULL;
    uint64_t *out = (uint64_t *)PyBytes_AS_STRING(made), at = *out++ = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lengths); i++) {
        uint64_t left = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(lengths, i));
        for (; left > leaf; left -= leaf) *out++ = at += leaf;
        if (left) *out++ = at += left;
    }
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
