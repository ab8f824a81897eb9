/*
 * The tcp driver between hosts: which driver ranks choose, which interfaces and
 * addresses carry their bytes, and how many each of two unequal rails. What
 * becomes of a job when a cable is pulled is in dead_host.c.
 */

#include <inttypes.h>
#include <unistd.h>

#include "lab.h"

enum { MB = 1000000, NOISE = 20000 }; /* what a kernel sends of its own */

/* --- who reaches whom by what --- */

static const char *const four[] = {
	"rank 0: self shm tcp tcp",
	"rank 1: shm self tcp tcp",
	"rank 2: tcp tcp self shm",
	"rank 3: tcp tcp shm self",
};

static void all_are_in(const struct run *r, const char *const *lines, int n)
{
	went_well(r);
	for (int i = 0; i < n; i++)
		CHECK(has(r->out, lines[i]));
}

TEST(ranks_of_one_host_choose_shm_and_those_of_two_tcp)
{
	struct run r;

	if (run(NULL, "command -v mpiexec.hydra").code != 0)
		check_skip("mpiexec.hydra is not installed (package mpich)");
	r = lab("max", "exec mpiexec.hydra -launcher fork -iface lo -hosts "
		       "h0:2,h1:2 -n 4 \"$NET\" rank " RANK "who");
	all_are_in(&r, four, 4);
}

/* Those who do not see the memory of the first have none with each other. */
TEST(what_a_launcher_takes_for_one_host_may_be_two)
{
	static const char *const split[] = {
		"rank 0: self shm tcp tcp",
		"rank 1: shm self tcp tcp",
		"rank 2: tcp tcp self tcp",
		"rank 3: tcp tcp tcp self",
	};
	struct run r = lab("max", RANKS(4) RANK "who");

	/* That is found out when the first message is to go there. */
	CHECK(r.code != 0);
	CHECK(has(r.err, "listens at the loopback of another host: "
			 "set NMAD_TCP_IFACE=any"));
	r = lab("max", "export NMAD_TCP_IFACE=any; " RANKS(4) RANK "who");
	all_are_in(&r, split, 4);
}

/* --- memory that a host shares --- */

/* An error at the start, and not a signal when a page is touched. */
TEST(a_full_dev_shm_is_an_error_at_the_start)
{
	static const char *const sizes[] = { "64k", "4m" }; /* for 0 or 1 */
	char script[512];

	for (int i = 0; i < 2; i++) {
		struct run r;

		snprintf(script, sizeof(script),
			 "\"$NET\" run 0 mount -o remount,size=%s /dev/shm; "
			 "export NMAD_DRIVER=shm NMAD_SHM_SEGMENT=file; "
			 "\"$MPIRUN\" -n 2 \"$NET\" run 0 " RANK "who",
			 sizes[i]);
		r = lab("max", script);
		CHECK(r.code == 4 || r.code == 1); /* who is first */
		CHECK(has(r.err, "shm: cannot m"));
		CHECK(has(r.err, "No space left on device"));
	}
}

/* --- which interfaces --- */

/* Between so many bytes and a little more have left by eth0, eth1, eth2. */
static void check_bytes(const struct run *r, const uint64_t want[3])
{
	uint64_t got[3];

	went_well(r);
	CHECK_INT(sscanf(r->out,
			 "eth0 %" SCNu64 " eth1 %" SCNu64 " eth2 %" SCNu64,
			 &got[0], &got[1], &got[2]),
		  3);
	for (int i = 0; i < 3; i++) {
		printf("# eth%d: %" PRIu64 " bytes, of ours %" PRIu64 "\n", i,
		       got[i], want[i]);
		CHECK(got[i] >= want[i]);
		CHECK(got[i] <= want[i] + want[i] / 10 + NOISE);
	}
}

TEST(the_interface_that_is_named_is_used_and_no_other)
{
	struct run r = lab("max,max,max", "export NMAD_DRIVER=tcp:eth1; " RANKS(
						  2) RANK "count 1000000 4");
	static const uint64_t second[] = { 0, 4 * MB, 0 };

	check_bytes(&r, second);
}

TEST(the_interface_of_rails_that_name_none_may_be_set)
{
	struct run r =
		lab("max,max,max",
		    "export NMAD_DRIVER=tcp NMAD_TCP_IFACE=eth1; " RANKS(2) RANK
		    "count 1000000 4");
	static const uint64_t second[] = { 0, 4 * MB, 0 };

	check_bytes(&r, second);
}

TEST(two_that_are_named_are_two_rails)
{
	struct run r =
		lab("max,max,max",
		    "export NMAD_DRIVER=tcp:eth2+tcp:eth0 "
		    "NMAD_SAMPLING=$EQUAL; " RANKS(2) RANK "count 1000000 4");
	static const uint64_t both[] = { 2 * MB, 0, 2 * MB };

	check_bytes(&r, both);
}

TEST(an_interface_that_is_not_there_is_refused_with_those_that_are)
{
	struct run r =
		lab("max", "export NMAD_DRIVER=tcp:eth7; " RANKS(2) RANK "who");

	CHECK_INT(r.code, 4);
	CHECK(has(r.err, "\"tcp:eth7\" is no interface or address of this "
			 "host; there are"));
	CHECK(has(r.err, "eth0 (10.0.0."));
	r = lab("max", "export NMAD_DRIVER=tcp NMAD_TCP_IFACE=none; " RANKS(2)
			       RANK "who");
	CHECK_INT(r.code, 4);
	CHECK(has(r.err, "NMAD_TCP_IFACE: \"none\" is no interface or address "
			 "of this host; there are"));
}

/* --- IPv6 --- */

static void need_ipv6(void)
{
	if (run(NULL, "test -e /proc/net/if_inet6").code != 0)
		check_skip("this kernel has no IPv6");
}

TEST(addresses_of_ipv6_may_be_named)
{
	static const uint64_t second[] = { 0, 4 * MB, 0 };
	struct run r;

	need_ipv6();
	r = lab("max,max,max",
		RANKS(2) "sh -c \"NMAD_DRIVER=tcp:fd00:1::\\$((PMI_RANK + 1)) "
			 "exec $RANK count 1000000 4\"");
	check_bytes(&r, second);
	r = lab("max,max,max",
		RANKS(2) "sh -c \"NMAD_DRIVER=tcp:fe80::\\$((PMI_RANK + 1))"
			 "%eth1 exec $RANK count 1000000 4\"");
	check_bytes(&r, second);
}

TEST(hosts_without_ipv4_meet_by_ipv6)
{
	static const char *const two[] = { "rank 0: self tcp",
					   "rank 1: tcp self" };
	static const char no_ipv4[] =
		"for h in 0 1; do \"$NET\" run $h ip -4 address flush; done; "
		"export %s; " RANKS(2) RANK "who";
	static const char *const settings[] = { "NMAD_TCP_IFACE=any",
						"NMAD_DRIVER=tcp:eth0" };
	char script[1024];

	need_ipv6();
	for (int i = 0; i < 2; i++) {
		struct run r;

		snprintf(script, sizeof(script), no_ipv4, settings[i]);
		r = lab("max", script);
		all_are_in(&r, two, 2);
	}
}

/* --- two rails of unequal rates --- */

#define RATES "100mbit,25mbit"

TEST(a_body_is_cut_in_the_ratio_of_the_rates)
{
	struct run r = lab(
		RATES, "export NMAD_DRIVER=tcp:eth0+tcp:eth1 "
		       "NMAD_SAMPLING=$SHAPED NMAD_STRATEGY=split; " RANKS(2)
			       RANK "count 1000000 4");
	uint64_t fast, slow;

	went_well(&r);
	CHECK_INT(sscanf(r.out, "eth0 %" SCNu64 " eth1 %" SCNu64, &fast, &slow),
		  2);
	printf("# %" PRIu64 " bytes and %" PRIu64 "\n", fast, slow);
	CHECK(fast + slow >= 4 * MB);
	CHECK(10 * fast >= 36 * slow);
	CHECK(10 * fast <= 44 * slow);
}

/* What passes beyond the rate at first: tools/lab/net, shape. */
enum { BURST = 16 << 10 };

/*
 * The points of bodies are in the first part of each rail. A busy machine makes
 * them later, and nothing makes them earlier.
 */
static void check_sampled(FILE *f)
{
	static const int mbit[] = { 100, 25 };
	int rail = -1, points[2] = { 0, 0 };
	bool of_bodies = false;
	char line[128];
	double bytes, ns;

	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "rail %d tcp", &rail) == 1) {
			CHECK(rail == 0 || rail == 1);
			of_bodies = true;
		} else if (strcmp(line, "eager\n") == 0) {
			of_bodies = false;
		} else if (of_bodies &&
			   sscanf(line, "%lf %lf", &bytes, &ns) == 2) {
			CHECK(ns >= (bytes - BURST) * 8000 / mbit[rail]);
			points[rail] += bytes > BURST;
		}
	}
	CHECK(points[0] > 0 && points[1] > 0);
}

TEST(no_rail_is_measured_to_be_faster_than_it_is)
{
	char path[] = "hosts-XXXXXX", script[512];
	struct run r;
	FILE *f;

	lab(RATES, "true"); /* which may skip this test */
	CHECK(close(mkstemp(path)) == 0);
	snprintf(script, sizeof(script),
		 "export NMAD_DRIVER=tcp:eth0+tcp:eth1; " RANKS(
			 2) "\"$SAMPLE\" --time 600000 --rounds 1 --max 64k %s",
		 path);
	r = lab(RATES, script);
	f = fopen(path, "re");
	unlink(path);
	went_well(&r);
	CHECK(f != NULL);
	check_sampled(f);
	fclose(f);
}
