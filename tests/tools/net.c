/*
 * tools/lab/net: hosts have what is theirs, faults are what they are called,
 * and nothing of it outlives the lab.
 */
#include "../check.h"
#include "../run.h"

#include <stdio.h>
#include <stdlib.h>

/* Two hosts with these rails, and a script beside them: no single quotes. */
static struct run lab(const char *rates, const char *script)
{
	struct run r =
		run(NULL, "exec \"$NET\" up 2 %s sh -c '%s'", rates, script);

	if (r.code == 77)
		check_skip(strtok(strdup(r.err), "\n"));
	return r;
}

TEST(hosts_have_names_networks_processes_and_memory_of_their_own)
{
	struct run r =
		lab("max,max", "for h in 0 1; do \"$NET\" run $h sh -c "
			       "\"hostname; echo x >/dev/shm/\\$(hostname);"
			       " ls /dev/shm; ls /sys/class/net; "
			       "ip -o address show dev eth1 | wc -l; "
			       "ps -e -o comm= | "
			       "grep -v -c -x -e sh -e ps -e grep\"; done");

	CHECK_STR(r.err, "");
	CHECK_STR(r.out, "n0\nn0\neth0\neth1\nlo\n3\n1\n"
			 "n1\nn1\neth0\neth1\nlo\n3\n1\n");
	CHECK_INT(r.code, 0);
}

TEST(the_commands_exit_code_and_input_are_passed_on)
{
	struct run r = lab("max", "exit 5");

	CHECK_INT(r.code, 5);
	r = run("word\n", "exec \"$NET\" up 1 max \"$NET\" run 0 cat");
	CHECK_STR(r.out, "word\n");
	CHECK_INT(r.code, 0);
}

TEST(ranks_are_dealt_out_in_blocks)
{
	struct run r = lab("max", "for r in 0 1 2 3 4; do PMI_SIZE=5 "
				  "PMI_RANK=$r \"$NET\" rank hostname; done");

	CHECK_STR(r.out, "n0\nn0\nn0\nn1\nn1\n");
}

TEST(rates_shape_both_directions)
{
	struct run r = lab("max,25mbit",
			   "\"$NET\" rate 1 0 10mbit; tc qdisc show dev n1r0; "
			   "tc qdisc show dev n0r1; "
			   "\"$NET\" run 1 tc qdisc show dev eth0; "
			   "\"$NET\" run 0 tc qdisc show dev eth0; "
			   "\"$NET\" run 0 tc qdisc show dev eth1");
	const char *const want[] = { "10Mbit", "25Mbit", "10Mbit", "noqueue",
				     "25Mbit" };
	char *line = strtok(strdup(r.out), "\n");

	for (int i = 0; i < 5; i++, line = strtok(NULL, "\n")) {
		CHECK(line != NULL);
		CHECK(has(line, want[i]));
	}
}

/*
 * Whether the other answers, once the kernel has looked for it so many times,
 * which it does every 20 ms: an answer may take long, and none must not.
 */
#define SOON                                                                   \
	"\"$NET\" run 1 sh -c "                                                \
	"\"echo 20 >/proc/sys/net/ipv4/neigh/eth0/retrans_time_ms\"; "
#define ASK(times)                                                             \
	"\"$NET\" run 0 cat /sys/class/net/eth0/carrier; "                     \
	"\"$NET\" run 1 sh -c "                                                \
	"\"echo " #times " >/proc/sys/net/ipv4/neigh/eth0/mcast_solicit\"; "   \
	"\"$NET\" run 1 ip neighbour flush dev eth0; "                         \
	"\"$NET\" run 1 bash -c \"echo >/dev/tcp/10.0.0.1/1\" 2>&1 | "         \
	"grep -o -e refused -e route -e unreachable | head -n 1; "
#define ANSWERS ASK(1000)
#define SILENT  ASK(3)

TEST(who_is_cut_off_sees_it_and_who_is_silent_does_not)
{
	struct run r = lab("max", SOON ANSWERS "\"$NET\" cut 0 0; " SILENT
					       "\"$NET\" heal 0 0; " ANSWERS);

	CHECK_STR(r.out, "1\nrefused\n0\nroute\n1\nrefused\n");
	r = lab("max", SOON "\"$NET\" silence 0 0; " SILENT
			    "\"$NET\" heal 0 0; " ANSWERS);
	CHECK_STR(r.out, "1\nroute\n1\nrefused\n");
}

TEST(who_loses_all_is_silent_until_the_cable_is_healed)
{
	struct run r = lab("max", SOON "\"$NET\" lose 0 0 100; " SILENT
				       "\"$NET\" lose 0 0 0; " ANSWERS
				       "\"$NET\" lose 0 0 100; "
				       "\"$NET\" heal 0 0; " ANSWERS);

	CHECK_STR(r.out, "1\nroute\n1\nrefused\n1\nrefused\n");
}

/* Who is plugged in is reached at once, by who sends one packet and no more. */
TEST(a_lab_is_up_when_its_switches_forward)
{
	struct run r = lab("max", "for i in 1 2 3 4; do bridge link; "
				  "\"$NET\" cut 0 0; \"$NET\" heal 0 0; done");

	CHECK(has(r.out, "state forwarding"));
	CHECK(strstr(r.out, "state disabled") == NULL);
}

/* Of 200 some, by more luck than there is all or none. */
TEST(who_loses_half_gets_the_rest)
{
	struct run r = lab(
		"max", "in=/sys/class/net/eth0/statistics/rx_packets; " ANSWERS
		       "\"$NET\" lose 0 0 50; \"$NET\" run 0 cat $in; "
		       "\"$NET\" run 1 bash -c \"for i in {1..200}; do "
		       "echo >/dev/udp/10.0.0.1/9; done\" 2>/dev/null; "
		       "\"$NET\" run 0 cat $in");
	int before, after;

	CHECK_INT(sscanf(r.out, "1 refused %d %d", &before, &after), 2);
	printf("# %d of 200\n", after - before);
	CHECK(after > before + 20 && after < before + 180);
}

TEST(a_rate_may_be_taken_back)
{
	struct run r = lab("25mbit", "\"$NET\" rate 0 0 max; "
				     "tc qdisc show dev n0r0; "
				     "\"$NET\" run 0 tc qdisc show dev eth0");

	CHECK(!strstr(r.out, "tbf"));
	CHECK_STR(r.err, "");
	CHECK_INT(r.code, 0);
}

TEST(orders_in_what_is_printed_are_obeyed)
{
	struct run r = lab("max", "printf \"a\\nnet: cut 0 0\\n b\" | "
				  "\"$NET\" obey; \"$NET\" run 0 "
				  "cat /sys/class/net/eth0/carrier; "
				  "echo net: cut 0 7 | \"$NET\" obey");

	CHECK_STR(r.out, "a\nnet: cut 0 0\n b\n0\nnet: cut 0 7\n");
	CHECK(has(r.err, "there is no rail 7"));
	CHECK_INT(r.code, 1);
}

TEST(wrong_arguments_are_named)
{
	static const char *const bad[][2] = {
		{ "", "net up HOSTS RATES COMMAND" },
		{ "dance", "net up HOSTS RATES COMMAND" },
		{ "up 2 max", "usage: net up" },
		{ "up 0 max true", "HOSTS is 1 to 64, not '0'" },
		{ "up 65 max true", "HOSTS is 1 to 64, not '65'" },
		{ "up x max true", "HOSTS is 1 to 64, not 'x'" },
		{ "up 2 '' true", "RATES are such as" },
		{ "up 2 max, true", "RATES are such as" },
		{ "up 2 5 true", "RATES are such as" },
		{ "run 0 true", "'run' is for commands of: net up" },
		{ "cut 0 0", "'cut' is for commands of: net up" },
		{ "up 2 max \"$NET\" run 2 true", "there is no host 2" },
		{ "up 2 max \"$NET\" run", "there is no host" },
		{ "up 2 max \"$NET\" cut 1 1", "there is no rail 1" },
		{ "up 2 max \"$NET\" rate 1 0 fast", "'fast' is no rate" },
		{ "up 2 max \"$NET\" lose 1 0 101", "not '101'" },
		{ "up 2 max \"$NET\" lose 1 0", "PERCENT is 0 to 100" },
		{ "up 2 max \"$NET\" rank true", "PMI_RANK" },
	};

	lab("max", "true");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run r = run(NULL, "exec \"$NET\" %s", bad[i][0]);

		CHECK(has(r.err, bad[i][1]));
		CHECK_INT(r.code, 2);
	}
}

/*
 * All that a lab has started holds the pipe: `cat` ends when the last of it is
 * gone. Some have left their session, or lie in the second host.
 */
static void leaves_nothing_after(const char *signal)
{
	struct run r = run(NULL,
			   "sh -c 'echo $$; exec \"$NET\" up 2 max sh -c \""
			   "\\\"$NET\\\" run 0 setsid sleep 1000 & "
			   "\\\"$NET\\\" run 1 sleep 1000 & "
			   "\\\"$NET\\\" run 1 echo up; sleep 1000\"' | "
			   "{ read -r pid; read -r up; kill -%s $pid; cat; "
			   "echo $up and gone; }",
			   signal);

	CHECK_STR(r.out, "up and gone\n");
	CHECK_INT(r.code, 0);
}

TEST(a_lab_that_is_killed_leaves_nothing)
{
	lab("max", "true");
	leaves_nothing_after("KILL");
	leaves_nothing_after("TERM");
	leaves_nothing_after("HUP");
}

TEST(what_the_command_leaves_behind_ends_with_it)
{
	struct run r;

	lab("max", "true");
	r = run(NULL, "\"$NET\" up 1 max sh -c 'sleep 1000 & "
		      "\"$NET\" run 0 setsid sleep 1000 & echo up' | cat");
	CHECK_STR(r.out, "up\n");
}

TEST(users_may_have_one_where_the_kernel_lets_them)
{
	struct run r;

	lab("max", "true");
	r = run(NULL, "exec setpriv --reuid 65534 --regid 65534 --clear-groups "
		      "\"$NET\" up 2 max,25mbit \"$NET\" run 1 hostname");
	if (r.code == 77)
		check_skip("users may not make namespaces here");
	if (r.code == 126 || r.code == 127)
		check_skip("other users may not read this folder");
	CHECK_STR(r.out, "n1\n");
	CHECK_INT(r.code, 0);
}

TEST(where_it_cannot_be_had_it_says_so)
{
	struct run r;

	lab("max", "true");
	r = run(NULL, "exec unshare --user --map-root-user sh -c '"
		      "echo 0 >/proc/sys/user/max_net_namespaces; "
		      "exec \"$NET\" up 2 max true'");
	CHECK_STR(r.err, "net: this user may not make namespaces here\n");
	CHECK_INT(r.code, 77);
}
