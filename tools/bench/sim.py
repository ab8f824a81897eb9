"""RenPar 2009, section 4, over simulated networks like that paper's (2.3 us,
1.2 GB/s): overlap, offload, several rails. Ours alone.
"""
import os

import mpis as mpi
import turns

LATENCY = 2  # us; what is beneath adds the rest
BANDWIDTH = 1200  # MB/s
SLOW = 400  # of the second of two unequal rails
RAILS_SIZES = [str(4096 << i) for i in range(11)]  # 4 KB to 4 MB
SHARE_SIZES = [str(256 << 10), str(1 << 20), str(4 << 20)]
# us of computation (0: as long as the transfer), bytes
OVERLAPS = [("100", ["4096", "32768", "65536", "131072", "1048576"]),
            ("500", ["262144", "524288", "1048576"]),
            ("0", ["32768", "1048576", "4194304"])]
WHOSE = ["sender", "receiver", "both"]
SMALL = ("20", ["64", "256", "512", "1024"])
# To itself both ends of a message are on one line, so it is twice as fast.
ONE_RANK = (1, {"NMAD_DRIVER":
                f"sim:self,latency={LATENCY},bandwidth={2 * BANDWIDTH}"})


def rail(inner="shm", bandwidth=BANDWIDTH):
    return f"sim:{inner},latency={LATENCY},bandwidth={bandwidth}"


def run(ours, source, args, rounds, settings, ranks=2):
    return mpi.run([ours.with_setting(name, env)
                    for name, env in settings.items()],
                   source, "shm", args, rounds, ranks)


def show_overlap(title, us, runs):
    """Of who computes: us from send to answer, by how much that is more than
    the longer one of transfer and computation, and how many times as long."""
    sizes = [n.split("_")[1] for n in runs[0] if n.startswith("transfer_")]
    whose = [w for w in WHOSE if f"{w}_{sizes[0]}" in runs[0]]
    print(f"\n{title}\n{'bytes':10}{'transfer':>10}"
          + "".join(f"{who:>11}{'more':>9}{'times':>7}" for who in whose))
    for size in sizes:
        transfer = turns.median(runs, "transfer_" + size)
        most = max(transfer, float(us))
        line = f"{size:10}{transfer:10.1f}"
        for who in whose:
            took = turns.median(runs, f"{who}_{size}")
            line += f"{took:11.1f}{took - most:9.1f}{took / most:7.2f}"
        print(line, flush=True)


def overlap(ours, rounds):
    """Rows 49 to 52 of the papers' features."""
    places = {"a rank to itself, an idle VP": ONE_RANK,
              "two ranks": (2, {"NMAD_DRIVER": rail()})}
    for place, (ranks, env) in places.items():
        for us, sizes in OVERLAPS:
            results = run(ours, "overlap", ["-u", us, *sizes], rounds,
                          {"": env}, ranks)
            what = f"{us} us" if us != "0" else "as long as the transfer"
            show_overlap(f"overlap, {place}, computing {what}: us", us,
                         *results.values())


def offload(ours, rounds):
    """Row 53: who copies a small message, the sender or an idle VP."""
    us, sizes = SMALL
    for place, (ranks, env) in {
            "a rank to itself": ONE_RANK,
            "two ranks over TCP": (2, {"NMAD_DRIVER": rail("tcp"),
                                       "MARCEL_NVP": "2"})}.items():
        settings = {f"NMAD_OFFLOAD={n}": dict(env, NMAD_OFFLOAD=n)
                    for n in ("0", "64")}
        results = run(ours, "overlap", ["-u", us, *sizes], rounds, settings,
                      ranks)
        for name, runs in results.items():
            show_overlap(f"{name}, {place}, computing {us} us: us", us, runs)


def rails(ours, rounds):
    """Rows 55 and 56: two equal rails, two unequal ones."""
    auto = {"NMAD_SAMPLING": "auto", "NMAD_SAMPLING_MS": "200"}
    one, slow = rail(), rail(bandwidth=SLOW)
    results = run(ours, "latency", RAILS_SIZES, rounds, {
        "1 rail": {"NMAD_DRIVER": one},
        "2 rails": dict(auto, NMAD_DRIVER=f"{one}+{one}")})
    turns.beside("two equal rails, half round trips", results, turns.ratio,
                 "of one (range)")
    results = run(ours, "latency", SHARE_SIZES, rounds, {
        "fast": {"NMAD_DRIVER": one},
        "slow": {"NMAD_DRIVER": slow},
        "both": dict(auto, NMAD_DRIVER=f"{one}+{slow}")})
    fast, slow, both = results.values()
    print("\ntwo unequal rails, MB/s\n"
          f"{'bytes':18}{'fast':>10}{'slow':>10}{'both':>10}"
          f"{'both / sum':>12}")
    for name, size in zip(fast[0], SHARE_SIZES):
        each = [int(size) / turns.median(r, name) for r in (fast, slow, both)]
        print(f"{size:18}" + "".join(f"{e:10.0f}" for e in each)
              + f"{each[2] / (each[0] + each[1]):12.2f}", flush=True)


def show(ours, rounds):
    print(f"\n{len(os.sched_getaffinity(0))} CPUs; a VP is idle only where "
          "there are more of them than ranks")
    overlap(ours, rounds)
    offload(ours, rounds)
    rails(ours, rounds)
