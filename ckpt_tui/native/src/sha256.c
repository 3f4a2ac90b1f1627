/* SHA-256 of two messages at once on one core.
 *
 * The processor's instructions for it (SHA-NI) have a long latency, and each round needs the one before: one message
 * leaves the unit idle for half of the time. Two that have nothing to do with each other fill it. FIPS 180-4. */
#include "native.h"

#if X86
#include <cpuid.h>
#include <immintrin.h>

#define BLOCK 64
#define SHA_NI __attribute__((noinline, target("sha,ssse3,sse4.1")))

static const uint32_t ROUNDS[64] __attribute__((aligned(64))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The hash value a to h, as the instructions want it: {f, e, b, a} and {h, g, d, c} from the lowest word. */
typedef struct {
    uint32_t abef[4], cdgh[4];
} Value;

static const Value BEGINNING = {
    {0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667},
    {0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372},
};

/* `count` blocks of LANES messages. Unrolled for a known number of lanes, so that all of it stays in registers. */
#define COMPRESS(LANES)                                                                                           \
    SHA_NI static void compress##LANES(Value *const *values, const uint8_t *const *messages, size_t count) {      \
        const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);                          \
        __m128i abef[LANES], cdgh[LANES];                                                                         \
        const uint8_t *at[LANES];                                                                                 \
        for (int lane = 0; lane < LANES; lane++) {                                                                \
            abef[lane] = _mm_loadu_si128((const __m128i *)values[lane]->abef);                                    \
            cdgh[lane] = _mm_loadu_si128((const __m128i *)values[lane]->cdgh);                                    \
            at[lane] = messages[lane];                                                                            \
        }                                                                                                         \
        while (count--) {                                                                                         \
            __m128i a[LANES], c[LANES], words[LANES][4];                                                          \
            for (int lane = 0; lane < LANES; lane++) {                                                            \
                a[lane] = abef[lane];                                                                             \
                c[lane] = cdgh[lane];                                                                             \
                for (int part = 0; part < 4; part++)                                                              \
                    words[lane][part] =                                                                           \
                        _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at[lane] + 16 * part)), swap);         \
                at[lane] += BLOCK;                                                                                \
            }                                                                                                     \
            _Pragma("GCC unroll 16") for (int four = 0; four < 16; four++) {                                      \
                const __m128i constants = _mm_load_si128((const __m128i *)(ROUNDS + 4 * four));                   \
                for (int lane = 0; lane < LANES; lane++) {                                                        \
                    __m128i *w = words[lane];                                                                     \
                    __m128i sum = _mm_add_epi32(w[four & 3], constants);                                          \
                    c[lane] = _mm_sha256rnds2_epu32(c[lane], a[lane], sum);                                       \
                    a[lane] = _mm_sha256rnds2_epu32(a[lane], c[lane], _mm_shuffle_epi32(sum, 0x0e));              \
                    if (four < 12) {                                                                              \
                        __m128i next = _mm_sha256msg1_epu32(w[four & 3], w[(four + 1) & 3]);                      \
                        next = _mm_add_epi32(next, _mm_alignr_epi8(w[(four + 3) & 3], w[(four + 2) & 3], 4));     \
                        w[four & 3] = _mm_sha256msg2_epu32(next, w[(four + 3) & 3]);                              \
                    }                                                                                             \
                }                                                                                                 \
            }                                                                                                     \
            for (int lane = 0; lane < LANES; lane++) {                                                            \
                abef[lane] = _mm_add_epi32(abef[lane], a[lane]);                                                  \
                cdgh[lane] = _mm_add_epi32(cdgh[lane], c[lane]);                                                  \
            }                                                                                                     \
        }                                                                                                         \
        for (int lane = 0; lane < LANES; lane++) {                                                                \
            _mm_storeu_si128((__m128i *)values[lane]->abef, abef[lane]);                                          \
            _mm_storeu_si128((__m128i *)values[lane]->cdgh, cdgh[lane]);                                          \
        }                                                                                                         \
    }

COMPRESS(1)
COMPRESS(2)

static int has_instructions(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}

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
    compress1(&value, &at, count);
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
        compress1(&value, &at, 1);
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
    compress2(values, messages, both);
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
    compress1(&values, &messages, count);
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

/* `Sha256` is there where the processor has the instructions. */
int add_sha256(PyObject *module) {
    if (!has_instructions()) return 0;
    PyObject *type = PyType_FromSpec(&sha256_spec);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Sha256", type);
    Py_DECREF(type);
    return failed;
}

#else

int add_sha256(PyObject *module) {
    (void)module;
    return 0;
}

#endif
