/*
 * nmad/core/connect.c: addresses that are asked for before the launcher is
 * held.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "../../../nmad/boot/boot.h"
#include "mock.h"

enum { RAILS = 2, LEFT = 0, NOT_THERE = 1, DRIVER = 16, TEXT = 1000 };

static const char address[] = "an address";

static struct nm_core core;
static char left[RAILS][TEXT]; /* by rank 1, for each rail */
static int nasked, asked = -1;

static int boot_put(struct nm_boot *b, const char *name, const char *text)
{
	(void)b;
	snprintf(left[name[strlen(name) - 1] - '0'], TEXT, "%s", text);
	return 0;
}

static int boot_ask(struct nm_boot *b, int rank, const char *name)
{
	(void)b;
	CHECK_INT(rank, 1);
	CHECK_INT(asked, -1);
	asked = name[strlen(name) - 1] - '0';
	nasked++;
	return 0;
}

/* At the second question, as most launchers. */
static int boot_answer(struct nm_boot *b, char *out, size_t room)
{
	static bool late;

	(void)b;
	late = !late;
	if (late)
		return -EAGAIN;
	snprintf(out, room, "%s", left[asked]);
	asked = -1;
	return 0;
}

static const struct nm_boot_client client = {
	.name = "test", .put = boot_put, .ask = boot_ask, .answer = boot_answer
};
static struct nm_boot boot;

static const struct nm_driver mock = { .name = "mock", .max_small = 256 };

static void setup(void)
{
	char value[DRIVER + sizeof(address)] = "mock";

	mock_core_rails(&core, &mock, 1000, RAILS);
	boot = (struct nm_boot){ .client = &client,
				 .info.size = 2,
				 .has_key = true,
				 .pid = getpid() };
	core.boot = &boot;
	nasked = 0;
	memcpy(value + DRIVER, address, sizeof(address));
	CHECK_INT(nm_boot_put(&boot, "rail-0", value, sizeof(value)), 0);
	memset(value, 0, DRIVER);
	CHECK_INT(nm_boot_put(&boot, "rail-1", value, DRIVER), 0);
}

static void teardown(void)
{
	core.nrails = 0;
	nm_rails_close(&core);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static int address_of(int rail)
{
	unsigned char found[NM_ADDR_MAX];
	size_t bytes = 0;
	int rc = nm_rail_address(&links[rail][1], found, &bytes);

	if (rc == 0) {
		CHECK_INT(bytes, sizeof(address));
		CHECK(memcmp(found, address, bytes) == 0);
	}
	return rc;
}

TEST(what_is_learnt_is_known_while_the_launcher_is_held)
{
	links[LEFT][1].may_lose = true;
	nm_launcher_learn(&core.gates[1]);
	CHECK_INT(nasked, RAILS);
	nm_launcher_hold(&core);
	CHECK_INT(address_of(LEFT), 0);
	CHECK_INT(address_of(NOT_THERE), -EHOSTUNREACH);
	CHECK_INT(address_of(NOT_THERE), -EHOSTUNREACH);
	CHECK_INT(nasked, RAILS);
}

TEST(where_no_rail_can_be_lost_nothing_is_asked)
{
	nm_launcher_learn(&core.gates[1]);
	CHECK_INT(nasked, 0);
	nm_launcher_hold(&core);
	CHECK_INT(address_of(LEFT), -EAGAIN);
	nm_launcher_release(&core);
	CHECK_INT(address_of(LEFT), -EAGAIN);
	CHECK_INT(address_of(LEFT), -EAGAIN);
	CHECK_INT(address_of(LEFT), 0);
	CHECK_INT(nasked, 1);
}

/* He asks when it is answered, but is not learnt yet. */
TEST(who_asks_beside_who_learns_keeps_nobody_waiting)
{
	links[LEFT][1].may_lose = true;
	nm_launcher_learn(&core.gates[1]);
	core.asker = &links[LEFT][1];
	CHECK_INT(address_of(LEFT), 0);
	CHECK_PTR((void *)core.asker, NULL);
}
