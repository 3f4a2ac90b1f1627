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

/* How many leaves a segment has; more than any file has for what is no length. */
static uint64_t leaves_of(PyObject *length, uint64_t leaf, uint64_t *bytes) {
    *bytes = PyLong_AsUnsignedLongLong(length);
    if (*bytes == (uint64_t)-1 && PyErr_Occurred()) return MOST_LEAVES;
    return leaf ? *bytes / leaf + (*bytes % leaf != 0) : MOST_LEAVES;
}

/* leaf_ends(lengths, leaf): where leaves of at most so many bytes end that segments of these lengths, one behind the
 * other, are cut into: 64-bit offsets, the first of them 0. */
PyObject *leaf_ends(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *lengths;
    unsigned long long leaf;
    if (!PyArg_ParseTuple(args, "O!K:leaf_ends", &PyList_Type, &lengths, &leaf)) return NULL;
    uint64_t count = 1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lengths); i++) {
        uint64_t length, more = leaves_of(PyList_GET_ITEM(lengths, i), leaf, &length);
        if (more >= MOST_LEAVES - count) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "these are no lengths of a file's segments");
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

/* segment_digests(domain, lengths, leaf, digests): of segments of these lengths over the digests of their leaves, which
 * stand end to end: of the domain, the length, the number of leaves, and each digest behind its own length. */
PyObject *segment_digests(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer domain, digests;
    PyObject *lengths, *made = NULL;
    unsigned long long leaf;
    if (!PyArg_ParseTuple(args, "y*O!Ky*:segment_digests", &domain, &PyList_Type, &lengths, &leaf, &digests)) return NULL;
    Py_ssize_t count = PyList_GET_SIZE(lengths);
    uint64_t length, longest = 0, left = (uint64_t)digests.len / WIDTH;
    int fits = digests.len % WIDTH == 0;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        uint64_t leaves = leaves_of(PyList_GET_ITEM(lengths, i), leaf, &length);
        fits = leaves <= left;
        left -= leaves;
        if (leaves > longest) longest = leaves;
    }
    if (!fits || left) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "these are not the digests of all leaves");
        goto out;
    }
    size_t head = (size_t)domain.len + 16;
    uint8_t *written = PyMem_Malloc(head + (size_t)longest * (8 + WIDTH));
    if (written && (made = PyBytes_FromStringAndSize(NULL, count * WIDTH))) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(made);
        const uint8_t *digest = digests.buf;
        memcpy(written, domain.buf, (size_t)domain.len);
        for (Py_ssize_t i = 0; i < count; i++, out += WIDTH) {
            uint64_t leaves = leaves_of(PyList_GET_ITEM(lengths, i), leaf, &length);
            uint8_t *at = written + head;
            put_integer(at - 16, length);
            put_integer(at - 8, leaves);
            for (; leaves; leaves--, at += 8 + WIDTH, digest += WIDTH) {
                put_integer(at, WIDTH);
                memcpy(at + 8, digest, WIDTH);
            }
            write_digest(out, written, (size_t)(at - written));
        }
    } else if (!written) {
        PyErr_NoMemory();
    }
    PyMem_Free(written);
out:
    PyBuffer_Release(&domain);
    PyBuffer_Release(&digests);
    return made;
}
