/* Very many names as they lie in the headers that they were read from: no object a name until somebody asks for it. */
#include "native.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

typedef struct {
    PyObject_HEAD Py_ssize_t count;
    Text *texts;
    PyObject *owner; /* what keeps the texts in memory */
} Names;

static PyTypeObject *names_type;

int is_names(PyObject *object) { return names_type && Py_IS_TYPE(object, names_type); }

Py_ssize_t names_count(PyObject *object) { return ((Names *)object)->count; }

Text names_text(PyObject *object, Py_ssize_t place) { return ((Names *)object)->texts[place]; }

/* Takes `texts` over, which PyMem made, and a reference to `owner`, also where it fails. */
PyObject *new_names(Text *texts, Py_ssize_t count, PyObject *owner) {
    Names *self = owner ? (Names *)names_type->tp_alloc(names_type, 0) : NULL;
    if (!self) {
        PyMem_Free(texts);
        Py_XDECREF(owner);
        return NULL;
    }
    self->texts = texts;
    self->count = count;
    self->owner = owner;
    return (PyObject *)self;
}

static void free_names(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyMem_Free(((Names *)object)->texts);
    Py_XDECREF(((Names *)object)->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *item(PyObject *object, Py_ssize_t place) {
    Names *self = (Names *)object;
    if (place < 0 || place >= self->count) {
        PyErr_SetString(PyExc_IndexError, "no name of that number");
        return NULL;
    }
    return PyUnicode_DecodeASCII(self->texts[place].at, (Py_ssize_t)self->texts[place].length, "strict");
}

/* unique(): whether no two are equal. */
static PyObject *unique(PyObject *object, PyObject *Py_UNUSED(none)) {
    Names *self = (Names *)object;
    size_t slots = 16;
    while (slots < 2 * (size_t)self->count) slots *= 2;
    /* The number of a name and 1, and a part of its hash that the slot does not tell. */
    struct { uint32_t number, check; } *table = PyMem_RawCalloc(slots, sizeof *table);
    if (!table) return PyErr_NoMemory();
    int twice = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < self->count && !twice; i++) {
        Text text = self->texts[i];
        uint64_t hash = XXH3_64bits(text.at, text.length);
        uint32_t check = (uint32_t)(hash >> 32);
        size_t slot = hash & (slots - 1);
        for (; table[slot].number && !twice; slot = (slot + 1) & (slots - 1)) {
            Text other = self->texts[table[slot].number - 1];
            twice = table[slot].check == check && other.length == text.length && !memcmp(other.at, text.at, text.length);
        }
        table[slot].number = (uint32_t)i + 1;
        table[slot].check = check;
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(table);
    return PyBool_FromLong(!twice);
}

/* A name on its way to its place, and the eight bytes after what all have in common: few need a look at the rest. */
typedef struct {
    uint64_t key;
    const Text *text;
} Sorted;

static int compare(const void *one, const void *other) {
    Text a = *((const Sorted *)one)->text, b = *((const Sorted *)other)->text;
    int found = memcmp(a.at, b.at, a.length < b.length ? a.length : b.length);
    return found ? found : (a.length > b.length) - (a.length < b.length);
}

/* By key, a byte after the other from the last. Where the result is: `items`, or `spare`, which has as much room. */
static Sorted *by_key(Sorted *items, Sorted *spare, Py_ssize_t count) {
    for (int shift = 0; shift < 64; shift += 8) {
        Py_ssize_t starts[257] = {0};
        for (Py_ssize_t i = 0; i < count; i++) starts[(items[i].key >> shift & 255) + 1]++;
        if (count && starts[(items[0].key >> shift & 255) + 1] == count) continue; /* all alike */
        for (int byte = 0; byte < 256; byte++) starts[byte + 1] += starts[byte];
        for (Py_ssize_t i = 0; i < count; i++) spare[starts[items[i].key >> shift & 255]++] = items[i];
        Sorted *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

/* Names of one key by the rest of them; whether two are equal. */
static int by_rest(Sorted *items, Py_ssize_t count) {
    for (Py_ssize_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && items[end].key == items[begin].key;) end++;
        if (end - begin < 2) continue;
        qsort(items + begin, (size_t)(end - begin), sizeof *items, compare);
        for (Py_ssize_t i = begin + 1; i < end; i++)
            if (!compare(&items[i - 1], &items[i])) return 1;
    }
    return 0;
}

/* How many bytes all names begin with. */
static uint32_t in_common(const Names *names) {
    if (!names->count) return 0;
    Text first = names->texts[0];
    uint32_t common = first.length;
    for (Py_ssize_t i = 1; i < names->count; i++) {
        Text text = names->texts[i];
        uint32_t same = 0;
        while (same < common && same < text.length && text.at[same] == first.at[same]) same++;
        common = same;
    }
    return common;
}

/* The first bytes behind `from` as a number that sorts as they do. A name that ends there sorts first: none holds a
 * zero byte. */
static uint64_t key_of(Text text, uint32_t from) {
    uint64_t key = 0;
    for (uint32_t byte = from; byte < from + 8; byte++)
        key = key << 8 | (byte < text.length ? (uint8_t)text.at[byte] : 0);
    return key;
}

/* order(): the places of the names in the order of their bytes, 4 bytes each; None where two are equal. */
static PyObject *order(PyObject *object, PyObject *Py_UNUSED(none)) {
    Names *self = (Names *)object;
    size_t room = self->count ? (size_t)self->count : 1;
    Sorted *items = PyMem_Malloc(2 * room * sizeof *items), *sorted = NULL;
    if (!items) return PyErr_NoMemory();
    int twice = 0;
    Py_BEGIN_ALLOW_THREADS
    uint32_t common = in_common(self);
    for (Py_ssize_t i = 0; i < self->count; i++)
        items[i] = (Sorted){key_of(self->texts[i], common), &self->texts[i]};
    sorted = by_key(items, items + room, self->count);
    twice = by_rest(sorted, self->count);
    Py_END_ALLOW_THREADS
    PyObject *made = twice ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(NULL, self->count * 4);
    if (made && !twice)
        for (Py_ssize_t i = 0; i < self->count; i++) {
            uint32_t place = (uint32_t)(sorted[i].text - self->texts);
            memcpy(PyBytes_AS_STRING(made) + 4 * i, &place, 4);
        }
    PyMem_Free(items);
    return made;
}

/* behind(first): these names after another, a str of ASCII. */
static PyObject *behind(PyObject *object, PyObject *first) {
    Names *self = (Names *)object;
    if (!PyUnicode_Check(first) || !PyUnicode_IS_ASCII(first)) {
        PyErr_SetString(PyExc_TypeError, "a name of ASCII goes first");
        return NULL;
    }
    Text *texts = PyMem_Malloc((size_t)(self->count + 1) * sizeof *texts);
    if (!texts) return PyErr_NoMemory();
    texts[0] = (Text){(const char *)PyUnicode_1BYTE_DATA(first), (uint32_t)PyUnicode_GET_LENGTH(first)};
    if (self->count) memcpy(texts + 1, self->texts, (size_t)self->count * sizeof *texts);
    return new_names(texts, self->count + 1, PyTuple_Pack(2, first, object));
}

/* joined(columns): all names of a tuple of Names. */
static PyObject *joined(PyObject *Py_UNUSED(type), PyObject *columns) {
    size_t total = 0;
    if (!PyTuple_Check(columns)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of names is joined");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++) {
        if (!is_names(PyTuple_GET_ITEM(columns, i))) {
            PyErr_SetString(PyExc_TypeError, "a tuple of names is joined");
            return NULL;
        }
        total += (size_t)names_count(PyTuple_GET_ITEM(columns, i));
    }
    if (total > MOST_NAMES) {
        PyErr_SetString(PyExc_OverflowError, "too many names");
        return NULL;
    }
    Text *texts = PyMem_Malloc((total ? total : 1) * sizeof *texts), *at = texts;
    if (!texts) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(columns); i++) {
        Names *one = (Names *)PyTuple_GET_ITEM(columns, i);
        if (one->count) memcpy(at, one->texts, (size_t)one->count * sizeof *at);
        at += one->count;
    }
    return new_names(texts, (Py_ssize_t)total, Py_NewRef(columns));
}

static PyMethodDef names_methods[] = {
    {"behind", behind, METH_O, NULL},
    {"joined", joined, METH_O | METH_CLASS, NULL},
    {"order", order, METH_NOARGS, NULL},
    {"unique", unique, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static Py_ssize_t length(PyObject *object) { return ((Names *)object)->count; }

static PyType_Slot names_slots[] = {
    {Py_tp_dealloc, free_names},
    {Py_tp_methods, names_methods},
    {Py_sq_item, item},
    {Py_sq_length, length},
    {0, NULL},
};

static PyType_Spec names_spec = {
    .name = "ckpt_tui.native._compiled.Names",
    .basicsize = sizeof(Names),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = names_slots,
};

int add_names(PyObject *module) {
    if (!names_type) names_type = (PyTypeObject *)PyType_FromSpec(&names_spec);
    return names_type ? PyModule_AddObjectRef(module, "Names", (PyObject *)names_type) : -1;
}
