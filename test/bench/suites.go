// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// suite is a set of benchmarks of one package that run one after the other, in one process. If
// possible, a benchmark and its yardstick are in one suite.
type suite struct {
	pkg, pattern, time string
	// cores is how many cores it may use; 0: all.
	cores int
	// rounds is in how many rounds it is run at most; 0: in all.
	rounds int
}

var suites = []suite{
	{pkg: "./internal/bytefrog", pattern: "^Benchmark(Decode|Sum)Events$", time: "0.3s"},
	{pkg: "./internal/call/callevent", pattern: "^Benchmark(PackUnpack|FixedWidth)$", time: "0.3s"},
	{pkg: "./receiver/bytefrogreceiver/internal/session", pattern: "^Benchmark(BytesToBatches|SumBytes|BytesToSpans|BuildSpans|BytesToNothing)$", time: "0.5s"},
	{pkg: "./test", pattern: "^BenchmarkReplay(Counted)?$", time: "1x", rounds: 3}, // they repeat by themselves
	{pkg: "./test", pattern: "^BenchmarkReplayWithLazyCollection$", time: "1x", rounds: 1},
	{pkg: "./test", pattern: "^BenchmarkBytefrogsAgent$", time: "1x"},
	{pkg: "./internal/call/engine", pattern: "^Benchmark(ConsumeTraces|CopySpans|SmallHandOver|CopySmallHandOver|OtherSpans|DecodeOtherSpans)$", time: "0.5s"},
	{pkg: "./connector/stackpairingconnector", pattern: "^BenchmarkConsumeTraces$", time: "3x"},
	{pkg: "./connector/stackpairingconnector", pattern: "^BenchmarkInterval$", time: "3x", rounds: 3},
	{pkg: "./internal/bytefrog/guard", pattern: "^Benchmark(Pass|Walk|Latency)$", time: "0.5s"},
	{pkg: "./test", pattern: "^BenchmarkBehindAGuard$", time: "1x", rounds: 2},
	{pkg: "./test", pattern: "^BenchmarkTiers$", time: "1x", rounds: 3},
	{pkg: "./test", pattern: "^Benchmark(OneCollector|SmallBatches|ShortStreams)$", time: "1x", rounds: 1},
	{pkg: "./test", pattern: "^BenchmarkCTFFile$", time: "1x"},
	{pkg: "./test", pattern: "^BenchmarkFirstPicture$", time: "1x", rounds: 3},
	{pkg: "./test", pattern: "^BenchmarkListAgents$", time: "1x", rounds: 3},
	{pkg: "./test", pattern: "^BenchmarkLargeRbkitMessage$", time: "1x", rounds: 3},
	{pkg: "./internal/lttng/session", pattern: "^BenchmarkReadLTTng$", time: "1x", cores: 1, rounds: 3},
	{pkg: "./internal/rbkit", pattern: "^Benchmark(Decode|Skip)$", time: "0.3s"},
	{pkg: "./receiver/rbkitreceiver", pattern: "^Benchmark(MessagesToPdata|ReadMessages)$", time: "0.5s"},
	{pkg: "./internal/greys/gp", pattern: "^BenchmarkDecodeGP$", time: "0.2s"},
	{pkg: "./internal/greys/console", pattern: "^BenchmarkDecodeConsole$", time: "0.2s"},
	{pkg: "./receiver/greysreceiver", pattern: "^BenchmarkRowsToMetrics$", time: "0.3s"},
	{pkg: "./internal/javamethods/signals", pattern: "^BenchmarkTreesToSpans$", time: "0.3s"},
	{pkg: "./internal/rbkit/zmtp", pattern: "^BenchmarkReceive$", time: "1x", rounds: 3},
	{pkg: "./exporter/flamegraphexporter", pattern: "^BenchmarkFoldTraces$", time: "0.5s"},
	{pkg: "./exporter/flamegraphexporter", pattern: "^Benchmark(FoldMemory|PathMemory)$", time: "1x", rounds: 1},
	{pkg: "./exporter/flamegraphexporter/internal/web", pattern: "^Benchmark(Pages|ReadProfile)$", time: "0.3s", rounds: 3},
	{pkg: "./exporter/perfettoexporter", pattern: "^BenchmarkWriteTraces$", time: "0.5s"},
	{pkg: "./exporter/otlpjsonfileexporter", pattern: "^Benchmark(ConsumeTraces|MarshalTraces)$", time: "0.3s"},
}

// measures reports whether a claim needs the suite.
func (s suite) measures(c claim) bool { return s.has(c.of) || s.has(c.over) || s.has(c.base) }

// has reports whether the suite measures this.
func (s suite) has(m measured) bool {
	name, _, _ := strings.Cut(m.benchmark, "/")
	return m.pkg == s.pkg && regexp.MustCompile(s.pattern).MatchString(name)
}

// formerly is the earlier folder of a package, in checkouts from before it moved.
var formerly = map[string]string{
	callevent: "./internal/callevent",
	guard:     "./internal/bytefrogguard",
	zmtp:      "./internal/zmtp",
	lttng:     "./receiver/lttnglivereceiver",
	receiver:  "./receiver/bytefrogreceiver",
	pairing:   "./processor/stackpairingprocessor",
}

// folder is the folder of a package in a checkout. It need not exist.
func folder(checkout, pkg string) string {
	now := filepath.Join(checkout, pkg)
	if _, err := os.Stat(now); err != nil && formerly[pkg] != "" {
		return filepath.Join(checkout, formerly[pkg])
	}
	return now
}

// programs are the compiled tests of a checkout, by package.
type programs struct {
	checkout, dir string
	// order is the number of a random order of the functions; 0: the usual order.
	order int
	of    map[string]string
}

// newPrograms compiles tests of a checkout into a directory, when they are needed.
func newPrograms(checkout, dir string, order int) *programs {
	return &programs{checkout: checkout, dir: dir, order: order, of: map[string]string{}}
}

// compile compiles the tests of a package, once.
func (p *programs) compile(began time.Time, pkg string) error {
	if p.of[pkg] != "" {
		return nil
	}
	progress(began, "compiles the benchmarks of %s in %s", pkg, p.checkout)
	program := filepath.Join(p.dir, strings.NewReplacer("/", "-", ".", "").Replace(pkg)+".test")
	command := exec.Command("go", "test", "-c", "-ldflags", fmt.Sprintf("-randlayout=%d", p.order), "-o", program, ".")
	command.Dir = folder(p.checkout, pkg)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile tests of %s in %s: %w\n%s", pkg, p.checkout, err, output)
	}
	p.of[pkg] = program
	return nil
}

// run runs the suite, whose package is compiled, and reads its results.
func (p *programs) run(s suite, into results) error {
	arguments := []string{"-test.run", "^$", "-test.bench", s.pattern, "-test.benchtime", s.time, "-test.timeout", "30m"}
	if s.cores > 0 {
		arguments = append(arguments, "-test.cpu", strconv.Itoa(s.cores))
	}
	command := exec.Command(p.of[s.pkg], arguments...)
	command.Dir = folder(p.checkout, s.pkg)
	command.Stderr = os.Stderr
	var output bytes.Buffer
	command.Stdout = &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("benchmarks of %s in %s: %w\n%s", s.pkg, p.checkout, err, output.String())
	}
	if err := into.read(s.pkg, output.String()); err != nil {
		return fmt.Errorf("benchmarks of %s in %s: %w", s.pkg, p.checkout, err)
	}
	return nil
}
