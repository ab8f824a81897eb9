/*
 * Settings and lots, faults that are to come, and what tests see of all this.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

static struct {
	const char *name;
	long initial;
	ATOMIC(long) value;
	ATOMIC(bool) is_set; /* by set(), so that the environment is not read */
} settings[FV_SETTINGS] = {
	[FV_SET_DEVICES] = { "DEVICES", 2 },
	[FV_SET_PORTS] = { "PORTS", 1 },
	[FV_SET_LINK] = { "LINK", FV_LINK_ROCE },
	[FV_SET_EACCES] = { "EACCES", 0 },
	[FV_SET_MTU] = { "MTU", 4096 },
	[FV_SET_MAX_MSG] = { "MAX_MSG", 1 << 30 },
	[FV_SET_MAX_INLINE] = { "MAX_INLINE", 256 },
	[FV_SET_MAX_WR] = { "MAX_WR", FV_WR },
	[FV_SET_MAX_QP] = { "MAX_QP", 1000 },
	[FV_SET_SRQ] = { "SRQ", 1 },
	[FV_SET_MEMLOCK] = { "MEMLOCK", LONG_MAX },
	[FV_SET_TIMEOUT_MS] = { "TIMEOUT_MS", -1 },
	[FV_SET_RNR_US] = { "RNR_US", 1000 },
	[FV_SET_DELAY_US] = { "DELAY_US", 0 },
	[FV_SET_LOSS] = { "LOSS", 0 },
	[FV_SET_DUPLICATES] = { "DUPLICATES", 0 },
	[FV_SET_SEED] = { "SEED", 1 },
};

static ATOMIC(uint64_t) lots;

static struct fv_lock fault_lock;
static struct fake_verbs_fault faults[16];
static unsigned nfaults;

struct fv_counts fv_counts;

long fv_setting(enum fv_setting which)
{
	return load_relaxed(&settings[which].value);
}

static long parsed(const char *name, const char *text)
{
	char *end;
	long value;

	if (strcmp(text, "ib") == 0)
		return FV_LINK_IB;
	if (strcmp(text, "roce") == 0)
		return FV_LINK_ROCE;
	value = strtol(text, &end, 10);
	if (end == text || *end != '\0') {
		fprintf(stderr, "fake_verbs: FAKE_VERBS_%s=%s?\n", name, text);
		abort();
	}
	return value;
}

static const char *environment(const char *name)
{
	char variable[64];

	snprintf(variable, sizeof(variable), "FAKE_VERBS_%s", name);
	return getenv(variable);
}

static void give(enum fv_setting i, const char *text)
{
	store_relaxed(&settings[i].value,
		      text != NULL ? parsed(settings[i].name, text)
				   : settings[i].initial);
	if (i == FV_SET_SEED)
		store_relaxed(&lots, (uint64_t)fv_setting(FV_SET_SEED));
}

void fv_set(const char *name, const char *value)
{
	for (unsigned i = 0; i < FV_SETTINGS; i++) {
		if (strcmp(settings[i].name, name) != 0)
			continue;
		store_relaxed(&settings[i].is_set, value != NULL);
		give(i, value != NULL ? value : environment(name));
		return;
	}
	fprintf(stderr, "fake_verbs: there is no setting %s\n", name);
	abort();
}

/* "status=12,after=99" */
static void read_fault(const char *text)
{
	struct fake_verbs_fault f = { .device = -1,
				      .count = 1,
				      .status = IBV_WC_RETRY_EXC_ERR };
	char name[16];
	int value, used;

	while (sscanf(text, "%15[a-z_]=%d%n", name, &value, &used) == 2) {
		if (strcmp(name, "device") == 0)
			f.device = value;
		else if (strcmp(name, "after") == 0)
			f.after = (unsigned)value;
		else if (strcmp(name, "count") == 0)
			f.count = (unsigned)value;
		else if (strcmp(name, "status") == 0)
			f.status = value;
		else if (strcmp(name, "vendor_err") == 0)
			f.vendor_err = (uint32_t)value;
		else if (strcmp(name, "delivered") == 0)
			f.delivered = value != 0;
		else
			break;
		text += used + (text[used] == ',');
	}
	if (*text != '\0') {
		fprintf(stderr, "fake_verbs: FAKE_VERBS_FAIL: %s?\n", text);
		abort();
	}
	fv_fail(&f);
}

void fv_settings_read(void)
{
	static ATOMIC(bool) has_fault;
	const char *fault = environment("FAIL");

	for (unsigned i = 0; i < FV_SETTINGS; i++)
		if (!load_relaxed(&settings[i].is_set))
			give(i, environment(settings[i].name));
	if (fault != NULL && !xchg_relaxed(&has_fault, true))
		read_fault(fault);
}

uint32_t fv_lot(uint32_t n)
{
	/* A Weyl sequence, mixed: any thread, one stream. */
	uint64_t x = fetch_add_relaxed(&lots, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) >> 32) % n;
}

/* --- faults --- */

void fv_fail(const struct fake_verbs_fault *fault)
{
	fv_lock(&fault_lock);
	if (fault == NULL) {
		nfaults = 0;
	} else if (nfaults == sizeof(faults) / sizeof(*faults)) {
		fprintf(stderr, "fake_verbs: too many faults\n");
		abort();
	} else {
		faults[nfaults++] = *fault;
	}
	fv_unlock(&fault_lock);
}

bool fv_fault_due(pid_t to, int device, struct fake_verbs_fault *out)
{
	bool due = false;

	fv_lock(&fault_lock);
	for (unsigned i = 0; i < nfaults; i++) {
		struct fake_verbs_fault *f = &faults[i];

		if ((f->pid != 0 && f->pid != to) ||
		    (f->device >= 0 && f->device != device) || f->count == 0)
			continue;
		if (f->after > 0) {
			f->after--;
			continue;
		}
		f->count--;
		*out = *f;
		due = true;
		break;
	}
	fv_unlock(&fault_lock);
	return due;
}

/* --- what tests see --- */

static void counts(struct fake_verbs_counts *out)
{
	memset(out, 0, sizeof(*out));
#define X(name) out->name = load_relaxed(&fv_counts.name);
	FAKE_VERBS_OBJECTS(X)
	X(doorbells)
#undef X
#define X(name) out->calls.name = load_relaxed(&fv_counts.calls.name);
	FAKE_VERBS_CALLS(X)
#undef X
	fv_lock(&fv_list_lock);
	for (struct fv_qp *q = fv_qp_list; q != NULL; q = q->next) {
		fv_lock(&q->sq_lock);
		out->waiting += q->tail - q->head;
		fv_unlock(&q->sq_lock);
	}
	for (struct fv_cq *c = fv_cq_list; c != NULL; c = c->next)
		out->unread += load_acquire(&c->ring->tail) -
			       load_relaxed(&c->ring->head);
	fv_unlock(&fv_list_lock);
}

static void happen_here(struct fv_slot *slot, enum fake_verbs_event event,
			int device, uint32_t which)
{
	if (event == FAKE_DEVICE_FATAL)
		store_release(&slot->fatal[device], 1);
	else if (event == FAKE_PORT_DOWN)
		fetch_or_release(&slot->down[device], 1u << which);
	else
		fetch_and_release(&slot->down[device], ~(1u << which));
	fv_wake(slot);
}

static void qp_fatal(uint32_t qpn)
{
	struct fv_end *end = fv_end_of(qpn);

	fv_lock(&end->lock);
	if (load_relaxed(&end->qpn) == qpn) {
		store_relaxed(&end->state, IBV_QPS_ERR);
		store_relaxed(&end->trouble, IBV_EVENT_QP_FATAL + 1);
	}
	fv_unlock(&end->lock);
	fv_wake(fv_slot_of(qpn));
}

static void happen(enum fake_verbs_event event, int device, uint32_t which,
		   bool to_all)
{
	if (fv_me == NULL) {
		fprintf(stderr, "fake_verbs: no device is open\n");
		abort();
	}
	if (event == FAKE_QP_FATAL) {
		qp_fatal(which);
		return;
	}
	for (uint32_t i = 0; i < FV_SLOTS; i++) {
		struct fv_slot *slot = &fv_fabric->slots[i];

		if (slot == fv_me || (to_all && load_acquire(&slot->id) != 0))
			happen_here(slot, event, device, which);
	}
}

EXPORT const struct fake_verbs fake_verbs_table;
const struct fake_verbs fake_verbs_table = { counts, fv_set, fv_fail, happen,
					     fv_mr_gone };
