/*
 * A libpmix.so.2 of which each answer can be a bad one: FAKE_PMIX says which.
 * This is rank 1 of 2 on one host. With -DSHORT it lacks a function.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pmix.h>

static pthread_t thread;
static bool has_thread;
static pmix_value_cbfunc_t callback;
static void *callback_data;

static bool is(const char *what)
{
	const char *text = getenv("FAKE_PMIX");

	return text != NULL && strcmp(text, what) == 0;
}

PMIX_EXPORT const char *PMIx_Error_string(pmix_status_t status)
{
	return status == PMIX_ERR_LOST_CONNECTION ? "LOST" : "SOME-ERROR";
}

PMIX_EXPORT pmix_status_t PMIx_Init(pmix_proc_t *me, pmix_info_t *info,
				    size_t n)
{
	if (is("no init"))
		return PMIX_ERR_UNREACH;
	memset(me, 0, sizeof(*me));
	strcpy(me->nspace, "fake");
	me->rank = is("rank 7") ? 7 : 1;
	return PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t *info, size_t n)
{
	if (has_thread)
		pthread_join(thread, NULL);
	has_thread = false;
	return is("no finalize") ? PMIX_ERR_LOST_CONNECTION : PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Abort(int status, const char *text,
				     pmix_proc_t *procs, size_t n)
{
	return PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Put(pmix_scope_t scope, const char *key,
				   pmix_value_t *v)
{
	return is("no put") ? PMIX_ERROR : PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Commit(void)
{
	return is("no commit") ? PMIX_ERROR : PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Fence(const pmix_proc_t *procs, size_t n,
				     const pmix_info_t *info, size_t infos)
{
	if (is("partial fence"))
		return PMIX_ERR_PARTIAL_SUCCESS;
	return is("lost") ? PMIX_ERR_LOST_CONNECTION : PMIX_SUCCESS;
}

static pmix_value_t *number(uint32_t n)
{
	pmix_value_t *v = calloc(1, sizeof(*v));

	v->type = PMIX_UINT32;
	v->data.uint32 = n;
	return v;
}

static pmix_value_t *string(const char *text)
{
	pmix_value_t *v = calloc(1, sizeof(*v));

	v->type = PMIX_STRING;
	v->data.string = strdup(text);
	return v;
}

static pmix_value_t *size(void)
{
	if (is("size of text"))
		return string("2");
	return is("no value") ? NULL : number(is("huge") ? 1u << 31 : 2);
}

/* What a rank is said to have left. */
static pmix_value_t *value(void)
{
	char text[1000];

	if (is("number"))
		return number(5);
	if (is("no hexadecimal"))
		return string("some words");
	if (!is("long"))
		return string("00112233445566778899aabbccddeeff");
	memset(text, '0', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	return string(text);
}

PMIX_EXPORT pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char *key,
				   const pmix_info_t *info, size_t n,
				   pmix_value_t **out)
{
	if (strcmp(key, PMIX_APPNUM) == 0 || strcmp(key, "none") == 0 ||
	    (is("no size") && strcmp(key, PMIX_JOB_SIZE) == 0))
		return PMIX_ERR_NOT_FOUND;
	*out = strcmp(key, PMIX_JOB_SIZE) == 0 ? size() : value();
	return PMIX_SUCCESS;
}

static void *bring(void *arg)
{
	pmix_value_t *v = value();

	if (is("not there"))
		callback(PMIX_ERR_NOT_FOUND, NULL, callback_data);
	else
		callback(PMIX_SUCCESS, is("nothing") ? NULL : v, callback_data);
	if (v->type == PMIX_STRING)
		free(v->data.string);
	free(v);
	return arg;
}

PMIX_EXPORT pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char *key,
				      const pmix_info_t *info, size_t n,
				      pmix_value_cbfunc_t done, void *data)
{
	if (is("no asking"))
		return PMIX_ERROR;
	if (has_thread)
		pthread_join(thread, NULL);
	callback = done;
	callback_data = data;
	has_thread = pthread_create(&thread, NULL, bring, NULL) == 0;
	return has_thread ? PMIX_SUCCESS : PMIX_ERROR;
}

PMIX_EXPORT pmix_status_t PMIx_Resolve_nodes(const pmix_nspace_t job,
					     char **hosts)
{
	if (is("no nodes"))
		return PMIX_ERR_NOT_FOUND;
	*hosts = is("null nodes") ? NULL : strdup("here");
	return PMIX_SUCCESS;
}

PMIX_EXPORT pmix_status_t PMIx_Register_event_handler(
	pmix_status_t codes[], size_t n, pmix_info_t info[], size_t ninfo,
	pmix_notification_fn_t handler, pmix_hdlr_reg_cbfunc_t done, void *data)
{
	pmix_proc_t peer = { .nspace = "fake", .rank = 0 };

	if (n != 1 || codes[0] != PMIX_ERR_LOST_CONNECTION)
		abort();
	done(PMIX_SUCCESS, 1, data);
	if (is("peer gone"))
		handler(1, codes[0], &peer, NULL, 0, NULL, 0, NULL, NULL);
	if (is("gone"))
		handler(1, codes[0], NULL, NULL, 0, NULL, 0, NULL, NULL);
	return PMIX_SUCCESS;
}

#ifndef SHORT
PMIX_EXPORT pmix_status_t PMIx_Resolve_peers(const char *host,
					     const pmix_nspace_t job,
					     pmix_proc_t **out, size_t *n)
{
	if (is("no peers"))
		return PMIX_ERR_NOT_FOUND;
	*out = calloc(2, sizeof(**out));
	*n = 2;
	(*out)[0].rank = is("twice") ? 1 : 0;
	(*out)[1].rank = is("strangers") ? 9 : 1;
	return PMIX_SUCCESS;
}
#endif
