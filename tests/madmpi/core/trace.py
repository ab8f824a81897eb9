"""What the traces of two ranks say of messages and calls: each message has its
ends once in both, and calls are entered and left."""

import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
from tap import environment, tell

EVENTS, STRINGS, END = 1, 2, 5
MORE, LTASK = 1, 48
SEND, SENT, ARRIVE, RECV = 64, 65, 66, 67
ENTER, LEAVE = 80, 81
THREADS, CALLS = 20, 100
# Tags and sizes of the messages that a matched probe takes, at rank 1.
MATCHED = {(200, 8), (201, 20000), (202, 1 << 20)}

Event = collections.namedtuple('Event', 'time kind lane a b more')
Message = collections.namedtuple('Message', 'source to session number tag size')


class Trace:
    """One file, by marcel/trace/format.h."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            self.data = f.read()
        magic, _, self.align, self.rank, self.size = \
            struct.unpack_from('<8sIIii', self.data)
        assert magic == b'MARCELTR', magic
        self.events, self.names = [], {}
        self.lost = self.ends = 0
        at = self.align
        while at + 64 <= len(self.data):
            at += self.chunk(at) or self.align

    def chunk(self, at):
        magic, kind, length, used, lost = \
            struct.unpack_from('<4sIQQQ', self.data, at)
        if magic != b'CHNK':
            return 0
        if kind == EVENTS:
            self.lost += lost
            self.read_events(self.data[at + 64:at + 64 + used])
        elif kind == STRINGS:
            self.read_names(self.data[at + 64:at + 64 + used])
        self.ends += kind == END
        return length

    def read_events(self, data):
        for time, kind, lane, a, b in struct.iter_unpack('<QHHIQ', data):
            if kind == MORE:
                self.events[-1].more.append((time, a, b))
            else:
                self.events.append(Event(time, kind, lane, a, b, []))

    def read_names(self, data):
        at = 0
        while at < len(data):
            _, n, number = struct.unpack_from('<HHI', data, at)
            self.names[number] = data[at + 8:at + 8 + n].decode()
            at += (8 + n + 7) // 8 * 8

    def messages(self, kind):
        """{message: when}"""
        found = {}
        for e in self.events:
            if e.kind != kind:
                continue
            peer, tag = e.b >> 32, e.b & 0xffffffff
            session, _, size = e.more[0]
            ends = (self.rank, peer) if kind in (SEND, SENT) else \
                (peer, self.rank)
            m = Message(*ends, session, e.a, tag, size)
            assert m not in found, 'twice: %s' % (m,)
            found[m] = e.time
        return found

    def calls(self, kind):
        return collections.Counter(self.names[e.a] for e in self.events
                                   if e.kind == kind)


def run(program, mpirun, folder, *args, driver='shm'):
    path = os.path.join(folder, '-'.join(('t', driver) + args))
    out = subprocess.run(
        mpirun + ['-n', '2', program, *args],
        env=environment(MARCEL_TRACE=path, NMAD_DRIVER=driver),
        capture_output=True, text=True)
    return out, path


def traced(out, path):
    """Return both ranks' traces and None, or [] and why the program failed."""
    if out.returncode != 0:
        return [], 'code %d, stderr:\n%s' % (out.returncode, out.stderr)
    return [Trace('%s.%d' % (path, rank)) for rank in (0, 1)], None


def both_ends(traces, least=2 * THREADS):
    sent, arrived, over, received = ({}, {}, {}, {})
    for t in traces:
        if t.lost or t.ends != 1 or t.size != 2:
            return 'rank %d of %d: %d lost, %d ends' % (
                t.rank, t.size, t.lost, t.ends)
        sent.update(t.messages(SEND))
        over.update(t.messages(SENT))
        arrived.update(t.messages(ARRIVE))
        received.update(t.messages(RECV))
    if not len(sent) > least:
        return '%d messages' % len(sent)
    for what, others in (('end', over), ('arrival', arrived),
                         ('receive', received)):
        if set(others) != set(sent):
            return 'without %s: %s\nmore: %s' % (
                what, set(sent) - set(others), set(others) - set(sent))
    matched = {(m.tag, m.size) for m in received
               if m.source == 0 and m.to == 1}
    if not MATCHED <= matched:
        return 'without matched receives: %s' % (MATCHED - matched)
    early = [m for m in sent if not sent[m] <= arrived[m] <= received[m]]
    return 'came before it was sent: %s' % early if early else None


def balanced(traces):
    for t in traces:
        left = t.calls(ENTER) - t.calls(LEAVE)
        if left != {'MPI_Finalize': 1} or t.calls(LEAVE) - t.calls(ENTER):
            return 'rank %d has not left %s' % (t.rank, left)
        if t.calls(ENTER)['MPI_Sendrecv'] != THREADS:
            return 'calls: %s' % t.calls(ENTER)
    return None


def found_something(traces):
    runs = [e for t in traces for e in t.events if e.kind == LTASK]
    return None if runs and all(e.more for e in runs) else 'no ltask'


def aborted(program, mpirun, folder):
    out, path = run(program, mpirun, folder, 'abort')
    if out.returncode == 0:
        return 'no abort'
    t = Trace(path + '.0')
    if t.ends or t.calls(ENTER)['MPI_Comm_rank'] != CALLS + 1 or \
            t.calls(ENTER)['MPI_Abort'] != 1:
        return '%d ends, calls: %s' % (t.ends, t.calls(ENTER))
    return None


def shown(tool, path):
    """marcel-trace draws an arrow for each message that was received."""
    out = subprocess.run([tool, '--json', path + '.json', path],
                         capture_output=True, text=True)
    if out.returncode != 0 or \
            out.stderr != 'marcel-trace: %s.json is written\n' % path:
        return 'code %d, stderr:\n%s' % (out.returncode, out.stderr)
    with open(path + '.json', encoding='utf-8') as f:
        events = json.load(f)['traceEvents']
    arrows = sum(e['ph'] == 's' for e in events)
    sent = sum(len(Trace('%s.%d' % (path, rank)).messages(SEND))
               for rank in (0, 1))
    return None if arrows == sent else '%d arrows, %d sent' % (arrows, sent)


def cases(tool, program, mpirun, folder):
    for driver in 'shm', 'tcp':
        out, path = run(program, mpirun, folder, driver=driver)
        traces, wrong = traced(out, path)
        yield 'each message has its ends once, ' + driver, \
            wrong or both_ends(traces)
        yield 'calls are entered and left, ' + driver, \
            wrong or balanced(traces)
        yield 'ltasks that found something are there, ' + driver, \
            wrong or found_something(traces)
        yield 'marcel-trace shows each message, ' + driver, \
            wrong or shown(tool, path)
        out, path = run(program, mpirun, folder, 'calls', driver=driver)
        traces, wrong = traced(out, path)
        yield 'matched receives of a closed session, and calls, ' + driver, \
            wrong or both_ends(traces, 12) or shown(tool, path)
    yield 'after MPI_Abort all is there', aborted(program, mpirun, folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tell(11, cases(sys.argv[1], sys.argv[2], sys.argv[3:], folder))


if __name__ == '__main__':
    sys.exit(main())
