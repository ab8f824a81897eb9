/*
 * nmad: one message from pieces that lie anywhere. Rank 0 sends every second
 * row of its table and what there is to say about them; rank 1 takes them apart
 * into its own table. Nothing is copied on the way there.
 *
 *   mpirun -n 2 pieces
 */
#include <nmad/nmad.h>
#include <stdio.h>

enum { ROWS = 8, COLUMNS = 1000, TAG = 1 };

struct head {
	char name[16];
	int step;
};

static struct nm_session *session;
static double table[ROWS][COLUMNS];

static int send(struct nm_gate *peer)
{
	struct head head = { "temperatures", 2 };
	struct nm_packing p;

	for (int row = 0; row < ROWS; row++)
		for (int i = 0; i < COLUMNS; i++)
			table[row][i] = row * COLUMNS + i;
	nm_begin_packing(session, peer, TAG, 0, &p);
	nm_pack(&p, &head, sizeof(head));
	for (int row = 0; row < ROWS; row += head.step)
		nm_pack(&p, table[row], sizeof(table[row]));
	/* The message leaves here; errors of the calls before come back, too.
	 */
	return nm_end_packing(&p);
}

static int receive(struct nm_gate *peer)
{
	struct nm_packing p;
	struct head head;
	double sum = 0;
	int rc;

	nm_begin_unpacking(session, peer, TAG, NM_TAG_EXACT, &p);
	nm_unpack(&p, &head, sizeof(head));
	for (int row = 0; row < ROWS; row += 2)
		nm_unpack(&p, table[row], sizeof(table[row]));
	/* Only now is anything there; fewer bytes, or more, are an error. */
	rc = nm_end_unpacking(&p, NULL);
	if (rc != 0)
		return rc;
	for (int row = 0; row < ROWS; row++)
		for (int i = 0; i < COLUMNS; i++)
			sum += table[row][i];
	printf("%s, one row of %d: sum %.0f\n", head.name, head.step, sum);
	return 0;
}

int main(void)
{
	int rc;

	if (nm_init() != 0)
		return 1;
	if (nm_size() != 2) {
		fprintf(stderr, "pieces: run it as two processes\n");
		nm_exit();
		return 2;
	}
	/* The same name is the same session in both. */
	if (nm_session_open_name("pieces", &session) != 0)
		return 1;
	rc = nm_rank() == 0 ? send(nm_gate_of(1)) : receive(nm_gate_of(0));
	nm_session_close(session);
	nm_exit();
	return rc != 0;
}
