// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package perfettoexporter

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file system of 256 KiB is full for a while. Spans of that time are dropped and counted, and the file stays whole.
func TestOnAFullDiskSpansAreDroppedAndTheFileStaysWhole(t *testing.T) {
	folder := t.TempDir()
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("only root can mount a small disk: %s", output)
	}
	path, ballast := filepath.Join(folder, "spans.perfetto-trace"), filepath.Join(folder, "ballast")
	b := started(t, path, slow)
	t.Cleanup(func() {
		require.NoError(t, b.signal.Shutdown(t.Context()))
		output, err := exec.Command("umount", folder).CombinedOutput()
		assert.NoError(t, err, "%s", output)
	})
	write := func(id byte) {
		require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(id, 0, 10, 20))))
		b.flushed()
	}
	write(1)
	_ = os.WriteFile(ballast, make([]byte, 512<<10), 0o600) // as much as there is room for
	for id := byte(2); id < 100; id++ {
		write(id) // the page of the file that is in use has room for some
	}
	dropped := b.counts(t)["dropped_slices"]
	require.NotZero(t, dropped)
	assert.Len(t, names(t, path), int(99-dropped), "the file is whole while the disk is full")
	require.NoError(t, os.Remove(ballast))
	write(100)
	assert.Len(t, names(t, path), int(100-dropped))
	lines := b.lines()
	assert.Equal(t, []string{"Dropped spans", "Spans are written again"}, lines[len(lines)-2:])
}

// On a file system that only reads, a start fails, and its error has the remedy.
func TestADirectoryThatCannotBeWrittenToIsAnErrorWithARemedy(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "spans.perfetto-trace")
	mount := func(options string) {
		t.Helper()
		if output, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", folder).CombinedOutput(); err != nil {
			t.Skipf("only root can mount a disk: %s", output)
		}
	}
	mount("size=256k")
	t.Cleanup(func() {
		output, err := exec.Command("umount", folder).CombinedOutput()
		assert.NoError(t, err, "%s", output)
	})
	b := started(t, path, slow)
	require.NoError(t, b.consumeTraces(t.Context(), message("shop", span(1, 0, 10, 20))))
	require.NoError(t, b.signal.Shutdown(t.Context()))
	mount("remount,ro")
	err := newBed(t, path).signal.Start(t.Context(), nil)
	require.ErrorContains(t, err, "read-only file system")
	require.ErrorContains(t, err, "let the collector's user write to the directory "+folder+", or set path to a file elsewhere")
	assert.Equal(t, []string{"b"}, names(t, path), "the earlier file is as it was")
}
