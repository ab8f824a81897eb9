"""What a job did, in a screen of text."""

from lanes import IDLE, KERNEL, LTASK, SLEEPING, THREAD

WAITS = 10


def span(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= unit:
            return f"{ns / unit:.4g} {name}"
    return f"{ns} ns"


def amount(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"


def share(rank, kind):
    whole = sum(rank.times.values())
    return f"{100 * rank.times[kind] / whole:.1f} %" if whole else "-"


def table(rows):
    """Columns as wide as need be; numbers to the right."""
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        first = row[0].ljust(wide[0])
        lines.append("  ".join([first] + [c.rjust(w) for c, w in zip(row[1:], wide[1:])]))
    return lines


def times(job):
    rows = [["", "VPs", "threads", "ltasks", "idle", "sleeping", "in the kernel",
             "events lost",
             "user threads", "interrupts"]]
    for rank in job.ranks:
        marks = [name for lane in rank.lanes() for _, name, _ in lane.marks]
        rows.append([
            rank.label, str(len(rank.vps)), share(rank, THREAD), share(rank, LTASK),
            share(rank, IDLE), share(rank, SLEEPING), share(rank, KERNEL),
            str(rank.lost),
            str(len(rank.threads)), str(marks.count("interrupt")),
        ])
    return table(rows)


def messages(job):
    rows = [["", "sent", "bytes", "received", "bytes", "unexpected", "median time"]]
    for rank in job.ranks:
        sent = [m for m in job.messages if m.source == rank.rank and m.send is not None]
        come = [m for m in job.messages if m.target == rank.rank and m.there is not None]
        taken = sorted(m.there[0] - m.send for m in come if m.whole)
        rows.append([
            rank.label, str(len(sent)), amount(sum(m.bytes for m in sent)),
            str(len(come)), amount(sum(m.bytes for m in come)),
            str(sum(m.unexpected for m in come)),
            span(taken[len(taken) // 2]) if taken else "-",
        ])
    return table(rows)


def left(rows):
    """Columns of words."""
    wide = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, wide)).rstrip() for row in rows]


def all_waits(job):
    return [(piece, rank, thread, call) for rank in job.ranks
            for piece, thread, call in rank.waits]


def reasons(job):
    """What was waited for, by the time that took together."""
    found = {}
    for piece, _, _, call in all_waits(job):
        found.setdefault((piece.detail, call), []).append(piece.length)
    rows = [["together", "times", "longest", "waits for", "in"]]
    for (what, call), lengths in sorted(found.items(), key=lambda f: -sum(f[1]))[:WAITS]:
        rows.append([span(sum(lengths)), str(len(lengths)), span(max(lengths)),
                     what or "-", call or "-"])
    return left(rows)


def longest(job):
    found = sorted(all_waits(job), key=lambda wait: -wait[0].length)
    rows = [["time", "begins", "rank", "thread", "waits for", "in"]]
    for piece, rank, thread, call in found[:WAITS]:
        rows.append([span(piece.length), span(piece.start), rank.label, thread.name,
                     piece.detail or "-", call or "-"])
    return left(rows)


def text(job):
    hosts = sorted({file.host for file in job.files})
    lines = [f"{job.program}: {len(job.ranks)} processes on {', '.join(hosts)}, "
             f"{span(job.end - job.first)}", ""]
    lines += ["Time of the VPs"] + times(job) + [""]
    if job.messages:
        lines += ["Messages"] + messages(job) + [""]
    if any(rank.waits for rank in job.ranks):
        lines += ["What user threads waited for"] + reasons(job) + [""]
        lines += ["The longest waits"] + longest(job) + [""]
    return "\n".join(lines)
