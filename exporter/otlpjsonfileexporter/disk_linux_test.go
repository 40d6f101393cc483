// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjsonfileexporter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallDisk is a folder on a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("only root can mount a small disk: %s", output)
	}
	t.Cleanup(func() {
		output, err := exec.Command("umount", folder).CombinedOutput()
		assert.NoError(t, err, "%s", output)
	})
	return folder
}

func TestOnAFullDiskEachSpanIsThereOnce(t *testing.T) {
	folder := smallDisk(t)
	path := filepath.Join(folder, "spans.json")
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	b := started(t, path)
	const handed, count = 20, 500
	refused := 0
	for n := range handed {
		td := spans(fmt.Sprint(n, strings.Repeat("x", 50)), count)
		err := b.ConsumeTraces(t.Context(), td)
		for range 3 {
			if err == nil {
				break
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			refused++
			assert.Len(t, handOvers(t, path), n, "lines are whole while the disk is full")
			err = b.ConsumeTraces(t.Context(), td)
		}
		if err != nil {
			require.NoError(t, os.Remove(ballast))
			require.NoError(t, b.ConsumeTraces(t.Context(), td))
		}
	}
	assert.Len(t, names(t, path), handed*count)
	assert.Equal(t, 3, refused, "the disk was full once")
	assert.EqualValues(t, 4, b.counts(t)["refused_lines"])
}
