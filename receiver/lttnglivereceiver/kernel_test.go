// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/mapping"
	"github.com/callbraid/callbraid/internal/lttng/process"
	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/processor/stackpairingprocessor"
)

func event(name string) mapping.RuleEvent { return mapping.RuleEvent{Event: name} }

// shippedRules are the call rules of config/lttng-kernel.yaml.
func shippedRules(t testing.TB) []CallRule {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("..", "..", "config", "lttng-kernel.yaml"))
	require.NoError(t, err)
	rules, err := conf.Sub("receivers::lttng_live")
	require.NoError(t, err)
	config := createDefaultConfig()
	require.NoError(t, rules.Unmarshal(config))
	require.NotEmpty(t, config.CallRules)
	return config.CallRules
}

// kernelClasses are the events of a kernel trace, with their fields.
var kernelClasses = map[string][]string{
	"sched_switch":                  {"prev_comm$", "prev_tid", "prev_state", "next_comm$", "next_tid"},
	"sched_waking":                  {"comm$", "tid"},
	"sched_process_fork":            {"parent_tid", "child_comm$", "child_tid", "child_pid"},
	"sched_process_exec":            {"filename$", "tid"},
	"sched_process_exit":            {"comm$", "tid"},
	"lttng_statedump_process_state": {"tid", "pid", "name$"},
	"irq_handler_entry":             {"irq", "name$"},
	"irq_handler_exit":              {"irq", "ret"},
	"irq_softirq_entry":             {"vec"},
	"irq_softirq_exit":              {"vec"},
	"timer_hrtimer_expire_entry":    {"hrtimer", "function"},
	"timer_hrtimer_expire_exit":     {"hrtimer"},
	"net_napi_gro_receive_entry":    {"skbaddr"},
	"net_napi_gro_receive_exit":     {"ret"},
	"net_if_receive_skb_entry":      {"skbaddr"},
	"net_if_receive_skb_exit":       {"ret"},
	"net_dev_queue":                 {"skbaddr", "name$"},
	"net_dev_xmit":                  {"skbaddr", "rc", "name$"},
	"block_rq_issue":                {"dev", "sector", "nr_sector", "rwbs$"},
	"block_rq_complete":             {"dev", "sector", "nr_sector"},
	"syscall_entry_read":            {"fd", "count"},
	"syscall_exit_read":             {"ret"},
	"syscall_entry_openat":          {"filename$"},
	"syscall_exit_openat":           {"ret"},
	"compat_syscall_entry_mmap2":    {"length"},
	"compat_syscall_exit_mmap2":     {"ret"},
	"syscall_entry_futex":           {"op"},
	"syscall_exit_futex":            {"ret"},
	"syscall_entry_clone":           {"flags"},
	"syscall_exit_clone":            {"ret"},
	"syscall_entry_execve":          {"filename$"},
	"syscall_exit_execve":           {"ret"},
	"syscall_entry_exit_group":      {"status"},
	"syscall_entry_rt_sigreturn":    {},
}

// newKernelSession returns a session with a trace of the kernel, and a stream for each CPU.
func newKernelSession(name string, cpus int) *synthetic.Session {
	s := synthetic.New(name)
	s.Kernel = true
	names := make([]string, 0, len(kernelClasses))
	for class := range kernelClasses {
		names = append(names, class)
	}
	slices.Sort(names)
	for _, class := range names {
		s.Class(class, kernelClasses[class]...)
	}
	for cpu := range cpus {
		stream := s.Stream().Packet(1)
		stream.Path, stream.CPU = "kernel", uint64(cpu)
	}
	return s
}

// spanSeen is a span with what tests compare. The end of a truncated span is compared if another call ended it.
type spanSeen struct {
	name       string
	start, end int64
	truncated  bool
	pid, tid   string
	failure    string
	// runs is the thread of a span of the time on a CPU.
	runs string
}

func (s spanSeen) compare(o spanSeen) int {
	return cmp.Or(cmp.Compare(s.start, o.start), cmp.Compare(s.name, o.name), cmp.Compare(s.tid, o.tid))
}

// tick is the time between two events of a generated trace. Pairing moves events of one time by a nanosecond each.
const tick = 1000

// seen pairs the batches of the pipeline, and returns the spans with their resources.
func (p *pipeline) seen(t testing.TB) (seen []spanSeen) {
	t.Helper()
	for _, of := range p.paired(t) {
		start := of.span.StartTimestamp().AsTime().UnixNano() - 1_700_000_000*second
		end := of.span.EndTimestamp().AsTime().UnixNano() - 1_700_000_000*second
		s := spanSeen{name: of.span.Name(), start: start / tick, end: end / tick}
		s.pid = textOf(of.resource.Resource().Attributes(), process.AttributeProcessID)
		s.tid, s.failure = textOf(of.span.Attributes(), "thread.id"), textOf(of.span.Attributes(), "error.type")
		s.runs = textOf(of.span.Attributes(), "lttng.next_tid")
		cause := textOf(of.span.Attributes(), "callbraid.truncated")
		if s.truncated = cause != ""; s.truncated && cause != callevent.CauseMismatch.String() {
			s.end = 0
		}
		if strings.HasPrefix(s.name, "block ") || strings.HasPrefix(s.name, "send ") {
			assert.Empty(t, textOf(of.span.Attributes(), "thread.name"), "a key is no thread")
		}
		assert.Equal(t, s.failure != "", of.span.Status().Code() == ptrace.StatusCodeError)
		assert.Zero(t, of.span.Events().Len(), "an error that a call returned is no exception")
		seen = append(seen, s)
	}
	slices.SortFunc(seen, spanSeen.compare)
	return seen
}

type pairedSpan struct {
	resource ptrace.ResourceSpans
	span     ptrace.Span
}

func (p *pipeline) paired(t testing.TB) (spans []pairedSpan) {
	t.Helper()
	factory, sink := stackpairingprocessor.NewFactory(), new(consumertest.TracesSink)
	processor, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, processor.Start(context.Background(), componenttest.NewNopHost()))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, traces := range p.batches {
		mine := ptrace.NewTraces()
		traces.CopyTo(mine)
		require.NoError(t, processor.ConsumeTraces(context.Background(), mine))
	}
	require.NoError(t, processor.Shutdown(context.Background()))
	for _, traces := range sink.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					spans = append(spans, pairedSpan{resource, span})
				}
			}
		}
	}
	return spans
}

// happening is an event of a kernel. at is its time in ticks.
type happening struct {
	at     int64
	cpu    int
	class  string
	fields map[string]any
}

func (h happening) number(field string) int  { return h.fields[field].(int) }
func (h happening) text(field string) string { return h.fields[field].(string) }

// values returns the values of the fields, in the order of kernelClasses.
func (h happening) values() (values []any) {
	for _, field := range kernelClasses[h.class] {
		values = append(values, h.fields[strings.TrimSuffix(field, "$")])
	}
	return values
}

// simulated is a machine that makes events: CPUs that run threads, system calls, interrupts, requests to disks.
type simulated struct {
	r       *rand.Rand
	now     int64
	cpus    []simulatedCPU
	threads []*simulatedThread
	next    int
	disk    map[[2]int]bool
	network map[[2]int]bool
	events  []happening
}

type simulatedCPU struct {
	runs       *simulatedThread
	interrupts []interruptExit
	softirq    bool
}

// interruptExit is the event that ends an interrupt, a timer or the receipt of a packet.
type interruptExit struct {
	class string
	value int
}

type simulatedThread struct {
	tid, pid int
	comm     string
	syscall  string
	// begins is set for a child of clone that has not run yet, executes for a thread that execve has given another program.
	begins, executes, exits, ready, dead bool
}

// isOnly reports whether a thread is the first and the only one of its process, so that execve changes no numbers.
func (s *simulated) isOnly(t *simulatedThread) bool {
	return t.tid == t.pid && !slices.ContainsFunc(s.threads, func(o *simulatedThread) bool { return o != t && o.pid == t.pid && !o.dead })
}

func (s *simulated) emit(cpu int, class string, values ...any) {
	h := happening{s.now, cpu, class, map[string]any{}}
	for i, field := range kernelClasses[class] {
		h.fields[strings.TrimSuffix(field, "$")] = values[i]
	}
	s.events = append(s.events, h)
}

func (s *simulated) thread(pid int) *simulatedThread {
	s.next++
	t := &simulatedThread{tid: 100 + s.next, pid: pid, comm: fmt.Sprint("comm", s.next%5), ready: true}
	if pid == 0 {
		t.pid = t.tid
	}
	s.threads = append(s.threads, t)
	return t
}

func simulate(seed uint64, steps int) *simulated {
	s := &simulated{r: rand.New(rand.NewPCG(seed, 1)), disk: map[[2]int]bool{}, network: map[[2]int]bool{}}
	s.cpus = make([]simulatedCPU, 1+s.r.IntN(4))
	for range 2 + s.r.IntN(6) {
		pid := 0
		if len(s.threads) > 0 && s.r.IntN(2) == 0 {
			pid = s.threads[s.r.IntN(len(s.threads))].pid
		}
		s.thread(pid)
	}
	for range steps {
		s.now++
		s.step(s.r.IntN(len(s.cpus)))
	}
	return s
}

// step makes the next event of a CPU.
func (s *simulated) step(n int) {
	c := &s.cpus[n]
	what := s.r.IntN(100)
	switch depth := len(c.interrupts); {
	case depth > 0 && (what < 60 || depth == 3):
		exit := c.interrupts[depth-1]
		if c.interrupts = c.interrupts[:depth-1]; exit.class == "irq_handler_exit" {
			s.emit(n, exit.class, exit.value, 1)
		} else {
			s.emit(n, exit.class, exit.value)
		}
	case what < 8:
		c.interrupts = append(c.interrupts, s.interrupt(n, 10+depth))
	case what < 16 && s.r.IntN(2) == 0:
		s.wake(n)
	case what < 16 && s.r.IntN(2) == 0:
		s.packet(n)
	case what < 16:
		s.request(n)
	case depth > 0:
	case what < 22 && !c.softirq:
		c.softirq = true
		s.emit(n, "irq_softirq_entry", 3)
	case c.softirq:
		c.softirq = false
		s.emit(n, "irq_softirq_exit", 3)
	case what < 26:
		t := s.threads[s.r.IntN(len(s.threads))]
		if !t.dead {
			s.emit(n, "lttng_statedump_process_state", t.tid, t.pid, t.comm)
		}
	case c.runs == nil:
		s.switchFrom(n, 0)
	default:
		s.run(n, c.runs)
	}
}

// wake wakes a thread. A thread that runs may be woken too, without effect.
func (s *simulated) wake(n int) {
	t := s.threads[s.r.IntN(len(s.threads))]
	if t.dead || t.ready {
		return
	}
	s.emit(n, "sched_waking", t.comm, t.tid)
	if !slices.ContainsFunc(s.cpus, func(c simulatedCPU) bool { return c.runs == t }) {
		t.ready = true
	}
}

// interrupt makes the first event of an interrupt, a timer, or the receipt of a packet. It returns the last one.
func (s *simulated) interrupt(n, number int) interruptExit {
	switch s.r.IntN(4) {
	case 0:
		s.emit(n, "timer_hrtimer_expire_entry", number, 7)
		return interruptExit{"timer_hrtimer_expire_exit", number}
	case 1:
		s.emit(n, "net_napi_gro_receive_entry", number)
		return interruptExit{"net_napi_gro_receive_exit", 0}
	case 2:
		s.emit(n, "net_if_receive_skb_entry", number)
		return interruptExit{"net_if_receive_skb_exit", 0}
	default:
		s.emit(n, "irq_handler_entry", number, "eth0")
		return interruptExit{"irq_handler_exit", number}
	}
}

// packet begins or ends the sending of a packet.
func (s *simulated) packet(n int) {
	key := [2]int{s.r.IntN(2), s.r.IntN(3)}
	name := fmt.Sprint("eth", key[0])
	if s.network[key] && s.r.IntN(9) > 0 {
		s.emit(n, "net_dev_xmit", key[1], 0, name)
	} else {
		s.emit(n, "net_dev_queue", key[1], name)
	}
	s.network[key] = !s.network[key]
}

// request begins or ends a request to a disk.
func (s *simulated) request(n int) {
	key := [2]int{s.r.IntN(2), s.r.IntN(3)}
	if s.r.IntN(5) == 0 { // a flush
		s.emit(n, []string{"block_rq_issue", "block_rq_complete"}[s.r.IntN(2)], key[0], key[1], 0, "F")
		return
	}
	if s.disk[key] && s.r.IntN(9) > 0 {
		s.emit(n, "block_rq_complete", key[0], key[1], 8)
	} else {
		s.emit(n, "block_rq_issue", key[0], key[1], 8, "R")
	}
	s.disk[key] = !s.disk[key]
}

// compatCall is a call of a 32-bit program.
const compatCall = "compat mmap2"

// run makes an event of the thread on a CPU.
func (s *simulated) run(n int, t *simulatedThread) {
	what := s.r.IntN(100)
	switch {
	case t.begins:
		t.begins = false
		s.emit(n, "syscall_exit_clone", 0)
	case t.exits && what < 30:
		s.switchFrom(n, s.preempted())
	case t.exits:
		s.switchFrom(n, []int{32, 64}[s.r.IntN(2)])
		t.dead = true
	case t.syscall == "exit_group":
		t.exits = true
		s.emit(n, "sched_process_exit", t.comm, t.tid)
	case what < 15:
		s.switchFrom(n, s.preempted())
	case t.syscall == "":
		t.syscall = []string{"read", "read", "openat", compatCall, "futex", "clone", "rt_sigreturn", "execve", "exit_group"}[s.r.IntN(8+s.r.IntN(2))]
		if t.syscall == "execve" && !s.isOnly(t) {
			t.syscall = "read"
		}
		switch t.syscall {
		case "execve":
			s.emit(n, "syscall_entry_execve", "/bin/ls")
		case "read":
			s.emit(n, "syscall_entry_read", 3, 4096)
		case "openat":
			s.emit(n, "syscall_entry_openat", "/etc/hosts")
		case "rt_sigreturn": // it does not return
			s.emit(n, "syscall_entry_rt_sigreturn")
			t.syscall = ""
		case compatCall:
			s.emit(n, "compat_syscall_entry_mmap2", 4096)
		default:
			s.emit(n, "syscall_entry_"+t.syscall, 1)
		}
	case what < 35:
		s.switchFrom(n, 1)
	case t.syscall == compatCall:
		s.emit(n, "compat_syscall_exit_mmap2", 0)
		t.syscall = ""
	case t.syscall == "execve" && !t.executes && s.r.IntN(3) > 0:
		t.executes, t.comm = true, fmt.Sprint("program", s.r.IntN(5))
		s.emit(n, "sched_process_exec", "/bin/"+t.comm, t.tid)
	case t.executes:
		s.emit(n, "syscall_exit_execve", 0)
		t.executes, t.syscall = false, ""
	case t.syscall == "clone":
		pid := t.pid
		if s.r.IntN(2) == 0 {
			pid = 0
		}
		child := s.thread(pid)
		child.begins = true
		s.emit(n, "sched_process_fork", t.tid, child.comm, child.tid, child.pid)
		s.now++
		fallthrough
	default:
		s.emit(n, "syscall_exit_"+t.syscall, []int{5, 0, -2, -11}[s.r.IntN(4)])
		t.syscall = ""
	}
}

// preempted returns the state of a thread that has to leave its CPU, without or with a preemption in the kernel.
func (s *simulated) preempted() int { return []int{0, 256}[s.r.IntN(2)] }

// switchFrom switches the CPU to a thread that is ready, or to none.
func (s *simulated) switchFrom(n, state int) {
	c := &s.cpus[n]
	from, to := c.runs, (*simulatedThread)(nil)
	for _, i := range s.r.Perm(len(s.threads)) {
		if t := s.threads[i]; t.ready && !t.dead {
			to = t
			break
		}
	}
	if from == nil && to == nil {
		return
	}
	name := func(t *simulatedThread) (string, int) {
		if t == nil {
			return fmt.Sprint("swapper/", n), 0
		}
		return t.comm, t.tid
	}
	fromName, fromTID := name(from)
	toName, toTID := name(to)
	s.emit(n, "sched_switch", fromName, fromTID, state, toName, toTID)
	if from != nil {
		from.ready = state == 0 || state == 256
	}
	if to != nil {
		to.ready = false
	}
	c.runs = to
}

// expected computes the spans of the events, slowly and in an obvious way: for each thread, CPU and request there is one
// variable for each kind of span. It knows only what the events show.
type expected struct {
	spans []spanSeen
	runs  map[int]int
	waits map[int]bool
	exits map[int]bool
	// executed has the threads with another program, until the trace shows a moment without open calls of the thread.
	executed map[int]bool
	divided  int
	pids     map[int]string
	owner    map[int]string
	open     map[string]map[int]*spanSeen
	onCPU    map[int]*spanSeen
	onTID    map[int]int
	irqs     map[int][]*spanSeen
	request  map[string]*spanSeen
}

func expectedSpans(events []happening) (spans []spanSeen, divided int) {
	x := &expected{
		runs: map[int]int{}, waits: map[int]bool{}, exits: map[int]bool{}, executed: map[int]bool{}, pids: map[int]string{}, owner: map[int]string{}, onCPU: map[int]*spanSeen{},
		onTID: map[int]int{}, irqs: map[int][]*spanSeen{}, request: map[string]*spanSeen{},
		open: map[string]map[int]*spanSeen{"syscall": {}, "off CPU": {}, "waiting for a CPU": {}, "preempted": {}},
	}
	for _, h := range events {
		x.step(h)
		x.divide(h)
	}
	for _, of := range x.open {
		for _, s := range of {
			x.truncate(s)
		}
	}
	for _, s := range x.onCPU {
		x.truncate(s)
	}
	for _, all := range x.irqs {
		for _, s := range all {
			x.truncate(s)
		}
	}
	for _, s := range x.request {
		x.truncate(s)
	}
	slices.SortFunc(x.spans, spanSeen.compare)
	return x.spans, x.divided
}

func (x *expected) truncate(s *spanSeen) { x.truncateAt(s, 0) }

func (x *expected) truncateAt(s *spanSeen, end int64) {
	if s != nil {
		s.truncated, s.end = true, end
		x.spans = append(x.spans, *s)
	}
}

func (x *expected) finish(s *spanSeen, h happening) {
	if s != nil {
		s.end = h.at
		x.spans = append(x.spans, *s)
	}
}

// begin begins a span of a thread.
func (x *expected) begin(kind, name string, tid int, h happening) {
	x.open[kind][tid] = &spanSeen{name: name, start: h.at, tid: fmt.Sprint(tid), pid: x.ownerOf(tid)}
}

// ownerOf returns the process of a thread that was known when the thread had no open span.
func (x *expected) ownerOf(tid int) string {
	if x.isIdle(tid) {
		x.owner[tid] = x.pids[tid]
		delete(x.executed, tid)
	}
	return x.owner[tid]
}

// isIdle reports whether no span of a thread is open.
func (x *expected) isIdle(tid int) bool {
	for _, of := range x.open {
		if of[tid] != nil {
			return false
		}
	}
	return true
}

// divide divides the time on the CPU of a known process whose thread runs another program after an event.
func (x *expected) divide(h happening) {
	tid := x.runs[h.cpu]
	if !x.executed[tid] || !x.isIdle(tid) {
		return
	}
	delete(x.executed, tid)
	if s := x.onCPU[h.cpu]; s != nil && x.onTID[h.cpu] == tid && s.pid != "" {
		rest := *s
		x.finish(s, h)
		rest.start = h.at
		x.onCPU[h.cpu] = &rest
		x.divided++
	}
}

func (x *expected) endOf(kind string, tid int, h happening) {
	x.finish(x.open[kind][tid], h)
	delete(x.open[kind], tid)
}

// interruptNames are the names of spans between two events, which end with _entry and _exit.
var interruptNames = map[string]string{
	"timer_hrtimer_expire": "hrtimer", "net_napi_gro_receive": "receive napi_gro_receive", "net_if_receive_skb": "receive if_receive_skb",
}

// systemCall returns the name of the call that an event begins or ends. The event's name begins with a text.
func systemCall(event, begins string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(event, "compat_"+begins); ok {
		return "compat " + name, true
	}
	return strings.CutPrefix(event, begins)
}

func (x *expected) step(h happening) {
	tid := x.runs[h.cpu]
	if name, ok := systemCall(h.class, "syscall_entry_"); ok && tid != 0 {
		x.truncateAt(x.open["syscall"][tid], h.at)
		x.begin("syscall", name, tid, h)
		return
	}
	if name, ok := systemCall(h.class, "syscall_exit_"); ok && tid != 0 {
		if s := x.open["syscall"][tid]; s != nil && s.name == name {
			s.failure = map[int]string{-2: "ENOENT", -11: "EAGAIN"}[h.number("ret")]
			x.endOf("syscall", tid, h)
		}
		return
	}
	if name := interruptNames[strings.TrimSuffix(h.class, "_entry")]; name != "" {
		x.interruptBegins(name, h)
	}
	if name := interruptNames[strings.TrimSuffix(h.class, "_exit")]; name != "" {
		x.interruptEnds(name, h)
	}
	switch h.class {
	case "lttng_statedump_process_state":
		x.pids[h.number("tid")] = fmt.Sprint(h.number("pid"))
	case "sched_process_fork":
		x.pids[h.number("child_tid")] = fmt.Sprint(h.number("child_pid"))
		x.waits[h.number("child_tid")] = true
	case "sched_process_exec":
		x.executed[h.number("tid")] = true
	case "sched_process_exit":
		x.exits[h.number("tid")] = true
	case "sched_waking":
		if woken := h.number("tid"); x.waits[woken] {
			x.begin("waiting for a CPU", "waiting for a CPU", woken, h)
		}
	case "sched_switch":
		x.switches(h)
	case "irq_handler_entry":
		x.interruptBegins(fmt.Sprint("irq ", h.number("irq")), h)
	case "irq_softirq_entry":
		x.interruptBegins(fmt.Sprint("softirq ", h.number("vec")), h)
	case "irq_handler_exit":
		x.interruptEnds(fmt.Sprint("irq ", h.number("irq")), h)
	case "irq_softirq_exit":
		x.interruptEnds(fmt.Sprint("softirq ", h.number("vec")), h)
	case "block_rq_issue":
		if h.number("nr_sector") > 0 {
			x.requestBegins(fmt.Sprintf("block %d:%d", h.number("dev")>>20, h.number("dev")&(1<<20-1)), h.number("sector"), h)
		}
	case "block_rq_complete":
		if h.number("nr_sector") > 0 {
			x.requestEnds(fmt.Sprintf("block %d:%d", h.number("dev")>>20, h.number("dev")&(1<<20-1)), h.number("sector"), h)
		}
	case "net_dev_queue":
		x.requestBegins("send "+h.text("name"), h.number("skbaddr"), h)
	case "net_dev_xmit":
		x.requestEnds("send "+h.text("name"), h.number("skbaddr"), h)
	}
}

func (x *expected) requestBegins(name string, number int, h happening) {
	key := fmt.Sprint(name, " ", number)
	x.truncateAt(x.request[key], h.at)
	x.request[key] = &spanSeen{name: name, start: h.at}
}

func (x *expected) requestEnds(name string, number int, h happening) {
	key := fmt.Sprint(name, " ", number)
	x.finish(x.request[key], h)
	delete(x.request, key)
}

func (x *expected) switches(h happening) {
	from, to := h.number("prev_tid"), h.number("next_tid")
	if to != 0 {
		for _, kind := range []string{"preempted", "waiting for a CPU", "off CPU"} {
			x.endOf(kind, to, h)
		}
	}
	if from != 0 && x.onCPU[h.cpu] != nil && x.onTID[h.cpu] == from {
		x.finish(x.onCPU[h.cpu], h)
		delete(x.onCPU, h.cpu)
	}
	// The bits 16 and 32 are of dead threads. 64 and 128 are of dead or of parked threads.
	state := h.number("prev_state")
	if isDead := state&0x30 != 0 || x.exits[from] && state&0xc0 != 0; from != 0 && !isDead {
		x.begin("off CPU", "off CPU", from, h)
		if state == 0 || state == 256 {
			x.begin("preempted", "preempted", from, h)
		}
	}
	if to != 0 {
		x.onCPU[h.cpu], x.onTID[h.cpu] = &spanSeen{name: "on CPU " + h.text("next_comm"), start: h.at, runs: fmt.Sprint(to), pid: x.ownerOf(to)}, to
	}
	x.runs[h.cpu], x.waits[from], x.waits[to] = to, true, false
}

func (x *expected) interruptBegins(name string, h happening) {
	x.irqs[h.cpu] = append(x.irqs[h.cpu], &spanSeen{name: name, start: h.at})
}

func (x *expected) interruptEnds(name string, h happening) {
	all := x.irqs[h.cpu]
	if n := len(all); n > 0 && all[n-1].name == name {
		x.finish(all[n-1], h)
		x.irqs[h.cpu] = all[:n-1]
	}
}

// Every span of generated kernel traces without contexts is one of the reference's, and the other way round. The traces
// begin in the middle of what happens.
func TestKernelSpansAreThoseOfTheReference(t *testing.T) {
	rules := shippedRules(t)
	var total, whole, divided int
	seeds := 30
	if testing.Short() {
		seeds = 6
	}
	for seed := range uint64(seeds) {
		machine := simulate(seed, 1500)
		events := machine.events[machine.r.IntN(100):]
		s := newKernelSession(fmt.Sprint("kernel ", seed), len(machine.cpus))
		for _, h := range events {
			s.Streams[h.cpu].Event(uint64(h.at*tick), h.class, h.values()...)
		}
		b := served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) { c.CallRules = rules })
		want, times := expectedSpans(events)
		got := b.pipeline.seen(t)
		divided += times
		for i := range min(len(want), len(got)) {
			require.Equal(t, want[i], got[i], "seed %d, span %d", seed, i)
		}
		require.Len(t, got, len(want), "seed %d", seed)
		total += len(want)
		for _, span := range want {
			if !span.truncated && span.pid != "" && span.failure != "" {
				whole++
			}
		}
	}
	t.Log(total, "spans,", whole, "failed system calls of known processes,", divided, "divided times on a CPU")
	assert.Greater(t, total, seeds*160)
	assert.Greater(t, whole, seeds*3)
	assert.Greater(t, divided, seeds*3/2)
}

// kernelBed serves a session to a receiver with the shipped rules.
func kernelBed(t *testing.T, s *synthetic.Session, rules ...CallRule) *bed {
	t.Helper()
	if len(rules) == 0 {
		rules = shippedRules(t)
	}
	return served(t, []*synthetic.Session{s}, func(_ *bed, c *Config) { c.CallRules = rules })
}

// at is the time of a tick in a session.
func at(ticks int) uint64 { return uint64(ticks * tick) }

// spansNamed returns the spans of a name.
func spansNamed(all []spanSeen, name string) (spans []spanSeen) {
	for _, s := range all {
		if s.name == name {
			spans = append(spans, s)
		}
	}
	return spans
}

func TestARuleWithAFieldThatAnEventLacksMakesNoCalls(t *testing.T) {
	s := newKernelSession("lacking", 1)
	s.Streams[0].
		Event(at(1), "sched_waking", "a", 7).
		Event(at(2), "sched_switch", "b", 8, 1, "a", 7).
		Event(at(3), "sched_waking", "b", 8).
		Event(at(4), "sched_switch", "a", 7, 1, "b", 8)
	b := kernelBed(t, s, CallRule{Entry: event("sched_waking"), Exit: event("sched_switch"), Name: "wait", KeyFields: []string{"tid"}})
	assert.Empty(t, b.pipeline.seen(t))
	assert.EqualValues(t, 4, b.metric("receiver_lttng_live_call_events_dropped"))
	lines := b.said.FilterMessageSnippet("lack a field that the rule needs").All()
	require.Len(t, lines, 1)
	fields := lines[0].ContextMap()
	assert.EqualValues(t, 0, fields["rule"])
	assert.Equal(t, "sched_switch", fields["event"])
	assert.Equal(t, "tid", fields["field"])
	assert.Contains(t, fields["fields"], "next_tid")
	assert.Contains(t, fields["fields"], "cpu_id")
}

func TestACommaInTheValueOfAKeySeparatesNoValues(t *testing.T) {
	for _, lane := range []mapping.Lane{mapping.LaneKey, mapping.LaneCPU} {
		s := newKernelSession("commas", 1)
		s.Class("begin", "x$", "y$")
		s.Class("end", "x$", "y$")
		s.Streams[0].Event(at(1), "begin", "a,b", "c").Event(at(2), "end", "a", "b,c").Event(at(3), "end", "a,b", "c")
		rule := CallRule{Entry: event("begin"), Exit: event("end"), Name: "call", KeyFields: []string{"x", "y"}, Lane: lane}
		assert.Equal(t, []spanSeen{{name: "call", start: 1, end: 3}}, kernelBed(t, s, rule).pipeline.seen(t), lane)
	}
}

func TestAnInterruptIsEndedOnItsCPUOnly(t *testing.T) {
	s := newKernelSession("interrupts", 2)
	s.Streams[0].Event(at(1), "irq_softirq_entry", 3).Event(at(3), "irq_softirq_exit", 3)
	s.Streams[1].Event(at(2), "irq_softirq_entry", 3).Event(at(4), "irq_softirq_exit", 3).Event(at(9), "irq_softirq_exit", 3)
	want := []spanSeen{{name: "softirq 3", start: 1, end: 3}, {name: "softirq 3", start: 2, end: 4}}
	assert.Equal(t, want, kernelBed(t, s).pipeline.seen(t))
	byKey := CallRule{Entry: event("irq_softirq_entry"), Exit: event("irq_softirq_exit"), NameField: "vec", KeyFields: []string{"cpu_id"}}
	for i := range want {
		want[i].name = "3"
	}
	assert.Equal(t, want, kernelBed(t, s, byKey).pipeline.seen(t))
}

func TestTheIdleThreadsOfCPUsAreDifferentThreads(t *testing.T) {
	s := newKernelSession("idle", 2)
	rule := CallRule{
		Entry: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"next_tid"}}, Name: "runs", Lane: mapping.LaneThread,
		Exit: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"prev_tid"}},
	}
	s.Streams[0].Event(at(1), "sched_switch", "a", 7, 1, "swapper/0", 0).Event(at(3), "sched_switch", "swapper/0", 0, 0, "a", 7)
	s.Streams[1].Event(at(2), "sched_switch", "b", 8, 1, "swapper/1", 0).Event(at(4), "sched_switch", "swapper/1", 0, 0, "b", 8)
	assert.Equal(t, []spanSeen{
		{name: "runs", start: 1, end: 3}, {name: "runs", start: 2, end: 4},
		{name: "runs", start: 3, truncated: true, tid: "7"}, {name: "runs", start: 4, truncated: true, tid: "8"},
	}, kernelBed(t, s, rule).pipeline.seen(t))
}

func TestAProcessThatExecutesAProgramIsAnotherOne(t *testing.T) {
	s := newKernelSession("exec", 1)
	s.Streams[0].
		Event(at(1), "sched_process_fork", 7, "bash", 9, 9).
		Event(at(2), "sched_switch", "bash", 7, 1, "bash", 9).
		Event(at(3), "syscall_entry_execve", "/usr/bin/ls").
		Event(at(4), "sched_process_exec", "/usr/bin/ls", 9).
		Event(at(5), "syscall_exit_execve", 0).
		Event(at(6), "syscall_entry_read", 3, 4).
		Event(at(7), "syscall_exit_read", -2)
	b := kernelBed(t, s, shippedRules(t)[0])
	services := map[string]string{}
	for _, of := range b.pipeline.paired(t) {
		resource := of.resource.Resource().Attributes()
		assert.Empty(t, textOf(of.span.Attributes(), "callbraid.truncated"), of.span.Name())
		services[of.span.Name()] = textOf(resource, process.AttributeServiceName) + " " + textOf(resource, process.AttributeExecutable)
		if of.span.Name() == "read" {
			assert.Equal(t, "ls", textOf(of.span.Attributes(), "thread.name"))
			assert.Equal(t, "3", textOf(of.span.Attributes(), "lttng.fd"))
			assert.Equal(t, "-2", textOf(of.span.Attributes(), "lttng.ret"))
		}
		if of.span.Name() == "execve" {
			assert.Equal(t, "/usr/bin/ls", textOf(of.span.Attributes(), "lttng.filename"))
		}
	}
	assert.Equal(t, map[string]string{"execve": "unknown_service:bash bash", "read": "unknown_service:ls ls"}, services)
}

// timesOnCPUs returns the spans of the time on CPUs as texts, in the order of their begin.
func timesOnCPUs(t *testing.T, b *bed) (times []string) {
	t.Helper()
	for _, of := range b.pipeline.paired(t) {
		if name, ok := strings.CutPrefix(of.span.Name(), "on CPU "); ok {
			from, to := of.span.StartTimestamp().AsTime().UnixNano()%second/tick, of.span.EndTimestamp().AsTime().UnixNano()%second/tick
			resource, span := of.resource.Resource().Attributes(), of.span.Attributes()
			text := fmt.Sprintf("%02d to %02d: %s %s of %s %s %s", from, to, name, textOf(span, "lttng.next_tid"),
				textOf(resource, process.AttributeProcessID), textOf(resource, process.AttributeServiceName), textOf(span, "callbraid.truncated"))
			times = append(times, strings.TrimSpace(text))
		}
	}
	slices.Sort(times)
	return times
}

// The time on a CPU belongs to the process of the thread. If that executes another program, the rest of the time belongs to
// the new one.
func TestTheTimeOnACPUIsThatOfTheProcess(t *testing.T) {
	s := newKernelSession("time on a CPU", 2)
	s.Streams[0].
		Event(at(1), "sched_switch", "swapper/0", 0, 0, "early", 5).
		Event(at(2), "lttng_statedump_process_state", 5, 5, "early").
		Event(at(3), "sched_process_fork", 5, "bash", 9, 9).
		Event(at(4), "sched_switch", "early", 5, 1, "bash", 9).
		Event(at(5), "syscall_entry_execve", "/usr/bin/ls").
		Event(at(6), "sched_process_exec", "/usr/bin/ls", 9).
		Event(at(7), "syscall_exit_execve", 0).
		Event(at(8), "syscall_entry_read", 3, 4).
		Event(at(9), "syscall_exit_read", 1).
		Event(at(10), "sched_switch", "ls", 9, 0, "early", 5).
		Event(at(15), "sched_switch", "early", 5, 1, "swapper/0", 0)
	s.Streams[1].
		Event(at(12), "sched_switch", "swapper/1", 0, 0, "ls", 9).
		Event(at(13), "sched_process_exec", "/usr/bin/wc", 9).
		Event(at(14), "sched_switch", "wc", 9, 1, "swapper/1", 0)
	b := kernelBed(t, s)
	assert.Equal(t, []string{
		"01 to 04: early 5 of  unknown_service:kernel", // nothing has shown its process
		"04 to 07: bash 9 of 9 unknown_service:bash",   // execve is a call of the former program
		"07 to 10: bash 9 of 9 unknown_service:ls",
		"10 to 15: early 5 of 5 unknown_service:early",
		"12 to 13: ls 9 of 9 unknown_service:ls",
		"13 to 14: ls 9 of 9 unknown_service:wc", // no trace of execve itself
	}, timesOnCPUs(t, b))
}

func TestTheTimesOfAllThreadsOfAProcessAreOnOneLaneForEachCPU(t *testing.T) {
	const threads, cpus = 50, 2
	s := newKernelSession("many threads", cpus)
	for i := range threads {
		s.Streams[0].Event(at(1+i), "lttng_statedump_process_state", 100+i, 100, "web")
	}
	for i := range threads {
		s.Streams[i%cpus].
			Event(at(100+2*i), "sched_switch", "swapper", 0, 0, "web", 100+i).
			Event(at(102+2*i), "sched_switch", "web", 100+i, 1, "swapper", 0)
	}
	b := kernelBed(t, s)
	whole := 0
	for _, text := range timesOnCPUs(t, b) {
		if strings.HasSuffix(text, " of 100 unknown_service:web") {
			whole++
		}
	}
	assert.Equal(t, threads, whole)
	lanes := map[uint64]int{}
	for _, stream := range b.pipeline.streams(t) {
		for _, e := range stream.events {
			if e.lane >= callevent.LaneKey {
				lanes[e.lane]++
			}
		}
	}
	assert.Len(t, lanes, cpus)
}

// A CPU runs one thread, so an entry without an exit before it ends where the trace shows that it has ended.
func TestATimeOnACPUWithoutAnEndIsMarked(t *testing.T) {
	s := newKernelSession("no end", 2)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 5, 5, "a").
		Event(at(2), "lttng_statedump_process_state", 6, 6, "b").
		Event(at(3), "sched_switch", "swapper/0", 0, 0, "a", 5).
		Event(at(4), "sched_switch", "b", 6, 1, "b", 6). // no switch from 5
		Event(at(5), "sched_switch", "a", 5, 1, "a", 5).
		Event(at(6), "sched_switch", "a", 5, 1, "swapper/0", 0).
		Event(at(7), "sched_switch", "a", 5, 1, "swapper/0", 0)
	s.Streams[1].Event(at(8), "sched_switch", "b", 6, 1, "swapper/1", 0) // another CPU
	assert.Equal(t, []string{
		"03 to 05: a 5 of 5 unknown_service:a mismatch",
		"04 to 08: b 6 of 6 unknown_service:b ended",
		"05 to 06: a 5 of 5 unknown_service:a",
	}, timesOnCPUs(t, kernelBed(t, s)))
}

func TestATimeOnACPUWithLostEventsIsMarked(t *testing.T) {
	s := newKernelSession("lost", 2)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 5, 5, "a").
		Event(at(2), "sched_switch", "swapper/0", 0, 0, "a", 5).
		Packet(at(5))
	s.Streams[0].Packets[1].Discarded = 9
	s.Streams[0].
		Event(at(6), "sched_switch", "a", 5, 1, "a", 5). // some events were lost before it, perhaps switches
		Packet(at(7)).
		Event(at(8), "sched_switch", "a", 5, 1, "a", 5).
		Event(at(10), "sched_switch", "a", 5, 1, "swapper/0", 0)
	s.Streams[0].Packets[2].Room = 1 << 12 // no events were discarded at its end
	// A loss on one CPU is a loss for all.
	s.Streams[1].
		Event(at(3), "sched_switch", "swapper/1", 0, 0, "a", 5).
		Event(at(9), "sched_switch", "a", 5, 1, "swapper/1", 0)
	assert.Equal(t, []string{
		"02 to 02: a 5 of 5 unknown_service:a discarded",
		"08 to 10: a 5 of 5 unknown_service:a",
	}, timesOnCPUs(t, kernelBed(t, s)))
}

// The thread has left its first CPU during the loss.
func TestAProgramDoesNotContinueATimeOnACPUFromBeforeALoss(t *testing.T) {
	s := newKernelSession("loss and exec", 2)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 9, 9, "bash").
		Event(at(2), "sched_switch", "swapper/0", 0, 0, "bash", 9).
		Packet(at(5))
	s.Streams[0].Packets[1].Discarded = 9
	s.Streams[0].Event(at(6), "irq_softirq_entry", 3).Packet(at(7)).Event(at(8), "irq_softirq_exit", 3)
	s.Streams[0].Packets[2].Room = 1 << 12 // no events were discarded at its end
	s.Streams[1].
		Event(at(11), "sched_switch", "swapper/1", 0, 0, "bash", 9).
		Event(at(12), "sched_process_exec", "/usr/bin/ls", 9).
		Event(at(14), "sched_switch", "ls", 9, 1, "swapper/1", 0)
	assert.Equal(t, []string{
		"02 to 02: bash 9 of 9 unknown_service:bash discarded",
		"11 to 12: bash 9 of 9 unknown_service:bash",
		"12 to 14: bash 9 of 9 unknown_service:ls",
	}, timesOnCPUs(t, kernelBed(t, s)))
}

// Linux ends all other threads before it starts the program.
func TestTheTimeOnACPUOfAnotherThreadEndsWhereAProgramIsExecuted(t *testing.T) {
	for _, exitIsTraced := range []bool{true, false} {
		s := newKernelSession("exec beside a thread", 2)
		s.Streams[0].
			Event(at(1), "lttng_statedump_process_state", 9, 9, "bash").
			Event(at(2), "lttng_statedump_process_state", 10, 9, "bash").
			Event(at(3), "sched_switch", "init", 1, 1, "bash", 9).
			Event(at(5), "syscall_entry_execve", "/usr/bin/ls").
			Event(at(7), "sched_process_exec", "/usr/bin/ls", 9).
			Event(at(8), "syscall_exit_execve", 0).
			Event(at(10), "sched_switch", "ls", 9, 1, "swapper/0", 0)
		s.Streams[1].Event(at(4), "sched_switch", "init", 1, 1, "bash", 10)
		if exitIsTraced {
			s.Streams[1].Event(at(6), "sched_process_exit", "bash", 10)
		}
		s.Streams[1].
			Event(at(9), "sched_switch", "bash", 10, 32, "other", 11).
			Event(at(11), "sched_switch", "other", 11, 1, "swapper/1", 0)
		assert.Equal(t, []string{
			"03 to 08: bash 9 of 9 unknown_service:bash",
			"04 to 08: bash 10 of 9 unknown_service:bash ended",
			"08 to 10: bash 9 of 9 unknown_service:ls",
			"09 to 11: other 11 of  unknown_service:kernel",
		}, timesOnCPUs(t, kernelBed(t, s)))
	}
}

func TestEachOfManyRulesHasItsTimesOnACPU(t *testing.T) {
	const rules = 70 // more than the bits for open calls of a thread
	s := newKernelSession("many rules", 1)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 9, 9, "bash").
		Event(at(2), "sched_switch", "swapper/0", 0, 0, "bash", 9).
		Event(at(3), "sched_process_exec", "/usr/bin/ls", 9).
		Event(at(4), "sched_switch", "ls", 9, 1, "swapper/0", 0)
	all := make([]CallRule, 0, rules)
	for i := range rules {
		all = append(all, CallRule{
			Entry: mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"next_tid"}, Except: map[string]any{"next_tid": 0}},
			Exit:  mapping.RuleEvent{Event: "sched_switch", KeyFields: []string{"prev_tid"}},
			Name:  fmt.Sprint("on CPU ", i), Lane: mapping.LaneCPU, KeyIsThread: true, Attributes: []string{"next_tid"},
		})
	}
	want := make([]string, 0, 2*rules)
	for i := range rules {
		want = append(want, fmt.Sprintf("02 to 03: %d 9 of 9 unknown_service:bash", i), fmt.Sprintf("03 to 04: %d 9 of 9 unknown_service:ls", i))
	}
	assert.ElementsMatch(t, want, timesOnCPUs(t, kernelBed(t, s, all...)))
}

func TestTimesOnCPUsWithImpossibleNumbersAreCounted(t *testing.T) {
	for _, cpu := range []uint64{1 << 14, 1 << 63} {
		s := newKernelSession("impossible", 1)
		s.Streams[0].CPU = cpu
		s.Streams[0].
			Event(at(1), "sched_switch", "swapper/0", 0, 0, "bash", 9).
			Event(at(2), "sched_switch", "bash", 9, 1, "swapper/0", 0)
		b := kernelBed(t, s)
		assert.Empty(t, timesOnCPUs(t, b))
		assert.EqualValues(t, 2, b.metric("receiver_lttng_live_call_events_dropped"))
		assert.Equal(t, 1, b.said.FilterMessageSnippet("too high a number of the CPU").Len())
	}
}

func TestAThreadThatExecutesAProgramBecomesTheFirstOfItsProcess(t *testing.T) {
	for _, firstIsGone := range []bool{false, true} {
		s := newKernelSession("exec of a thread", 2)
		s.Streams[0].
			Event(at(1), "lttng_statedump_process_state", 9, 9, "bash").
			Event(at(2), "lttng_statedump_process_state", 10, 9, "bash").
			Event(at(3), "sched_switch", "init", 1, 1, "bash", 10).
			Event(at(4), "syscall_entry_execve", "/usr/bin/ls")
		s.Streams[1].
			Event(at(5), "sched_switch", "init", 1, 1, "bash", 9).
			Event(at(6), "sched_process_exit", "bash", 9)
		if firstIsGone {
			s.Streams[1].Event(at(7), "sched_switch", "bash", 9, 32, "swapper/1", 0)
		}
		s.Streams[0].
			Event(at(8), "sched_process_exec", "/usr/bin/ls", 9).
			Event(at(9), "syscall_exit_execve", 0).
			Event(at(10), "syscall_entry_read", 3, 4).
			Event(at(11), "syscall_exit_read", 1).
			Event(at(12), "sched_switch", "ls", 9, 1, "other", 10).
			Event(at(13), "syscall_entry_openat", "f").
			Event(at(14), "syscall_exit_openat", 1)
		b := kernelBed(t, s)
		seen := b.pipeline.seen(t)
		assert.Equal(t, []spanSeen{{name: "execve", start: 4, truncated: true, pid: "9", tid: "10"}}, spansNamed(seen, "execve"))
		assert.Equal(t, []spanSeen{{name: "read", start: 10, end: 11, pid: "9", tid: "9"}}, spansNamed(seen, "read"))
		assert.Equal(t, []spanSeen{{name: "openat", start: 13, end: 14, tid: "10"}}, spansNamed(seen, "openat"), "another thread has the number")
		want := []string{"03 to 08: bash 10 of 9 unknown_service:bash", "05 to 07: bash 9 of 9 unknown_service:bash", "08 to 12: bash 10 of 9 unknown_service:ls"}
		if !firstIsGone {
			want[1] = "05 to 08: bash 9 of 9 unknown_service:bash ended" // its last switch was not traced
		}
		assert.Subset(t, timesOnCPUs(t, b), want)
		for _, of := range b.pipeline.paired(t) {
			if of.span.Name() == "read" {
				assert.Equal(t, "unknown_service:ls", textOf(of.resource.Resource().Attributes(), process.AttributeServiceName))
			}
		}
	}
}

func TestTheNumberOfADeviceHasTheFormOfLsblk(t *testing.T) {
	s := newKernelSession("devices", 1)
	const partition, mapped = 259<<20 | 3, 253 << 20
	s.Streams[0].
		Event(at(1), "block_rq_issue", partition, 7, 8, "R").Event(at(2), "block_rq_complete", partition, 7, 8).
		Event(at(3), "block_rq_issue", mapped, 7, 8, "R").Event(at(4), "block_rq_complete", mapped, 7, 8)
	rule := CallRule{
		Entry: mapping.RuleEvent{Event: "block_rq_issue", Except: map[string]any{"dev:device": "253:0"}}, Exit: event("block_rq_complete"),
		Name: "disk {dev:device}", KeyFields: []string{"dev:device", "sector"}, Attributes: []string{"dev:device", "dev", "rwbs:device"},
	}
	spans := kernelBed(t, s, rule).pipeline.paired(t)
	require.Len(t, spans, 1)
	assert.Equal(t, "disk 259:3", spans[0].span.Name())
	assert.Equal(t, map[string]any{"lttng.dev": "259:3"}, lttngAttributes(spans[0].span))
}

// lttngAttributes returns the attributes of fields.
func lttngAttributes(s ptrace.Span) map[string]any {
	own := map[string]any{}
	for key, value := range s.Attributes().All() {
		if strings.HasPrefix(key, mapping.AttributePrefix) {
			own[key] = value.AsRaw()
		}
	}
	return own
}

func TestAFieldForSpansThatNoEventHasIsLoggedOnce(t *testing.T) {
	s := newKernelSession("misspelled", 1)
	rule := CallRule{
		Entry: event("irq_handler_entry"), Exit: event("irq_handler_exit"), Name: "irq", Lane: mapping.LaneCPU,
		Attributes: []string{"name", "ret", "cpu_id", "nmae"}, ErrorField: "rte",
	}
	s.Streams[0].Event(at(1), "irq_handler_entry", 3, "a").Event(at(2), "irq_handler_exit", 3, 1)
	b := kernelBed(t, s, rule)
	require.Len(t, b.pipeline.seen(t), 1)
	var fields []any
	for _, line := range b.said.FilterMessageSnippet("has a field that the rule names").All() {
		fields = append(fields, line.ContextMap()["field"])
	}
	assert.Equal(t, []any{"nmae", "rte"}, fields)
}

func TestANumberThatIsUsedAgainJoinsNoThreads(t *testing.T) {
	s := newKernelSession("number", 1)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 7, 7, "web").
		Event(at(2), "sched_switch", "init", 1, 1, "web", 7).
		Event(at(3), "syscall_entry_exit_group", 0).
		Event(at(4), "sched_switch", "web", 7, 32, "swapper/0", 0).
		Event(at(5), "sched_switch", "swapper/0", 0, 0, "cron", 7).
		Event(at(6), "syscall_entry_openat", "f").
		Event(at(7), "syscall_exit_openat", 1).
		Event(at(8), "sched_switch", "cron", 7, 64, "swapper/0", 0).
		Event(at(9), "sched_switch", "swapper/0", 0, 0, "cron", 7)
	seen := kernelBed(t, s).pipeline.seen(t)
	assert.Equal(t, []spanSeen{
		{name: "off CPU", start: 2, truncated: true, tid: "1"}, {name: "off CPU", start: 8, end: 9, tid: "7"},
	}, spansNamed(seen, "off CPU"), "a thread with state 64 may be parked")
	assert.Equal(t, []spanSeen{{name: "openat", start: 6, end: 7, tid: "7"}}, spansNamed(seen, "openat"))
}

func TestTheThreadOfACPUIsNotKnownAfterALoss(t *testing.T) {
	s := newKernelSession("loss", 1)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 7, 7, "a").
		Event(at(2), "sched_switch", "b", 8, 1, "a", 7).
		Event(at(3), "syscall_entry_read", 3, 4).
		Packet(at(5))
	s.Streams[0].Packets[1].Discarded = 9
	s.Streams[0].
		Event(at(6), "syscall_exit_read", 1).
		Packet(at(7)).
		Event(at(8), "syscall_entry_openat", "f").
		Event(at(9), "syscall_exit_openat", 4).
		Event(at(10), "sched_switch", "b", 8, 1, "a", 7).
		Event(at(11), "syscall_entry_openat", "f").
		Event(at(12), "syscall_exit_openat", 4)
	s.Streams[0].Packets[2].Room = 1 << 12 // no events were discarded at its end
	seen := kernelBed(t, s).pipeline.seen(t)
	assert.Equal(t, []spanSeen{{name: "openat", start: 11, end: 12, pid: "7", tid: "7"}}, spansNamed(seen, "openat"))
	assert.Equal(t, []spanSeen{{name: "read", start: 3, truncated: true, pid: "7", tid: "7"}}, spansNamed(seen, "read"))
}

// The state dump was before the packet, and is not recorded again.
func TestTheThreadsOfAKernelAreKnownAfterAnUnreadablePacket(t *testing.T) {
	s := newKernelSession("unreadable", 2)
	s.Streams[0].
		Event(at(1), "lttng_statedump_process_state", 7, 7, "web").
		Event(at(2), "sched_switch", "b", 8, 1, "web", 7).
		Event(at(3), "syscall_entry_read", 3, 4).
		Event(at(12), "syscall_exit_read", 1).
		Event(at(18), "syscall_entry_openat", "f").
		Event(at(19), "syscall_exit_openat", 4).
		Event(at(20), "sched_switch", "b", 8, 1, "web", 7).
		Event(at(21), "syscall_entry_openat", "f").
		Event(at(22), "syscall_exit_openat", 4)
	s.Streams[1].
		Event(at(9), "irq_softirq_entry", 3).
		Packet(at(10)).Event(at(11), "irq_softirq_exit", 3).
		Packet(at(15)).Event(at(16), "irq_softirq_entry", 1)
	r := newRelay(t, []*lttnglive.Recording{spoil(t, s.Recording(1), 1, 1, 0)}, lttnglive.RelayOptions{Restart: true})
	b := newBed(t, reading(r.address()), func(_ *bed, c *Config) { c.CallRules = shippedRules(t) })
	b.await("the end of the session", func() bool { return b.said.FilterMessage("The session was closed").Len() == 1 })
	b.shutdown()
	require.EqualValues(t, 1, b.metric("receiver_lttng_live_bad_data"))
	seen := b.pipeline.seen(t)
	assert.Equal(t, []spanSeen{{name: "openat", start: 21, end: 22, pid: "7", tid: "7"}}, spansNamed(seen, "openat"))
	assert.Equal(t, []spanSeen{{name: "read", start: 3, truncated: true, pid: "7", tid: "7"}}, spansNamed(seen, "read"))
}

func TestContextsShowTheThreadAndTheProcess(t *testing.T) {
	s := synthetic.New("contexts", "vpid", "vtid", "pid", "tid", "procname$")
	s.Kernel = true
	s.Class("syscall_entry_read", "fd")
	s.Class("syscall_exit_read", "ret")
	s.Class("syscall_entry_write", "fd")
	s.Class("syscall_exit_write", "ret")
	s.Stream().Packet(1).
		Event(at(1), "syscall_entry_read", 1, 1, 70, 71, "web", 3).
		Event(at(3), "syscall_exit_read", 1, 1, 70, 71, "web", 0)
	s.Stream().Packet(1).
		Event(at(2), "syscall_entry_write", 1, 1, 80, 81, "db", 3).
		Event(at(4), "syscall_exit_write", 1, 1, 80, 81, "db", 0)
	s.Streams[1].CPU = 1
	assert.Equal(t, []spanSeen{
		{name: "read", start: 1, end: 3, pid: "70", tid: "71"}, {name: "write", start: 2, end: 4, pid: "80", tid: "81"},
	}, kernelBed(t, s).pipeline.seen(t))
}

func TestLogRecordsOfTheKernelHaveTheirThread(t *testing.T) {
	s := newKernelSession("records", 1)
	s.Streams[0].
		Event(at(1), "block_rq_issue", 1, 2, 8, "R").
		Event(at(2), "lttng_statedump_process_state", 7, 6, "worker").
		Event(at(3), "sched_switch", "b", 8, 1, "worker", 7).
		Event(at(4), "block_rq_issue", 1, 3, 8, "R")
	b := kernelBed(t, s)
	threads := map[string]string{}
	for _, r := range b.records() {
		if r.EventName() == "block_rq_issue" {
			resource := r.resource.Attributes()
			threads[textOf(r.Attributes(), "sector")] = fmt.Sprint(textOf(r.Attributes(), "thread.id"), " ", textOf(r.Attributes(), "thread.name"), " ",
				textOf(resource, process.AttributeProcessID), " ", textOf(resource, process.AttributeServiceName))
		}
	}
	assert.Equal(t, map[string]string{"2": "   unknown_service:kernel", "3": "7 worker 6 unknown_service:worker"}, threads)
}
