"""nmad: gates, what waits to be sent, and the match tables."""

import gdb

from .command import Command
from .memory import (
    at,
    container,
    listed,
    number,
    offset_of,
    static_beside,
    type_of,
    variable,
)

SHOWN = 100  # of a list
REQUESTS = ["send", "receive", "receive", "probe", "request"]
SEND, RECEIVE, MRECEIVE, PROBE, GENERAL = range(5)
SYNC, RDV = 1, 2  # enum nm_req_flags
EAGER, ANNOUNCED = 1, 2  # NM_WIRE_KIND_
FULL, TAG, SOURCE, WILD = range(4)
HASH_BITS, HASH_MARK, HASH_WITHIN = 7, 1, 4


class Messages:
    """The core of this process."""

    def __init__(self, core):
        self.core = core
        self.request = type_of("struct nm_req", library="nmad")
        self.message = type_of("struct nm_msg", library="nmad")
        self.session = type_of("struct nm_session", library="nmad")
        self.sessions = {
            int(s.address): s
            for s in listed(core["sessions"], self.session, "on")
        }
        self.names = {}
        self.name_communicators()

    @staticmethod
    def find():
        """None: no nmad here, or it does not run."""
        try:
            return found()
        except gdb.GdbError:
            return None

    # --- names ---

    def name_communicators(self):
        """All that MPI has, by their sessions."""
        try:
            function = "madmpi_comm_handle"
            pool = static_beside("pool", function)
            kind = type_of("struct madmpi_comm")
            slab = type_of("struct base_pool_slab")
        except gdb.GdbError:
            return
        store = pool["store"]
        address, size = number(store["slabs"]), int(store["size"])
        while address:
            first = int(at(address, slab)["objects"])
            for i in range(int(store["per_slab"])):
                comm = at(first + i * size, kind)
                if number(comm["object"]["kind"]) == int(pool["kind"]):
                    self.name_communicator(comm)
            address = int(at(address, slab)["next"])

    def name_communicator(self, comm):
        name = comm["name"].string(errors="replace")
        name = name or f"communicator {int(comm.address):#x}"
        self.names[int(comm["p2p"])] = name
        self.names[int(comm["coll"])] = name + " (collective)"

    def session_name(self, session):
        address = int(session)
        if address in self.names:
            return self.names[address]
        if address not in self.sessions:
            return f"session {address:#x}"
        s = self.sessions[address]
        # It lies behind the struct.
        name = at(
            int(s.address) + offset_of(self.session, "name"),
            gdb.lookup_type("char"),
        ).address.string(errors="replace")
        return f"session {name or hex(int(s['id']))}"

    def rank(self, gate):
        return f"rank {int(gate['rank'])}" if int(gate) else "anyone"

    # --- requests ---

    def request_at(self, address):
        """A request whose end this event is, in words, or None."""
        try:
            request = at(address, self.request)
            kind = int(request["kind"])
            known = int(request["session"]) in self.sessions
        except gdb.MemoryError:
            return None
        if not known or kind >= GENERAL:
            return None
        return self.tell(request)

    def tell(self, request):
        kind = int(request["kind"])
        tag = f"tag {int(request['tag'])}"
        to = "to" if kind == SEND else "from"
        gate = request["gate"]
        if kind in (RECEIVE, PROBE):
            recv = request["recv"]
            gate = recv["gate"]
            tag = f"tag {int(recv['tag'])}"
            if int(recv["any_tag"]):
                tag = "any tag"
        size = f", {int(request['data']['length'])} bytes"
        flags = int(request["flags"])
        how = ", synchronous" if flags & SYNC else ""
        how += ", rendezvous" if flags & RDV else ""
        return (
            f"{REQUESTS[kind]} {int(request.address):#x} {to} "
            f"{self.rank(gate)}, {tag}"
            + ("" if kind == PROBE else size)
            + f", {self.session_name(request['session'])}"
            + (how if kind == SEND else "")
        )

    # --- the tables ---

    def posted(self):
        """Receives and probes, in the order in which they were posted."""
        found = []
        for table in (FULL, TAG, SOURCE):
            for first, marked in self.chains(table):
                if not marked:
                    found.append(self.recv_of(first))
        for s in self.sessions.values():
            for name in ("recvs", "probes"):
                found += listed(s["match"][name], self.request, "recv.link")
        found.sort(key=lambda r: int(r["recv"]["number"]))
        return found

    def recv_of(self, link):
        return container(link, self.request, "recv.link")

    def chains(self, table):
        """All links of a table, and whether it is a message's."""
        hashed = self.core["match"]["tables"][table]
        for index, start in (("now", 0), ("old", int(hashed["cursor"]))):
            slots = hashed[index]["slots"]
            count = int(hashed[index]["size"]) if int(slots) else 0
            for i in range(start, count):
                pointer, marked = int(slots[i]["first"]), False
                link = slots[i]["first"]
                while pointer & ~HASH_BITS:
                    if not pointer & HASH_WITHIN:
                        marked = bool(pointer & HASH_MARK)
                    yield pointer & ~HASH_BITS, marked
                    link = at(pointer & ~HASH_BITS, link.type.target())["next"]
                    pointer = int(link)

    def unexpected(self, session):
        wild = WILD * gdb.lookup_type("struct base_link").sizeof
        return listed(
            session["match"]["msgs"], self.message, "match.links", wild
        )

    def tell_message(self, m):
        match = m["match"]
        session = container(match["session"], self.session, "match")
        kind = int(m["kind"])
        how = "eager"
        if kind != EAGER:
            how = "announced" if kind == ANNOUNCED else "parts are missing"
        return (
            f"message {int(m.address):#x} from {self.rank(match['gate'])}, "
            f"tag {int(match['tag'])}, {int(m['length'])} bytes, "
            f"{self.session_name(session.address)}, {how}"
        )


def found():
    core = variable("nm_core_self", "nmad")
    if not int(core):
        raise gdb.GdbError("nmad does not run: it is before MPI_Init or after its end")
    return Messages(core.dereference())


def show(title, lines):
    print(f"{title}: {len(lines)}")
    for line in lines[:SHOWN]:
        print("  " + line())
    if len(lines) > SHOWN:
        print(f"  and {len(lines) - SHOWN} more")


def telling(tell, objects):
    return [lambda o=o: tell(o) for o in objects]


class Match(Command):
    """List the receives and probes that are posted, and what is unexpected."""

    name = "match"

    def run(self, argument):
        m = found()
        show("posted", telling(m.tell, m.posted()))
        came = [x for s in m.sessions.values() for x in m.unexpected(s)]
        show("unexpected", telling(m.tell_message, came))


class Gates(Command):
    """List rails, and gates: their counters and what waits to be sent."""

    name = "gates"

    def run(self, argument):
        m = found()
        core = m.core
        print(
            f"rank {int(core['rank'])} of {int(core['size'])}, "
            f"{number(core['pending'])} requests and answers not over"
        )
        for i in range(int(core["nrails"])):
            self.show_rail(core["rails"][i])
        for rank in range(int(core["size"])):
            self.show_gate(m, core["gates"][rank])

    def show_rail(self, rail):
        if not int(rail["driver"]):
            return
        print(
            f"rail {int(rail['index'])}: {rail['driver']['name'].string()}, "
            f"{int(rail['nused'])} links, {number(rail['backlog'])} not over"
        )

    def show_gate(self, m, gate):
        out = listed(gate["out"], m.request, "send.on")
        waiting = listed(gate["waiting"], m.request, "send.on")
        sent, received = number(gate["nsent"]), number(gate["nreceived"])
        if not out and not waiting and not sent and not received:
            return
        error = int(gate["error"])
        rails = [
            gate["links"][i]["rail"]["driver"]["name"].string()
            for i in range(int(gate["nlinks"]))
        ]
        print(
            f"gate {int(gate['rank'])}: {'+'.join(rails) or 'no rail'}, "
            f"packets {sent} out {received} in, "
            f"{int(gate['credit_used'])} bytes eager unmatched there"
            + (f", dead: error {-error}" if error else "")
        )
        if out:
            show("  to be sent", telling(m.tell, out))
        if waiting:
            show("  sent, to be matched", telling(m.tell, waiting))
