// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel itself writes a part of a line here, as on a full disk.
func TestALineThatTheKernelWritesInPartIsCutOff(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	path := someFile(t, "")
	b := opened(t, path)
	require.NoError(t, b.Append(numbered(1, 1000)))

	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1500, Max: before.Max}))
	failed := b.Append(numbered(2, 1000))
	fits := b.Append(numbered(3, 100))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))

	require.ErrorIs(t, failed, syscall.EFBIG)
	require.NoError(t, fits)
	assert.Equal(t, []int{1, 3}, numbersIn(t, path))
	require.NoError(t, b.Append(numbered(2, 1000)))
	assert.Equal(t, []int{1, 3, 2}, numbersIn(t, path))
}
