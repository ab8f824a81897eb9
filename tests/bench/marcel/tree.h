/*
 * Threads that make threads: Fibonacci's numbers, each call a thread, and a
 * tree whose shape follows from a hash, each node a thread.
 */

struct fib {
	int n;
	long value, calls;
};

static void *fib(void *arg)
{
	struct fib *f = (struct fib *)arg, part[2];
	rt_thread t[2];

	f->value = f->n;
	f->calls = 1;
	if (f->n < 2)
		return NULL;
	for (int i = 0; i < 2; i++) {
		part[i].n = f->n - 1 - i;
		must(rt_create(&t[i], NULL, fib, &part[i]));
	}
	for (int i = 0; i < 2; i++)
		must(rt_join(&t[i]));
	f->value = part[0].value + part[1].value;
	f->calls += part[0].calls + part[1].calls;
	return NULL;
}

/* Per thread, whatever ops is. */
static double fib_threads(long ops)
{
	struct fib f = { RT_FIB, 0, 0 };
	double start = now_ns();

	fib(&f);
	return (now_ns() - start) / (double)f.calls;
}

/*
 * A node below the root has CHILDREN children, once in 8.03 times, or none: its
 * mean subtree has 250 nodes. 1,600 ns of work are WORK steps, and fewer nodes
 * are enough with them: the first WORK_ROOTS subtrees, 277,000 nodes.
 */
enum { CHILDREN = 8, WORK = 466, WORK_ROOTS = 400 };

/* One thread visits all levels, of which there are 768. */
enum { SERIAL_STACK = 1 << 20 };

static const uint64_t TREE_LIMIT = ((uint64_t)1 << 53) / 10000 * 1245;

struct node {
	uint64_t hash;
	long nodes; /* of its subtree */
};

static int tree_work; /* steps per node */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static void child_of(const struct node *n, int i, struct node *child)
{
	child->hash = mix(n->hash + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15);
	child->nodes = 0;
}

static int has_children(struct node *n)
{
	uint64_t x = n->hash;

	for (int i = 0; i < tree_work; i++)
		x = mix(x);
	/* The work has no effect, which no compiler knows. */
	n->nodes = 1 + (tree_work != 0 && x == 0);
	return n->hash >> 11 < TREE_LIMIT;
}

static void *visit(void *arg)
{
	struct node *n = (struct node *)arg, child[CHILDREN];
	rt_thread t[CHILDREN];

	if (!has_children(n))
		return NULL;
	for (int i = 0; i < CHILDREN; i++) {
		child_of(n, i, &child[i]);
		must(rt_create(&t[i], NULL, visit, &child[i]));
	}
	for (int i = 0; i < CHILDREN; i++) {
		must(rt_join(&t[i]));
		n->nodes += child[i].nodes;
	}
	return NULL;
}

static void visit_serial(struct node *n)
{
	struct node child;

	if (!has_children(n))
		return;
	for (int i = 0; i < CHILDREN; i++) {
		child_of(n, i, &child);
		visit_serial(&child);
		n->nodes += child.nodes;
	}
}

static int tree_roots(void)
{
	int roots = RT_TREE;

	if (tree_work != 0 && roots > WORK_ROOTS)
		roots = WORK_ROOTS;
	return roots;
}

/* ns per node. */
static double tree_of(int work)
{
	struct node root = { 40, 1 }, *child;
	rt_thread *t = threads_new(RT_TREE);
	double start;

	child = (struct node *)must_have(malloc(RT_TREE * sizeof(*child)));
	tree_work = work;
	start = now_ns();
	for (int i = 0; i < tree_roots(); i++) {
		child_of(&root, i, &child[i]);
		must(rt_create(&t[i], NULL, visit, &child[i]));
	}
	for (int i = 0; i < tree_roots(); i++) {
		must(rt_join(&t[i]));
		root.nodes += child[i].nodes;
	}
	start = now_ns() - start;
	free(child);
	free(t);
	return start / (double)root.nodes;
}

static double tree(long ops)
{
	return tree_of(0);
}

static double tree_working(long ops)
{
	return tree_of(WORK);
}

static void *serial(void *arg)
{
	struct node root = { 40, 1 }, child;
	double start = now_ns();

	for (int i = 0; i < tree_roots(); i++) {
		child_of(&root, i, &child);
		visit_serial(&child);
		root.nodes += child.nodes;
	}
	*(double *)arg = (now_ns() - start) / (double)root.nodes;
	return NULL;
}

/* No threads but the one that has the stack for it. */
static double tree_serial(long ops)
{
	double ns = NAN;
	rt_thread t;
	rt_attr a;

	tree_work = WORK;
	must(rt_attr_init(&a, SERIAL_STACK, -1));
	must(rt_create(&t, &a, serial, &ns));
	must(rt_join(&t));
	return ns;
}
