/* The JSON of a safetensors header as every writer makes it, into columns. Anything odd is left to the careful parser:
 * what is read here has no escapes, no unknown field, no field twice, no sign, no empty tensor, and its tensors lie end
 * to end in the order in which they are listed. */
#include "native.h"

enum { MOST_DIMS = 16, MOST_KINDS = 256, SLOTS = 1024, MOST_DIGITS = 18 };

/* A pair of dtype and shape. A file has few, and tensors of one kind are of one length. */
typedef struct {
    Text dtype;
    int dims;
    uint64_t shape[MOST_DIMS];
    uint64_t length;
    PyObject *dtype_object, *shape_object, *length_object;
} Kind;

typedef struct {
    const char *at, *end;
    int plain; /* whether all names and dtypes so far are printable ASCII */
    Kind kinds[MOST_KINDS];
    int count;
    int16_t slots[SLOTS]; /* number of a kind and 1; 0 is free */
    Text *names;
    Py_ssize_t named, room; /* how many names there are, and how many fit */
    PyObject *dtypes, *shapes, *offsets, *lengths;
    const char *metadata; /* the object, with its braces */
    Py_ssize_t metadata_length;
} Parser;

static void skip_space(Parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static int next_is(Parser *p, char wanted) {
    skip_space(p);
    if (p->at == p->end || *p->at != wanted) return 0;
    p->at++;
    return 1;
}

/* A string without escapes and control characters; `plain` is cleared where it is not printable ASCII. */
static int read_string(Parser *p, Text *found, int *plain) {
    if (!next_is(p, '"')) return 0;
    found->at = p->at;
    for (; p->at < p->end && *p->at != '"'; p->at++) {
        unsigned char byte = (unsigned char)*p->at;
        if (byte == '\\' || byte < 0x20) return 0;
        if (byte > 0x7e) *plain = 0;
    }
    if (p->at == p->end || p->at - found->at > UINT32_MAX) return 0;
    found->length = (uint32_t)(p->at++ - found->at);
    return 1;
}

static int read_integer(Parser *p, uint64_t *value) {
    skip_space(p);
    const char *begin = p->at;
    *value = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') *value = *value * 10 + (uint64_t)(*p->at++ - '0');
    Py_ssize_t digits = p->at - begin;
    /* A dot or an exponent after it is no comma and no bracket, so that it ends here as well. */
    return digits > 0 && digits <= MOST_DIGITS && (digits == 1 || *begin != '0');
}

static int read_integers(Parser *p, uint64_t *values, int most, int *count) {
    *count = 0;
    if (!next_is(p, '[')) return 0;
    if (next_is(p, ']')) return 1;
    do {
        if (*count == most || !read_integer(p, &values[(*count)++])) return 0;
    } while (next_is(p, ','));
    return next_is(p, ']');
}

static int is(const Text *text, const char *word) {
    return text->length == strlen(word) && !memcmp(text->at, word, text->length);
}

/* An entry: its three fields, in any order. */
static int read_entry(Parser *p, Kind *kind, uint64_t range[2]) {
    int seen = 0, count, ascii = 1;
    if (!next_is(p, '{')) return 0;
    do {
        Text field;
        int which;
        if (!read_string(p, &field, &ascii) || !next_is(p, ':')) return 0;
        if (is(&field, "dtype")) {
            which = 1;
            if (!read_string(p, &kind->dtype, &p->plain)) return 0;
        } else if (is(&field, "shape")) {
            which = 2;
            if (!read_integers(p, kind->shape, MOST_DIMS, &kind->dims)) return 0;
        } else if (is(&field, "data_offsets")) {
            which = 4;
            if (!read_integers(p, range, 2, &count) || count != 2) return 0;
        } else {
            return 0;
        }
        if (seen & which) return 0;
        seen |= which;
    } while (next_is(p, ','));
    return seen == 7 && next_is(p, '}');
}

/* The metadata: an object of strings, which whoever called parses. */
static int read_metadata(Parser *p) {
    int ascii = 1;
    if (p->metadata || !next_is(p, '{')) return 0;
    p->metadata = p->at - 1;
    if (!next_is(p, '}')) {
        do {
            Text key, value;
            if (!read_string(p, &key, &ascii) || !next_is(p, ':') || !read_string(p, &value, &ascii)) return 0;
        } while (next_is(p, ','));
        if (!next_is(p, '}')) return 0;
    }
    p->metadata_length = p->at - p->metadata;
    return 1;
}

static int same_kind(const Kind *one, const Kind *other) {
    return one->dtype.length == other->dtype.length && one->dims == other->dims &&
           !memcmp(one->dtype.at, other->dtype.at, one->dtype.length) &&
           !memcmp(one->shape, other->shape, (size_t)one->dims * sizeof *one->shape);
}

static uint64_t hash_kind(const Kind *kind) { /* FNV-1a */
    uint64_t hash = 0xcbf29ce484222325;
    for (uint32_t i = 0; i < kind->dtype.length; i++) hash = (hash ^ (uint8_t)kind->dtype.at[i]) * 0x100000001b3;
    for (int i = 0; i < kind->dims; i++) hash = (hash ^ kind->shape[i]) * 0x100000001b3;
    return hash ^ hash >> 29;
}

static int make_objects(Kind *kind) {
    kind->dtype_object = PyUnicode_DecodeUTF8(kind->dtype.at, kind->dtype.length, "strict");
    kind->shape_object = PyTuple_New(kind->dims);
    kind->length_object = PyLong_FromUnsignedLongLong(kind->length);
    for (int i = 0; kind->shape_object && i < kind->dims; i++) {
        PyObject *dim = PyLong_FromUnsignedLongLong(kind->shape[i]);
        if (!dim) return 0;
        PyTuple_SET_ITEM(kind->shape_object, i, dim);
    }
    return kind->dtype_object && kind->shape_object && kind->length_object;
}

/* The kind among those seen, with its objects; NULL where there are too many, where it has another length, or without
 * memory. */
static Kind *find_kind(Parser *p, const Kind *wanted) {
    uint64_t slot = hash_kind(wanted) % SLOTS;
    for (; p->slots[slot]; slot = (slot + 1) % SLOTS) {
        Kind *kind = &p->kinds[p->slots[slot] - 1];
        if (same_kind(kind, wanted)) return kind->length == wanted->length ? kind : NULL;
    }
    if (p->count == MOST_KINDS) return NULL;
    Kind *kind = &p->kinds[p->count++];
    *kind = *wanted;
    kind->dtype_object = kind->shape_object = kind->length_object = NULL;
    p->slots[slot] = (int16_t)p->count;
    return make_objects(kind) ? kind : NULL;
}

static int append_new(PyObject *list, PyObject *item) {
    if (!item) return 0;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return !failed;
}

static int append_name(Parser *p, Text name) {
    if (p->named == p->room) {
        Py_ssize_t room = p->room ? 2 * p->room : 64;
        Text *names = room <= MOST_NAMES ? PyMem_Realloc(p->names, (size_t)room * sizeof *names) : NULL;
        if (!names) return 0;
        p->names = names;
        p->room = room;
    }
    p->names[p->named++] = name;
    return 1;
}

static int read_tensor(Parser *p, Text name, int ascii, uint64_t base, uint64_t *position) {
    Kind found;
    uint64_t range[2];
    if (!read_entry(p, &found, range) || range[0] != *position || range[1] <= range[0]) return 0;
    found.length = range[1] - range[0];
    *position = range[1];
    Kind *kind = find_kind(p, &found);
    if (!ascii) p->plain = 0;
    return kind && append_name(p, name) && !PyList_Append(p->dtypes, kind->dtype_object) &&
           !PyList_Append(p->shapes, kind->shape_object) &&
           append_new(p->offsets, PyLong_FromUnsignedLongLong(base + range[0])) &&
           !PyList_Append(p->lengths, kind->length_object);
}

static int read_header(Parser *p, uint64_t base) {
    uint64_t position = 0;
    if (!next_is(p, '{')) return 0;
    if (!next_is(p, '}')) {
        do {
            Text name;
            int ascii = 1;
            if (!read_string(p, &name, &ascii) || !next_is(p, ':')) return 0;
            if (is(&name, "__metadata__") ? !read_metadata(p) : !read_tensor(p, name, ascii, base, &position)) return 0;
        } while (next_is(p, ','));
        if (!next_is(p, '}')) return 0;
    }
    skip_space(p);
    return p->at == p->end;
}

/* (dtype, shape, length) of each kind. */
static PyObject *kind_list(const Parser *p) {
    PyObject *made = PyList_New(p->count);
    for (int i = 0; made && i < p->count; i++) {
        const Kind *kind = &p->kinds[i];
        PyObject *row = PyTuple_Pack(3, kind->dtype_object, kind->shape_object, kind->length_object);
        if (!row) Py_CLEAR(made);
        else PyList_SET_ITEM(made, i, row);
    }
    return made;
}

/* The names: a list of str where some are not printable ASCII, as these want a closer look. */
static PyObject *name_column(Parser *p, PyObject *raw) {
    if (p->plain) {
        Text *names = p->names;
        p->names = NULL;
        return new_names(names, p->named, Py_NewRef(raw));
    }
    PyObject *made = PyList_New(p->named);
    for (Py_ssize_t i = 0; made && i < p->named; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(p->names[i].at, (Py_ssize_t)p->names[i].length, "strict");
        if (!name) Py_CLEAR(made);
        else PyList_SET_ITEM(made, i, name);
    }
    return made;
}

/* header_columns(raw, start): the columns of the header whose JSON begins at `start` in a bytes object, or None where
 * it is odd. */
PyObject *header_columns(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *raw;
    Py_ssize_t start;
    if (!PyArg_ParseTuple(args, "Sn:header_columns", &raw, &start)) return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(raw);
    PyObject *made = NULL;
    Parser *p = PyMem_Calloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    if (start < 0 || start > size) {
        PyErr_SetString(PyExc_ValueError, "the JSON begins beyond the header's end");
    } else if ((p->dtypes = PyList_New(0)) && (p->shapes = PyList_New(0)) && (p->offsets = PyList_New(0)) &&
               (p->lengths = PyList_New(0))) {
        p->at = PyBytes_AS_STRING(raw) + start;
        p->end = PyBytes_AS_STRING(raw) + size;
        p->plain = 1;
        PyObject *names = read_header(p, (uint64_t)size) ? name_column(p, raw) : NULL;
        PyObject *kinds = names ? kind_list(p) : NULL;
        if (kinds)
            made = Py_BuildValue("(OOOOOOy#)", names, p->dtypes, p->shapes, p->offsets, p->lengths, kinds,
                                 p->metadata ? p->metadata : "{}", p->metadata ? p->metadata_length : (Py_ssize_t)2);
        Py_XDECREF(names);
        Py_XDECREF(kinds);
        if (!made && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))) {
            PyErr_Clear();
            made = Py_NewRef(Py_None);
        }
    }
    for (int i = 0; i < p->count; i++) {
        Py_XDECREF(p->kinds[i].dtype_object);
        Py_XDECREF(p->kinds[i].shape_object);
        Py_XDECREF(p->kinds[i].length_object);
    }
    PyObject *lists[] = {p->dtypes, p->shapes, p->offsets, p->lengths};
    for (int i = 0; i < 4; i++) Py_XDECREF(lists[i]);
    PyMem_Free(p->names);
    PyMem_Free(p);
    return made;
}
