/*
 * drivers/verbs/device.c and open.c: which port is opened, and what is said if
 * none is; nothing, if nobody has asked for it by name. Over the libibverbs of
 * fake_verbs/.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../nmad/drivers/verbs/verbs.h"
#include "fake_verbs/fake_verbs.h"
#include "said.h"

extern const struct nm_driver nm_driver_ibverbs;

static struct nm_rail rails[2];
static struct nm_link links[2][2];
static struct nm_boot_info info;
static char *said;

static int open_it(int i, const char *spec, int local_rank)
{
	struct nm_rail *rail = &rails[i];

	memset(rail, 0, sizeof(*rail));
	memset(links[i], 0, sizeof(links[i]));
	info = (struct nm_boot_info){ .client = "test",
				      .local_rank = local_rank,
				      .size = 2,
				      .local_size = 2 };
	rail->driver = &nm_driver_ibverbs;
	rail->links = links[i];
	rail->nlinks = 2;
	rail->fd = -1;
	rail->is_listed = true;
	return nm_driver_ibverbs.open(rail, &info, spec);
}

static void close_it(int i)
{
	nm_driver_ibverbs.close(&rails[i]);
}

static const struct verbs_port *port(int i)
{
	const struct verbs *v = rails[i].drv;

	return &v->port;
}

static void is_port(int i, const char *name, int number)
{
	CHECK_STR(port(i)->name, name);
	CHECK_INT(port(i)->number, number);
}

static void nothing_is_open(void)
{
	struct fake_verbs_counts c = { 0 };

	if (fake_verbs() != NULL)
		fake_verbs()->counts(&c);
	CHECK_INT(c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.srqs, 0);
}

/* It opens this one, and says nothing. */
static void opens(const char *spec, int local_rank, const char *name,
		  int number)
{
	said_begin();
	CHECK_INT(open_it(0, spec, local_rank), 0);
	is_port(0, name, number);
	close_it(0);
	said = said_end();
	CHECK_STR(said, "");
	free(said);
	nothing_is_open();
}

/* It does not, and says why, once. */
static void refuses(const char *spec, int error, const char *why)
{
	said_begin();
	CHECK_INT(open_it(0, spec, 0), error);
	said = said_end();
	said_times(said, why, 1);
	said_times(said, "\n", 1);
	free(said);
	nothing_is_open();
}

TEST(a_port_is_chosen_by_name)
{
	setenv("FAKE_VERBS_PORTS", "2", 1);
	opens("fake1", 0, "fake1", 1);
	opens("fake1:2", 0, "fake1", 2);
	opens("fake0:1", 1, "fake0", 1);
	refuses("fake7", -ENODEV, "there is no device fake7");
	refuses("fake1:3", -ENODEV, "there is no port 3 of fake1");
	refuses("fake", -ENODEV, "there is no device fake\n");
	refuses("fake1:", -EINVAL, "is no device and port");
	refuses("fake1:0", -EINVAL, "is no device and port");
	refuses("fake1:2x", -EINVAL, "is no device and port");
	refuses("fake1:999", -EINVAL, "is no device and port");
	unsetenv("FAKE_VERBS_PORTS");
}

TEST(a_port_is_chosen_by_settings)
{
	setenv("FAKE_VERBS_PORTS", "2", 1);
	setenv("NMAD_IBVERBS_DEVICE", "fake1", 1);
	opens(NULL, 0, "fake1", 1);
	opens("fake0", 0, "fake0", 1); /* what is said there counts */
	setenv("NMAD_IBVERBS_PORT", "2", 1);
	opens(NULL, 0, "fake1", 2);
	unsetenv("NMAD_IBVERBS_DEVICE");
	opens(NULL, 0, "fake0", 2);
	unsetenv("NMAD_IBVERBS_PORT");
	unsetenv("FAKE_VERBS_PORTS");
}

TEST(the_processes_of_a_host_take_turns)
{
	opens(NULL, 0, "fake0", 1);
	opens(NULL, 1, "fake1", 1);
	opens(NULL, 2, "fake0", 1);
}

TEST(a_second_rail_takes_another_port)
{
	CHECK_INT(open_it(0, NULL, 0), 0);
	CHECK_INT(open_it(1, NULL, 0), 0);
	is_port(0, "fake0", 1);
	is_port(1, "fake1", 1);
	close_it(0);
	/* What is free again is had again. */
	CHECK_INT(open_it(0, NULL, 1), 0);
	is_port(0, "fake0", 1);
	close_it(0);
	close_it(1);
	nothing_is_open();
	setenv("FAKE_VERBS_DEVICES", "1", 1);
	CHECK_INT(open_it(1, NULL, 0), 0);
	said_begin();
	CHECK_INT(open_it(0, NULL, 0), -ENODEV);
	said = said_end();
	said_times(said, "other rails of this process have all of its 1 ports",
		   1);
	free(said);
	CHECK_INT(open_it(0, "fake0", 0), 0); /* by name it may be shared */
	close_it(0);
	close_it(1);
	unsetenv("FAKE_VERBS_DEVICES");
}

TEST(a_port_that_is_down_is_not_chosen)
{
	/* Somebody has the device open, for it to be down. */
	CHECK_INT(open_it(1, "fake1", 0), 0);
	fake_verbs()->happen(FAKE_PORT_DOWN, 0, 1, false);
	said_begin();
	CHECK_INT(open_it(0, "fake0", 0), -ENODEV);
	said = said_end();
	said_times(said, "no port of fake0 is active", 1);
	free(said);
	fake_verbs()->happen(FAKE_PORT_UP, 0, 1, false);
	CHECK_INT(open_it(0, "fake0", 0), 0);
	close_it(0);
	close_it(1);
	nothing_is_open();
}

TEST(what_may_not_be_opened_is_said)
{
	setenv("FAKE_VERBS_EACCES", "3", 1);
	refuses(NULL, -ENODEV, "may this user write to /dev/infiniband?");
	refuses("fake1", -ENODEV, "may this user write to /dev/infiniband?");
	setenv("FAKE_VERBS_EACCES", "1", 1);
	opens(NULL, 0, "fake1", 1); /* the one that may be */
	unsetenv("FAKE_VERBS_EACCES");
	setenv("FAKE_VERBS_DEVICES", "0", 1);
	refuses(NULL, -ENODEV, "this host has no RDMA device");
	unsetenv("FAKE_VERBS_DEVICES");
	setenv("FAKE_VERBS_MEMLOCK", "65536", 1);
	refuses(NULL, -ENODEV, "cannot be locked in memory");
	unsetenv("FAKE_VERBS_MEMLOCK");
}

/* Whatever the reason is: another network is used then. */
TEST(nothing_is_said_if_nobody_has_asked_for_it)
{
	struct verbs_port p = { 0 };

	said_begin();
	CHECK_INT(nm_verbs_port_open(&p, NULL, 0, true), 0);
	nm_verbs_port_close(&p);
	setenv("FAKE_VERBS_DEVICES", "0", 1);
	CHECK_INT(nm_verbs_port_open(&p, NULL, 0, false), -ENODEV);
	unsetenv("FAKE_VERBS_DEVICES");
	setenv("FAKE_VERBS_EACCES", "3", 1);
	CHECK_INT(nm_verbs_port_open(&p, NULL, 0, false), -ENODEV);
	unsetenv("FAKE_VERBS_EACCES");
	said = said_end();
	CHECK_STR(said, "");
	free(said);
	nothing_is_open();
}

TEST(an_address_of_the_port_is_chosen)
{
	union ibv_gid first;

	CHECK_INT(open_it(0, "fake0", 0), 0);
	CHECK_INT(port(0)->gid_index, 1); /* IPv4 */
	close_it(0);
	setenv("NMAD_IBVERBS_GID", "0", 1);
	CHECK_INT(open_it(0, "fake0", 0), 0);
	CHECK_INT(port(0)->gid_index, 0);
	first = port(0)->gid;
	close_it(0);
	setenv("NMAD_IBVERBS_GID", "1", 1);
	CHECK_INT(open_it(0, "fake0", 0), 0);
	CHECK(memcmp(&first, &port(0)->gid, sizeof(first)) != 0);
	close_it(0);
	setenv("NMAD_IBVERBS_GID", "9", 1);
	refuses("fake0", -EINVAL, "port 1 of fake0 has no such address");
	setenv("NMAD_IBVERBS_GID", "200", 1);
	refuses("fake0", -EINVAL, "port 1 of fake0 has no such address");
	unsetenv("NMAD_IBVERBS_GID");
}

TEST(settings_that_make_no_sense_are_refused)
{
	static const char *const nonsense[][2] = {
		{ "NMAD_IBVERBS_PORT", "256" },
		{ "NMAD_IBVERBS_PORT", "one" },
		{ "NMAD_IBVERBS_GID", "-2" },
		{ "NMAD_IBVERBS_TIMEOUT_MS", "0" },
		{ "NMAD_IBVERBS_DEAD_S", "0" },
		{ "NMAD_IBVERBS_RECEIVES", "1" },
		{ "NMAD_IBVERBS_SRQ", "2" },
		{ "NMAD_IBVERBS_INLINE", "1000000" },
		{ "NMAD_IBVERBS_PINNED", "much" },
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(nonsense); i++) {
		char *before = getenv(nonsense[i][0]);

		before = before != NULL ? strdup(before) : NULL;
		setenv(nonsense[i][0], nonsense[i][1], 1);
		refuses("fake0", -EINVAL, nonsense[i][0]);
		unsetenv(nonsense[i][0]);
		if (before != NULL)
			setenv(nonsense[i][0], before, 1);
		free(before);
	}
	opens("fake0", 0, "fake0", 1);
}
