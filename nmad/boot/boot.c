/*
 * Which client answers, and what all clients share: names are checked, values
 * travel as hexadecimal text, since launchers allow no blanks or newlines, and
 * the job key comes from the launcher or else from rank 0.
 */
#include "boot.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>

/* The name under which rank 0 leaves the key if the launcher gave none. */
#define KEY_NAME "nmad-job-key"

enum { AUTO, PMI, PMI2, PMIX, SINGLETON };

static const char *const clients[] = { "auto", "pmi",       "pmi2",
				       "pmix", "singleton", NULL };

enum { ABORT_MS = 200 }; /* for the last words of an abort to be read */

static struct base_option options[] = {
	{ "NMAD_BOOT", BASE_OPTION_CHOICE, "auto", 0, 0, clients,
	  "who says which rank we are" },
};

const struct base_option_table nm_boot_options =
	BASE_OPTION_TABLE("nmad", options);

/* --- values as text --- */

static void to_hex(const void *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[p[i] >> 4];
		*out++ = digits[p[i] & 15];
	}
	*out = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* The number of bytes, or -EPROTO. out has room for half of the text. */
static ssize_t from_hex(const char *text, unsigned char *out)
{
	size_t n = strlen(text);

	if (n % 2 != 0)
		return -EPROTO;
	for (size_t i = 0; i < n / 2; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EPROTO;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return (ssize_t)(n / 2);
}

static bool name_is_good(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-_.");

	return name[n] == '\0' && n > 0 && n <= NM_BOOT_NAME_MAX;
}

/* --- what users call --- */

const struct nm_boot_info *nm_boot_info(const struct nm_boot *b)
{
	return &b->info;
}

/* A forked child has the parent's descriptors, but is nobody in the job. */
static int check_process(const struct nm_boot *b, const char *what)
{
	if (b->pid == getpid())
		return 0;
	base_warn("nmad",
		  "%s in a forked child: only the process that was "
		  "launched is part of the job",
		  what);
	return -EPERM;
}

int nm_boot_put(struct nm_boot *b, const char *name, const void *value,
		size_t bytes)
{
	char text[2 * NM_BOOT_VALUE_MAX + 1];
	int rc = check_process(b, "put");

	if (rc != 0)
		return rc;
	if (!name_is_good(name) || bytes == 0 || bytes > NM_BOOT_VALUE_MAX) {
		base_warn("nmad",
			  "put \"%.80s\", %zu bytes: at most %d letters, "
			  "digits, '-', '_', '.' and 1 to %d bytes are allowed",
			  name, bytes, NM_BOOT_NAME_MAX, NM_BOOT_VALUE_MAX);
		return -EINVAL;
	}
	to_hex(value, bytes, text);
	return b->client->put(b, name, text);
}

/* What the launcher has answered. */
static int decode(const char *text, const char *name, void *out, size_t room,
		  size_t *bytes)
{
	unsigned char value[NM_BOOT_VALUE_MAX];
	ssize_t n = from_hex(text, value);

	if (n < 0) {
		base_warn("nmad",
			  "the value of \"%s\" is \"%.80s\": expected "
			  "hexadecimal digits",
			  name, text);
		return -EPROTO;
	}
	if ((size_t)n > room) {
		base_warn("nmad",
			  "the value of \"%s\" has %zd bytes: expected at "
			  "most %zu",
			  name, n, room);
		return -EMSGSIZE;
	}
	memcpy(out, value, (size_t)n);
	*bytes = (size_t)n;
	return 0;
}

static int check_get(const struct nm_boot *b, int rank, const char *name)
{
	int rc = check_process(b, "get");

	if (rc == 0 &&
	    (rank < 0 || rank >= b->info.size || !name_is_good(name))) {
		base_warn("nmad",
			  "get \"%.80s\" of rank %d: no such name or "
			  "rank",
			  name, rank);
		rc = -EINVAL;
	}
	return rc;
}

int nm_boot_get(struct nm_boot *b, int rank, const char *name, void *out,
		size_t room, size_t *bytes)
{
	char text[2 * NM_BOOT_VALUE_MAX + 1];
	int rc = check_get(b, rank, name);

	if (rc == 0)
		rc = b->client->get(b, rank, name, text, sizeof(text));
	return rc == 0 ? decode(text, name, out, room, bytes) : rc;
}

int nm_boot_ask(struct nm_boot *b, int rank, const char *name)
{
	int rc = check_get(b, rank, name);

	if (rc == 0 && b->client->ask == NULL)
		rc = -ENOENT;
	return rc == 0 ? b->client->ask(b, rank, name) : rc;
}

int nm_boot_answer(struct nm_boot *b, void *out, size_t room, size_t *bytes)
{
	char text[2 * NM_BOOT_VALUE_MAX + 1];
	int rc = b->client->answer(b, text, sizeof(text));

	return rc == 0 ? decode(text, "what was asked for", out, room, bytes)
		       : rc;
}

static int draw_key(unsigned char *key)
{
	size_t have = 0;

	while (have < NM_BOOT_KEY_BYTES) {
		ssize_t n = getrandom(key + have, NM_BOOT_KEY_BYTES - have, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			base_warn("nmad", "no random bytes for the job's "
					  "key: %m");
			return -errno;
		}
		have += (size_t)n;
	}
	return 0;
}

/* Before the first fence: rank 0 leaves the key that the others will fetch. */
static int key_give(struct nm_boot *b)
{
	int rc;

	if (b->info.rank != 0)
		return 0;
	rc = draw_key(b->info.key);
	if (rc != 0)
		return rc;
	return nm_boot_put(b, KEY_NAME, b->info.key, sizeof(b->info.key));
}

static int key_fetch(struct nm_boot *b)
{
	size_t n = 0;
	int rc = nm_boot_get(b, 0, KEY_NAME, b->info.key, sizeof(b->info.key),
			     &n);

	if (rc == -ENOENT || (rc == 0 && n != sizeof(b->info.key))) {
		base_warn("nmad", "rank 0 has left no job key of %d bytes",
			  NM_BOOT_KEY_BYTES);
		return -EPROTO;
	}
	return rc;
}

int nm_boot_fence(struct nm_boot *b)
{
	bool first = !b->has_key;
	int rc = check_process(b, "fence");

	if (rc == 0 && first)
		rc = key_give(b);
	if (rc == 0)
		rc = b->client->fence(b);
	if (rc == 0 && first)
		rc = key_fetch(b);
	if (rc == 0)
		b->has_key = true;
	return rc;
}

/*
 * Launchers drop what a process has said when they hear of its abort. Wait
 * until the pipe behind stderr has been read, or is no pipe, for a bounded
 * time.
 */
static void let_read_stderr(void)
{
	for (int i = 0, left; i < ABORT_MS; i++) {
		if (ioctl(STDERR_FILENO, FIONREAD, &left) != 0 || left == 0)
			return;
		poll(NULL, 0, 1);
	}
}

void nm_boot_abort(struct nm_boot *b, int code, const char *text)
{
	if (text != NULL)
		base_warn("nmad", "%s", text);
	if (b != NULL && b->pid == getpid()) {
		let_read_stderr();
		b->client->abort(b, code);
	}
	_exit(code);
}

/* --- open and close --- */

static int open_client(struct nm_boot *b, const struct nm_boot_client *client)
{
	b->client = client;
	b->info.client = client->name;
	return client->open(b);
}

static int open_auto(struct nm_boot *b)
{
	int rc;

	if (getenv("PMI_FD") != NULL) {
		rc = open_client(b, &nm_boot_pmi);
		if (rc != -EBADF)
			return rc;
		base_warn("nmad", "going on without that launcher");
	} else if (getenv("PMI_PORT") != NULL) {
		return open_client(b, &nm_boot_pmi);
	}
	if (getenv("PMIX_RANK") != NULL)
		return open_client(b, &nm_boot_pmix);
	return open_client(b, &nm_boot_singleton);
}

/* What a launcher has set for this rank, and not for PMIx in general. */
static bool is_ours(const char *variable)
{
	return strncmp(variable, "PMI_", 4) == 0 ||
	       strncmp(variable, "NMAD_KEY_FD=", 12) == 0 ||
	       (strncmp(variable, "PMIX_", 5) == 0 &&
		strncmp(variable, "PMIX_MCA_", 9) != 0);
}

/* Programs that we start are not this rank. */
static void forget_environment(void)
{
	char name[64];

	for (char **v = environ; *v != NULL;) {
		size_t n = strcspn(*v, "=");

		if (!is_ours(*v) || n >= sizeof(name)) {
			v++;
			continue;
		}
		memcpy(name, *v, n);
		name[n] = '\0';
		unsetenv(name); /* the next has taken its place */
	}
}

static void count_local(struct nm_boot_info *info)
{
	info->local_rank = 0;
	info->local_size = 0;
	for (int r = 0; r < info->size; r++) {
		if (info->node[r] != info->node[info->rank])
			continue;
		if (r < info->rank)
			info->local_rank++;
		info->local_size++;
	}
}

int nm_boot_open(struct nm_boot **out)
{
	struct nm_boot *b;
	int rc = base_option_load(&nm_boot_options);

	if (rc != 0)
		return rc;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return -ENOMEM;
	b->pid = getpid();
	if (options[0].value == PMI)
		rc = open_client(b, &nm_boot_pmi);
	else if (options[0].value == PMI2)
		rc = open_client(b, &nm_boot_pmi2);
	else if (options[0].value == PMIX)
		rc = open_client(b, &nm_boot_pmix);
	else if (options[0].value == SINGLETON)
		rc = open_client(b, &nm_boot_singleton);
	else
		rc = open_auto(b);
	if (rc != 0) {
		free(b->node);
		free(b);
		return rc;
	}
	if (options[0].value != SINGLETON)
		forget_environment();
	if (b->client == &nm_boot_singleton)
		b->has_key = draw_key(b->info.key) == 0;
	b->info.node = b->node;
	count_local(&b->info);
	*out = b;
	return 0;
}

int nm_boot_close(struct nm_boot *b)
{
	int rc = b->client->close(b, b->pid != getpid());

	free(b->node);
	free(b);
	return rc;
}
