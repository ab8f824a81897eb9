// The programs of ../programs.h in Go: the same names, sizes and output.
//
//	bench_go [-m] [-n OPERATIONS] CPUS [PROGRAM ...]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	workers   int
	opsWanted = flag.Int64("n", 0, "operations")
	inMain    = flag.Bool("m", false, "in main")
	began     = time.Now()
)

func nowNs() float64 { return float64(time.Since(began).Nanoseconds()) }

func report(name string, value float64, unit string) {
	fmt.Printf("%s %.4f %s\n", name, value, unit)
}

func opsOr(ops int64) int64 {
	if *opsWanted != 0 {
		return *opsWanted
	}
	return ops
}

// A barrier is not among what Go has.
type barrier struct {
	lock       sync.Mutex
	changed    *sync.Cond
	n, inside  int
	generation int
}

func newBarrier(n int) *barrier {
	b := &barrier{n: n}
	b.changed = sync.NewCond(&b.lock)
	return b
}

func (b *barrier) wait() bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.inside++
	if b.inside == b.n {
		b.inside = 0
		b.generation++
		b.changed.Broadcast()
		return true
	}
	for g := b.generation; g == b.generation; {
		b.changed.Wait()
	}
	return false
}

// all runs n goroutines to their end.
func all(n int, fn func(i int)) {
	var done sync.WaitGroup
	done.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			defer done.Done()
			fn(i)
		}(i)
	}
	done.Wait()
}

func createJoin(ops int64) float64 {
	start := nowNs()
	for i := int64(0); i < ops; i++ {
		done := make(chan struct{})
		go func() { close(done) }()
		<-done
	}
	return (nowNs() - start) / float64(ops)
}

func forkJoin(ops int64) float64 {
	var done sync.WaitGroup
	start := nowNs()
	done.Add(int(ops))
	for i := int64(0); i < ops; i++ {
		go done.Done()
	}
	done.Wait()
	return (nowNs() - start) / float64(ops)
}

func yieldAmong(ops int64, n int) float64 {
	var from, to float64
	line := newBarrier(n)
	each := ops / int64(n)
	all(n, func(int) {
		if line.wait() {
			from = nowNs()
		}
		for i := int64(0); i < each; i++ {
			runtime.Gosched()
		}
		if line.wait() {
			to = nowNs()
		}
	})
	return (to - from) / float64(each*int64(n))
}

func fib(n int, calls *int64) int {
	if n < 2 {
		*calls = 1
		return n
	}
	var done sync.WaitGroup
	var value [2]int
	var made [2]int64
	done.Add(2)
	for i := range value {
		go func(i int) {
			defer done.Done()
			value[i] = fib(n-1-i, &made[i])
		}(i)
	}
	done.Wait()
	*calls = 1 + made[0] + made[1]
	return value[0] + value[1]
}

func fibThreads(int64) float64 {
	var calls int64
	start := nowNs()
	fib(25, &calls)
	return (nowNs() - start) / float64(calls)
}

const (
	treeRoot     = 4000
	treeChildren = 8
	treeWork     = 466
	treeLimit    = uint64(1) << 53 / 10000 * 1245
	workRoots    = 400
)

type node struct {
	hash  uint64
	nodes int64
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func (n *node) child(i int) node {
	return node{hash: mix(n.hash + uint64(i+1)*0x9e3779b97f4a7c15)}
}

func (n *node) hasChildren(work int) bool {
	x := n.hash
	for i := 0; i < work; i++ {
		x = mix(x)
	}
	n.nodes = 1
	if work != 0 && x == 0 {
		n.nodes++
	}
	return n.hash>>11 < treeLimit
}

func (n *node) visit(work int) {
	if !n.hasChildren(work) {
		return
	}
	var child [treeChildren]node
	var done sync.WaitGroup
	done.Add(treeChildren)
	for i := range child {
		child[i] = n.child(i)
		go func(c *node) {
			defer done.Done()
			c.visit(work)
		}(&child[i])
	}
	done.Wait()
	for i := range child {
		n.nodes += child[i].nodes
	}
}

func (n *node) visitSerial(work int) {
	if !n.hasChildren(work) {
		return
	}
	for i := 0; i < treeChildren; i++ {
		c := n.child(i)
		c.visitSerial(work)
		n.nodes += c.nodes
	}
}

func treeOf(work int, serial bool) float64 {
	root := node{40, 1}
	child := make([]node, treeRoot)
	if work != 0 {
		child = child[:workRoots]
	}
	start := nowNs()
	for i := range child {
		child[i] = root.child(i)
		if serial {
			child[i].visitSerial(work)
		}
	}
	if !serial {
		all(len(child), func(i int) { child[i].visit(work) })
	}
	for i := range child {
		root.nodes += child[i].nodes
	}
	return (nowNs() - start) / float64(root.nodes)
}

func handOver(ops int64) float64 {
	var s [2]chan struct{}
	var from, to float64
	for i := range s {
		s[i] = make(chan struct{}, 1)
	}
	all(2, func(me int) {
		if me == 1 {
			from = nowNs()
			for i := int64(0); i < ops/2; i++ {
				s[1] <- struct{}{}
				<-s[0]
			}
			to = nowNs()
			return
		}
		for i := int64(0); i < ops/2; i++ {
			<-s[1]
			s[0] <- struct{}{}
		}
	})
	return (to - from) / float64(ops)
}

func uncontended(ops int64) float64 {
	var m sync.Mutex
	start := nowNs()
	for i := int64(0); i < ops; i++ {
		m.Lock()
		m.Unlock()
	}
	return (nowNs() - start) / float64(ops)
}

const herd = 64

type shared struct {
	m       sync.Mutex
	c       *sync.Cond
	line    *barrier
	ops     int64
	counter int64
}

func among(fn func(s *shared, me int), n int, ops int64) float64 {
	var from, to float64
	s := &shared{line: newBarrier(n), ops: ops / int64(n)}
	s.c = sync.NewCond(&s.m)
	all(n, func(me int) {
		if s.line.wait() {
			from = nowNs()
		}
		fn(s, me)
		if s.line.wait() {
			to = nowNs()
		}
	})
	return (to - from) / float64(s.ops*int64(n))
}

func turnAbout(s *shared, me int) {
	s.m.Lock()
	for i := int64(0); i < s.ops; i++ {
		for s.counter%2 != int64(me) {
			s.c.Wait()
		}
		s.counter++
		s.c.Signal()
	}
	s.m.Unlock()
}

func shortSection(s *shared, me int) {
	for i := int64(0); i < s.ops; i++ {
		s.m.Lock()
		s.counter++
		s.m.Unlock()
	}
}

func yieldingSection(s *shared, me int) {
	for i := int64(0); i < s.ops; i++ {
		s.m.Lock()
		s.counter++
		runtime.Gosched()
		s.m.Unlock()
	}
}

func barriers(s *shared, me int) {
	for i := int64(0); i < s.ops; i++ {
		s.line.wait()
	}
}

const (
	many   = 200000
	frame  = 900
	batch  = 1000
	idleMs = 500
)

var room struct {
	gate, batch chan struct{}
	blocked     int64
}

func newRoom() {
	room.gate = make(chan struct{})
	room.batch = make(chan struct{}, 1)
}

//go:noinline
func fill(b *[frame]byte) {
	for i := range b {
		b[i] = 1
	}
}

func block() {
	var b [frame]byte
	fill(&b)
	if atomic.AddInt64(&room.blocked, 1)%batch == 0 {
		room.batch <- struct{}{}
	}
	<-room.gate
	runtime.KeepAlive(&b)
}

func memoryUsed() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	bytes := 0.0
	for _, line := range strings.Split(string(text), "\n") {
		word := strings.Fields(line)
		if len(word) > 1 && (word[0] == "VmRSS:" || word[0] == "VmPTE:") {
			kb, _ := strconv.ParseFloat(word[1], 64)
			bytes += kb * 1024
		}
	}
	return bytes
}

func blocked() {
	n := int(opsOr(many)) / batch * batch
	var done sync.WaitGroup
	newRoom()
	memory, start := memoryUsed(), nowNs()
	done.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			defer done.Done()
			block()
		}()
		if i%batch == batch-1 {
			<-room.batch
		}
	}
	made := nowNs() - start
	memory = memoryUsed() - memory
	start = nowNs()
	for i := 0; i < n; i++ {
		room.gate <- struct{}{}
	}
	done.Wait()
	report("blocked_memory", memory/float64(n), "B")
	report("create_block", made/float64(n), "ns")
	report("wake_join", (nowNs()-start)/float64(n), "ns")
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9
}

func idle() {
	newRoom()
	for i := 0; i < herd; i++ {
		go block()
	}
	time.Sleep(100 * time.Millisecond)
	cpu := cpuSeconds()
	time.Sleep(idleMs * time.Millisecond)
	report("idle", (cpuSeconds()-cpu)*1e6/idleMs, "ms/s")
}

const (
	wakes   = 200
	slices  = 60
	spanUs  = 10
	sleepUs = 2000
)

func median(x []float64) float64 {
	sort.Float64s(x)
	return x[len(x)/2]
}

// A kernel thread of its own, which is in the kernel while it sleeps.
func wakeAfter(idleUs int) float64 {
	var us []float64
	var posted float64
	ready, woken := make(chan struct{}, 1), make(chan struct{}, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for i := 0; i < wakes; i++ {
			<-ready
			if idleUs > spanUs {
				t := syscall.NsecToTimespec(int64(idleUs) * 1000)
				syscall.Nanosleep(&t, nil)
			}
			for until := nowNs() + spanUs*1e3; nowNs() < until; {
			}
			posted = nowNs()
			woken <- struct{}{}
		}
	}()
	for i := 0; i < wakes; i++ {
		ready <- struct{}{}
		<-woken
		us = append(us, (nowNs()-posted)*1e-3)
	}
	return median(us)
}

func wakeUp() {
	// With one, it is that which the waker itself runs on.
	if workers == 1 {
		return
	}
	report("wake_soon", wakeAfter(0), "us")
	report("wake_late", wakeAfter(sleepUs), "us")
}

// As many compute as there are workers.
func wakeBusy() {
	var enough int32
	if workers == 1 {
		return
	}
	var group sync.WaitGroup
	for i := 0; i < workers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for atomic.LoadInt32(&enough) == 0 {
			}
		}()
	}
	report("wake_busy", wakeAfter(sleepUs), "us")
	atomic.StoreInt32(&enough, 1)
	group.Wait()
}

func preempt() {
	var who, n int32
	var when [2]int64
	gap := make([]float64, slices)
	if workers > 1 {
		return
	}
	when[0] = time.Since(began).Nanoseconds()
	all(2, func(me int) {
		for {
			other := atomic.LoadInt32(&who) != int32(me)
			i := atomic.LoadInt32(&n)
			t := time.Since(began).Nanoseconds()
			if i >= slices {
				return
			}
			if other {
				gap[i] = float64(t-atomic.LoadInt64(&when[1-me])) * 1e-3
				atomic.StoreInt32(&n, i+1)
				atomic.StoreInt32(&who, int32(me))
			}
			atomic.StoreInt64(&when[me], t)
		}
	})
	report("preempt", median(gap), "us")
}

type bench struct {
	name string
	fn   func(ops int64) float64
	ops  int64
	run  func()
}

var benches = []bench{
	{"fork_join_cold", nil, 0, func() {
		report("fork_join_cold", forkJoin(opsOr(100000)), "ns")
	}},
	{"create_join", createJoin, 200000, nil},
	{"fork_join", forkJoin, 100000, nil},
	{"yield_2", func(ops int64) float64 { return yieldAmong(ops, 2) },
		1000000, nil},
	{"yield_1000", func(ops int64) float64 { return yieldAmong(ops, 1000) },
		2000000, nil},
	{"hand_over", handOver, 1000000, nil},
	{"mutex_cond", func(ops int64) float64 { return among(turnAbout, 2, ops) },
		1000000, nil},
	{"mutex", uncontended, 2000000, nil},
	{"mutex_short", func(ops int64) float64 {
		return among(shortSection, herd, ops)
	}, 2000000, nil},
	{"mutex_yielding", func(ops int64) float64 {
		return among(yieldingSection, herd, ops)
	}, 500000, nil},
	{"barrier", func(ops int64) float64 {
		return among(barriers, herd, ops) * herd
	}, 200000, nil},
	{"fib", fibThreads, 1, nil},
	{"tree", func(int64) float64 { return treeOf(0, false) }, 1, nil},
	{"tree_working", func(int64) float64 { return treeOf(treeWork, false) },
		1, nil},
	{"tree_serial", func(int64) float64 { return treeOf(treeWork, true) }, 1,
		nil},
	{"blocked", nil, 0, blocked},
	{"idle", nil, 0, idle},
	{"wake_up", nil, 0, wakeUp},
	{"wake_busy", nil, 0, wakeBusy},
	{"preempt", nil, 0, preempt},
}

func wanted(name string) bool {
	for _, w := range flag.Args()[1:] {
		if w == name {
			return true
		}
	}
	return flag.NArg() == 1
}

func runAll() {
	for _, b := range benches {
		switch {
		case !wanted(b.name):
		case b.run != nil:
			b.run()
		default:
			b.fn(opsOr(b.ops))
			report(b.name, b.fn(opsOr(b.ops)), "ns")
		}
	}
}

// All threads that there are by now, and those that they will make.
func useCpus() {
	var set, some [16]uint64
	left := workers
	get, put := uintptr(syscall.SYS_SCHED_GETAFFINITY),
		uintptr(syscall.SYS_SCHED_SETAFFINITY)
	syscall.RawSyscall(get, 0, unsafe.Sizeof(set),
		uintptr(unsafe.Pointer(&set)))
	for cpu := 0; cpu < 1024 && left > 0; cpu++ {
		if bit := set[cpu/64] & (1 << (cpu % 64)); bit != 0 {
			some[cpu/64] |= bit
			left--
		}
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		id, _ := strconv.Atoi(t.Name())
		syscall.RawSyscall(put, uintptr(id), unsafe.Sizeof(some),
			uintptr(unsafe.Pointer(&some)))
	}
}

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		workers, _ = strconv.Atoi(flag.Arg(0))
	}
	if workers < 1 || *opsWanted < 0 {
		fmt.Fprintln(os.Stderr,
			"usage: bench_go [-m] [-n OPERATIONS] CPUS [PROGRAM ...]")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(workers)
	useCpus()
	if *inMain {
		runAll()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runAll()
	}()
	<-done
}
