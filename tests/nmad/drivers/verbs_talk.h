/*
 * Ranks of a test over fake_verbs: what they do with messages, and what the
 * fake has counted of this process.
 */
#ifndef TESTS_NMAD_DRIVERS_VERBS_TALK_H
#define TESTS_NMAD_DRIVERS_VERBS_TALK_H

#include "fake_verbs/fake_verbs.h"
#include "job.h"

static inline struct fake_verbs_counts counts(void)
{
	struct fake_verbs_counts c;

	fake_verbs()->counts(&c);
	return c;
}

static inline void count_only(struct job *j, int from, const struct job_msg *m,
			      struct nm_pkt_in *in)
{
	JOB_CHECK(j, job_is_pattern(m->number, m->data, m->length));
}

static inline void leave(struct job *j)
{
	while (!job_idle(j))
		job_progress(j);
}

#endif
