// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

const (
	// namedClasses bounds the failed classes that a line names, and classNameBytes the bytes of each
	// name.
	namedClasses   = 5
	classNameBytes = 200
)

// failedClasses are the classes that an agent could not instrument. One goroutine adds them, and
// another one logs them.
type failedClasses struct {
	mu sync.Mutex
	// total is the number of all. unlogged is the number since the last line, which was at logged,
	// and names has the first of these.
	total, unlogged int
	names           []string
	logged          time.Time
	// first has the names of the first of all.
	first []string

	// published is what batches report.
	published atomic.Pointer[missingClasses]
}

// missingClasses are the classes that had failed at a moment.
type missingClasses struct {
	total int
	first string
}

// Attributes of the scope of call events: how many classes could not be instrumented, and the names
// of the first.
const (
	attributeMissingClasses = "callbraid.missing.classes"
	attributeMissingFirst   = "callbraid.missing.first"
)

// publish makes batches report the current number. log calls it at most once in checkInterval, because
// stack_pairing stores each scope.
func (f *failedClasses) publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.published.Load(); f.total > 0 && (p == nil || p.total != f.total) {
		f.published.Store(&missingClasses{total: f.total, first: strings.Join(f.first, ", ")})
	}
}

// putTo adds the published number and names to the attributes of a scope.
func (f *failedClasses) putTo(attributes pcommon.Map) {
	if p := f.published.Load(); p != nil {
		attributes.PutInt(attributeMissingClasses, int64(p.total))
		attributes.PutStr(attributeMissingFirst, p.first)
	}
}

func (f *failedClasses) add(class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.unlogged++
	if len(f.names) == namedClasses && len(f.first) == namedClasses {
		return
	}
	class = strings.ToValidUTF8(class[:min(len(class), classNameBytes)], "")
	class = strings.ReplaceAll(class, "/", ".")
	if len(f.names) < namedClasses {
		f.names = append(f.names, class)
	}
	if len(f.first) < namedClasses {
		f.first = append(f.first, class)
	}
}

// log publishes the number. It warns of the classes since the last line, if that was logline.Pause ago or
// the run ends.
func (f *failedClasses) log(logger *zap.Logger, now time.Time, ends bool) {
	f.publish()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unlogged == 0 || !ends && !f.logged.IsZero() && now.Sub(f.logged) < logline.Pause {
		return
	}
	logger.Warn("The agent cannot instrument some classes: their calls are missing, and methods that they call appear under their callers. "+
		"The program's standard error has the reason. If it has `requires ASM`, compile with javac --release 8 and without lambdas",
		zap.Int("classes", f.unlogged), zap.Strings("first", f.names), zap.Int("classes_of_the_run", f.total))
	f.unlogged, f.names, f.logged = 0, nil, now
}

// matching counts the loaded classes of a program, by whether the agent's filters match them. One
// goroutine counts them, and another one logs.
type matching struct {
	ignored, others atomic.Int64
	logged          atomic.Bool
}

func (m *matching) add(result bytefrog.MessageType) {
	if result == bytefrog.TypeClassIgnored {
		m.ignored.Add(1)
		return
	}
	m.others.Add(1)
}

// log warns once if the agent loaded classes, and traces none.
func (m *matching) log(logger *zap.Logger, agent *bytefrog.AgentConfiguration) {
	ignored := m.ignored.Load()
	if ignored == 0 || m.others.Load() > 0 || m.logged.Swap(true) {
		return
	}
	logger.Warn("No class of the program is traced: agent.inclusions and agent.exclusions leave all of them out. Names of classes have slashes",
		zap.Int64("classes", ignored), zap.Strings("inclusions", agent.Inclusions), zap.Strings("exclusions", agent.Exclusions))
}

// classes are the reports of an agent about the classes of its program.
type classes struct {
	failed   failedClasses
	matching matching
}

// add counts a report.
func (c *classes) add(m bytefrog.ClassReport) {
	c.matching.add(m.Result)
	if m.Result == bytefrog.TypeClassTransformFailed {
		c.failed.add(m.Class)
	}
}
