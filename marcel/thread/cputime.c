/*
 * The CPU time of threads: see cputime.h.
 */
#include "cputime.h"

#include <errno.h>

#include <base/diag.h>
#include <marcel/hook.h>
#include "../os/os.h"
#include "../os/tls.h"
#include "../sched/hook.h"
#include "../sched/vp.h"
#include "fork.h"
#include "look.h"

void marcel_cputime_leaves(struct marcel_lwp *l)
{
	struct marcel_thread *t = load_relaxed(&l->self);
	uint64_t now = os_thread_cpu_ns(load_relaxed(&l->tid));

	base_spin_lock(&l->cpu_lock);
	marcel_thread_use_rest(t);
	store_relaxed(&t->rest->cpu_ns,
		      load_relaxed(&t->rest->cpu_ns) + now - l->cpu_since);
	l->cpu_since = now;
	base_spin_unlock(&l->cpu_lock);
}

static enum marcel_hook_answer leaves(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	marcel_cputime_leaves(cpu_tls_word());
	return MARCEL_HOOK_NOTHING;
}

static struct marcel_hook hook = { .fn = leaves, .arg = MARCEL_HOOK_OWN };

void marcel_cputime_init(struct marcel_thread *main)
{
	store_relaxed(&main->rest->cpu_ns, 0);
	marcel_lwps.first.cpu_since =
		os_thread_cpu_ns(load_relaxed(&marcel_lwps.first.tid));
	if (marcel_hook_add(MARCEL_HOOK_SWITCH, &hook) == 0)
		return;
	marcel_sched.counts_cpu = false;
	base_warn("marcel", "too many switch hooks: no CPU time is counted");
}

void marcel_cputime_exit(void)
{
	marcel_hook_remove(MARCEL_HOOK_SWITCH, &hook);
}

/* While it runs somewhere, what that LWP has used since belongs to it. */
static uint64_t used_by(struct marcel_thread *t)
{
	struct marcel_lwp *l;
	uint64_t ns;

	/* In a forked child it runs no more, and an LWP's lock may be held. */
	l = marcel_fork_is_left() ? NULL : marcel_lwp_of(t);
	if (l == NULL)
		return load_relaxed(&t->rest->cpu_ns);
	base_spin_lock(&l->cpu_lock);
	ns = load_relaxed(&t->rest->cpu_ns);
	if (load_relaxed(&l->self) == t)
		ns += os_thread_cpu_ns(load_relaxed(&l->tid)) - l->cpu_since;
	base_spin_unlock(&l->cpu_lock);
	return ns;
}

BASE_PUBLIC int marcel_cputime(marcel_t t, uint64_t *ns)
{
	if (!marcel_thread_is_alive(t))
		return ESRCH;
	if (ns == NULL)
		return EINVAL;
	if (marcel_thread_has(t, MARCEL_F_FOREIGN)) {
		if (t != marcel_thread_self())
			return ENOENT;
		*ns = os_thread_cpu_ns(os_tid());
		return 0;
	}
	if (!marcel_sched.counts_cpu)
		return ENOENT;
	*ns = used_by(t);
	return 0;
}
