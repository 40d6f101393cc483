// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/logline"
)

const (
	// namedClasses is how many failed classes a line names, and classNameBytes how many
	// bytes of each name.
	namedClasses   = 5
	classNameBytes = 200
)

// failedClasses are those that a run's agent could not instrument. One goroutine reports
// them, and another logs them.
type failedClasses struct {
	mu sync.Mutex
	// total is of the run; unlogged are those since the last line, at logged, and names the
	// first of these.
	total, unlogged int
	names           []string
	logged          time.Time
}

func (f *failedClasses) add(class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	f.unlogged++
	if len(f.names) < namedClasses {
		class = strings.ToValidUTF8(class[:min(len(class), classNameBytes)], "")
		f.names = append(f.names, strings.ReplaceAll(class, "/", "."))
	}
}

// log warns of the classes since the last line, if that was logline.Pause ago or the run ends.
func (f *failedClasses) log(logger *zap.Logger, now time.Time, ends bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unlogged == 0 || !ends && !f.logged.IsZero() && now.Sub(f.logged) < logline.Pause {
		return
	}
	logger.Warn("The agent cannot instrument some classes: their calls are missing, and what they call looks as if called by their callers. "+
		"The program's standard error has the reason. Compile with javac --release 8 and without lambdas where it says ASM5",
		zap.Int("classes", f.unlogged), zap.Strings("first", f.names), zap.Int("classes_of_the_run", f.total))
	f.unlogged, f.names, f.logged = 0, nil, now
}

// classReport counts what the agent did with a class, and makes a log record of it.
func (r *run) classReport(m bytefrog.ClassReport) {
	r.env.telemetry.class(m.Result)
	if m.Result == bytefrog.TypeClassTransformFailed {
		r.failed.add(m.Class)
	}
	r.logs.class(m)
}
