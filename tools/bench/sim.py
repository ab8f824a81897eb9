"""RenPar 2009, section 4, over simulated networks like that paper's (2.3 us,
1.2 GB/s): overlap, offload, several rails. Ours alone.
"""
import os
import tempfile

import rails
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
SMALL = ("20", ["64", "256", "512", "1024"])
# To itself both ends of a message are on one line, so it is twice as fast.
TO_ITSELF = (1, {"NMAD_DRIVER":
                 f"sim:self,latency={LATENCY},bandwidth={2 * BANDWIDTH}"})


def rail(inner="shm", bandwidth=BANDWIDTH):
    return f"sim:{inner},latency={LATENCY},bandwidth={bandwidth}"


def overlap(job):
    """Rows 49 to 52 of the papers' features."""
    places = {"to itself": TO_ITSELF, "2 ranks": (2, {"NMAD_DRIVER": rail()})}
    for place, (ranks, env) in places.items():
        for us, sizes in OVERLAPS:
            what = f"{us} us" if us != "0" else "as long"
            yield ("sim_overlap", f"{place}, computing {what}",
                   job("", "overlap", ["-u", us, *sizes], env, ranks))


def offload(job):
    """Row 53: who copies a small message, the sender or an idle VP."""
    us, sizes = SMALL
    for place, (ranks, env) in {
            "to itself": TO_ITSELF,
            "2 ranks, tcp": (2, {"NMAD_DRIVER": rail("tcp"),
                                 "MARCEL_NVP": "2"})}.items():
        for least, name in {"0": "not", "64": "from 64 B on"}.items():
            yield ("sim_offload", f"{place}, computing {us} us", job(
                name, "overlap", ["-u", us, *sizes],
                dict(env, NMAD_OFFLOAD=least), ranks))


AUTO = {"NMAD_SAMPLING": "auto", "NMAD_SAMPLING_MS": "200"}


def equal_rails(job):
    """Row 55."""
    one = rail()
    for name, env in {"1 rail": {"NMAD_DRIVER": one},
                      "2 rails": dict(AUTO, NMAD_DRIVER=f"{one}+{one}")
                      }.items():
        yield "sim_rails", "equal", job(name, "latency", RAILS_SIZES, env)


def unequal_rails(job, rounds, out):
    """Row 56."""
    fast, slow = rail(), rail(bandwidth=SLOW)
    jobs = [job(name, "latency", SHARE_SIZES, env) for name, env in {
        "fast rail": {"NMAD_DRIVER": fast},
        "slow rail": {"NMAD_DRIVER": slow},
        "both": dict(AUTO, NMAD_DRIVER=f"{fast}+{slow}")}.items()]
    for n in range(rounds):
        print(f"sim_rails, unequal, round {n + 1} ...", flush=True)
        rails.add_round(out, "sim_rails", "unequal", n,
                        {job.name: job.run() for job in jobs})


def measure(ours, rounds, out):
    print(f"{len(os.sched_getaffinity(0))} CPUs; one is idle only where there "
          "are more of them than ranks")
    with tempfile.TemporaryDirectory() as folder:
        def job(name, program, args, env, ranks=2):
            return ours.with_setting(name, env).job(
                ours.build(program, folder), "shm", args, ranks)

        turns.take([*overlap(job), *offload(job), *equal_rails(job)], rounds,
                   out)
        unequal_rails(job, rounds, out)
