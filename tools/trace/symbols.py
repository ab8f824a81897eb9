"""Names of functions by their addresses, from the ELF files that a process had."""

import bisect
import os
import re
import struct

SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
PT_LOAD = 1
SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_FUNC = 2
MAP = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \S+\s*(.*)")


class Elf:
    """The functions of one file; none, if it cannot be read."""

    def __init__(self, path):
        self.segments = []  # (offset, bytes, address)
        self.functions = []  # (address, bytes, name)
        try:
            with open(path, "rb") as f:
                self.read(f.read())
        except (OSError, struct.error):
            pass
        self.functions.sort()
        self.starts = [start for start, *_ in self.functions]

    def read(self, data):
        if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
            return
        phoff, shoff = struct.unpack_from("<QQ", data, 32)
        phsize, phnum, shsize, shnum = struct.unpack_from("<HHHH", data, 54)
        for i in range(phnum):
            kind, _, offset, address, _, length, *_ = SEGMENT.unpack_from(
                data, phoff + i * phsize
            )
            if kind == PT_LOAD:
                self.segments.append((offset, length, address))
        sections = [
            SECTION.unpack_from(data, shoff + i * shsize) for i in range(shnum)
        ]
        for wanted in (SHT_SYMTAB, SHT_DYNSYM):
            for section in sections:
                if section[1] == wanted and not self.functions:
                    self.read_symbols(data, section, sections[section[6]])

    def read_symbols(self, data, table, strings):
        first, length = table[4], table[5]
        for name, info, _, section, value, size in SYMBOL.iter_unpack(
            data[first : first + length // SYMBOL.size * SYMBOL.size]
        ):
            if info & 15 == STT_FUNC and section != 0:
                at = strings[4] + name
                text = data[at : data.index(b"\0", at)].decode("utf-8", "replace")
                self.functions.append((value, size, text))

    def name(self, offset):
        """Of the function at this place of the file, or None."""
        for first, length, address in self.segments:
            if first <= offset < first + length:
                wanted = offset - first + address
                break
        else:
            return None
        i = bisect.bisect_right(self.starts, wanted) - 1
        if i < 0:
            return None
        start, size, text = self.functions[i]
        return text if wanted < start + max(size, 1) else None


class Symbols:
    """Those of one process; maps: lines of its /proc/self/maps."""

    files = {}  # path: Elf; the ranks of a job have the same ones

    def __init__(self, maps):
        self.maps = []
        self.names = {}
        for line in maps.splitlines():
            match = MAP.match(line)
            if match:
                start, end, offset = (int(match[i], 16) for i in (1, 2, 3))
                self.maps.append((start, end, offset, match[4]))

    def name(self, address):
        if address not in self.names:
            self.names[address] = self.look(address)
        return self.names[address]

    def look(self, address):
        for start, end, offset, path in self.maps:
            if start <= address < end:
                break
        else:
            return f"{address:#x}"
        offset += address - start
        if path not in self.files:
            self.files[path] = Elf(path)
        return self.files[path].name(offset) or f"{os.path.basename(path)}+{offset:#x}"
