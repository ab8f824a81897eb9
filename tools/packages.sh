#!/bin/bash
# What has to be on the machine, what each thing is for, and how it gets there.
# Sourced by tools/demo, tools/test and .ci/run, or run:
#
#   tools/packages.sh build test
#                        says what the uses named here lack, and as root
#                        installs it

# use | Debian package | true if it is there | what it is for
packages='
build | gcc | command -v cc | compiles everything
build | libc6-dev | have_header stdio.h | headers of the C library
build | meson | command -v meson | configures the build
build | ninja-build | command -v ninja | runs the build
build | pkg-config | command -v pkg-config | finds libraries
build | python3 | command -v python3 | makes mpi.h and the pictures, runs checks
build | libhwloc-dev | pkg-config --exists hwloc | tells which cores share a cache
build | libpng-dev | pkg-config --exists libpng | heat writes its result as PNG
build | libpmix-dev | pkg-config --exists pmix | its header: jobs that were started through PMIx
build | libibverbs-dev | pkg-config --exists libibverbs | its header: messages over InfiniBand and RoCE
test | g++ | command -v c++ | mpicxx, and that the headers are C++ too
test | mpich | command -v mpiexec.hydra | the same ranks run under Hydra
test | cmake | command -v cmake | find_package(MPI) finds our wrappers
test | gdb | command -v gdb | shows user threads
test | valgrind | have_header valgrind/valgrind.h | is told of stacks
test | gnuplot-nox | command -v gnuplot | nm-sample draws what it measured
test | iproute2 | command -v tc | hosts made of namespaces, with veth pairs between them
test | slurmctld | command -v slurmctld | the same ranks run under Slurm
test | slurmd | command -v slurmd | its nodes
test | slurm-client | command -v srun | srun and salloc
test | slurm-wlm-basic-plugins | have_file slurm-wlm/auth_none.so | a cluster without keys
test | libpmix2 | have_file libpmix.so.2 | srun --mpi=pmix and the mpirun of Open MPI
test | openmpi-bin | command -v mpirun.openmpi | the same ranks run under it
test | zsh | command -v zsh | completes the options of mpirun
test | environment-modules | have_modules | loads the modulefile
test | procps | command -v ps | tests look at processes
test | man-db | command -v man | finds and shows the manual pages
test | mandoc | command -v mandoc | warns of what is wrong in them
test | chromium | command -v chromium | opens the page of marcel-trace
test | golang-src | have_trace_viewer | the viewer of chrome://tracing, which opens its JSON
ci | git | command -v git | which files are ours
ci | ccache | command -v ccache | compiles once what has not changed; meson takes it
ci | clang | command -v clang | the second compiler
ci | clang-format | command -v clang-format | spacing
ci | libclang-rt-14-dev | have_clang_rt | sanitizers of clang
ci | gcc-aarch64-linux-gnu | command -v aarch64-linux-gnu-gcc | marcel on aarch64
ci | libc6-dev-arm64-cross | test -e /usr/aarch64-linux-gnu/include/stdio.h | its headers
ci | qemu-user | command -v qemu-aarch64 | runs it
vm | qemu-system-x86 | command -v qemu-system-x86_64 | tools/lab/vm: guests whose processors it emulates
vm | busybox-static | command -v busybox | their first process
vm | kmod | command -v modprobe | which modules of the kernel need which
vm | cpio | command -v cpio | their initial memory file system
vm | iproute2 | command -v rdma | gives them RDMA devices
vm | ibverbs-providers | have_file libibverbs/librxe-rdmav*.so | the part of libibverbs for soft-RoCE
vm | ibverbs-utils | command -v ibv_devices | what libibverbs sees, and a measure to compare with
peers | libpth-dev | have_header pth.h | GNU Pth, to measure threads against
peers | libboost-fiber-dev | test -e /usr/include/boost/fiber/all.hpp | Boost.Fiber, likewise
peers | libmpich-dev | have_mpi mpicc.mpich | MPICH, to measure ours against
peers | openmpi-bin | command -v mpirun.openmpi | Open MPI, likewise
peers | libopenmpi-dev | have_mpi mpicc.openmpi | its headers
peers | ibverbs-utils | command -v ibv_rc_pingpong | RDMA without MPI, likewise
peers | ucx-utils | command -v ucx_perftest | what the two are over, likewise
peers-go | golang-go | command -v go | Go, likewise; 80 MB
packaging | debhelper | command -v dh | builds Debian packages
packaging | dpkg-dev | command -v dpkg-buildpackage | likewise
packaging | chrpath | command -v chrpath | takes from them the paths of libraries elsewhere
packaging | lintian | command -v lintian | looks at them
plots | gnuplot-nox | command -v gnuplot | tools/bench/plot.py draws what run.py has measured
'

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	say "$@"
	exit 1
}

have_header() {
	echo "#include <$1>" | cc -E - >/dev/null 2>&1
}

# In the folder of libraries.
have_file() {
	compgen -G "/usr/lib/*/$1"
}

# Lmod reads the same, and is removed where the other one is installed.
have_modules() {
	have_file modulecmd.tcl || test -d /usr/share/lmod
}

have_trace_viewer() {
	local file=static/trace_viewer_full.html

	compgen -G "/usr/share/go-*/src/cmd/trace/$file" ||
		compgen -G "/usr/share/go-*/src/internal/trace/traceviewer/$file"
}

have_mpi() {
	echo '#include <mpi.h>' | "$1" -fsyntax-only -x c -
}

have_clang_rt() {
	echo 'int main(void) { return 0; }' |
		clang -fsanitize=thread -x c - -o /dev/null 2>/dev/null
}

# Names of the packages that the given uses lack.
missing_packages() {
	local use package check purpose

	while IFS='|' read -r use package check purpose; do
		use=${use// /}
		[[ -n $use && " $* " == *" $use "* ]] || continue
		eval "$check" >/dev/null 2>&1 || echo "${package// /}"
	done <<<"$packages"
}

purpose_of() {
	awk -F' *[|] *' -v p="$1" '$2 == p { print $4; exit }' <<<"$packages"
}

install_packages() {
	local log
	local -a apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y
		--no-install-recommends)

	log=$(mktemp)
	if "${apt[@]}" install "$@" >"$log" 2>&1 </dev/null ||
		{ "${apt[@]}" update && "${apt[@]}" install "$@"; } \
			>"$log" 2>&1 </dev/null; then
		rm -f "$log"
		return 0
	fi
	tail -n 15 "$log" >&2
	rm -f "$log"
	return 1
}

need() {
	local package here
	local -a lack

	mapfile -t lack < <(missing_packages "$@")
	((${#lack[@]} > 0)) || return 0
	say "needed and not on this machine:"
	for package in "${lack[@]}"; do
		printf '    %-20s %s\n' "$package" "$(purpose_of "$package")" >&2
	done
	command -v apt-get >/dev/null ||
		die "there is no apt-get here: install them, then run this again"
	if [[ $(id -u) != 0 ]]; then
		here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
		say "only root can install them; run this, then ${0##*/} again:"
		printf '    sudo %q %s\n' "$here/packages.sh" "$*" >&2
		exit 1
	fi
	say "installing them with apt-get, which may take minutes"
	install_packages "${lack[@]}" ||
		die "apt-get could not install them (no network?)"
	mapfile -t lack < <(missing_packages "$@")
	((${#lack[@]} == 0)) ||
		die "installed, and still not usable: ${lack[*]}"
}

# All uses, on a line.
uses() {
	sed -n 's/ |.*//p' <<<"$packages" | sort -u | paste -sd ' '
}

# configure DIR [meson options]: a build tree that exists is kept as it is.
configure() {
	local dir=$1 log

	shift
	[[ -f $dir/build.ninja ]] && return 0
	rm -rf "$dir"
	log=$(mktemp)
	if ! meson setup "$dir" "$@" >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		die "meson could not configure $dir"
	fi
	rm -f "$log"
}

# build DIR [target ...]: says nothing more unless something is wrong.
build() {
	local log

	log=$(mktemp)
	ninja -C "$@" -n | grep -q 'no work to do' ||
		say "building in $1, which may take minutes"
	if ! ninja -C "$@" >"$log" 2>&1; then
		grep -E -A8 'FAILED|error' "$log" | head -n 60 >&2
		rm -f "$log"
		die "the build in $1 failed"
	fi
	rm -f "$log"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	(($# > 0)) || die "for which use? $(uses)"
	for use; do
		[[ " $(uses) " == *" $use "* ]] || die "no use $use: $(uses)"
	done
	need "$@"
fi
