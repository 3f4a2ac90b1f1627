/* The rows of a table, written end to end from its columns: what a composite digest is made over. */
#include "native.h"

enum { MOST_COLUMNS = 8 };

/* One column: `kind` is a letter of the pattern. */
typedef struct {
    char kind;
    PyObject *items;  /* of all but `d`: a list, or names */
    Py_buffer packed; /* of `d` */
} Column;

/* The bytes of a str (as UTF-8) or a bytes object, borrowed; NULL with an error set for anything else. */
static const char *text_of(PyObject *object, Py_ssize_t *length) {
    if (PyUnicode_Check(object)) return PyUnicode_AsUTF8AndSize(object, length);
    if (PyBytes_Check(object)) {
        *length = PyBytes_GET_SIZE(object);
        return PyBytes_AS_STRING(object);
    }
    PyErr_SetString(PyExc_TypeError, "a column of text holds str and bytes");
    return NULL;
}

/* An integer of a list or tuple; 0 with an error set where it is none, or does not fit into 64 bits. */
static int put_number(uint8_t *out, PyObject *item) {
    uint64_t value = PyLong_AsUnsignedLongLong(item);
    if (value == (uint64_t)-1 && PyErr_Occurred()) return 0;
    put_integer(out, value);
    return 1;
}

/* How long a column's part of a row is; with `out` also written there. Negative with an error set. */
static Py_ssize_t put(const Column *column, Py_ssize_t row, uint8_t *out) {
    if (column->kind == 'd') {
        if (out) {
            put_integer(out, WIDTH);
            memcpy(out + 8, (const uint8_t *)column->packed.buf + row * WIDTH, WIDTH);
        }
        return 8 + WIDTH;
    }
    if (is_names(column->items)) {
        Text text = names_text(column->items, row);
        if (out) {
            put_integer(out, text.length);
            memcpy(out + 8, text.at, text.length);
        }
        return 8 + (Py_ssize_t)text.length;
    }
    PyObject *item = PyList_GET_ITEM(column->items, row);
    if (column->kind == 'q') return !out || put_number(out, item) ? 8 : -1;
    if (column->kind == 't') {
        if (!PyTuple_Check(item)) {
            PyErr_SetString(PyExc_TypeError, "a column of tuples holds tuples");
            return -1;
        }
        Py_ssize_t count = PyTuple_GET_SIZE(item);
        if (out) {
            put_integer(out, (uint64_t)count);
            for (Py_ssize_t i = 0; i < count; i++)
                if (!put_number(out + 8 * (i + 1), PyTuple_GET_ITEM(item, i))) return -1;
        }
        return 8 * (count + 1);
    }
    Py_ssize_t length;
    const char *text = text_of(item, &length);
    if (!text) return -1;
    if (out) {
        put_integer(out, (uint64_t)length);
        memcpy(out + 8, text, (size_t)length);
    }
    return 8 + length;
}

/* The row at a place in an order, which is an array of 32 bits or a list; negative with an error set. */
static Py_ssize_t row_at(PyObject *list, const Py_buffer *packed, Py_ssize_t place, Py_ssize_t rows) {
    Py_ssize_t row = place;
    if (packed->obj) row = ((const uint32_t *)packed->buf)[place];
    else if (list) row = PyLong_AsSsize_t(PyList_GET_ITEM(list, place));
    if (row >= 0 && row < rows) return row;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the order names a row that is not there");
    return -1;
}

/* Every row in turn, from `order` where there is one. How long all of them are; negative with an error set. */
static Py_ssize_t put_all(const Column *columns, int count, Py_ssize_t rows, PyObject *list, const Py_buffer *packed,
                          uint8_t *out) {
    Py_ssize_t total = 0;
    for (Py_ssize_t place = 0; place < rows; place++) {
        Py_ssize_t row = row_at(list, packed, place, rows);
        if (row < 0) return -1;
        for (int column = 0; column < count; column++) {
            Py_ssize_t length = put(&columns[column], row, out ? out + total : NULL);
            if (length < 0) return -1;
            total += length;
        }
    }
    return total;
}

/* How many items a list or names have; negative where it is neither. */
static Py_ssize_t items_of(PyObject *value) {
    return PyList_Check(value) ? PyList_GET_SIZE(value) : is_names(value) ? names_count(value) : -1;
}

static int take_column(Column *column, char kind, PyObject *value, Py_ssize_t rows) {
    column->kind = kind;
    if (kind == 'd') {
        if (PyObject_GetBuffer(value, &column->packed, PyBUF_SIMPLE)) return 0;
        if (column->packed.len == rows * WIDTH) return 1;
    } else if (strchr("sqt", kind) && (PyList_Check(value) || (kind == 's' && is_names(value)))) {
        column->items = value;
        if (items_of(value) == rows) return 1;
    }
    PyErr_SetString(PyExc_ValueError, "the columns are not those of the pattern, or not of one length");
    return 0;
}

/* pack_rows(pattern, order or None, *columns), with as many rows as the first column has items. No Python code runs
 * between measuring and writing. */
PyObject *pack_rows(PyObject *Py_UNUSED(module), PyObject *args) {
    Column columns[MOST_COLUMNS] = {{0}};
    PyObject *made = NULL;
    Py_ssize_t given = PyTuple_GET_SIZE(args) - 2;
    if (given < 1 || given > MOST_COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "pack_rows(pattern, order, *columns): one to eight columns");
        return NULL;
    }
    PyObject *order = PyTuple_GET_ITEM(args, 1);
    const char *pattern = PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 0));
    if (!pattern) return NULL;
    Py_ssize_t rows = items_of(PyTuple_GET_ITEM(args, 2)), ordered = rows;
    Py_buffer packed = {0};
    if (order == Py_None) {
        order = NULL;
    } else if (PyList_Check(order)) {
        ordered = PyList_GET_SIZE(order);
    } else {
        if (PyObject_GetBuffer(order, &packed, PyBUF_SIMPLE)) return NULL;
        ordered = packed.len % 4 ? -1 : packed.len / 4;
        order = NULL;
    }
    if (rows < 0 || (Py_ssize_t)strlen(pattern) != given || ordered != rows) {
        PyErr_SetString(PyExc_ValueError, "a list or names first, a letter a column, and an order of as many rows");
        goto out;
    }
    for (Py_ssize_t i = 0; i < given; i++)
        if (!take_column(&columns[i], pattern[i], PyTuple_GET_ITEM(args, 2 + i), rows)) goto out;
    Py_ssize_t total = put_all(columns, (int)given, rows, order, &packed, NULL);
    if (total < 0 || !(made = PyBytes_FromStringAndSize(NULL, total))) goto out;
    if (put_all(columns, (int)given, rows, order, &packed, (uint8_t *)PyBytes_AS_STRING(made)) != total) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a column changed while it was written");
        Py_CLEAR(made);
    }
out:
    for (Py_ssize_t i = 0; i < given; i++)
        if (columns[i].packed.obj) PyBuffer_Release(&columns[i].packed);
    if (packed.obj) PyBuffer_Release(&packed);
    return made;
}
