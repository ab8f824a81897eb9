#!/usr/bin/env python3
"""What packagers are told is what meson.build says: dependencies, options,
version; and what Spack's recipe does with them. No Spack is needed.

dependencies.py ROOT: prints TAP.
"""

import json
import pathlib
import re
import subprocess
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

root = pathlib.Path(sys.argv[1])

# What the installed part needs: Meson's, Spack's and Debian's name.
NEEDED = {
    ("hwloc", "hwloc", "libhwloc-dev"),
    ("pmix", "pmix", "libpmix-dev"),
    ("libibverbs", "rdma-core", "libibverbs-dev"),
}
OF_LIBC = {"threads", "dl"}
OF_EXAMPLES = {"libpng": "libpng-dev"}
OF_TESTS = {"openmp", "boost"}
TOOLS_SPACK = {"c", "meson", "pkgconfig", "python"}
TOOLS_DEBIAN = {"chrpath", "debhelper-compat", "meson", "pkg-config",
                "python3:any"}
TOOLS_BUILD = {"gcc", "libc6-dev", "meson", "ninja-build", "pkg-config",
               "python3"}


def equal(got, wanted):
    assert got == wanted, f"{got}, not {wanted}"


def names(column):
    return {row[column] for row in NEEDED}


def text(path):
    return (root / path).read_text(encoding="utf-8")


def introspect(what):
    told = subprocess.run(["meson", "introspect", what, root / "meson.build"],
                          check=True, stdout=subprocess.PIPE).stdout
    return json.loads(told)


# --- a Spack that only listens ---


class Recipe:
    """What the directives of a recipe have said."""

    def __init__(self):
        self.said = {}
        module = types.ModuleType("spack.package")
        for directive in ["conflicts", "depends_on", "license", "provides",
                          "variant", "version"]:
            setattr(module, directive, self.listener(directive))
        module.MesonPackage = object
        module.join_path = lambda *parts: "/".join(map(str, parts))
        sys.modules["spack"] = types.ModuleType("spack")
        sys.modules["spack.package"] = module
        path = root / "packaging/spack/packages/madmpi/package.py"
        held = {"__file__": str(path)}
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), held)
        self.package = held["Madmpi"]()
        self.package.prefix = types.SimpleNamespace(bin="/p/bin")
        self.package.spec = types.SimpleNamespace()

    def listener(self, directive):
        def listen(what, **how):
            self.said.setdefault(directive, {})[what] = how
        return listen


class Environment(dict):
    def set(self, name, value):
        self[name] = value


recipe = Recipe()


def spack_depends_on_what_meson_asks_for():
    specs = {spec.split("@")[0] for spec in recipe.said["depends_on"]}
    equal(specs - TOOLS_SPACK, names(1))
    for spec, how in recipe.said["depends_on"].items():
        if "when" in how:
            assert how["when"][1:] in recipe.said["variant"], spec


def spack_provides_mpi():
    assert any(what.split("@")[0] == "mpi" for what in recipe.said["provides"])


def spack_says_each_option_as_the_variants_are():
    for variants, states in [({"+pmix", "~verbs"}, ["enabled", "disabled"]),
                             ({"~pmix", "+verbs"}, ["disabled", "enabled"])]:
        recipe.package.spec = variants
        told = dict(arg[2:].split("=") for arg in recipe.package.meson_args())
        equal([told["pmix"], told["ibverbs"]], states)
    recipe.package.spec = types.SimpleNamespace()


def spack_points_dependents_to_the_wrappers():
    env = Environment()
    module = types.SimpleNamespace(spack_cc="/s/cc", spack_cxx="/s/c++")
    package = types.SimpleNamespace(module=module)
    dependent = types.SimpleNamespace(package=package)
    recipe.package.setup_dependent_build_environment(env, dependent)
    equal(env, {"MPICC": "/p/bin/mpicc", "MPICXX": "/p/bin/mpicxx",
                "MADMPI_CC": "/s/cc", "MADMPI_CXX": "/s/c++"})
    recipe.package.setup_dependent_package(module, dependent)
    equal(recipe.package.spec.mpicc, "/p/bin/mpicc")
    equal(recipe.package.spec.mpicxx, "/p/bin/mpicxx")


def spack_finds_the_clone_that_it_is_in():
    equal(recipe.package.git, root.resolve().as_uri())


# --- Meson, Debian, tools/packages.sh ---


def meson_asks_for_nothing_else():
    asked = {entry["name"] for entry in introspect("--scan-dependencies")}
    equal(asked - OF_LIBC - set(OF_EXAMPLES) - OF_TESTS, names(0))


def debian_builds_with_the_same():
    field = re.search(r"^Build-Depends: (.*?)\n(?=\S)", text("debian/control"),
                      re.S | re.M)[1]
    equal({name.split()[0] for name in field.split(",")} - TOOLS_DEBIAN,
          names(2))


def tools_install_the_same():
    rows = re.findall(r"^build \| (\S+)", text("tools/packages.sh"), re.M)
    equal(set(rows) - TOOLS_BUILD - set(OF_EXAMPLES.values()), names(2))


def options_that_are_set_exist():
    exist = set(re.findall(r"^\s*'(\w+)',$|option\(\s*'(\w+)'",
                           text("meson_options.txt"), re.M))
    exist = {name for pair in exist for name in pair}
    for path in ["debian/rules", "packaging/spack/packages/madmpi/package.py"]:
        for option in re.findall(r"-D(\w+)=", text(path)):
            assert option in exist, f"{path}: no option {option}"


def debian_has_the_version():
    version = re.search(r"^  version: '(.*)'", text("meson.build"), re.M)[1]
    head = text("debian/changelog").splitlines()[0]
    assert head.startswith(f"madmpi ({version})"), head


tap.run([
    meson_asks_for_nothing_else,
    spack_depends_on_what_meson_asks_for,
    spack_provides_mpi,
    spack_says_each_option_as_the_variants_are,
    spack_points_dependents_to_the_wrappers,
    spack_finds_the_clone_that_it_is_in,
    debian_builds_with_the_same,
    debian_has_the_version,
    tools_install_the_same,
    options_that_are_set_exist,
])
