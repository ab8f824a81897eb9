/*
 * Letters and where they wait. Of the threads that wait for letters of one
 * process one reads; it puts what is not its own into the box, wakes the
 * others, and when it has got its own somebody else reads. So letters of one
 * call stay in the order in which they were sent.
 */
#include "session/letter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/list.h>
#include <marcel/marcel.h>

#include "core/wait.h"

/* A number that nm_session_new_id() never gives: see comm/comm.c. */
static const uint64_t session_id = UINT64_MAX - 5;

struct waiting {
	struct base_link on;
	struct madmpi_letter letter;
};

/* Those of one process. l: mutex */
struct box {
	bool is_read;             /* l: by a thread, without the mutex */
	struct base_list letters; /* l: oldest first */
};

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t came = MARCEL_COND_INITIALIZER;
static struct nm_session *session; /* -: while MPI is up */
static struct box *boxes;          /* -: by rank */

int madmpi_letters_init(void)
{
	int n = nm_size();

	boxes = calloc((size_t)n, sizeof(*boxes));
	if (boxes == NULL)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		base_list_init(&boxes[i].letters);
	return nm_session_open(session_id, &session);
}

void madmpi_letters_exit(void)
{
	struct base_link *n;

	for (int i = 0; i < nm_size(); i++)
		while ((n = base_list_take_front(&boxes[i].letters)) != NULL)
			free(container_of(n, struct waiting, on));
	free(boxes);
	nm_session_close(session);
}

int madmpi_letter_send(struct nm_gate *to, const struct madmpi_letter *l)
{
	struct nm_data d = nm_data_flat(l, sizeof(*l));

	return nm_sr_send(session, to, 0, &d, 0);
}

static bool is_of_call(const struct madmpi_letter *a,
		       const struct madmpi_letter *b)
{
	return a->kind == b->kind && a->members == b->members &&
	       strcmp(a->tag, b->tag) == 0;
}

static bool take(struct box *b, struct madmpi_letter *l)
{
	struct waiting *found = NULL;

	base_list_for_each (n, &b->letters) {
		struct waiting *w = container_of(n, struct waiting, on);

		if (is_of_call(&w->letter, l)) {
			found = w;
			break;
		}
	}
	if (found == NULL)
		return false;
	base_list_remove(&found->on);
	*l = found->letter;
	free(found);
	return true;
}

/*
 * The next one, into the box if it is not the one that *l names. The mutex is
 * not held meanwhile. 1: it is that one, and in *l; 0; or -errno.
 */
static int read_one(struct nm_gate *from, struct box *b,
		    struct madmpi_letter *l)
{
	struct madmpi_letter next = { .kind = 0 };
	struct nm_data d = nm_data_flat(&next, sizeof(next));
	struct waiting *w;
	int rc;

	b->is_read = true;
	marcel_mutex_unlock(&mutex);
	rc = nm_sr_recv(session, from, 0, NM_TAG_EXACT, &d, NULL);
	marcel_mutex_lock(&mutex);
	b->is_read = false;
	marcel_cond_broadcast(&came);
	if (rc < 0)
		return rc;
	if (is_of_call(&next, l)) {
		*l = next;
		return 1;
	}
	w = malloc(sizeof(*w));
	if (w == NULL)
		return -ENOMEM; /* the call that it was for waits in vain */
	base_link_init(&w->on);
	w->letter = next;
	base_list_push_back(&b->letters, &w->on);
	return 0;
}

int madmpi_letter_recv(struct nm_gate *from, struct madmpi_letter *l)
{
	struct box *b = &boxes[nm_gate_rank(from)];
	int rc = 0;

	marcel_mutex_lock(&mutex);
	while (rc == 0 && !take(b, l)) {
		if (b->is_read)
			madmpi_cond_wait(&came, &mutex);
		else
			rc = read_one(from, b, l);
	}
	marcel_mutex_unlock(&mutex);
	return rc < 0 ? rc : 0;
}
