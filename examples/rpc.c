/*
 * nmad: every process asks the next one to count the zeros in its numbers. The
 * handler runs in a thread of its own over there, receives the numbers into
 * memory that it has got for them, and what it returns comes back.
 *
 *   mpirun -n 2 rpc
 */
#include <errno.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/cond.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT_ZEROS = 1, HELLO = 2, NUMBERS = 100000 };

static int count_zeros(struct nm_rpc_call *call, void *arg)
{
	size_t bytes = nm_rpc_body_length(call);
	int *numbers = malloc(bytes), zeros = 0;
	struct nm_data into = nm_data_flat(numbers, bytes);

	(void)arg;
	if (numbers == NULL || nm_rpc_receive(call, &into) != 0)
		zeros = -1;
	for (size_t i = 0; zeros >= 0 && i < bytes / sizeof(int); i++)
		zeros += numbers[i] == 0;
	free(numbers);
	return zeros;
}

/* Says by its header alone who calls, and that he will not call again. */
static int hello(struct nm_rpc_call *call, void *heard)
{
	const int *zeros = nm_rpc_header(call, NULL);

	printf("rank %d: rank %d was told of %d zeros\n", nm_rank(),
	       nm_gate_rank(nm_rpc_from(call)), *zeros);
	piom_sem_post(heard);
	return 0;
}

/* Until the other process knows the number: it may have only just opened. */
static int call(struct nm_rpc *rpc, uint32_t service, const int *header,
		const struct nm_data *body)
{
	struct nm_gate *next = nm_gate_of((nm_rank() + 1) % nm_size());
	struct nm_rpc_request req;
	struct nm_rpc_status status;

	do {
		nm_rpc_send(rpc, next, service, header,
			    header != NULL ? sizeof(*header) : 0, body, &req);
		nm_rpc_wait(&req);
		nm_rpc_status(&req, &status);
	} while (status.error == -ENOENT);
	return status.result;
}

int main(void)
{
	static int numbers[NUMBERS];
	struct nm_data body = nm_data_flat(numbers, sizeof(numbers));
	piom_sem_t heard;
	struct nm_rpc *rpc;
	int zeros, want = 0;

	if (nm_init() != 0 || nm_rpc_open_name("zeros", 0, &rpc) != 0)
		return 1;
	piom_sem_init(&heard, 0);
	nm_rpc_register(rpc, COUNT_ZEROS, count_zeros, NULL);
	nm_rpc_register(rpc, HELLO, hello, &heard);
	for (int i = 0; i < NUMBERS; i++) {
		numbers[i] = i % (nm_rank() + 2);
		want += numbers[i] == 0;
	}
	zeros = call(rpc, COUNT_ZEROS, NULL, &body);
	call(rpc, HELLO, &zeros, NULL);
	/* Who has called us calls no more. */
	piom_sem_wait(&heard);
	nm_rpc_unregister(rpc, HELLO);
	nm_rpc_unregister(rpc, COUNT_ZEROS);
	nm_rpc_close(rpc);
	nm_exit();
	return zeros != want;
}
