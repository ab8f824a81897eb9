/*
 * The tables that the libraries of another process offer: <base/offer.h>.
 *
 * Nothing is taken from files, which may have been replaced: where something
 * that may be an ELF file is mapped from its beginning on, its program headers
 * are read in memory, then its notes, then the tables that these name.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <base/offer.h>

#include "top.h"

enum { ENTRIES_MAX = 256, HEADERS_MAX = 64, NOTES_MAX = 4096 };

struct offer {
	uint32_t n;
	struct base_offer_entry entries[];
};

static const char *const owners[LIBS] = { "marcel", "pioman", "nmad" };

bool remote_read(pid_t pid, uintptr_t address, void *out, size_t bytes)
{
	struct iovec to = { out, bytes }, from = { (void *)address, bytes };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

bool offer_has(const struct offer *o, const char *name, uintptr_t *out)
{
	for (uint32_t i = 0; o != NULL && i < o->n; i++)
		if (strcmp(o->entries[i].name, name) == 0) {
			*out = o->entries[i].value;
			return true;
		}
	return false;
}

void offer_close(struct process *p)
{
	for (int i = 0; i < LIBS; i++) {
		free(p->offers[i]);
		p->offers[i] = NULL;
	}
}

/* 0 or -errno, with the trouble. */
static int take_table(struct process *p, int lib, uintptr_t address)
{
	struct base_offer table;
	struct offer *o;

	if (!remote_read(p->pid, address, &table, sizeof(table)))
		return 0; /* it is just being mapped, or ends */
	if (table.version != BASE_OFFER_VERSION || table.n > ENTRIES_MAX) {
		snprintf(p->trouble, sizeof(p->trouble),
			 "its lib%s offers what it has in version %u, and "
			 "this " MARCEL_TOP " reads version %d",
			 owners[lib], table.version, BASE_OFFER_VERSION);
		return -EPROTO;
	}
	o = malloc(sizeof(*o) + table.n * sizeof(o->entries[0]));
	if (o == NULL)
		return -ENOMEM;
	o->n = table.n;
	if (!remote_read(p->pid, (uintptr_t)table.entries, o->entries,
			 table.n * sizeof(o->entries[0]))) {
		free(o);
		return 0;
	}
	for (uint32_t i = 0; i < o->n; i++)
		o->entries[i].name[sizeof(o->entries[i].name) - 1] = '\0';
	free(p->offers[lib]); /* one that is linked twice: any, see below */
	p->offers[lib] = o;
	return 0;
}

/*
 * A library may be in a program and be loaded, too (marcel-info): what runs is
 * the one whose VPs there are, or which comes first.
 */
static bool is_better(struct process *p, int lib)
{
	struct offer *was = p->offers[lib];
	uintptr_t at, value = 0;

	if (was == NULL)
		return true;
	if (!offer_has(was, lib == LIB_MARCEL ? "vps" : "core", &at))
		return false;
	remote_read(p->pid, at, &value, sizeof(value));
	return value == 0;
}

static int take_notes(struct process *p, uintptr_t at, size_t bytes)
{
	char notes[NOTES_MAX];
	size_t i = 0;
	int rc = 0;

	if (bytes > sizeof(notes))
		bytes = sizeof(notes);
	if (!remote_read(p->pid, at, notes, bytes))
		return 0;
	while (rc == 0 && i + sizeof(Elf64_Nhdr) <= bytes) {
		Elf64_Nhdr n;
		size_t name = i + sizeof(n), desc;
		int64_t distance;

		memcpy(&n, notes + i, sizeof(n));
		desc = name + (((size_t)n.n_namesz + 3) & ~(size_t)3);
		i = desc + (((size_t)n.n_descsz + 3) & ~(size_t)3);
		if (i > bytes || i < desc)
			return 0;
		if (n.n_type != BASE_OFFER_NOTE_TYPE ||
		    n.n_descsz != sizeof(distance))
			continue;
		memcpy(&distance, notes + desc, sizeof(distance));
		for (int lib = 0; lib < LIBS && rc == 0; lib++)
			if (n.n_namesz == strlen(owners[lib]) + 1 &&
			    memcmp(notes + name, owners[lib], n.n_namesz) ==
				    0 &&
			    is_better(p, lib))
				rc = take_table(p, lib,
						at + desc +
							(uintptr_t)distance);
	}
	return rc;
}

/* What is mapped there may be an ELF file. 0 or -errno. */
static int take_file(struct process *p, uintptr_t base)
{
	Elf64_Ehdr header;
	Elf64_Phdr ph[HEADERS_MAX];
	uintptr_t bias = base;
	int rc = 0;

	if (!remote_read(p->pid, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(ph[0]) || header.e_phnum == 0 ||
	    header.e_phnum > HEADERS_MAX ||
	    !remote_read(p->pid, base + header.e_phoff, ph,
			 header.e_phnum * sizeof(ph[0])))
		return 0;
	for (int i = 0; i < header.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0 &&
		    ph[i].p_filesz > 0)
			bias = base - ph[i].p_vaddr;
	for (int i = 0; i < header.e_phnum && rc == 0; i++)
		if (ph[i].p_type == PT_NOTE)
			rc = take_notes(p, bias + ph[i].p_vaddr, ph[i].p_memsz);
	return rc;
}

/* Whether it is one of ours, as far as names tell. */
static bool is_ours(const char *line)
{
	for (int lib = 0; lib < LIBS; lib++) {
		const char *at = strstr(line, "/lib");

		while (at != NULL &&
		       strncmp(at + 4, owners[lib], strlen(owners[lib])) != 0)
			at = strstr(at + 4, "/lib");
		if (at != NULL)
			return true;
	}
	return false;
}

/*
 * The kernel lets us read /proc/PID/maps, but perhaps not the memory: Yama's
 * ptrace_scope. 0 or -EPERM, with the trouble if the process is of interest.
 */
static int check_access(struct process *p, uintptr_t first, const char *line)
{
	char byte;

	if (remote_read(p->pid, first, &byte, 1) || errno != EPERM)
		return 0;
	if (is_ours(line))
		snprintf(p->trouble, sizeof(p->trouble),
			 "the kernel does not let this " MARCEL_TOP " read it "
			 "(/proc/sys/kernel/yama/ptrace_scope): be root, or "
			 "start it with MARCEL_TOP=1");
	return -EPERM;
}

int offer_open(struct process *p)
{
	char path[64], *line = NULL;
	size_t room = 0;
	bool denied = false;
	int rc = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	maps = fopen(path, "re");
	if (maps == NULL)
		return -errno;
	errno = 0;
	while (rc == 0 && getline(&line, &room, maps) > 0) {
		unsigned long first, offset, inode;

		if (sscanf(line, "%lx-%*x r%*3c %lx %*x:%*x %lu", &first,
			   &offset, &inode) != 3 ||
		    offset != 0 || inode == 0)
			continue;
		if (check_access(p, first, line) < 0)
			denied = true;
		else
			rc = take_file(p, first);
		if (denied && p->trouble[0] != '\0')
			break;
	}
	free(line);
	fclose(maps);
	if (rc == 0 && denied)
		rc = -EPERM;
	if (rc != 0) {
		offer_close(p);
		return rc;
	}
	return p->offers[LIB_MARCEL] != NULL;
}
