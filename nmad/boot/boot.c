/*
 * Which client answers, and what all clients share: names are checked, values
 * travel as hexadecimal text, since launchers allow no blanks or newlines, and
 * the job key comes from the launcher or else from rank 0.
 */
#include "boot.h"

#include <marcel/errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/diag.h>
#include <base/option.h>

/* The name under which rank 0 leaves the key if the launcher gave none. */
#define KEY_NAME "nmad-job-key"

/* As they are looked for; PMI-2 only if it is forced: boot.h. */
static const struct nm_boot_client *const clients[] = {
	&nm_boot_pmi, &nm_boot_pmix, &nm_boot_singleton, &nm_boot_pmi2
};

enum { AUTO = 0, CLIENTS_FOUND = 3 }; /* values of the option: 1 + which */

static const char *const names[] = { "auto",      "pmi",  "pmix",
				     "singleton", "pmi2", NULL };

enum { ABORT_MS = 10000 }; /* for the last words of an abort to be read */

static struct base_option options[] = {
	{ "NMAD_BOOT", BASE_OPTION_CHOICE, "auto", 0, 0, names,
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
 * until the pipe behind stderr has been read: launchers wait for a CPU, too,
 * but one that reads no more must not keep us for ever.
 */
static void let_read_stderr(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) != 0 || !S_ISFIFO(st.st_mode))
		return;
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
		if (b->client != &nm_boot_singleton)
			let_read_stderr();
		b->client->abort(b, code);
	}
	_exit(code);
}

int nm_boot_fd(const struct nm_boot *b)
{
	return b->fd;
}

void nm_boot_lost(void)
{
	base_warn("nmad", "the launcher is gone: this process ends");
	_exit(EXIT_FAILURE);
}

/* --- open and close --- */

/* Of these is said what they are, if anything has to be said. */
static const char *const telling[] = {
	"PMI_FD",        "PMI_PORT",       "PMI_ID",
	"PMI_RANK",      "PMI_SIZE",       "PMI_JOBID",
	"PMIX_RANK",     "PMIX_NAMESPACE", "SLURM_PROCID",
	"SLURM_STEP_ID", "SLURM_MPI_TYPE", "SLURM_STEP_NUM_TASKS",
};

/* " NAME=VALUE" of all that are set. */
static void describe_environment(char *out, size_t room)
{
	size_t n = 0;

	snprintf(out, room, " nothing of a launcher");
	for (size_t i = 0; i < BASE_ARRAY_LEN(telling); i++) {
		const char *value = getenv(telling[i]);

		if (value != NULL && n < room)
			n += (size_t)snprintf(out + n, room - n, " %s=%.80s",
					      telling[i], value);
	}
}

static bool is_there(const struct nm_boot_client *client)
{
	if (client->variables[0] == NULL)
		return true;
	for (size_t i = 0; i < BASE_ARRAY_LEN(client->variables); i++)
		if (client->variables[i] != NULL &&
		    getenv(client->variables[i]) != NULL)
			return true;
	return false;
}

/* What can be done where NMAD_BOOT wants a launcher that is not there. */
static int say_missing(const struct nm_boot_client *client)
{
	const char *also = client->variables[1];
	char text[1024];

	describe_environment(text, sizeof(text));
	base_warn("nmad",
		  "NMAD_BOOT=%s: no such launcher has started this process: "
		  "it would have set %s%s%s; the environment has%s",
		  client->name, client->variables[0], also ? " or " : "",
		  also ? also : "", text);
	return -EINVAL;
}

/* Why has been said. */
static void say_failed(const char *tried)
{
	char text[1024];

	describe_environment(text, sizeof(text));
	base_warn("nmad",
		  "this process cannot join its job: tried%s (NMAD_BOOT=%s); "
		  "the environment has%s",
		  tried, names[options[0].value], text);
}

/*
 * srun without PMI: its processes know nothing of each other, and each would be
 * a job of one. In a script of sbatch or salloc there is no step of several.
 */
static void warn_of_bare_srun(void)
{
	const char *n = getenv("SLURM_STEP_NUM_TASKS");
	const char *rank = getenv("SLURM_PROCID");
	long tasks;

	if (n == NULL || base_parse_long(n, false, &tasks) != 0 || tasks < 2 ||
	    (rank != NULL && strcmp(rank, "0") != 0))
		return;
	base_warn("nmad",
		  "srun started %ld processes and does not tell them of each "
		  "other: each is a job of one; if they are to be one job, use "
		  "srun --mpi=pmix or --mpi=pmi2; if not, NMAD_BOOT=singleton "
		  "ends this warning",
		  tasks);
}

static int open_client(struct nm_boot *b, const struct nm_boot_client *client,
		       char *tried, size_t room)
{
	size_t n = strlen(tried);

	snprintf(tried + n, room - n, " %s", client->name);
	b->client = client;
	b->info.client = client->name;
	return client->open(b);
}

/* The first that is there; one whose connection was not inherited is not. */
static int open_found(struct nm_boot *b, char *tried, size_t room)
{
	int rc = -EBADF;

	for (size_t i = 0; i < CLIENTS_FOUND && rc == -EBADF; i++) {
		if (!is_there(clients[i]))
			continue;
		rc = open_client(b, clients[i], tried, room);
		if (rc == -EBADF)
			base_warn("nmad", "going on without that launcher");
	}
	if (rc == 0 && b->client == &nm_boot_singleton)
		warn_of_bare_srun();
	return rc;
}

static int open_wanted(struct nm_boot *b)
{
	const struct nm_boot_client *client;
	char tried[64] = "";
	int rc;

	if (options[0].value == AUTO) {
		rc = open_found(b, tried, sizeof(tried));
	} else {
		client = clients[options[0].value - 1];
		if (!is_there(client))
			return say_missing(client);
		rc = open_client(b, client, tried, sizeof(tried));
	}
	if (rc != 0)
		say_failed(tried);
	return rc;
}

/* What a launcher has set for this rank, and not for PMIx in general. */
static bool is_ours(const char *variable)
{
	return strncmp(variable, "PMI_", 4) == 0 ||
	       strncmp(variable, "NMAD_KEY_FD=", 12) == 0 ||
	       strncmp(variable, "SLURM_STEP_NUM_TASKS=", 21) == 0 ||
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
	b->fd = -1;
	rc = open_wanted(b);
	if (rc != 0) {
		free(b->node);
		free(b);
		return rc;
	}
	if (options[0].value == AUTO || b->client != &nm_boot_singleton)
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
