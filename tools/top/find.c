/*
 * The processes of this host that have something to show.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "top.h"

static void forget(struct process *p)
{
	offer_close(p);
	free(p->vps);
	free(p);
}

void forget_processes(struct process **list)
{
	while (*list != NULL) {
		struct process *p = *list;

		*list = p->next;
		forget(p);
	}
}

/* Name, parent and start of a process. False: there is none, or a zombie. */
static bool read_stat(pid_t pid, struct process *out)
{
	char path[64], text[1024], *first, *last, state;
	int parent;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	first = strchr(text, '(');
	last = strrchr(text, ')');
	if (first == NULL || last == NULL ||
	    sscanf(last + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		   "%*d %*d %*d %*d %lu",
		   &state, &parent, &out->start) != 3)
		return false;
	out->pid = pid;
	out->parent = parent;
	snprintf(out->name, sizeof(out->name), "%.*s", (int)(last - first - 1),
		 first + 1);
	for (char *c = out->name; *c != '\0'; c++)
		if (!isprint((unsigned char)*c))
			*c = '?'; /* a terminal would obey it */
	return state != 'Z' && state != 'X';
}

/* An exec leaves pid and start as they are, and mostly not the name. */
static struct process *known(struct process *list, const struct process *as)
{
	for (struct process *p = list; p != NULL; p = p->next)
		if (p->pid == as->pid && p->start == as->start &&
		    strcmp(p->name, as->name) == 0)
			return p;
	return NULL;
}

/* By parent, which is the job's launcher, then by rank. */
static bool comes_before(const struct process *a, const struct process *b)
{
	if (a->parent != b->parent)
		return a->parent < b->parent;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->pid < b->pid;
}

static void insert(struct process **list, struct process *p)
{
	while (*list != NULL && !comes_before(p, *list))
		list = &(*list)->next;
	p->next = *list;
	*list = p;
}

/* Ranks are known after a look. */
static void sort(struct process **list)
{
	struct process *old = *list, *p;

	*list = NULL;
	while ((p = old) != NULL) {
		old = p->next;
		insert(list, p);
	}
}

/*
 * Of one that has nothing to show: it may have become another program by exec,
 * or have loaded a library, beside one that is in the program but does not run.
 */
static void ask_again(struct process *p)
{
	if (p->is_shown || p->trouble[0] != '\0')
		return;
	offer_close(p);
	offer_open(p);
}

/* Why one that was asked for cannot be read. */
static void tell_why(struct process *p, int error)
{
	const struct passwd *owner = NULL;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)p->pid);
	if ((error == EACCES || error == EPERM) && stat(path, &st) == 0 &&
	    st.st_uid != geteuid())
		owner = getpwuid(st.st_uid);
	if (owner != NULL)
		snprintf(p->trouble, sizeof(p->trouble),
			 "only %s%.32s, whose it is, may read it",
			 st.st_uid == 0 ? "" : "root and ", owner->pw_name);
	else
		snprintf(p->trouble, sizeof(p->trouble),
			 "it cannot be read: %s", strerror(error));
}

static void consider(struct process **list, pid_t pid, bool wanted)
{
	struct process found = { .rank = -1, .size = -1, .seen = true };
	struct process *p;
	int rc;

	if (!read_stat(pid, &found))
		return;
	p = known(*list, &found);
	if (p != NULL) {
		p->seen = true;
		ask_again(p);
		return;
	}
	rc = offer_open(&found);
	if (rc < 0 && wanted && found.trouble[0] == '\0')
		tell_why(&found, -rc);
	if (rc == 0 && wanted)
		snprintf(found.trouble, sizeof(found.trouble),
			 "it does not use marcel");
	if (rc <= 0 && found.trouble[0] == '\0')
		return;
	p = malloc(sizeof(*p));
	if (p == NULL) {
		offer_close(&found);
		return;
	}
	*p = found;
	insert(list, p);
}

static void search(struct process **list)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	if (proc == NULL)
		return;
	while ((entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    atoi(entry->d_name) != getpid())
			consider(list, atoi(entry->d_name), false);
	closedir(proc);
}

void find_processes(struct process **list, pid_t only)
{
	for (struct process *p = *list; p != NULL; p = p->next)
		p->seen = false;
	if (only != 0)
		consider(list, only, true);
	else
		search(list);
	for (struct process **at = list; *at != NULL;) {
		struct process *p = *at;

		if (p->seen) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		forget(p);
	}
	sort(list);
}
