// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
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
}

func newKernelReference() *kernelReference {
	return &kernelReference{
		complete: map[string][]interval{}, runs: map[string]string{}, exits: map[string]bool{}, calls: map[string]openCall{},
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
		k.calls[thread] = openCall{name, at}
	} else if name, ok := cut("compat_syscall_entry_"); ok {
		k.calls[thread] = openCall{"compat " + name, at}
	} else if name, ok := cut("sys_"); ok {
		k.calls[thread] = openCall{name, at}
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
	case "sched_process_exit":
		k.exits[e.field("tid")] = true
	case "sched_process_fork":
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
	k.handlers[cpu] = append(k.handlers[cpu], openCall{name, at})
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
	}
	delete(k.on, cpu)
	if to != "0" {
		k.on[cpu] = openCall{"on CPU " + e.field("next_comm"), at}
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
						key := span.Name() + " of " + owner
						got[key] = append(got[key], interval{int64(span.StartTimestamp()), int64(span.EndTimestamp())})
					}
				}
			}
		})
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
		t.Logf("%d events, %d complete spans of the reference, %d truncated spans", len(printed.lines), compared, truncated)
	})
}

// ownerOfKernelSpan returns the thread or the CPU of a span. compared is false for spans that the reference does not have.
func ownerOfKernelSpan(span ptrace.Span) (owner string, compared bool) {
	number := func(attribute string) string {
		v, _ := span.Attributes().Get(attribute)
		return strconv.FormatInt(v.Int(), 10)
	}
	switch rule, of, _ := strings.Cut(span.Name(), " "); {
	case of == "" && !slices.Contains([]string{"preempted", "hrtimer"}, rule), rule == "off", rule == "compat":
	case slices.Contains([]string{"on", "irq", "softirq"}, rule):
		return "CPU " + number("lttng.cpu_id"), true
	default:
		return "", false
	}
	return "thread " + number("thread.id"), true
}

// maxMoved bounds the time by which pairing moves events, which it does to give each event a time of its own.
const maxMoved = 1000

func compareIntervals(t *testing.T, key string, want, got []interval) {
	t.Helper()
	byStart := func(a, b interval) int { return cmp.Compare(a.start, b.start) }
	slices.SortFunc(want, byStart)
	slices.SortFunc(got, byStart)
	if !assert.Len(t, got, len(want), key) {
		return
	}
	for i := range want {
		for _, moved := range []int64{got[i].start - want[i].start, got[i].end - want[i].end} {
			if moved < -maxMoved || moved > maxMoved {
				t.Errorf("%s: expected the span %v, got %v", key, want[i], got[i])
			}
		}
	}
}
