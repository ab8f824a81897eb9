/*
 * Events, as tools see them: their types, registrations, and what is read of
 * one. All come from one source, nmad, and none is bound to an object: nmad
 * knows sessions, not communicators.
 */
#include "tool/event.h"

#include <pthread.h>
#include <string.h>

#include <base/clock.h>

#include "bodies.h"
#include "core/pool.h"
#include "tool/tool.h"

static const char source[] = "nmad";

/* A peer, and but of those who died a message. */
static const struct type {
	enum nm_watched what;
	const char *name, *help;
	int nelements;
} types[] = {
	{ NM_SAW_UNEXPECTED, "nmad_unexpected",
	  "a message came before its receive", 3 },
	{ NM_SAW_RDV_OUT, "nmad_rdv_out", "a large message was announced", 3 },
	{ NM_SAW_RDV_OUT_END, "nmad_rdv_out_end", "such a message has left",
	  3 },
	{ NM_SAW_RDV_IN, "nmad_rdv_in", "a large message has met its receive",
	  3 },
	{ NM_SAW_RDV_IN_END, "nmad_rdv_in_end", "such a message is here", 3 },
	{ NM_SAW_LOST, "nmad_lost", "a process has died", 1 },
};

/* The data of an event. */
struct data {
	int peer, tag; /* the process's rank in the job; the message's tag */
	MPI_Count bytes;
};

static const struct element {
	size_t offset, size;
} elements[] = {
	{ offsetof(struct data, peer), sizeof(int) },
	{ offsetof(struct data, tag), sizeof(int) },
	{ offsetof(struct data, bytes), sizeof(MPI_Count) },
};

static MPI_Datatype type_of_element(int i)
{
	return elements[i].size == sizeof(int) ? MPI_INT : MPI_COUNT;
}

int madmpi_tool_events(enum madmpi_module m)
{
	return m > MADMPI_OF_NMAD ? (int)BASE_ARRAY_LEN(types) : 0;
}

static bool is_index(int index)
{
	return index >= 0 && index < (int)BASE_ARRAY_LEN(types);
}

/* --- sources --- */

static int number(int n, int *out)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (out == NULL)
		return MPI_T_ERR_INVALID;
	*out = n;
	return MPI_SUCCESS;
}

/* No hint is supported anywhere. */
static int no_hints(MPI_Info *info)
{
	if (info != NULL && madmpi_info_create(info) != MPI_SUCCESS)
		return MPI_T_ERR_MEMORY;
	return MPI_SUCCESS;
}

/* MPI_T_source_get_num */
int madmpi_t_source_get_num(int *num_sources)
{
	return number(1, num_sources);
}

/* MPI_T_source_get_info */
int madmpi_t_source_get_info(int source_index, char *name, int *name_len,
			     char *desc, int *desc_len,
			     MPI_T_source_order *ordering,
			     MPI_Count *ticks_per_second, MPI_Count *max_ticks,
			     MPI_Info *info)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (source_index != 0)
		return MPI_T_ERR_INVALID_INDEX;
	madmpi_tool_text(source, name, name_len);
	madmpi_tool_text("messages between processes", desc, desc_len);
	if (ordering != NULL)
		*ordering = MPI_T_SOURCE_ORDERED;
	if (ticks_per_second != NULL)
		*ticks_per_second = 1000000000;
	if (max_ticks != NULL)
		*max_ticks = INT64_MAX;
	return no_hints(info);
}

/* MPI_T_source_get_timestamp */
int madmpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (source_index != 0)
		return MPI_T_ERR_INVALID_INDEX;
	if (timestamp == NULL)
		return MPI_T_ERR_INVALID;
	*timestamp = (MPI_Count)base_now_ns();
	return MPI_SUCCESS;
}

/* --- types --- */

/* MPI_T_event_get_num */
int madmpi_t_event_get_num(int *num_events)
{
	return number((int)BASE_ARRAY_LEN(types), num_events);
}

static void tell_elements(const struct type *t, MPI_Datatype datatypes[],
			  MPI_Aint displacements[], int *n)
{
	if (n == NULL)
		return;
	for (int i = 0; i < *n && i < t->nelements; i++) {
		if (datatypes != NULL)
			datatypes[i] = type_of_element(i);
		if (displacements != NULL)
			displacements[i] = (MPI_Aint)elements[i].offset;
	}
	*n = t->nelements;
}

/* MPI_T_event_get_info */
int madmpi_t_event_get_info(int event_index, char *name, int *name_len,
			    int *verbosity, MPI_Datatype array_of_datatypes[],
			    MPI_Aint array_of_displacements[],
			    int *num_elements, MPI_T_enum *enumtype,
			    MPI_Info *info, char *desc, int *desc_len,
			    int *bind)
{
	const struct type *t;
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_index(event_index))
		return MPI_T_ERR_INVALID_INDEX;
	t = &types[event_index];
	madmpi_tool_text(t->name, name, name_len);
	madmpi_tool_text(t->help, desc, desc_len);
	madmpi_tool_tell(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
	tell_elements(t, array_of_datatypes, array_of_displacements,
		      num_elements);
	if (enumtype != NULL)
		*enumtype = MPI_T_ENUM_NULL;
	madmpi_tool_tell(bind, MPI_T_BIND_NO_OBJECT);
	return no_hints(info);
}

/* MPI_T_event_get_index */
int madmpi_t_event_get_index(const char *name, int *event_index)
{
	int rc = madmpi_tool_check();

	if (rc != MPI_SUCCESS)
		return rc;
	if (name == NULL || event_index == NULL)
		return MPI_T_ERR_INVALID;
	for (int i = 0; is_index(i); i++)
		if (strcmp(types[i].name, name) == 0) {
			*event_index = i;
			return MPI_SUCCESS;
		}
	return MPI_T_ERR_INVALID_NAME;
}

/* --- registrations --- */

static struct madmpi_pool registrations;

static void make_pool(void)
{
	madmpi_pool_init(&registrations, MADMPI_T_EVENT,
			 sizeof(struct madmpi_registration));
}

/* With the events' lock held; or NULL and *rc, and it is not. */
static struct madmpi_registration *lock_handle(MPI_T_event_registration handle,
					       int *rc)
{
	struct madmpi_registration *r = NULL;

	*rc = madmpi_tool_check();
	if (*rc != MPI_SUCCESS)
		return NULL;
	*rc = MPI_T_ERR_INVALID_HANDLE;
	if (madmpi_handle_is_constant(handle))
		return NULL;
	base_spin_lock(&madmpi_event_lock);
	r = madmpi_handle_object(handle, MADMPI_T_EVENT);
	if (r == NULL || r->is_freed) {
		base_spin_unlock(&madmpi_event_lock);
		return NULL;
	}
	*rc = MPI_SUCCESS;
	return r;
}

/* The number of a level, or -1. */
static int level_of(MPI_T_cb_safety cb_safety)
{
	switch (cb_safety) {
	case MPI_T_CB_REQUIRE_NONE:
		return MADMPI_EVENT_NONE;
	case MPI_T_CB_REQUIRE_MPI_RESTRICTED:
		return MADMPI_EVENT_RESTRICTED;
	case MPI_T_CB_REQUIRE_THREAD_SAFE:
		return MADMPI_EVENT_THREAD_SAFE;
	case MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE:
		return MADMPI_EVENT_SIGNAL_SAFE;
	default:
		return -1;
	}
}

/* MPI_T_event_handle_alloc */
int madmpi_t_event_handle_alloc(int event_index, void *obj_handle,
				MPI_Info info,
				MPI_T_event_registration *event_registration)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct madmpi_registration *r;
	struct madmpi_object object;
	int rc = madmpi_tool_check();

	(void)obj_handle, (void)info;
	if (rc != MPI_SUCCESS)
		return rc;
	if (!is_index(event_index))
		return MPI_T_ERR_INVALID_INDEX;
	if (event_registration == NULL)
		return MPI_T_ERR_INVALID;
	pthread_once(&once, make_pool);
	r = madmpi_pool_get(&registrations);
	if (r == NULL)
		return MPI_T_ERR_OUT_OF_HANDLES;
	object = r->object;
	memset(r, 0, sizeof(*r));
	r->object = object;
	r->what = types[event_index].what;
	r->since = (MPI_Count)base_now_ns();
	base_link_init(&r->on);
	if (madmpi_event_listen(r) < 0) {
		madmpi_pool_put(&registrations, r);
		return MPI_T_ERR_MEMORY;
	}
	*event_registration = (MPI_T_event_registration)r;
	return MPI_SUCCESS;
}

void madmpi_event_release(struct madmpi_registration *r, MPI_T_cb_safety level)
{
	if (r->free != NULL)
		r->free((MPI_T_event_registration)r, level, r->free_data);
	madmpi_pool_put(&registrations, r);
}

/* MPI_T_event_handle_free */
int madmpi_t_event_handle_free(MPI_T_event_registration event_registration,
			       void *user_data,
			       MPI_T_event_free_cb_function free_cb_function)
{
	int rc;
	struct madmpi_registration *r = lock_handle(event_registration, &rc);
	bool over;

	if (r == NULL)
		return rc;
	r->free = free_cb_function;
	r->free_data = user_data;
	over = madmpi_event_end_locked(r);
	base_spin_unlock(&madmpi_event_lock);
	if (over)
		madmpi_event_release(r, MPI_T_CB_REQUIRE_THREAD_SAFE);
	return MPI_SUCCESS;
}

/* MPI_T_event_handle_set_info */
int madmpi_t_event_handle_set_info(MPI_T_event_registration event_registration,
				   MPI_Info info)
{
	int rc;

	(void)info;
	if (lock_handle(event_registration, &rc) != NULL)
		base_spin_unlock(&madmpi_event_lock);
	return rc;
}

/* MPI_T_event_handle_get_info */
int madmpi_t_event_handle_get_info(MPI_T_event_registration event_registration,
				   MPI_Info *info_used)
{
	int rc = madmpi_t_event_handle_set_info(event_registration,
						MPI_INFO_NULL);

	if (rc != MPI_SUCCESS)
		return rc;
	return info_used == NULL ? MPI_T_ERR_INVALID : no_hints(info_used);
}

/* --- callbacks --- */

/* MPI_T_event_register_callback */
int madmpi_t_event_register_callback(
	MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
	MPI_Info info, void *user_data,
	MPI_T_event_cb_function event_cb_function)
{
	int rc, level = level_of(cb_safety);
	struct madmpi_registration *r = lock_handle(event_registration, &rc);

	(void)info;
	if (r == NULL)
		return rc;
	if (level >= 0) {
		r->callback[level].fn = event_cb_function;
		r->callback[level].user_data = user_data;
		madmpi_event_turn_locked(r);
	}
	base_spin_unlock(&madmpi_event_lock);
	return level >= 0 ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

/* MPI_T_event_callback_set_info */
int madmpi_t_event_callback_set_info(
	MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
	MPI_Info info)
{
	int rc = madmpi_t_event_handle_set_info(event_registration, info);

	if (rc != MPI_SUCCESS)
		return rc;
	return level_of(cb_safety) >= 0 ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

/* MPI_T_event_callback_get_info */
int madmpi_t_event_callback_get_info(
	MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
	MPI_Info *info_used)
{
	int rc = madmpi_t_event_callback_set_info(event_registration, cb_safety,
						  MPI_INFO_NULL);

	if (rc != MPI_SUCCESS)
		return rc;
	return info_used == NULL ? MPI_T_ERR_INVALID : no_hints(info_used);
}

/* MPI_T_event_set_dropped_handler */
int madmpi_t_event_set_dropped_handler(
	MPI_T_event_registration event_registration,
	MPI_T_event_dropped_cb_function dropped_cb_function)
{
	int rc;
	struct madmpi_registration *r = lock_handle(event_registration, &rc);

	if (r == NULL)
		return rc;
	madmpi_event_forget_dropped_locked(r);
	r->dropped = dropped_cb_function;
	base_spin_unlock(&madmpi_event_lock);
	return MPI_SUCCESS;
}

/* --- reading an event in a callback --- */

static const struct nm_sight *sight_of(MPI_T_event_instance instance, int *rc)
{
	struct madmpi_event_instance *i = NULL;

	*rc = madmpi_tool_check();
	if (*rc != MPI_SUCCESS)
		return NULL;
	if (!madmpi_handle_is_constant(instance))
		i = madmpi_handle_object(instance, MADMPI_T_INSTANCE);
	if (i != NULL)
		return &i->sight;
	*rc = MPI_T_ERR_INVALID_HANDLE;
	return NULL;
}

static const struct type *type_of(const struct nm_sight *s)
{
	const struct type *t = types;

	while (t->what != s->what)
		t++;
	return t;
}

static struct data data_of(const struct nm_sight *s)
{
	return (struct data){ .peer = s->rank,
			      .tag = (int)s->tag,
			      .bytes = (MPI_Count)s->length };
}

/* The elements of an event from the first to the last one, or one of them. */
static void copy_out(const struct nm_sight *s, int first, int last,
		     void *buffer)
{
	const struct element *e = &elements[last];
	size_t from = elements[first].offset;
	struct data d = data_of(s);

	memcpy(buffer, (char *)&d + from, e->offset + e->size - from);
}

/* MPI_T_event_read */
int madmpi_t_event_read(MPI_T_event_instance event_instance, int element_index,
			void *buffer)
{
	int rc;
	const struct nm_sight *s = sight_of(event_instance, &rc);

	if (s == NULL)
		return rc;
	if (element_index < 0 || element_index >= type_of(s)->nelements)
		return MPI_T_ERR_INVALID_INDEX;
	if (buffer == NULL)
		return MPI_T_ERR_INVALID;
	copy_out(s, element_index, element_index, buffer);
	return MPI_SUCCESS;
}

/* MPI_T_event_copy */
int madmpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
	int rc;
	const struct nm_sight *s = sight_of(event_instance, &rc);

	if (s == NULL)
		return rc;
	if (buffer == NULL)
		return MPI_T_ERR_INVALID;
	copy_out(s, 0, type_of(s)->nelements - 1, buffer);
	return MPI_SUCCESS;
}

/* MPI_T_event_get_timestamp */
int madmpi_t_event_get_timestamp(MPI_T_event_instance event_instance,
				 MPI_Count *event_timestamp)
{
	int rc;
	const struct nm_sight *s = sight_of(event_instance, &rc);

	if (s == NULL)
		return rc;
	if (event_timestamp == NULL)
		return MPI_T_ERR_INVALID;
	*event_timestamp = (MPI_Count)s->when_ns;
	return MPI_SUCCESS;
}

/* MPI_T_event_get_source */
int madmpi_t_event_get_source(MPI_T_event_instance event_instance,
			      int *source_index)
{
	int rc;

	if (sight_of(event_instance, &rc) == NULL)
		return rc;
	return number(0, source_index);
}
