/*
 * Error classes, codes and strings that the program has added, before MPI_Init
 * and after MPI_Finalize, too; handlers get them as they are.
 */
#include "../program.h"

enum { MANY = 100 };

static int last_used(void)
{
	int *value, flag;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
	EXPECT(flag);
	return *value;
}

static int is_string(int code, const char *wanted)
{
	char string[MPI_MAX_ERROR_STRING];
	int length = -1;

	EXPECT_INT(MPI_Error_string(code, string, &length), MPI_SUCCESS);
	EXPECT_INT(length, (int)strlen(string));
	return strcmp(string, wanted) == 0;
}

static int early_class, early_code;

static void before_the_beginning(void)
{
	EXPECT_INT(MPI_Add_error_class(&early_class), MPI_SUCCESS);
	EXPECT(early_class > MPI_ERR_LASTCODE);
	EXPECT_INT(MPI_Add_error_code(early_class, &early_code), MPI_SUCCESS);
	EXPECT_INT(MPI_Add_error_string(early_code, "early"), MPI_SUCCESS);
}

static void classes_codes_and_strings(void)
{
	int class, code[MANY];
	char longest[MPI_MAX_ERROR_STRING + 1];

	EXPECT_INT(class_of(early_code), early_class);
	EXPECT_INT(last_used(), early_code);
	MPI_Add_error_class(&class);
	EXPECT(class != early_code && last_used() >= class);
	EXPECT_INT(class_of(class), class);
	EXPECT(is_string(class, ""));
	for (int i = 0; i < MANY; i++) {
		MPI_Add_error_code(i % 2 ? class : MPI_ERR_OTHER, &code[i]);
		EXPECT_INT(class_of(code[i]), i % 2 ? class : MPI_ERR_OTHER);
		EXPECT(code[i] != class && code[i] > MPI_ERR_LASTCODE);
		for (int k = 0; k < i; k++)
			EXPECT(code[i] != code[k]);
		EXPECT(last_used() >= code[i]);
	}
	memset(longest, 's', sizeof(longest));
	longest[MPI_MAX_ERROR_STRING] = 0;
	FAILS(MPI_Add_error_string(code[3], longest), MPI_ERR_ARG);
	longest[MPI_MAX_ERROR_STRING - 1] = 0;
	MPI_Add_error_string(code[3], longest);
	EXPECT(is_string(code[3], longest));
	MPI_Add_error_string(code[3], "another");
	EXPECT(is_string(code[3], "another") && is_string(code[5], ""));
	MPI_Remove_error_string(code[3]);
	EXPECT(is_string(code[3], ""));
	FAILS(MPI_Remove_error_class(class), MPI_ERR_ARG);
	for (int i = 0; i < MANY; i++)
		EXPECT_INT(MPI_Remove_error_code(code[i]), MPI_SUCCESS);
	EXPECT_INT(MPI_Remove_error_class(class), MPI_SUCCESS);
	FAILS(MPI_Error_class(class, &class), MPI_ERR_ARG);
}

/* --- what a handler gets --- */

static int seen;

static void note(MPI_Comm *comm, int *code, ...)
{
	EXPECT(*comm == MPI_COMM_WORLD);
	seen = *code;
}

static void handlers_get_them(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(note, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	EXPECT_INT(MPI_Comm_call_errhandler(MPI_COMM_WORLD, early_code),
		   MPI_SUCCESS);
	EXPECT_INT(seen, early_code);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&handler);
}

/* As often as one likes: memory does not grow with it. */
static void added_and_removed(void)
{
	int class, code, highest = last_used();

	for (int i = 0; i < 100000; i++) {
		MPI_Add_error_class(&class);
		MPI_Add_error_code(class, &code);
		MPI_Add_error_string(code, "soon gone");
		EXPECT(code <= highest + 2);
		MPI_Remove_error_code(code);
		MPI_Remove_error_class(class);
	}
}

static void nonsense(void)
{
	char string[MPI_MAX_ERROR_STRING];
	int x = 0;

	FAILS(MPI_Add_error_class(NULL), MPI_ERR_ARG);
	FAILS(MPI_Add_error_code(MPI_ERR_LASTCODE + 5000, &x), MPI_ERR_ARG);
	FAILS(MPI_Add_error_code(early_code, &x), MPI_ERR_ARG);
	FAILS(MPI_Add_error_code(MPI_SUCCESS, &x), MPI_ERR_ARG);
	FAILS(MPI_Add_error_code(early_class, NULL), MPI_ERR_ARG);
	FAILS(MPI_Add_error_string(MPI_ERR_OTHER, "mine"), MPI_ERR_ARG);
	FAILS(MPI_Add_error_string(early_code, NULL), MPI_ERR_ARG);
	FAILS(MPI_Remove_error_class(MPI_ERR_OTHER), MPI_ERR_ARG);
	FAILS(MPI_Remove_error_class(early_code), MPI_ERR_ARG);
	FAILS(MPI_Remove_error_code(early_class), MPI_ERR_ARG);
	FAILS(MPI_Remove_error_string(-1), MPI_ERR_ARG);
	FAILS(MPI_Error_class(-3, &x), MPI_ERR_ARG);
	FAILS(MPI_Error_string(1 << 30, string, &x), MPI_ERR_ARG);
	EXPECT(is_string(early_code, "early"));
}

int main(int argc, char **argv)
{
	int class;

	before_the_beginning();
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	classes_codes_and_strings();
	handlers_get_them();
	added_and_removed();
	nonsense();
	program_end("user_errors");
	EXPECT_INT(MPI_Error_class(early_code, &class), MPI_SUCCESS);
	EXPECT_INT(class, early_class);
	return 0;
}
