/*
 * The processes of the ranks: started, signalled, reaped. Each is the leader
 * of a process group, so that a signal reaches what it has started too, and
 * dies with mpirun.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"

extern char **environ;

/* All that a child needs between vfork and exec. */
struct start {
	struct job *job;
	const struct program *program;
	char **env;
	char *path; /* PATH, as we found it */
	int null;
	pid_t parent;
	int in, out[2], pmi; /* descriptors that become 0, 1, 2, PMI_FD */
	int hang;            /* and MARCEL_DEADLOCK_FD, or -1 */
	int report;          /* for a struct failure; closes on exec */
	const cpu_set_t *cpus;
};

/* Why a child could not become the program. */
struct failure {
	const char *step; /* NULL: the exec itself */
	int error;
};

/* --- the environment --- */

/* What an outer launcher may have left, and what we set ourselves. */
static bool is_launchers(const char *var)
{
	static const char *const names[] = {
		"PMI_FD=",
		"PMI_RANK=",
		"PMI_SIZE=",
		"PMI_PORT=",
		"PMI_ID=",
		"PMI_SPAWNED=",
		"HYDI_CONTROL_FD=",
		"MPI_LOCALRANKID=",
		"MPI_LOCALNRANKS=",
		"NMAD_KEY_FD=",
		"MARCEL_DEADLOCK_FD=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(var, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static char *var(const char *name, int value)
{
	char *text;

	if (asprintf(&text, "%s=%d", name, value) < 0)
		must(NULL);
	return text;
}

enum { OURS = 7 };

static bool is_set(const struct program *p, const char *var)
{
	size_t n = strcspn(var, "=") + 1;

	for (int i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], var, n) == 0)
			return true;
	return false;
}

/* Room for our variables in front, the program's and the rest behind. */
static char **make_env(const struct program *p)
{
	size_t n = 0, at = OURS;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = must(calloc(n + OURS + (size_t)p->nenv + 1, sizeof(*env)));
	for (int i = 0; i < p->nenv; i++)
		env[at++] = p->env[i];
	for (size_t i = 0; i < n; i++)
		if (!is_launchers(environ[i]) && !is_set(p, environ[i]))
			env[at++] = environ[i];
	return env;
}

/* exec looks for a program in our PATH: be it the program's. */
static void set_path(const struct program *p, const char *path)
{
	for (int i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], "PATH=", 5) == 0)
			path = p->env[i] + 5;
	if (p->path != NULL)
		path = p->path;
	if ((path != NULL ? setenv("PATH", path, 1) : unsetenv("PATH")) != 0)
		must(NULL);
}

static void set_env(char **env, const struct job *j, int rank, int pmi,
		    int hang)
{
	char *ours[OURS] = {
		var("PMI_FD", pmi),
		var("PMI_RANK", rank),
		var("PMI_SIZE", j->opt.ranks),
		var("MPI_LOCALRANKID", rank),
		var("MPI_LOCALNRANKS", j->opt.ranks),
		var("NMAD_KEY_FD", j->key_fd),
		var("MARCEL_DEADLOCK_FD", hang),
	};

	for (int i = 0; i < OURS; i++) {
		free(env[i]);
		env[i] = ours[i];
	}
}

/* --- start --- */

static void keep_open(int fd)
{
	fcntl(fd, F_SETFD, 0);
}

/* Between vfork and exec, on the parent's memory: only system calls. */
static void __attribute__((noreturn)) child(struct start *s)
{
	struct job *j = s->job;
	struct failure f = { .step = "bind" };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->parent)
		_exit(1);
	setpgid(0, 0);
	if (s->cpus != NULL &&
	    sched_setaffinity(0, sizeof(*s->cpus), s->cpus) != 0)
		goto failed;
	f.step = "connect";
	if ((s->in != STDIN_FILENO && dup2(s->in, STDIN_FILENO) < 0) ||
	    dup2(s->out[0], STDOUT_FILENO) < 0 ||
	    dup2(s->out[1], STDERR_FILENO) < 0)
		goto failed;
	setrlimit(RLIMIT_NOFILE, &j->old_limit);
	keep_open(s->pmi);
	keep_open(j->key_fd);
	if (s->hang >= 0)
		keep_open(s->hang);
	sigaction(SIGCHLD, &j->old_chld, NULL);
	sigprocmask(SIG_SETMASK, &j->old_mask, NULL);
	if (s->program->dir != NULL) {
		f.step = "chdir";
		if (chdir(s->program->dir) != 0)
			goto failed;
	}
	f.step = NULL;
	execvpe(s->program->argv[0], s->program->argv, s->env);
failed:
	f.error = errno;
	(void)!write(s->report, &f, sizeof(f));
	_exit(1);
}

static pid_t __attribute__((noinline)) spawn(struct start *s)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(s);
	return pid;
}

/* exec has failed: the program is to blame, so no rank is worth keeping. */
static void cannot_run(struct job *j, const struct program *p,
		       const struct failure *f)
{
	const char *program = p->argv[0];
	bool missing = f->error == ENOENT;
	bool here = missing && strchr(program, '/') == NULL &&
		    access(program, X_OK) == 0;

	if (f->step != NULL && strcmp(f->step, "chdir") == 0)
		job_fail(j, 1, "-wdir %s: %s", p->dir, strerror(f->error));
	else if (f->step != NULL)
		job_fail(j, 1, "cannot %s a process: %s", f->step,
			 strerror(f->error));
	else
		job_fail(j, missing ? EXIT_NO_FILE : EXIT_NO_EXEC,
			 "cannot run \"%s\": %s%s%s", program,
			 strerror(f->error),
			 here ? "; it is in this directory: ./" : "",
			 here ? program : "");
}

static void must_not_fail(int rc, const char *what)
{
	if (rc >= 0)
		return;
	say("cannot make %s: %s", what, strerror(errno));
	exit(1); /* the ranks that run die with us */
}

static void start_rank(struct job *j, struct start *s, struct rank *r)
{
	int pmi[2], out[2][2], report[2];
	struct failure failure;
	pid_t pid;

	must_not_fail(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi),
		      "a socket for a process");
	for (int i = 0; i < 2; i++) {
		out[i][1] = output_open(j, r->number, i ? "stderr" : "stdout");
		s->out[i] = out[i][1];
		if (s->out[i] >= 0)
			continue;
		must_not_fail(pipe2(out[i], O_CLOEXEC), "a pipe for output");
		fcntl(out[i][0], F_SETFL, O_NONBLOCK);
		r->out[i].fd = out[i][0];
		s->out[i] = out[i][1];
	}
	must_not_fail(pipe2(report, O_CLOEXEC), "a pipe for errors");
	s->report = report[1];
	r->pmi = pmi[0];
	s->pmi = pmi[1];
	s->hang = hang_open(r, s->program);
	set_env(s->env, j, r->number, s->pmi, s->hang);
	pid = spawn(s);
	must_not_fail(pid, "a process");
	r->pid = pid;
	j->running++;
	close(pmi[1]);
	if (s->hang >= 0)
		close(s->hang);
	close(out[0][1]);
	close(out[1][1]);
	close(report[1]);
	if (read(report[0], &failure, sizeof(failure)) == sizeof(failure)) {
		waitpid(pid, NULL, 0);
		r->pid = 0;
		j->running--;
		cannot_run(j, s->program, &failure);
		hang_close(j, r);
	}
	close(report[0]);
}

/*
 * Rank 0 inherits our stdin, so that what it does not read is left to others.
 * A terminal it could not read from its own process group: we pass it on.
 */
static int stdin_of_first(struct job *j)
{
	int ends[2];

	if (!isatty(STDIN_FILENO))
		return STDIN_FILENO;
	must_not_fail(pipe2(ends, O_CLOEXEC), "a pipe for input");
	j->tty_to = ends[1];
	fcntl(j->tty_to, F_SETFL, O_NONBLOCK);
	return ends[0];
}

static void start_program(struct job *j, struct start *s)
{
	const struct program *p = s->program;

	s->env = make_env(p);
	set_path(p, s->path);
	for (int i = p->first; i < p->first + p->ranks && !j->failed; i++) {
		int in = i == 0 ? stdin_of_first(j) : s->null;

		s->in = in;
		s->cpus = j->nplaces > 0 ? &j->places[i % j->nplaces] : NULL;
		j->ranks[i].program = (int)(p - j->opt.programs);
		start_rank(j, s, &j->ranks[i]);
		if (i == 0 && in != STDIN_FILENO)
			close(in);
	}
	for (int i = 0; i < OURS; i++)
		free(s->env[i]);
	free(s->env);
	set_path(&(struct program){ .nenv = 0 }, s->path);
}

void children_start(struct job *j)
{
	struct start s = { .job = j, .parent = getpid() };

	s.path = getenv("PATH");
	if (s.path != NULL)
		s.path = must(strdup(s.path));
	s.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	must_not_fail(s.null, "an empty input (/dev/null)");
	for (int i = 0; i < j->opt.nprograms && !j->failed; i++) {
		s.program = &j->opt.programs[i];
		start_program(j, &s);
	}
	close(s.null);
	free(s.path);
}

/* --- signal and reap --- */

void children_signal(struct job *j, int sig)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].pid > 0)
			kill(-j->ranks[i].pid, sig);
}

/* The flag of the kernel's, in the 9th field of its stat. */
#define EXITING 0x4u /* PF_EXITING */

bool child_is_exiting(const struct rank *r)
{
	char path[32], text[512], *end;
	unsigned flags = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", r->pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')'); /* of the name, which may hold anything */
	return end != NULL &&
	       sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       (flags & EXITING) != 0;
}

/* A rank has ended by itself; is the job still whole? */
static void judge(struct job *j, struct rank *r, const siginfo_t *how)
{
	int code = how->si_status;

	if (how->si_code != CLD_EXITED)
		rank_fail(j, r, 128 + code,
			  "rank %d (pid %d) was killed by signal %d (%s)%s",
			  r->number, r->pid, code, strsignal(code),
			  how->si_code == CLD_DUMPED ? ", core dumped" : "");
	else if (r->joined && !r->left)
		rank_fail(j, r, code != 0 ? code : 1,
			  "rank %d (pid %d) exited with code %d without "
			  "MPI_Finalize",
			  r->number, r->pid, code);
	else if (code != 0 && r->left && j->opt.keep_going)
		j->code = j->code != 0 ? j->code : code;
	else if (code != 0)
		rank_fail(j, r, code, "rank %d (pid %d) exited with code %d",
			  r->number, r->pid, code);
	else if (!r->joined && j->joined > 0)
		rank_fail(j, r, 1,
			  "rank %d (pid %d) exited before MPI_Init, which "
			  "others have called",
			  r->number, r->pid);
}

static void ended(struct job *j, struct rank *r, const siginfo_t *how)
{
	pmi_serve(j, r); /* what it said before it ended */
	r->lost_at = 0;
	if (!j->failed)
		judge(j, r, how);
	/* What it has started has had its SIGTERM too, or lost its leader. */
	if (j->failed || r->failed)
		kill(-r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	r->pid = 0;
	j->running--;
	hang_close(j, r);
	pmi_without(j, r);
}

static struct rank *rank_of(struct job *j, pid_t pid)
{
	for (int i = 0; i < j->opt.ranks; i++)
		if (j->ranks[i].pid == pid)
			return &j->ranks[i];
	return NULL;
}

/* Until it is reaped, the number of its group is not given to another. */
void children_reap(struct job *j)
{
	for (;;) {
		siginfo_t how = { .si_pid = 0 };
		struct rank *r;

		if (waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		    how.si_pid == 0)
			return;
		r = rank_of(j, how.si_pid);
		if (r != NULL)
			ended(j, r, &how);
		else /* of the program that we were before we were mpirun */
			waitpid(how.si_pid, NULL, 0);
	}
}
