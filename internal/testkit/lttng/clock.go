// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// clockOffset matches the offset of a clock in the metadata of a trace. The clock counts nanoseconds since the start
// of the system.
var clockOffset = regexp.MustCompile(`name = "?monotonic"?;[^}]*?freq = 1000000000;[^}]*?\boffset = (\d+);`)

// ClockOffsets returns the offsets of the traces of user space below a directory, in nanoseconds. Monotonic clock
// plus offset is the time since the Unix epoch. Each trace has its own measurement.
func ClockOffsets(t testing.TB, directory string) (offsets []int64) {
	t.Helper()
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != "metadata" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		m := clockOffset.FindSubmatch(text)
		if m == nil {
			t.Fatalf("expected the clock and its offset in %s", path)
		}
		offsets = append(offsets, integer(t, string(m[1])))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return offsets
}
