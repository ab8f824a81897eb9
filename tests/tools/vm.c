/*
 * tools/lab/vm: a guest has what it was given, hands back what its command did,
 * and nothing of it stays. Skipped where there can be none. Each guest costs
 * seconds: as few as will do.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>

/* The kernel comes over the network once. */
static void need_vm(void)
{
	struct run r = run(NULL, "exec \"$VM\" --fetch");

	if (r.code == 77)
		check_skip(strtok(strdup(r.err), "\n"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
}

/* First what a command finds and leaves, then the devices; two in one guest. */
TEST(a_command_is_as_here_and_finds_the_devices_that_it_was_given)
{
	struct run r;

	need_vm();
	r = run(NULL,
		"d=$(mktemp -d) && mkdir $d/rw && cd $d && WORD='two  words' "
		"\"$VM\" --timeout 1000 --rw rw --rdma 2 --memlock 1024 --topo "
		"2x1 --numa 2 "
		"-- sh -c 'printf \"%%s|\" \"$WORD\" \"$@\"; hostname; ls; "
		"echo kept >rw/file; echo lost >file; echo wrong >&2; cat; "
		"ibv_devices | grep -o \"rxe[0-9]\"; nproc; "
		"ls -d /sys/devices/system/node/node*; "
		"cat /sys/class/infiniband/rxe1/ports/1/gids/1; "
		"timeout 900 ibv_rc_pingpong -d rxe0 -g 1 -e -n 5 >/dev/null & "
		"until ss -ltn | grep -q 18515; do kill -0 $! && sleep 0.1 || "
		"exit; "
		"done; "
		"timeout 900 ibv_rc_pingpong -d rxe1 -g 1 -e -n 5 10.77.0.1 "
		"| grep -o \"^5 iters\"; wait; "
		"test $(cat /sys/class/net/port0/statistics/rx_packets) -ge 10 "
		"&& echo over the wire; "
		"ibv_rc_pingpong -d rxe0 -g 1 -s 2000000 2>&1; ulimit -l; "
		"exit 7' name 'an argument' '*'; "
		"code=$?; cat rw/file; ls $d; rm -r $d; exit $code");
	CHECK_STR(r.err, "wrong\n");
	CHECK_STR(r.out, "two  words|an argument|*|vm\nrw\n"
			 "rxe0\nrxe1\n2\n/sys/devices/system/node/node0\n"
			 "/sys/devices/system/node/node1\n"
			 "0000:0000:0000:0000:0000:ffff:0a4d:0002\n"
			 "5 iters\nover the wire\nCouldn't register MR\n1024\n"
			 "kept\nrw\n");
	CHECK_INT(r.code, 7);
}

TEST(a_guest_that_takes_too_long_is_killed)
{
	struct run r;

	need_vm();
	r = run(NULL, "exec \"$VM\" --timeout 1 sleep 100");
	CHECK_STR(r.err, "vm: the time is over: 1 s\n");
	CHECK_INT(r.code, 124);
}

TEST(a_guest_that_dies_is_not_taken_for_one_that_ends_well)
{
	struct run r;

	need_vm();
	r = run(NULL, "exec \"$VM\" --timeout 1000 sh -c 'echo c "
		      ">/proc/sysrq-trigger'");
	CHECK(has(r.err, "vm: the guest died"));
	CHECK(has(r.err, "Kernel Offset"));
	CHECK_INT(r.code, 125);
}

TEST(wrong_arguments_are_named)
{
	static const char *const bad[][2] = {
		{ "", "vm [options] COMMAND" },
		{ "--mem 512", "usage: vm" },
		{ "--dance true", "there is no option --dance" },
		{ "--rdma", "--rdma is 0 to 16, not ''" },
		{ "--rdma 17 true", "--rdma is 0 to 16, not '17'" },
		{ "--mem 1g true", "--mem is 256 to 1048576, not '1g'" },
		{ "--timeout 0 true", "--timeout is 1 to 86400, not '0'" },
		{ "--topo 4 true", "--topo is such as 4x2 or 1x4x2, not '4'" },
		{ "--topo 9x9 true", "64 processors at most, not 81" },
		{ "--topo 2x3 --numa 4 true", "--numa 4 does not divide" },
		{ "--rw /none true", "--rw is a folder without a comma, not" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run r = run(NULL, "exec \"$VM\" %s", bad[i][0]);

		CHECK(has(r.err, bad[i][1]));
		CHECK_INT(r.code, 2);
	}
	need_vm();
	CHECK_INT(run(NULL, "exec \"$VM\" --module dance true").code, 2);
}

/*
 * All that a guest consists of holds the pipe: `cat` ends when the last of it
 * is gone. Its files are in a folder of their own.
 */
static void leaves_nothing_after(const char *signal)
{
	struct run r = run(NULL,
			   "d=$(mktemp -d); TMPDIR=$d sh -c 'echo $$; exec "
			   "\"$VM\" sleep 1000' | { read -r pid; "
			   "until pgrep -P $pid qemu >/dev/null; do "
			   "sleep 0.02; done; kill -%s $pid; cat; ls $d; "
			   "echo gone; rmdir $d; }",
			   signal);

	CHECK_STR(r.out, "gone\n");
	CHECK_INT(r.code, 0);
}

TEST(a_guest_that_is_killed_leaves_nothing)
{
	need_vm();
	leaves_nothing_after("TERM");
	leaves_nothing_after("KILL");
}

TEST(where_it_cannot_be_had_it_says_so)
{
	struct run r = run(NULL, "d=$(mktemp -d); VM_CACHE=$d PATH=/none "
				 "/bin/bash \"$VM\" true; code=$?; rmdir $d; "
				 "exit $code");

	CHECK(strncmp(r.err, "vm: ", 4) == 0);
	CHECK_INT(r.code, 77);
}
