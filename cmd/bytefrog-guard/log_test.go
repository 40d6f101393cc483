// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// patience is how long a test waits for what has to come, on however busy a machine.
const patience = time.Minute

// A log that is not read is waited for by nobody; when it is read again it says what it lacks,
// and where.
func TestTheGuardDoesNotWaitForTheReaderOfItsLog(t *testing.T) {
	near, far := io.Pipe()
	log := newLines(far)
	logger := log.logger(zap.InfoLevel)
	const said = 3 * mostWaiting / 100
	long := strings.Repeat("x", 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range said {
			logger.Info(fmt.Sprintf("line %d", i), zap.String("long", long))
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, "it was waited for")
	}
	assert.Positive(t, log.total.Load())

	defer time.AfterFunc(patience, func() { _ = near.Close() }).Stop()
	var b []byte
	piece := make([]byte, 4096)
	for accounted(t, b, long) < said {
		n, err := near.Read(piece)
		require.NoError(t, err)
		b = append(b, piece[:n]...)
	}
	assert.Equal(t, said, accounted(t, b, long), "each was written or counted")
	assert.EqualValues(t, said-bytes.Count(b, []byte(long)), log.total.Load())
	require.Eventually(t, log.isWritten, patience, time.Millisecond)

	go logger.Info("again")
	n, err := near.Read(piece)
	require.NoError(t, err)
	assert.Contains(t, string(piece[:n]), "\tinfo\tagain\n")
}

// accounted is how many lines with a text there are in a log, and were dropped by its own word.
func accounted(t *testing.T, log []byte, text string) int {
	n := bytes.Count(log, []byte(text))
	for _, dropped := range regexp.MustCompile(`were dropped here.*"lines": (\d+)}`).FindAllSubmatch(log, -1) {
		lines, err := strconv.Atoi(string(dropped[1]))
		require.NoError(t, err)
		n += lines
	}
	return n
}

// What can't be written, since whoever read it has gone, is counted.
func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	near, far := io.Pipe()
	require.NoError(t, near.Close())
	log := newLines(far)
	logger := log.logger(zap.InfoLevel)
	for range 3 {
		logger.Info("line")
	}
	require.Eventually(t, log.isWritten, patience, time.Millisecond)
	assert.EqualValues(t, 3, log.total.Load())
}

// The end waits for the last lines.
func TestTheLastLinesAreWritten(t *testing.T) {
	var out bytes.Buffer
	log := newLines(&out)
	log.logger(zap.InfoLevel).Info("the last")
	require.NoError(t, log.Sync())
	assert.Contains(t, out.String(), "\tinfo\tthe last\n")
}
