"""Spack's recipe. No archive is published: the source is the clone that this
file stands in.

    spack repo add CLONE/packaging/spack
    spack install madmpi
"""

from pathlib import Path

from spack.package import *


class Madmpi(MesonPackage):
    """MPI for programs with many user threads, each of which may block in MPI:
    madmpi, and the libraries marcel, pioman and nmad below it. It has the
    standard ABI of MPI 5.0."""

    git = Path(__file__).resolve().parents[4].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("pmix", default=True, description="Jobs started through PMIx")
    variant("verbs", default=True, description="InfiniBand and RoCE")
    # Both: marcel-info looks inside.
    variant(
        "default_library",
        default="shared,static",
        values=("shared", "static"),
        multi=True,
        description="Build shared libs, static libs or both",
    )

    # The standard's I/O, dynamic processes and Fortran are not there yet.
    provides("mpi@:5.0")

    # What meson.build asks for; tests/packaging/dependencies.py compares.
    depends_on("c", type="build")
    depends_on("meson@1:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.8:", type=("build", "run"))
    depends_on("hwloc@2:")
    depends_on("pmix", when="+pmix")
    depends_on("rdma-core", when="+verbs")

    conflicts("platform=darwin", msg="madmpi is for Linux")
    conflicts("platform=windows", msg="madmpi is for Linux")

    def meson_args(self):
        def feature(option, variant):
            state = "enabled" if variant in self.spec else "disabled"
            return f"-D{option}={state}"

        return [
            "-Dtests=false",
            "-Dexamples=false",
            feature("pmix", "+pmix"),
            feature("ibverbs", "+verbs"),
        ]

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))

    def setup_dependent_build_environment(self, env, dependent_spec):
        """The wrappers call the compilers of the package that is built."""
        self.setup_run_environment(env)
        module = dependent_spec.package.module
        env.set("MADMPI_CC", module.spack_cc)
        env.set("MADMPI_CXX", module.spack_cxx)

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
