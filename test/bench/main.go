// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench runs the benchmarks that the project makes claims with, and
// prints what each has to reach beside what it reached: `make bench`.
//
// The benchmarks themselves are Go benchmarks beside the code they measure.
// Each is run several times, and its median counts; all of one run of this
// command can be compared with each other, and with nothing else.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	count := flag.Int("count", 5, "how often each benchmark is run")
	strict := flag.Bool("strict", false, "exit with code 1 when a number is missed")
	only := flag.String("only", "", "measure only claims whose text or benchmark matches this regular expression")
	flag.Parse()
	missed, err := run(*count, *only)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case missed > 0 && *strict:
		os.Exit(1)
	}
}

// run runs what the claims need, prints the table, and says how many are missed.
// The suites take turns, so that what is compared is measured side by side.
func run(count int, only string) (missed int, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	claims := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !pattern.MatchString(c.what + " " + c.benchmark) })
	results := results{}
	for round := 1; round <= count; round++ {
		for _, s := range suites {
			if s.rounds > 0 && round > s.rounds || !slices.ContainsFunc(claims, s.measures) {
				continue
			}
			fmt.Fprintf(os.Stderr, "[round %d of %d] go test -bench '%s' %s\n", round, count, s.pattern, s.pkg)
			output, err := s.run()
			if err != nil {
				return 0, fmt.Errorf("benchmarks of %s: %w\n%s", s.pkg, err, output)
			}
			if err := results.read(string(output)); err != nil {
				return 0, fmt.Errorf("benchmarks of %s: %w", s.pkg, err)
			}
		}
	}
	return printTable(os.Stdout, claims, results, isMissing)
}

// measures reports whether a claim needs the suite.
func (s suite) measures(c claim) bool {
	name, _, _ := strings.Cut(c.benchmark, "/")
	return regexp.MustCompile(s.pattern).MatchString(name)
}

// isMissing reports whether a program is not in PATH, or a file not where its path says.
func isMissing(peer string) bool {
	if filepath.IsAbs(peer) {
		_, err := os.Stat(peer)
		return err != nil
	}
	_, err := exec.LookPath(peer)
	return err != nil
}

func (s suite) run() (output []byte, err error) {
	arguments := []string{"test", "-run", "^$", "-bench", s.pattern, "-benchtime", s.time, "-timeout", "30m"}
	if s.cores > 0 {
		arguments = append(arguments, "-cpu", strconv.Itoa(s.cores))
	}
	command := exec.Command("go", append(arguments, s.pkg)...)
	command.Stderr = os.Stderr
	return command.Output()
}
