// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench runs the benchmarks of the project's claims, and prints each bound beside the
// result: `make bench`.
//
// The benchmarks are Go benchmarks beside the measured code, and so are their yardsticks: work that
// is slower on a slower machine too, such as making the same spans with the pdata library. A claim
// is a ratio of the two. Each round measures one after the other, and the median of the rounds
// counts. Absolute figures are printed and not claimed, except a few processor times: of these the least
// of the rounds counts.
//
// With -against it compares the hot paths of two checkouts, by turns.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

var errMissed = errors.New("not all is reached")

func main() {
	count := flag.Int("count", 5, "how many rounds there are")
	only := flag.String("only", "", "measure only lines whose text or benchmark matches this regular expression")
	against := flag.String("against", "", "compare with the code of this checkout, by turns")
	within := flag.Float64("within", 1.03, "with -against: largest ratio of times that counts as equal")
	page := flag.String("page", "", "replace the table of this page, e.g. docs/performance.md")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	switch {
	case err != nil:
		err = fmt.Errorf("-only: %w", err)
	case *against != "":
		err = compare(*against, *count, *within, pattern)
	default:
		err = check(*count, pattern, *page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// check measures the benchmarks of the claims, prints the table, and writes it into a page if that
// has a path. It fails with errMissed if a claim misses its bound.
func check(rounds int, only *regexp.Regexp, page string) error {
	dir, err := os.MkdirTemp("", "callbraid-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	claims := slices.DeleteFunc(slices.Clone(claims), func(c claim) bool {
		return !only.MatchString(c.what + " " + c.of.benchmark)
	})
	measuring := slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return !slices.ContainsFunc(claims, s.measures) })
	programs, results, began := newPrograms(".", dir, 0), results{}, time.Now()
	for _, s := range measuring {
		if err := programs.compile(began, s.pkg); err != nil {
			return err
		}
	}
	for round := 1; round <= rounds; round++ {
		for _, s := range measuring {
			if s.rounds > 0 && round > s.rounds {
				continue
			}
			progress(began, "round %d of %d: %s %s", round, min(rounds, cmp.Or(s.rounds, rounds)), s.pkg, s.pattern)
			if err := programs.run(s, results); err != nil {
				return err
			}
		}
	}
	rows, missed, err := rowsOf(claims, results, isMissing)
	if err != nil {
		return err
	}
	if err := printTable(os.Stdout, rows); err != nil {
		return err
	}
	if page != "" {
		if err := writeTable(page, rows); err != nil {
			return err
		}
	}
	fmt.Printf("%d of %d lines are claims; %d are missed; the measurement took %s\n", countClaims(claims), len(claims), missed, time.Since(began).Round(time.Second))
	if missed > 0 {
		return errMissed
	}
	return nil
}

func countClaims(claims []claim) (n int) {
	for _, c := range claims {
		if c.bound > 0 && !c.isLeftOut() {
			n++
		}
	}
	return n
}

// progress prints the current step, and the time of all steps before it.
func progress(began time.Time, format string, values ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, values...))
}

// isMissing reports whether a program is not in PATH, or a file is not at its path.
func isMissing(peer string) bool {
	if filepath.IsAbs(peer) {
		_, err := os.Stat(peer)
		return err != nil
	}
	_, err := exec.LookPath(peer)
	return err != nil
}
