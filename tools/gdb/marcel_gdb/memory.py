"""Reading a process or a core file: variables, fields, lists."""

import os

import gdb

NO_DEBUG = (
    "{} has no debug information: build it with -Ddebug=true and do not strip "
    "it, or install its -dbgsym package"
)


# --- values ---


def atomic(value):
    """What an ATOMIC(T) holds, or a plain field."""
    kind = value.type.strip_typedefs()
    is_struct = kind.code == gdb.TYPE_CODE_STRUCT
    return value["raw"] if is_struct else value


def number(value):
    return int(atomic(value))


def not_there(library):
    """Why nothing is known of a library."""
    name = f"lib{library}.so"
    for found in gdb.objfiles():
        if os.path.basename(found.filename).startswith(name):
            return gdb.GdbError(NO_DEBUG.format(found.filename))
    return gdb.GdbError(
        f"{name} is not loaded, nor is it in the program with its debug information"
    )


def variable(name, library="marcel"):
    try:
        return gdb.parse_and_eval(name)
    except gdb.error as error:
        if "No symbol" in str(error) or "unknown type" in str(error):
            raise not_there(library) from error
        raise


def static_beside(name, function):
    """The static variable of the file that has this function."""
    symbol = gdb.lookup_global_symbol(function)
    if symbol is not None:
        found = gdb.lookup_symbol(name, symbol.symtab.static_block())[0]
        if found is not None:
            return found.value()
    raise gdb.GdbError(f"{function}() has no debug information")


def type_of(name, function=None, library="marcel"):
    """A type; of those that are private to a file: of that function's."""
    try:
        if function is None:
            return gdb.lookup_type(name)
        symbol = gdb.lookup_global_symbol(function)
        if symbol is None:
            raise gdb.error("no " + function)
        return gdb.lookup_type(name, symbol.symtab.static_block())
    except gdb.error as error:
        raise not_there(library) from error


def at(address, kind):
    """The object of this type there."""
    return gdb.Value(int(address)).cast(kind.pointer()).dereference()


def symbol(address):
    """The name of what is there, with an offset if there is one, or ""."""
    found = gdb.execute(f"info symbol {int(address):#x}", to_string=True)
    if found.startswith("No symbol"):
        return ""
    return found.split(" in section")[0].strip()


def named(address):
    """An address, and the name of the variable there, if any."""
    name = symbol(address)
    return f"{int(address):#x}" + (f" <{name}>" if name else "")


# --- fields and lists ---


def member(kind, name):
    for f in kind.strip_typedefs().fields():
        if f.name == name:
            return f.bitpos // 8, f.type.strip_typedefs()
        if not f.name:
            inner = member(f.type, name)
            if inner is not None:
                return f.bitpos // 8 + inner[0], inner[1]
    return None


def offset_of(kind, path):
    """Where `a.b` lies in a struct, through unions without a name, too."""
    offset = 0
    for name in path.split("."):
        found = member(kind, name)
        if found is None:
            raise gdb.GdbError(f"{kind} has no {path}: another version?")
        offset += found[0]
        kind = found[1]
    return offset


def container(address, kind, path):
    return at(int(address) - offset_of(kind, path), kind)


def listed(head, kind, path, skip=0):
    """What hangs on a struct base_list; `skip` bytes into that field."""
    first = int(head["head"].address)
    link, found = head["head"]["next"], []
    while int(link) not in (first, 0):
        found.append(container(int(link) - skip, kind, path))
        link = link["next"]
    return found


def pushed(mpsc, kind, path):
    """What lies on a struct base_mpsc, oldest first."""
    node, found = atomic(mpsc["top"]), []
    while int(node):
        found.append(container(node, kind, path))
        node = node["next"]
    return found[::-1]


def word(address):
    """What lies there, or None."""
    try:
        memory = gdb.selected_inferior().read_memory(address, 8)
    except gdb.MemoryError:
        return None
    return int.from_bytes(memory.tobytes(), "little")
