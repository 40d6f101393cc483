// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/test/kit"
)

// Spans of recorded traces of the kernel, with the rules of config/lttng-kernel.yaml. The reference reads the output of
// babeltrace2, and has one variable for each thread and CPU.

// interval is the time of a call, in Unix nanoseconds.
type interval struct{ start, end int64 }

// kernelReference computes the complete calls of the kernel.
type kernelReference struct {
	// complete are the calls by name and by thread or CPU.
	complete map[string][]interval
	// processes are those of threads, as far as the trace has shown them, and onOf those of the complete times on a CPU.
	processes map[string]string
	onOf      map[timeOnCPU]string
	// programs are the times at which threads executed another program.
	programs map[string][]int64
	// runs is the thread that runs on a CPU, calls and off are the open calls of threads, on are those of CPUs.
	runs     map[string]string
	exits    map[string]bool
	calls    map[string]openCall
	off      map[string]int64
	on       map[string]openCall
	handlers map[string][]openCall
}

type openCall struct {
	name  string
	start int64
	// process is that of a time on a CPU.
	process string
}

// timeOnCPU is a time that a CPU runs a thread.
type timeOnCPU struct {
	cpu, thread string
	start       int64
}

func newKernelReference() *kernelReference {
	return &kernelReference{
		complete: map[string][]interval{}, processes: map[string]string{}, onOf: map[timeOnCPU]string{}, programs: map[string][]int64{},
		runs: map[string]string{}, exits: map[string]bool{}, calls: map[string]openCall{},
		off: map[string]int64{}, on: map[string]openCall{}, handlers: map[string][]openCall{},
	}
}

func (k *kernelReference) end(name, owner string, start, end int64) {
	key := name + " of " + owner
	k.complete[key] = append(k.complete[key], interval{start, end})
}

// field returns the printed value of a field or context, or "".
func (e *printedEvent) field(name string) string {
	for _, scope := range []string{"event.fields", "event.context", "stream.event.context", "stream.packet.context"} {
		for _, m := range e.scopes[scope] {
			if m.name == name {
				switch v := m.value.(type) {
				case printedNumber:
					return string(v)
				case printedText:
					return string(v)
				case printedLabel:
					return string(v.number)
				}
			}
		}
	}
	return ""
}

func (k *kernelReference) step(e *printedEvent) {
	at, cpu := e.unixNano(), "CPU "+e.field("cpu_id")
	thread := ""
	if tid := k.runs[cpu]; tid != "" && tid != "0" {
		thread = "thread " + tid
	}
	cut := func(prefix string) (string, bool) { return strings.CutPrefix(e.name, prefix) }
	if name, ok := cut("syscall_entry_"); ok {
		k.calls[thread] = openCall{name: name, start: at}
	} else if name, ok := cut("compat_syscall_entry_"); ok {
		k.calls[thread] = openCall{name: "compat " + name, start: at}
	} else if name, ok := cut("sys_"); ok {
		k.calls[thread] = openCall{name: name, start: at}
	} else if name, ok := cut("syscall_exit_"); ok {
		k.exitCall(thread, name, at)
	} else if name, ok := cut("compat_syscall_exit_"); ok {
		k.exitCall(thread, "compat "+name, at)
	} else if e.name == "exit_syscall" {
		k.exitCall(thread, k.calls[thread].name, at)
	}
	switch name := strings.TrimPrefix(e.name, "irq_"); name {
	case "softirq_entry":
		k.enter(cpu, "softirq "+e.field("vec"), at)
	case "softirq_exit":
		k.leave(cpu, "softirq "+e.field("vec"), at)
	case "handler_entry":
		k.enter(cpu, "irq "+e.field("irq"), at)
	case "handler_exit":
		k.leave(cpu, "irq "+e.field("irq"), at)
	case "sched_process_exec":
		tid := cmp.Or(e.field("old_tid"), e.field("tid"))
		k.programs[tid] = append(k.programs[tid], at)
	case "sched_process_exit":
		k.exits[e.field("tid")] = true
	case "lttng_statedump_process_state":
		k.processes[e.field("tid")] = e.field("pid")
	case "sched_process_fork":
		k.processes[e.field("child_tid")] = e.field("child_pid")
		child := e.field("child_tid")
		delete(k.calls, "thread "+child)
		delete(k.off, "thread "+child)
		delete(k.exits, child)
	case "sched_switch":
		k.switchThread(cpu, e, at)
	}
}

func (k *kernelReference) exitCall(thread, name string, at int64) {
	if open, ok := k.calls[thread]; ok && thread != "" && open.name == name {
		k.end(name, thread, open.start, at)
		delete(k.calls, thread)
	}
}

func (k *kernelReference) enter(cpu, name string, at int64) {
	k.handlers[cpu] = append(k.handlers[cpu], openCall{name: name, start: at})
}

// leave ends the innermost handler of the name. Handlers above it have no end.
func (k *kernelReference) leave(cpu, name string, at int64) {
	open := k.handlers[cpu]
	for i := len(open) - 1; i >= 0; i-- {
		if open[i].name == name {
			k.end(name, cpu, open[i].start, at)
			k.handlers[cpu] = open[:i]
			return
		}
	}
}

func (k *kernelReference) switchThread(cpu string, e *printedEvent, at int64) {
	from, to := e.field("prev_tid"), e.field("next_tid")
	if open, ok := k.on[cpu]; ok && k.runs[cpu] == from && from != "0" {
		k.end(open.name, cpu, open.start, at)
		k.onOf[timeOnCPU{cpu, from, open.start}] = open.process
	}
	delete(k.on, cpu)
	if to != "0" {
		k.on[cpu] = openCall{"on CPU " + e.field("next_comm"), at, k.processes[to]}
		if start, ok := k.off["thread "+to]; ok {
			k.end("off CPU", "thread "+to, start, at)
			delete(k.off, "thread "+to)
		}
	}
	// A thread that exits may be preempted once more.
	isPreempted := slices.Contains([]string{"0", "256", "1024", "2048", "4096"}, e.field("prev_state"))
	if from != "0" && (!k.exits[from] || isPreempted) {
		k.off["thread "+from] = at
	}
	k.runs[cpu] = to
}

// kernelRules are the rules of config/lttng-kernel.yaml, and one for LTTng up to 2.5, as YAML.
func kernelRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../config/lttng-kernel.yaml")
	require.NoError(t, err)
	var config struct {
		Receivers map[string]struct {
			CallRules []any `yaml:"call_rules"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	rules := append([]any{map[string]any{"entry": "sys_*", "exit": "exit_syscall", "outermost": true}}, config.Receivers["lttng_live"].CallRules...)
	flow, err := yaml.Marshal(rules)
	require.NoError(t, err)
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(flow)), "\n", "\n      ")
}

func TestRecordedKernelTracesHaveTheSpansOfASlowReference(t *testing.T) {
	eachRecordedTrace(t, func(t *testing.T, dir string) {
		printed := printTrace(t, dir)
		if len(printed.lines) == 0 || printed.failure != "" || !strings.Contains(printed.lines[0], "trace:domain = kernel") {
			t.Skip("no trace of the kernel that babeltrace2 reads completely")
		}
		reference := newKernelReference()
		for _, line := range printed.lines {
			e, err := readPrinted(line)
			require.NoError(t, err)
			reference.step(&e)
		}
		c := kit.Run(t, fmt.Sprintf(`
receivers:
  ctf_file:
    include: [%q]
    symbol_paths: []
    at_end: stop_collector
    limits: {max_processes: 20000}
    call_rules:
%s
processors: {stack_pairing: }
exporters: {file: %s}
service: {pipelines: {traces: {receivers: [ctf_file], processors: [stack_pairing], exporters: [file]}}}
`, dir, kernelRules(t), kit.FileExporter("spans.bin")))
		got, truncated := map[string][]interval{}, 0
		on := map[timeOnCPU]spanOnCPU{}
		c.ReadTraces(t, "spans.bin", func(traces ptrace.Traces) {
			for _, resource := range traces.ResourceSpans().All() {
				for _, scope := range resource.ScopeSpans().All() {
					for _, span := range scope.Spans().All() {
						owner, compared := ownerOfKernelSpan(span)
						if !compared {
							continue
						}
						if _, ok := span.Attributes().Get("callbraid.truncated"); ok {
							truncated++
							continue
						}
						at := interval{int64(span.StartTimestamp()), int64(span.EndTimestamp())}
						if strings.HasPrefix(span.Name(), "on CPU ") {
							process := ""
							if pid, ok := resource.Resource().Attributes().Get("process.pid"); ok {
								process = pid.AsString()
							}
							on[timeOnCPU{owner, numberOf(span, "lttng.next_tid"), at.start}] = spanOnCPU{span.Name(), process, at}
							continue
						}
						key := span.Name() + " of " + owner
						got[key] = append(got[key], at)
					}
				}
			}
		})
		spans, divided := joinDivided(t, on, reference)
		unknown := 0
		for at, span := range spans {
			key := span.name + " of " + at.cpu
			got[key] = append(got[key], span.interval)
			switch process := reference.processAt(at); {
			case span.process == "":
				unknown++
			case span.process != process:
				t.Errorf("%s: expected the process %s of the span %v, got %s", key, process, span.interval, span.process)
			}
		}
		compared := 0
		for key, want := range reference.complete {
			compareIntervals(t, key, want, got[key])
			compared += len(want)
		}
		for key, spans := range got {
			if reference.complete[key] == nil {
				t.Errorf("expected no span %s, got %d", key, len(spans))
			}
		}
		t.Logf("%d events, %d complete spans of the reference, %d truncated spans; of %d times on a CPU, %d of an unknown process, %d divided",
			len(printed.lines), compared, truncated, len(spans), unknown, divided)
	})
}

// spanOnCPU is a span of a time on a CPU. process is empty if it is not known.
type spanOnCPU struct {
	name, process string
	interval
}

// joinDivided joins the spans of a time on a CPU that is divided because the thread executes another program: the rest
// belongs to the process of the new program.
func joinDivided(t *testing.T, on map[timeOnCPU]spanOnCPU, k *kernelReference) (spans map[timeOnCPU]spanOnCPU, divided int) {
	order := slices.SortedFunc(maps.Keys(on), func(a, b timeOnCPU) int {
		return cmp.Or(strings.Compare(a.cpu, b.cpu), strings.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start))
	})
	spans = map[timeOnCPU]spanOnCPU{}
	var last timeOnCPU
	for _, at := range order {
		if at.cpu != last.cpu || at.thread != last.thread || at.start-spans[last].end > 1 || !k.dividesAt(at) {
			spans[at], last = on[at], at
			continue
		}
		joined := spans[last]
		assert.Equal(t, joined.process, on[at].process, "thread %s at %d: both parts belong to programs of one process", at.thread, at.start)
		joined.end = on[at].end
		spans[last] = joined
		divided++
	}
	return spans, divided
}

// dividesAt reports whether the thread begins with another program at the time: when its call of execve ends, or when it
// executes the program if the trace has no such call.
func (k *kernelReference) dividesAt(at timeOnCPU) bool {
	for _, executed := range k.programs[at.thread] {
		begins := executed
		for _, call := range k.complete["execve of thread "+at.thread] {
			if call.start <= executed && executed <= call.end {
				begins = call.end
			}
		}
		if isNear(begins, at.start) {
			return true
		}
	}
	return false
}

// processAt returns the process of a time on a CPU, or "" if it is not known.
func (k *kernelReference) processAt(at timeOnCPU) string {
	for moved := int64(0); moved <= maxMoved; moved++ {
		if process, ok := k.onOf[timeOnCPU{at.cpu, at.thread, at.start - moved}]; ok {
			return process
		}
	}
	return ""
}

// numberOf returns the value of an attribute.
func numberOf(span ptrace.Span, attribute string) string {
	v, _ := span.Attributes().Get(attribute)
	return strconv.FormatInt(v.Int(), 10)
}

// ownerOfKernelSpan returns the thread or the CPU of a span. compared is false for spans that the reference does not have.
func ownerOfKernelSpan(span ptrace.Span) (owner string, compared bool) {
	switch rule, of, _ := strings.Cut(span.Name(), " "); {
	case of == "" && !slices.Contains([]string{"preempted", "hrtimer"}, rule), rule == "off", rule == "compat":
	case slices.Contains([]string{"on", "irq", "softirq"}, rule):
		return "CPU " + numberOf(span, "lttng.cpu_id"), true
	default:
		return "", false
	}
	return "thread " + numberOf(span, "thread.id"), true
}

// maxMoved bounds the time by which pairing moves events, which it does to give each event a time of its own.
const maxMoved = 1000

func isNear(a, b int64) bool { return a-b <= maxMoved && b-a <= maxMoved }

func compareIntervals(t *testing.T, key string, want, got []interval) {
	t.Helper()
	byStart := func(a, b interval) int { return cmp.Compare(a.start, b.start) }
	slices.SortFunc(want, byStart)
	slices.SortFunc(got, byStart)
	if !assert.Len(t, got, len(want), key) {
		return
	}
	for i := range want {
		if !isNear(got[i].start, want[i].start) || !isNear(got[i].end, want[i].end) {
			t.Errorf("%s: expected the span %v, got %v", key, want[i], got[i])
		}
	}
}
