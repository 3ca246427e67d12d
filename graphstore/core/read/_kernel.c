/* Point reads over the columns of the index: the row at (valid, tx), the links at (valid, tx), and the same frozen Node and Link that Python makes.

   Whatever is unusual is left to Python: a function answers None, and the caller goes the other way, which raises every error. So nothing here words a
   refusal, and a container of another type costs speed, never an answer.

   Limited API of 3.11: one build serves every later Python. What it lacks is not missed: a datetime is made from the ten bytes it is pickled as. A column's
   buffer is held for one look alone, since an array with an export refuses to grow. No Python code runs while the row of a thing is looked for. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define FEW 48 /* rows of a thing, and links at one end of it, that are looked through one by one */
#define DAY 86400000000LL

/* attributes that are read, fields of bodies and of values, and words */
#define NAMES(X) \
    X(index) X(packed) X(journal) X(_blocks) X(core) X(valid) X(tx) X(get) X(isspace) X(standing) X(ids) X(names) X(is_event) X(born) X(changed) X(kind) X(key) \
    X(scope) X(rows_of) X(now_of) X(rows_of_link) X(out) X(into) X(successors) X(even) X(tainted) X(_standings) X(_shaken) X(_outside) X(gone) \
    X(undone_by) X(v_ent) X(v_num) X(v_pos) X(v_len) X(v_op) X(r_from) X(r_to) X(r_tx) X(r_end) X(r_ver) X(o_tx) X(o_author) X(l_name) X(l_kind) X(l_src) \
    X(l_tgt) X(c_strength) X(c_inferred) X(c_pos) X(c_len) X(c_op) X(c_by) X(k_link) X(k_claim) X(k_from) X(k_to) X(k_tx) X(k_end) X(id) X(number) \
    X(content) X(text) X(tags) X(trigger) X(source) X(author) X(recorded_at) X(valid_from) X(valid_to) X(tx_from) X(tx_to) X(target) X(reason) X(strength) \
    X(confidence) X(created_by) X(metadata) X(source_standing) X(target_standing) X(stands) X(shaky) X(explicit) X(inferred) X(initial)

#define X(name) N_##name,
enum { NAMES(X) N_COUNT };
#undef X
#define X(name) #name,
static const char *const TEXTS[] = {NAMES(X)};
#undef X

typedef struct { PyObject *type, *fields, *named; } Model; /* a class of values, its fields with None, and the set of their names */

typedef struct {
    PyObject *names[N_COUNT], *loads, *datetime, *utc, *statement, *set_named, *set_extra, *set_private; /* the last three: slots of a record */
    Model node, link;
    descrsetfunc set;
    newfunc new_datetime;
    long long open, beginning;
    int block; /* of the journal in memory, in bits */
} State;

/* One look at a coordinate. `sight` is made when something is asked of it; the links of one answer share `standings`. */
typedef struct {
    State *s;
    PyObject *core, *index, *columns, *sight, *standings;
    long long valid, tx;
} Look;

#define NAME(name) (look->s->names[N_##name])
#define NUMBERED(number) PyDict_GetItemWithError(look->columns, look->s->names[number])
#define COLUMN(name) NUMBERED(N_##name)

/* ------------------------------------------------------------------ columns; where one fails it is left to Python */

static int as_number(PyObject *item, long long *found) {
    if (item == NULL)
        return -1;
    *found = PyLong_AsLongLong(item);
    Py_DECREF(item);
    return *found == -1 && PyErr_Occurred() ? -1 : 0;
}

/* A number of a buffer of numbers; those of 32 bits have a sign. */
static int in_buffer(PyObject *column, long long at, long long *found) {
    Py_buffer view;
    if (column == NULL || PyObject_GetBuffer(column, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int failed = at < 0 || at >= view.len / view.itemsize || view.itemsize > 8;
    if (!failed) {
        uint64_t bits = 0;
        memcpy((char *)&bits + (PY_BIG_ENDIAN ? 8 - view.itemsize : 0), (char *)view.buf + at * view.itemsize, (size_t)view.itemsize);
        *found = view.itemsize == 4 ? (int32_t)bits : (long long)bits;
    }
    PyBuffer_Release(&view);
    return failed ? -1 : 0;
}

/* What lies in a file at a place: a text of a table, one of many texts, or a list of numbers. NULL: left to Python. */
static PyObject *lying(PyObject *starts, PyObject *rest, long long at) {
    Py_buffer view;
    PyObject *found = NULL;
    long long from, to;
    if (in_buffer(starts, at, &from) < 0 || from < 0)
        return NULL;
    if (PyList_CheckExact(rest))
        return PySequence_GetItem(rest, (Py_ssize_t)from);
    if (in_buffer(starts, at + 1, &to) < 0 || PyObject_GetBuffer(rest, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const char *text = (const char *)view.buf + from * view.itemsize;
    Py_ssize_t size = to < from || to > view.len / view.itemsize ? -1 : (Py_ssize_t)(to - from);
    if (view.itemsize == 1 && size >= 0)
        found = size == 1 && *text == '\xff' ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8(text, size, NULL);
    else if (view.itemsize == 4 && size >= 0 && (found = PyList_New(size)) != NULL)
        for (int32_t number; found != NULL && size-- > 0;) {
            memcpy(&number, text + size * 4, 4);
            if (PyList_SetItem(found, size, PyLong_FromLong(number)) < 0 || PyErr_Occurred())
                Py_CLEAR(found);
        }
    PyBuffer_Release(&view);
    return found;
}

/* What a dictionary has of a number, or what lies in the file of a saved index, as a new reference. None: nothing. NULL: left to Python. */
static PyObject *kept_at(Look *look, PyObject *column, PyObject *key) {
    PyObject *item = Py_XNewRef(PyDict_GetItemWithError(column, key)), *packed;
    if (item != NULL || PyErr_Occurred() || PyDict_CheckExact(column))
        return item;
    packed = PyObject_GetAttr(column, NAME(packed));
    if (packed != NULL && PyTuple_CheckExact(packed)) /* not kept: what is read at random is found sooner in the file than among what was touched */
        item = lying(PyTuple_GetItem(packed, 0), PyTuple_GetItem(packed, 1), PyLong_AsLongLong(key));
    int nothing = item != NULL && PyTuple_GetItem(packed, 2) == Py_False && PyObject_Size(item) == 0;
    Py_XDECREF(packed), Py_XDECREF(nothing ? item : NULL);
    PyErr_Clear();
    return nothing ? Py_NewRef(Py_None) : item;
}

static PyObject *item_at(Look *look, PyObject *column, long long at) {
    if (column == NULL || at < 0 || at > PY_SSIZE_T_MAX)
        return NULL;
    if (PyList_CheckExact(column))
        return PySequence_GetItem(column, (Py_ssize_t)at);
    PyObject *key = PyLong_FromLongLong(at), *item = NULL;
    Py_INCREF(column); /* where it is left to Python, that may let it go */
    if (key != NULL && (!PyDict_Check(column) || (item = kept_at(look, column, key)) == NULL) && !PyErr_Occurred())
        item = PyObject_GetItem(column, key);
    Py_XDECREF(key);
    Py_DECREF(column);
    return item;
}

static int number_at(Look *look, PyObject *column, long long at, long long *found) {
    if (column == NULL || at < 0 || PyList_CheckExact(column) || !PyObject_CheckBuffer(column))
        return as_number(item_at(look, column, at), found);
    return in_buffer(column, at, found);
}

#define NO_NUMBER(name, at, found) (number_at(look, COLUMN(name), at, found) < 0)

/* What a dictionary has of a key, as a new reference; NULL with no error set where it has nothing. */
static PyObject *mapped(Look *look, PyObject *mapping, PyObject *key) {
    PyObject *value = NULL;
    Py_XINCREF(mapping);
    if (mapping == NULL || key == NULL)
        PyErr_SetNone(PyExc_LookupError);
    else if ((!PyDict_Check(mapping) || (value = kept_at(look, mapping, key)) == NULL) && !PyDict_CheckExact(mapping) && !PyErr_Occurred())
        value = PyObject_CallMethodObjArgs(mapping, NAME(get), key, NULL);
    if (value == Py_None)
        Py_CLEAR(value);
    Py_XDECREF(mapping);
    return value;
}

static PyObject *of_number(Look *look, PyObject *mapping, long long at) {
    PyObject *key = PyLong_FromLongLong(at), *value = mapped(look, mapping, key);
    Py_XDECREF(key);
    return value;
}

/* Whether a dictionary has a number, or -1. */
static int has(Look *look, PyObject *mapping, long long at) {
    PyObject *value = of_number(look, mapping, at);
    Py_XDECREF(value);
    return value != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether an instant lies in a period of a row, or -1. */
static int within(Look *look, int from, int to, long long row, long long at) {
    long long begins, ends;
    if (number_at(look, NUMBERED(from), row, &begins) < 0 || (begins <= at && number_at(look, NUMBERED(to), row, &ends) < 0))
        return -1;
    return begins <= at && at < ends;
}

/* The row that holds at (valid, tx): 1 and the row, 0 for none, -1. Believed rows never overlap. Takes the reference to the rows. */
static int holding(Look *look, PyObject *rows, int from, int to, int since, int end, long long *row) {
    Py_ssize_t count = rows == NULL ? -1 : PySequence_Size(rows);
    int found = count < 0 || count > FEW ? -1 : 0;
    while (found == 0 && --count >= 0) {
        found = number_at(look, rows, count, row) < 0 ? -1 : within(look, from, to, *row, look->valid);
        if (found == 1)
            found = within(look, since, end, *row, look->tx);
    }
    Py_XDECREF(rows);
    return found;
}

/* The row of an entity that holds at (valid, tx): as `holding`. */
static int find(Look *look, long long ent, long long *row) {
    long long changed;
    if (has(look, COLUMN(gone), ent) != 0 || NO_NUMBER(changed, ent, &changed))
        return -1;
    PyObject *rows = item_at(look, look->tx < changed ? COLUMN(rows_of) : COLUMN(now_of), ent);
    return holding(look, rows, N_r_from, N_r_to, N_r_tx, N_r_end, row);
}

/* ------------------------------------------------------------------ standings, as new references */

/* Whether a fall recorded by tx may shake an entity, or -1. */
static int in_reach(Look *look, long long ent) {
    long long since;
    PyObject *tainted = of_number(look, COLUMN(tainted), ent);
    if (tainted == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return as_number(tainted, &since) < 0 ? -1 : since <= look->tx;
}

/* The standing of an entity that has not fallen: by the spans that are kept, or else as a sight says. */
static PyObject *upright(Look *look, long long ent) {
    int reach = in_reach(look, ent);
    long long says = -reach;
    PyObject *spans = reach > 0 ? Py_XNewRef(COLUMN(_shaken)) : NULL;
    if (reach < 0)
        return NULL;
    if (spans != NULL && spans != Py_None && as_number(PyObject_CallMethod(spans, "says", "LLL", ent, look->valid, look->tx), &says) < 0)
        PyErr_Clear();
    Py_XDECREF(spans);
    if (says >= 0)
        return Py_NewRef(says ? NAME(shaky) : NAME(stands));
    if (look->sight == NULL)
        look->sight = PyObject_CallMethod(look->core, "sight", "LL", look->valid, look->tx);
    return look->sight == NULL ? NULL : PyObject_CallMethod(look->sight, "upright", "L", ent);
}

/* The standing of any entity, by its rows. */
static PyObject *found_standing(Look *look, long long ent) {
    long long row, event;
    if (find(look, ent, &row) == 1 && !NO_NUMBER(is_event, ent, &event) && (!event || (has(look, COLUMN(successors), ent) == 0 && COLUMN(_outside) == Py_None)))
        return upright(look, ent);
    PyErr_Clear();
    PyObject *word = PyObject_CallMethod(look->index, "standing", "LLL", ent, look->valid, look->tx);
    if (word == NULL || !PyUnicode_Check(word) || PyUnicode_Compare(word, NAME(stands)) != 0)
        return word;
    Py_DECREF(word);
    return upright(look, ent);
}

/* The same, which is computed once. */
static PyObject *standing_of(Look *look, long long ent) {
    PyObject *key = PyLong_FromLongLong(ent), *word = mapped(look, look->standings, key);
    if (word == NULL && !PyErr_Occurred() && (word = found_standing(look, ent)) != NULL &&
        PyDict_SetItem(look->standings, key, word) < 0)
        Py_CLEAR(word);
    Py_XDECREF(key);
    return word;
}

/* ------------------------------------------------------------------ values */

/* The aware datetime of an instant, from the bytes it is pickled as. */
static PyObject *moment(Look *look, long long at) {
    State *s = look->s;
    if (at < s->beginning || at > s->open)
        return NULL;
    long long days = at / DAY - (at % DAY < 0), rest = at - days * DAY;
    int z = (int)days + 719468, era = (z >= 0 ? z : z - 146096) / 146097; /* years that begin in March */
    int doe = z - era * 146097, yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    int month = mp < 10 ? mp + 3 : mp - 9, year = yoe + era * 400 + (month <= 2), day = doy - (153 * mp + 2) / 5 + 1;
    int seconds = (int)(rest / 1000000), micros = (int)(rest % 1000000);
    unsigned char state[10] = {year >> 8, year & 255, month, day, seconds / 3600, seconds / 60 % 60, seconds % 60,
                               micros >> 16, micros >> 8 & 255, micros & 255};
    PyObject *bytes = PyBytes_FromStringAndSize((char *)state, 10), *args = bytes == NULL ? NULL : PyTuple_Pack(2, bytes, s->utc);
    PyObject *made = args == NULL ? NULL : s->new_datetime((PyTypeObject *)s->datetime, args, NULL);
    Py_XDECREF(bytes);
    Py_XDECREF(args);
    return made;
}

/* Sets a field to a value, whose reference is taken. */
static int put(PyObject *fields, PyObject *name, PyObject *value) {
    int failed = value == NULL || PyDict_SetItem(fields, name, value) < 0;
    Py_XDECREF(value);
    return failed;
}

#define NO(name, value) put(fields, NAME(name), value)

/* The four instants of a row. What ends after tx, or is open, has no end here: the fields have None already. */
static int no_periods(Look *look, PyObject *fields, long long from, long long to, long long tx, long long end) {
    long long open = look->s->open;
    return NO(valid_from, moment(look, from)) || (to < open && NO(valid_to, moment(look, to))) || NO(tx_from, moment(look, tx)) ||
           (end <= look->tx && end < open && NO(tx_to, moment(look, end)));
}

/* A field of a body as a new reference, or what stands for one that is missing. */
static PyObject *of_body(PyObject *body, PyObject *name, PyObject *missing) {
    PyObject *value = PyDict_GetItemWithError(body, name);
    return Py_XNewRef(value != NULL || PyErr_Occurred() ? value : missing);
}

/* The frozen record with these fields, as `Value.made` makes it; none where there are none. Takes the reference to them. */
static PyObject *made(State *s, Model *model, PyObject *fields) {
    PyObject *self = fields == NULL ? NULL : PyType_GenericAlloc((PyTypeObject *)model->type, 0);
    if (self != NULL && (PyObject_GenericSetDict(self, fields, NULL) < 0 || s->set(s->set_named, self, model->named) < 0 ||
                         s->set(s->set_extra, self, Py_None) < 0 || s->set(s->set_private, self, Py_None) < 0))
        Py_CLEAR(self);
    Py_XDECREF(fields);
    return self;
}

/* The bytes at a place, where a block of the journal in memory has them. */
static PyObject *kept(Look *look, long long pos, Py_ssize_t length) {
    long long at = pos & ((1LL << look->s->block) - 1);
    PyObject *journal = PyObject_GetAttr(look->core, NAME(journal)), *found = NULL;
    PyObject *blocks = journal == NULL ? NULL : PyObject_GetAttr(journal, NAME(_blocks));
    PyObject *block = blocks == NULL ? NULL : of_number(look, blocks, pos >> look->s->block);
    if (block != NULL && PyBytes_CheckExact(block) && at + length <= PyBytes_Size(block))
        found = PyBytes_FromStringAndSize(PyBytes_AsString(block) + at, length);
    Py_XDECREF(journal), Py_XDECREF(blocks), Py_XDECREF(block);
    return found;
}

/* The body at a place, parsed. */
static PyObject *body_at(Look *look, long long pos, long long length) {
    if (pos < 0 || length <= 0)
        return NULL;
    PyObject *bytes = kept(look, pos, (Py_ssize_t)length);
    if (bytes == NULL) {
        PyErr_Clear();
        bytes = PyObject_CallMethod(look->core, "raw", "LL", pos, length);
    }
    PyObject *body = bytes == NULL ? NULL : PyObject_CallFunctionObjArgs(look->s->loads, bytes, NULL);
    Py_XDECREF(bytes);
    if (body != NULL && !PyDict_CheckExact(body))
        Py_CLEAR(body);
    return body;
}

/* The first text among the fields of a content that can be its statement, or None. */
static PyObject *own_statement(Look *look, PyObject *content) {
    for (Py_ssize_t at = 0; at < PyTuple_Size(look->s->statement); at++) {
        PyObject *value = PyDict_GetItemWithError(content, PyTuple_GetItem(look->s->statement, at));
        if (value == NULL || !PyUnicode_Check(value) || PyUnicode_GetLength(value) == 0)
            continue;
        Py_UCS4 first = PyUnicode_ReadChar(value, 0);
        if (first > ' ' && first < 0x7f)
            return Py_NewRef(value);
        PyObject *blank = PyObject_CallMethodObjArgs(value, NAME(isspace), NULL);
        Py_XDECREF(blank);
        if (blank != Py_True)
            return blank == NULL ? NULL : Py_NewRef(value);
    }
    return Py_NewRef(Py_None);
}

/* What a body says of a node. */
static int no_description(Look *look, PyObject *fields, PyObject *body) {
    PyObject *content = PyDict_GetItemWithError(body, NAME(content)), *text = PyDict_GetItemWithError(body, NAME(text));
    PyObject *tags = PyDict_GetItemWithError(body, NAME(tags));
    if (content == NULL || !PyDict_CheckExact(content) || (tags != NULL && !PyList_CheckExact(tags)))
        return 1;
    return NO(text, text == NULL || text == Py_None ? own_statement(look, content) : Py_NewRef(text)) ||
           NO(content, Py_NewRef(content)) || NO(tags, tags == NULL ? PyTuple_New(0) : PyList_AsTuple(tags)) ||
           NO(trigger, of_body(body, NAME(trigger), NAME(initial))) || NO(source, of_body(body, NAME(source), Py_None));
}

/* Who said something, and when; an operation that is not known, -1, is left to Python. */
static int no_telling(Look *look, PyObject *fields, long long op) {
    long long at;
    return NO_NUMBER(o_tx, op, &at) || NO(author, item_at(look, COLUMN(o_author), op)) || NO(recorded_at, moment(look, at));
}

/* A row of a node as a value. `standing`: NULL where it is still to be found. */
static PyObject *node_value(Look *look, long long row, PyObject *standing) {
    long long ver, ent, number, pos, length, op, from, to, tx, end;
    PyObject *fields = NULL, *body = NULL;
    if (NO_NUMBER(r_ver, row, &ver) || NO_NUMBER(v_ent, ver, &ent) || NO_NUMBER(v_num, ver, &number) || NO_NUMBER(v_pos, ver, &pos) ||
        NO_NUMBER(v_len, ver, &length) || NO_NUMBER(v_op, ver, &op) || NO_NUMBER(r_from, row, &from) || NO_NUMBER(r_to, row, &to) ||
        NO_NUMBER(r_tx, row, &tx) || NO_NUMBER(r_end, row, &end) || (body = body_at(look, pos, length)) == NULL ||
        (fields = PyDict_Copy(look->s->node.fields)) == NULL || NO(id, item_at(look, COLUMN(names), ent)) ||
        NO(kind, item_at(look, COLUMN(kind), ent)) || NO(key, item_at(look, COLUMN(key), ent)) || NO(scope, item_at(look, COLUMN(scope), ent)) ||
        NO(number, PyLong_FromLongLong(number)) || no_description(look, fields, body) || no_telling(look, fields, op) ||
        no_periods(look, fields, from, to, tx, end) || NO(standing, standing == NULL ? upright(look, ent) : Py_NewRef(standing)))
        Py_CLEAR(fields);
    Py_XDECREF(body);
    return made(look->s, &look->s->node, fields);
}

/* What the claim of a link says. */
static int no_claim(Look *look, PyObject *fields, long long claim) {
    long long pos, length, op, strength, inferred;
    PyObject *body = NULL;
    if (NO_NUMBER(c_op, claim, &op) || NO_NUMBER(c_strength, claim, &strength) || NO_NUMBER(c_inferred, claim, &inferred) ||
        NO_NUMBER(c_pos, claim, &pos) || NO_NUMBER(c_len, claim, &length) || (length && (body = body_at(look, pos, length)) == NULL))
        return 1;
    int failed = no_telling(look, fields, op) || (strength && NO(strength, PyLong_FromLongLong(strength))) ||
                 NO(confidence, Py_NewRef(inferred ? NAME(inferred) : NAME(explicit))) || NO(created_by, item_at(look, COLUMN(c_by), claim)) ||
                 (body && NO(reason, of_body(body, NAME(reason), Py_None)));
    PyObject *metadata = body == NULL || failed ? NULL : PyDict_GetItemWithError(body, NAME(metadata));
    failed = failed || NO(metadata, metadata == NULL ? PyDict_New() : Py_NewRef(metadata));
    Py_XDECREF(body);
    return failed;
}

/* A row of a link as a value. */
static PyObject *link_value(Look *look, long long row) {
    long long link, claim, source, target, from, to, tx, end;
    PyObject *fields = NULL;
    if (NO_NUMBER(k_link, row, &link) || NO_NUMBER(k_claim, row, &claim) || NO_NUMBER(l_src, link, &source) ||
        NO_NUMBER(l_tgt, link, &target) || NO_NUMBER(k_from, row, &from) || NO_NUMBER(k_to, row, &to) || NO_NUMBER(k_tx, row, &tx) ||
        NO_NUMBER(k_end, row, &end) || (fields = PyDict_Copy(look->s->link.fields)) == NULL ||
        NO(id, item_at(look, COLUMN(l_name), link)) || NO(source, item_at(look, COLUMN(names), source)) ||
        NO(kind, item_at(look, COLUMN(l_kind), link)) || NO(target, item_at(look, COLUMN(names), target)) || no_claim(look, fields, claim) ||
        no_periods(look, fields, from, to, tx, end) || NO(source_standing, standing_of(look, source)) ||
        NO(target_standing, standing_of(look, target)))
        Py_CLEAR(fields);
    return made(look->s, &look->s->link, fields);
}

/* Begins a look at the index of a core, or of a sight and its core. */
static int begin(Look *look, PyObject *holder, PyObject *core) {
    look->index = PyObject_GetAttr(holder, NAME(index));
    look->core = core;
    look->columns = look->index == NULL || core == NULL ? NULL : PyObject_GenericGetDict(look->index, NULL);
    return look->columns == NULL ? -1 : 0;
}

/* Begins a look at (core, id, valid, tx), and finds the entity with exactly this id that is known at tx. */
static int begin_at(Look *look, PyObject *const *args, long long *ent) {
    long long born;
    if (!PyUnicode_CheckExact(args[1]) || begin(look, args[0], Py_NewRef(args[0])) < 0 ||
        as_number(Py_NewRef(args[2]), &look->valid) < 0 || as_number(Py_NewRef(args[3]), &look->tx) < 0 ||
        as_number(mapped(look, COLUMN(ids), args[1]), ent) < 0)
        return -1;
    return NO_NUMBER(born, *ent, &born) || born > look->tx ? -1 : 0;
}

/* Begins a look of a sight at a row. */
static int begin_of(Look *look, PyObject *sight, PyObject *number, long long *row) {
    look->sight = Py_NewRef(sight);
    if (begin(look, sight, PyObject_GetAttr(sight, NAME(core))) < 0 ||
        as_number(PyObject_GetAttr(sight, NAME(valid)), &look->valid) < 0 || as_number(PyObject_GetAttr(sight, NAME(tx)), &look->tx) < 0)
        return -1;
    return as_number(Py_NewRef(number), row);
}

/* The answer, or None where it is left to Python. What is no Exception, such as an interrupt, goes on. */
static PyObject *done(Look *look, PyObject *found) {
    Py_XDECREF(look->columns), Py_XDECREF(look->index), Py_XDECREF(look->core);
    Py_XDECREF(look->sight), Py_XDECREF(look->standings);
    if (found == NULL && (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception))) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return found;
}

static PyObject *node(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    Look here = {.s = PyModule_GetState(module)}, *look = &here;
    long long ent, row, event;
    int found = count == 4 && begin_at(look, args, &ent) == 0 && !NO_NUMBER(is_event, ent, &event) && !event &&
                find(look, ent, &row) == 1;
    return done(look, found ? node_value(look, row, NULL) : NULL);
}

static PyObject *node_of(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    Look here = {.s = PyModule_GetState(module)}, *look = &here;
    long long row;
    return done(look, count == 3 && begin_of(look, args[0], args[1], &row) == 0 ? node_value(look, row, args[2]) : NULL);
}

static PyObject *link_of(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    Look here = {.s = PyModule_GetState(module)}, *look = &here;
    long long row;
    int found = count == 2 && begin_of(look, args[0], args[1], &row) == 0;
    look->standings = found ? PyObject_GetAttr(look->sight, NAME(_standings)) : NULL;
    return done(look, look->standings != NULL ? link_value(look, row) : NULL);
}

/* When a row of a link was recorded: what an undo opened again was so before. */
static int no_since(Look *look, long long row, long long *since) {
    PyObject *undone = COLUMN(undone_by);
    return undone != NULL && PyDict_CheckExact(undone) && PyDict_Size(undone) == 0
               ? NO_NUMBER(k_tx, row, since) : as_number(PyObject_CallMethod(look->index, "link_since", "L", row), since) < 0;
}

/* The rows of these links that hold at (valid, tx), each as (valid from, recorded, id, row), in order. */
static PyObject *held(Look *look, PyObject *links) {
    Py_ssize_t count = PySequence_Size(links);
    PyObject *found = count < 0 || count > FEW ? NULL : PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        long long link, row, from, since;
        int holds = number_at(look, links, at, &link) < 0
                        ? -1
                        : holding(look, item_at(look, COLUMN(rows_of_link), link), N_k_from, N_k_to, N_k_tx, N_k_end, &row);
        PyObject *one = NULL, *name = holds == 1 ? item_at(look, COLUMN(l_name), link) : NULL;
        if (name != NULL && !NO_NUMBER(k_from, row, &from) && !no_since(look, row, &since))
            one = Py_BuildValue("LLOL", from, since, name, row);
        if (holds != 0 && (one == NULL || PyList_Append(found, one) < 0))
            Py_CLEAR(found);
        Py_XDECREF(name), Py_XDECREF(one);
    }
    if (found != NULL && PyList_Sort(found) < 0)
        Py_CLEAR(found);
    return found;
}

static PyObject *links(PyObject *module, PyObject *const *args, Py_ssize_t count, int near) {
    Look here = {.s = PyModule_GetState(module)}, *look = &here;
    long long ent;
    PyObject *found = NULL, *side = NULL;
    if (count == 4 && begin_at(look, args, &ent) == 0 && has(look, COLUMN(even), ent) == 0) {
        side = of_number(look, NUMBERED(near), ent);
        found = side != NULL ? held(look, side) : PyErr_Occurred() ? NULL : PyList_New(0);
        Py_XDECREF(side);
    }
    count = found == NULL ? 0 : PyList_Size(found);
    if (count > 0 && (look->standings = PyDict_New()) == NULL)
        Py_CLEAR(found);
    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        PyObject *value = link_value(look, PyLong_AsLongLong(PyTuple_GetItem(PyList_GetItem(found, at), 3)));
        if (value == NULL || PyList_SetItem(found, at, value) < 0)
            Py_CLEAR(found);
    }
    return done(look, found);
}

static PyObject *links_from(PyObject *module, PyObject *const *args, Py_ssize_t count) { return links(module, args, count, N_out); }
static PyObject *backlinks_to(PyObject *module, PyObject *const *args, Py_ssize_t count) { return links(module, args, count, N_into); }

/* Once, by the module that loads this one: the classes of values, how they are made, and what is shared with the Python way. All is held for good. */
static PyObject *set_up(PyObject *module, PyObject *args) {
    State *s = PyModule_GetState(module);
    PyTypeObject *type = &PyType_Type;
    if (!PyArg_ParseTuple(args, "(O!O!O)(O!O!O)(OOO)OO!OO!(LL)i", type, &s->node.type, &PyDict_Type, &s->node.fields, &s->node.named,
                          type, &s->link.type, &PyDict_Type, &s->link.fields, &s->link.named, &s->set_named, &s->set_extra,
                          &s->set_private, &s->loads, type, &s->datetime, &s->utc, &PyTuple_Type, &s->statement, &s->beginning,
                          &s->open, &s->block))
        return NULL;
    s->set = (descrsetfunc)PyType_GetSlot(Py_TYPE(s->set_named), Py_tp_descr_set);
    s->new_datetime = (newfunc)PyType_GetSlot((PyTypeObject *)s->datetime, Py_tp_new);
    if (s->set == NULL || s->new_datetime == NULL || Py_TYPE(s->set_extra) != Py_TYPE(s->set_named) ||
        Py_TYPE(s->set_private) != Py_TYPE(s->set_named))
        return PyErr_Format(PyExc_TypeError, "records are made otherwise");
    Py_INCREF(args);
    return Py_NewRef(Py_None);
}

static int begin_module(PyObject *module) {
    State *s = PyModule_GetState(module);
    for (int at = 0; at < N_COUNT; at++)
        if ((s->names[at] = PyUnicode_InternFromString(TEXTS[at])) == NULL)
            return -1;
    return 0;
}

#define FAST(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {{"set_up", set_up, METH_VARARGS, NULL}, FAST(node), FAST(node_of), FAST(link_of),
                                FAST(links_from), FAST(backlinks_to), {0}};
static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, begin_module}, {0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_doc = "Point reads in C: see kernel.py.",
                                    .m_size = sizeof(State), .m_methods = METHODS, .m_slots = SLOTS};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
