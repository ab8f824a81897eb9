/*
 * What a library lets other processes read of it: a table of names, with the
 * addresses of variables and the places of fields in structures.
 *
 * Who may trace this process reads it, and then what it names, by
 * process_vm_readv(): the process does nothing for that, and there is no file
 * that could be left behind. An ELF note leads to the table, in shared
 * libraries and programs alike, stripped ones, too. A name means the same in
 * every version that has it; so a reader takes the layout from the process and
 * never from a header.
 */
#ifndef BASE_OFFER_H
#define BASE_OFFER_H

#include <stddef.h>
#include <stdint.h>

struct base_offer_entry {
	char name[24];
	uintptr_t value; /* an address, an offset or a number */
};

/* Changes when this struct does, or when a name has to mean something else. */
#define BASE_OFFER_VERSION 1

struct base_offer {
	uint32_t version;
	uint32_t n;
	const struct base_offer_entry *entries;
};

/* In the table: a variable; a field of a struct; a number. */
#define BASE_OFFER_AT(name, variable)                                          \
	{                                                                      \
		name, (uintptr_t) & (variable)                                 \
	}
#define BASE_OFFER_FIELD(name, type, field)                                    \
	{                                                                      \
		name, offsetof(type, field)                                    \
	}
#define BASE_OFFER_NUMBER(name, number)                                        \
	{                                                                      \
		name, number                                                   \
	}

/*
 * The note of that owner, whose content is how far it is from itself to the
 * table: a hidden variable, const struct base_offer. Outside of functions, in a
 * file that every program has which uses the library.
 */
#define BASE_OFFER_NOTE_TYPE 1
#define BASE_OFFER_NOTE(owner, table)                                          \
	__asm__(".pushsection .note.offer,\"a\",%note\n\t"                     \
		".balign 4\n\t"                                                \
		".long 2f - 1f, 8, 1\n"                                        \
		"1:\t.asciz \"" owner "\"\n"                                   \
		"2:\t.balign 4\n"                                              \
		"3:\t.quad " table " - 3b\n\t"                                 \
		".popsection")

#endif
