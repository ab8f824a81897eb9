/* marcel/arch/ctx.h: what survives a switch, and how a context begins. */
#include "../../check.h"

#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "../../../marcel/arch/ctx.h"

enum { STACK = 64 * 1024 };

static struct marcel_ctx test, other;
static char stack[STACK] __attribute__((aligned(64)));

static void begin(void (*entry)(void *))
{
	marcel_ctx_make(&other, stack + STACK, entry);
}

static void *go(void *value)
{
	return marcel_ctx_switch(&test, &other, value);
}

static void *back(void *value)
{
	return marcel_ctx_switch(&other, &test, value);
}

/* --- values --- */

static void add_one(void *value)
{
	for (;;)
		value = back((char *)value + 1);
}

TEST(each_switch_hands_over_its_value)
{
	begin(add_one);
	for (long i = 0; i < 1000; i++)
		CHECK_INT((long)go((void *)i), i + 1);
}

/* --- the stack --- */

static void place_of_frame(void *value)
{
	char here[1];
	uintptr_t *out = value;

	out[0] = (uintptr_t)here;
	out[1] = (uintptr_t)__builtin_frame_address(0);
	back(NULL);
	abort();
}

TEST(a_context_begins_on_its_own_aligned_stack)
{
	for (size_t off = 0; off < 64; off++) {
		uintptr_t place[2];

		marcel_ctx_make(&other, stack + STACK - off, place_of_frame);
		go(place);
		CHECK(place[0] >= (uintptr_t)stack &&
		      place[0] < (uintptr_t)stack + STACK - off);
		/* Where a function's frame pointer points is aligned by 16. */
		CHECK_INT(place[1] % 16, 0);
	}
}

/* --- registers --- */

/* More live values than there are callee-saved registers. */
static uint64_t churn(uint64_t seed, void *(*leave)(void *))
{
	uint64_t a = seed, b = a * 3, c = b * 5, d = c * 7, e = d * 11,
		 f = e * 13, g = f * 17, h = g * 19, i = h * 23, j = i * 29,
		 k = j * 31, l = k * 37;
	double x = (double)seed, y = x * 1.5, z = y * 1.5, w = z * 1.5,
	       v = w * 1.5, u = v * 1.5, t = u * 1.5, s = t * 1.5, r = s * 1.5;
	uint64_t sum = 0;

	for (int round = 0; round < 100; round++) {
		leave(NULL);
		sum += a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l;
		sum += (uint64_t)(x + y + z + w + v + u + t + s + r);
		a++, b++, c++, d++, e++, f++, g++, h++, i++, j++, k++, l++;
		x++, y++, z++, w++, v++, u++, t++, s++, r++;
	}
	return sum;
}

static void *stay(void *value)
{
	return value;
}

static void churn_there(void *value)
{
	uint64_t *out = value;

	out[0] = churn(12345, back);
	for (;;)
		back((void *)1);
}

TEST(callee_saved_registers_survive)
{
	uint64_t there[1] = { 0 }, here;

	begin(churn_there);
	go(there);
	here = churn(54321, go);
	while (go(NULL) == NULL)
		;
	CHECK(here == churn(54321, stay));
	CHECK(there[0] == churn(12345, stay));
}

/* --- floating-point control --- */

static double third(void)
{
	double one = 1, three = 3;

	__asm__("" : "+m"(one), "+m"(three));
	return one / three;
}

static void round_up(void *value)
{
	double *out = value;

	out[0] = fegetround() == FE_TONEAREST;
	fesetround(FE_UPWARD);
	back(NULL);
	out[1] = fegetround() == FE_UPWARD;
	out[2] = third();
	back(NULL);
	abort();
}

TEST(rounding_belongs_to_the_context)
{
	double there[3], near = third();

	CHECK_INT(fesetround(FE_DOWNWARD), 0);
	begin(round_up);
	go(there);
	CHECK_INT(fegetround(), FE_DOWNWARD);
	CHECK(there[0] == 1); /* a new context begins with the defaults */
	go(NULL);
	CHECK_INT(fegetround(), FE_DOWNWARD);
	CHECK(third() <= near);
	fesetround(FE_TONEAREST);
	CHECK(there[1] == 1);
	CHECK(there[2] > near || there[2] > third());
}

#if defined __x86_64__
static void x87_single(void *value)
{
	uint16_t word = 0x007f; /* single precision */

	__asm__ volatile("fldcw %0" : : "m"(word));
	back(NULL);
	__asm__ volatile("fnstcw %0" : "=m"(word));
	back((void *)(uintptr_t)word);
	abort();
}

TEST(the_x87_control_word_belongs_to_the_context)
{
	uint16_t word;

	begin(x87_single);
	go(NULL);
	__asm__ volatile("fnstcw %0" : "=m"(word));
	CHECK_INT(word, 0x037f);
	CHECK_INT((long)go(NULL), 0x007f);
	__asm__ volatile("fnstcw %0" : "=m"(word));
	CHECK_INT(word, 0x037f);
}
#endif

/* --- unwinding --- */

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *c, void *arg)
{
	int *n = arg;

	(void)c;
	return ++*n < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void unwind(void *value)
{
	_Unwind_Backtrace(count_frame, value);
	back(NULL);
	abort();
}

TEST(unwinding_ends_at_the_first_frame)
{
	int frames = 0;

	begin(unwind);
	go(&frames);
	CHECK(frames > 0 && frames < 10);
}
