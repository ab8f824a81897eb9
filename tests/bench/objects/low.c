/*
 * Objects of marcel, pioman and nmad that programs make.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <marcel/marcel.h>
#include <marcel/tasklet.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/pioman.h>

#include "objects.h"

/* Each is scheduled and waits, as it is disabled. */
static marcel_tasklet_t *tasklet;

static void tasklet_begin(void)
{
	tasklet = places(sizeof(*tasklet));
}

static void tasklet_end(void)
{
	free(tasklet);
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void tasklet_wait(int i)
{
	NEED(marcel_tasklet_disable(&tasklet[i]));
	NEED(marcel_tasklet_schedule(&tasklet[i]));
}

static bool tasklet_create(int i)
{
	NEED(marcel_tasklet_init(&tasklet[i], count, &number[i]));
	tasklet_wait(i);
	return true;
}

/* The tasklet runs once. */
static void tasklet_use(int i)
{
	int before = number[i];

	NEED(marcel_tasklet_enable(&tasklet[i]));
	while (number[i] == before)
		marcel_yield();
	tasklet_wait(i);
}

static void tasklet_drop(int i)
{
	NEED(marcel_tasklet_kill(&tasklet[i]));
}

static struct piom_ltask *ltask;

static void ltask_begin(void)
{
	ltask = places(sizeof(*ltask));
}

static void ltask_end(void)
{
	free(ltask);
}

static enum piom_ltask_result quiet(void *arg)
{
	(void)arg;
	return PIOM_LTASK_QUIET;
}

static bool ltask_create(int i)
{
	piom_ltask_init(&ltask[i], quiet, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&ltask[i]);
	return true;
}

static void ltask_drop(int i)
{
	piom_ltask_cancel(&ltask[i]);
}

static bool nm_session_create(int i)
{
	char name[32];

	snprintf(name, sizeof(name), "objects %d", i);
	return nm_session_open_name(name, (struct nm_session **)&handle[i]) ==
	       0;
}

static void nm_session_drop(int i)
{
	NEED(nm_session_close(handle[i]));
}

static struct nm_rpc *rpc;

static void service_begin(void)
{
	NEED(nm_rpc_open_name("objects", 0, &rpc));
}

static int called(struct nm_rpc_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return 0;
}

static bool service_create(int i)
{
	return nm_rpc_register(rpc, (uint32_t)i, called, NULL) == 0;
}

static void service_drop(int i)
{
	NEED(nm_rpc_unregister(rpc, (uint32_t)i));
}

static void service_end(void)
{
	NEED(nm_rpc_close(rpc));
}

/* clang-format off */
const struct kind objects_low[] = {
	{ "tasklet", tasklet_begin, tasklet_create, tasklet_use, tasklet_drop, tasklet_end },
	{ "ltask", ltask_begin, ltask_create, NULL, ltask_drop, ltask_end },
	{ "nm_session", NULL, nm_session_create, NULL, nm_session_drop, NULL },
	{ "service", service_begin, service_create, NULL, service_drop, service_end },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */
