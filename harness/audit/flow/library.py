"""Functions of the language and its standard library, as far as they matter for where data comes from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from harness.audit.flow import values as v
from harness.audit.flow.machine import Machine
from harness.audit.flow.values import NOTHING, Value

Handler = Callable[[Machine, ast.Call], Value]

_PLAIN_FIELDS = {"name", "node_id", "id", "title", "DisplayName"}
_PLAIN_FUNCTIONS = {"str", "int", "lower", "casefold", "str.lower", "str.casefold"}


def opened(m: Machine, path: Value, mode: Sequence[ast.expr]) -> Value:
    """A file that is opened: for writing, one to remember; else its lines."""
    given = m.eval(mode[0]).text if mode else None
    if given is not None and given[:1] in "wax":
        return Value(text=path.text)
    if not path.tags & (v.NODES | v.EDGES):
        return NOTHING
    if path.tags & v.BY_ID and path.tags & v.LITERAL and not path.tags & v.HOPS:
        m.use_ids(path)
        m.note("id_check")
    return Value((path.tags & (v.NODES | v.EDGES | v.BY_ID)) | v.OPEN)


def pairs(value: Value) -> Value:
    """What `.items()` gives: keys with values."""
    keys = v.element(value)
    tags = value.tags & ~v.CONTAINER
    if value.tags & v.SETS:
        tags |= v.SET
    elif v.is_raw(value) and not value.tags & v.NEIGHBOURS:
        tags = 0  # edges counted by an end
    elif value.tags & v.NEIGHBOURS:
        tags |= v.ROW
    pair = Value(keys.tags | tags, value.ids, None, (Value(keys.tags & ~v.SET, value.ids), Value(tags, value.ids)))
    return Value(value.tags & ~v.OPEN, value.ids, None, (pair,))


def sort_keys(m: Machine, node: ast.Call, value: Value) -> list[ast.expr]:
    """The key of a sort, if there is one; it is followed for the elements of `value`."""
    keys = [keyword.value for keyword in node.keywords if keyword.arg == "key"]
    for key in keys:
        m.apply(m.eval(key), v.element(value))
    return keys


def is_plain_key(node: ast.expr) -> bool:
    """Whether a sort key is no more than a name or an id."""
    if isinstance(node, ast.Lambda) and node.args.args:
        return _is_plain(node.body, node.args.args[0].arg)
    if isinstance(node, ast.Call) and node.args:  # itemgetter("name")
        return all(isinstance(argument, ast.Constant) and argument.value in _PLAIN_FIELDS for argument in node.args)
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in _PLAIN_FUNCTIONS


def _is_plain(node: ast.expr, parameter: str) -> bool:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in (*_PLAIN_FUNCTIONS, "get"):
            field = node.args[0] if node.args else None
            plain_field = field is None or (isinstance(field, ast.Constant) and field.value in _PLAIN_FIELDS)
            return plain_field and _is_plain(node.func.value, parameter)
        return isinstance(node.func, ast.Name) and node.func.id in _PLAIN_FUNCTIONS and len(node.args) == 1
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in _PLAIN_FIELDS
    return isinstance(node, ast.Name) and node.id == parameter


def _arguments(m: Machine, node: ast.Call) -> list[Value]:
    for keyword in node.keywords:
        m.eval(keyword.value)
    return [v.element(m.eval(a.value)) if isinstance(a, ast.Starred) else m.eval(a) for a in node.args]


def _open(m: Machine, node: ast.Call) -> Value:
    path = m.eval(node.args[0]) if node.args else NOTHING
    mode = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
    return opened(m, path, node.args[1:2] or mode)


def _nothing(m: Machine, node: ast.Call) -> Value:
    for argument in _arguments(m, node):
        m.go_through(argument)
    return NOTHING


def _first(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    return arguments[0] if arguments else NOTHING


def _joined(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    whole = v.join(*arguments)
    return arguments[0] if len(arguments) == 1 else Value(whole.tags, whole.ids)


def _last(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    return Value(arguments[-1].tags & ~v.LITERAL) if arguments else NOTHING


def _collection(kind: int) -> Handler:
    def handler(m: Machine, node: ast.Call) -> Value:
        arguments = _arguments(m, node)
        value = arguments[0] if arguments else NOTHING
        m.go_through(value)
        inner = v.element(value)
        neighbours = value.tags & (v.NEIGHBOURS | v.RECORDS | v.SETS) if not kind else 0
        return Value(inner.tags | kind | neighbours, value.ids, None, value.items if kind & v.SEQUENCE else None)

    return handler


def _sorted(m: Machine, node: ast.Call) -> Value:
    value = _collection(v.SEQUENCE)(m, node)
    keys = sort_keys(m, node, value)
    tuples = value.items is not None and len(value.items) == 1 and value.items[0].items is not None
    orders_tuples = isinstance(node.args[0] if node.args else None, ast.GeneratorExp | ast.ListComp) and tuples
    if (keys and not is_plain_key(keys[0])) or (not keys and orders_tuples):
        m.note("ranking")
    return value


def _extreme(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    if any(not is_plain_key(key) for key in sort_keys(m, node, arguments[0] if arguments else NOTHING)):
        m.note("ranking")
    return v.element(arguments[0]) if len(arguments) == 1 else v.join(*arguments)


def _top(m: Machine, node: ast.Call) -> Value:
    m.note("ranking")
    arguments = _arguments(m, node)
    return arguments[1] if len(arguments) > 1 else NOTHING


def _enumerate(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    value = arguments[0] if arguments else NOTHING
    item = v.element(value)
    return Value(value.tags, value.ids, None, (Value(item.tags, item.ids, None, (NOTHING, item)),))


def _zip(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    items = tuple(v.element(argument) for argument in arguments)
    whole, item = v.join(*arguments), v.join(*items)
    return Value(whole.tags, whole.ids, None, (Value(item.tags, item.ids, None, items),))


def _map(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    if len(arguments) < 2:
        return NOTHING
    result = m.apply(arguments[0], v.element(arguments[1]))
    return Value(result.tags | (arguments[1].tags & v.OPEN) | v.SEQUENCE, result.ids)


def _filter(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    if len(arguments) < 2:
        return NOTHING
    m.apply(arguments[0], v.element(arguments[1]))
    return Value(arguments[1].tags | v.SEQUENCE, arguments[1].ids)


def _next(m: Machine, node: ast.Call) -> Value:
    with m.early(True):
        arguments = _arguments(m, node)
    return v.join(v.element(arguments[0]), *arguments[1:]) if arguments else NOTHING


def _any(m: Machine, node: ast.Call) -> Value:
    with m.early(True):
        _arguments(m, node)
    return NOTHING


def _islice(m: Machine, node: ast.Call) -> Value:
    arguments = _arguments(m, node)
    value = arguments[0] if arguments else NOTHING
    last = node.args[-1] if len(node.args) > 1 else None
    if isinstance(last, ast.Constant) and last.value is None:
        return value
    item = v.element(value)
    return Value(item.tags | v.SEQUENCE, item.ids)


def _default_dict(m: Machine, node: ast.Call) -> Value:
    _arguments(m, node)
    made = ast.unparse(node.args[0]) if node.args else ""
    return Value(v.SETS) if made in ("set", "lambda: set()") else NOTHING


def _command(m: Machine, node: ast.Call) -> Value:
    """A program that is run: rg or grep over edges with an id in the pattern follows them."""
    whole = v.join(*_arguments(m, node))
    looked_for = whole.tags & (v.LITERAL | v.HOPS | v.NODE_ID)
    if whole.tags & v.EDGES and looked_for:
        start = Value(whole.tags & ~v.EDGES, whole.ids)
        return Value(v.hops(m.follow(start)))
    if whole.tags & v.NODES and whole.tags & v.LITERAL and not whole.tags & v.HOPS:
        m.use_ids(whole)
        m.note("id_check")
    return Value(whole.tags & v.NODES)


def _run_path(m: Machine, node: ast.Call) -> Value:
    """`runpy.run_path("x.py")`: the names of one of the agent's own files."""
    arguments = _arguments(m, node)
    module = m.load_file(arguments[0].text or "") if arguments else None
    return Value(target=module)


def _exec(m: Machine, node: ast.Call) -> Value:
    """`exec(open("x.py").read())`: the file's names become the program's own."""
    _arguments(m, node)
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            module = m.load_file(part.value)
            if module is not None:
                m.scope.names.update(module.scope.names)
    return NOTHING


def _tool_client(m: Machine, node: ast.Call) -> Value:
    _arguments(m, node)
    return Value(v.KB)


FUNCTIONS: Mapping[str, Handler] = {
    **dict.fromkeys(("open", "io.open", "gzip.open", "codecs.open"), _open),
    **dict.fromkeys(("len", "print", "sum", "range", "isinstance", "type", "json.dump", "all", "exit"), _nothing),
    **dict.fromkeys(("str", "int", "float", "iter", "json.loads", "csv.reader", "csv.DictReader", "dict"), _first),
    **dict.fromkeys(("Path", "pathlib.Path", "glob.glob", "glob.iglob", "os.path.join", "os.listdir"), _joined),
    **dict.fromkeys(("re.findall", "re.finditer", "re.search", "re.match", "re.split", "re.sub"), _last),
    **dict.fromkeys(("list", "tuple", "reversed", "collections.deque", "deque"), _collection(v.SEQUENCE)),
    **dict.fromkeys(("set", "frozenset"), _collection(v.SET)),
    **dict.fromkeys(("collections.Counter", "Counter"), _collection(0)),
    **dict.fromkeys(("max", "min"), _extreme),
    **dict.fromkeys(("heapq.nlargest", "heapq.nsmallest"), _top),
    **dict.fromkeys(("islice", "itertools.islice"), _islice),
    **dict.fromkeys(("chain", "itertools.chain"), _joined),
    **dict.fromkeys(("collections.defaultdict", "defaultdict"), _default_dict),
    **dict.fromkeys(
        ("subprocess.run", "subprocess.check_output", "subprocess.getoutput", "subprocess.Popen", "os.popen",
         "os.system"),
        _command,
    ),
    "sorted": _sorted,
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "next": _next,
    "any": _any,
    "kbtools.Client": _tool_client,
    "runpy.run_path": _run_path,
    "exec": _exec,
}  # fmt: skip
