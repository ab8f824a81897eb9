/*
 * Nobody has launched us: a job of one process, whose values stay with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/diag.h>

#include "boot.h"

/* One value; those after the last fence are not seen yet. */
struct value {
	struct value *next;
	bool fenced;
	char name[NM_BOOT_NAME_MAX + 1];
	char text[];
};

static struct value *find(struct nm_boot *b, const char *name)
{
	for (struct value *v = b->priv; v != NULL; v = v->next)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

static int singleton_open(struct nm_boot *b)
{
	b->node = calloc(1, sizeof(*b->node));
	if (b->node == NULL)
		return -ENOMEM;
	b->info.rank = 0;
	b->info.size = 1;
	b->info.appnum = -1;
	return 0;
}

static int singleton_put(struct nm_boot *b, const char *name, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct value *v;

	if (find(b, name) != NULL) {
		base_warn("nmad", "put \"%s\": it has a value already", name);
		return -EPROTO;
	}
	v = malloc(sizeof(*v) + bytes);
	if (v == NULL)
		return -ENOMEM;
	v->fenced = false;
	snprintf(v->name, sizeof(v->name), "%s", name);
	memcpy(v->text, text, bytes);
	v->next = b->priv;
	b->priv = v;
	return 0;
}

static int singleton_fence(struct nm_boot *b)
{
	for (struct value *v = b->priv; v != NULL; v = v->next)
		v->fenced = true;
	return 0;
}

static int singleton_get(struct nm_boot *b, int rank, const char *name,
			 char *out, size_t room)
{
	struct value *v = find(b, name);

	if (rank != 0 || v == NULL || !v->fenced)
		return -ENOENT;
	snprintf(out, room, "%s", v->text);
	return 0;
}

static void singleton_abort(struct nm_boot *b, int code)
{
	(void)b;
	(void)code;
}

static int singleton_close(struct nm_boot *b, bool forked)
{
	struct value *v, *next;

	(void)forked;
	for (v = b->priv; v != NULL; v = next) {
		next = v->next;
		free(v);
	}
	return 0;
}

const struct nm_boot_client nm_boot_singleton = {
	.name = "singleton",
	.open = singleton_open,
	.put = singleton_put,
	.fence = singleton_fence,
	.get = singleton_get,
	.abort = singleton_abort,
	.close = singleton_close,
};
