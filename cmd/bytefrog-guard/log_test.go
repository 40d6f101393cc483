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

// patience is the longest time that a test waits for a condition, on a busy machine too.
const patience = time.Minute

// The log of a guard never waits for its reader. If the reader continues, a line reports the
// dropped lines in their place.
func TestTheGuardDoesNotWaitForTheReaderOfItsLog(t *testing.T) {
	near, far := io.Pipe()
	log := newLines(far)
	logger := log.logger(zap.InfoLevel)
	const logged = 3 * mostWaiting / 100
	long := strings.Repeat("x", 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range logged {
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
	for accounted(t, b, long) < logged {
		n, err := near.Read(piece)
		require.NoError(t, err)
		b = append(b, piece[:n]...)
	}
	assert.Equal(t, logged, accounted(t, b, long), "each was written or counted")
	assert.EqualValues(t, logged-bytes.Count(b, []byte(long)), log.total.Load())
	select {
	case <-log.written():
	case <-time.After(patience):
		require.Fail(t, "lines are not written")
	}

	go logger.Info("again")
	n, err := near.Read(piece)
	require.NoError(t, err)
	assert.Contains(t, string(piece[:n]), "\tinfo\tagain\n")
}

// accounted is the number of lines with a text in a log, and of lines that it reports as dropped.
func accounted(t *testing.T, log []byte, text string) int {
	n := bytes.Count(log, []byte(text))
	for _, dropped := range regexp.MustCompile(`were dropped here.*"lines": (\d+)}`).FindAllSubmatch(log, -1) {
		lines, err := strconv.Atoi(string(dropped[1]))
		require.NoError(t, err)
		n += lines
	}
	return n
}

// Lines that can't be written, because their reader is gone, are counted.
func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	near, far := io.Pipe()
	require.NoError(t, near.Close())
	log := newLines(far)
	logger := log.logger(zap.InfoLevel)
	for range 3 {
		logger.Info("line")
	}
	select {
	case <-log.written():
	case <-time.After(patience):
		require.Fail(t, "lines are not written")
	}
	assert.EqualValues(t, 3, log.total.Load())
}

// A line that never fits is dropped, and lines after it are written.
func TestALineThatIsTooLongIsCounted(t *testing.T) {
	near, far := io.Pipe()
	log := newLines(far)
	go log.logger(zap.InfoLevel).Info(strings.Repeat("x", mostWaiting))
	defer time.AfterFunc(patience, func() { _ = near.Close() }).Stop()
	piece := make([]byte, 4096)
	n, err := io.ReadAtLeast(near, piece, 1)
	require.NoError(t, err)
	assert.Equal(t, 1, accounted(t, piece[:n], "xxx"))
}

// A line that is added while another one is written does not change it, also after a pause of the log.
func TestALineStaysWholeWhileItIsWritten(t *testing.T) {
	near, far := io.Pipe()
	defer time.AfterFunc(patience, func() { _ = near.Close() }).Stop()
	log := newLines(far)
	add := func(line string) {
		_, err := log.Write([]byte(line))
		require.NoError(t, err)
	}
	read := func(n int) string {
		piece := make([]byte, n)
		_, err := io.ReadFull(near, piece)
		require.NoError(t, err)
		return string(piece)
	}
	for range 3 {
		add("first\n")
		first := read(2)
		add("other\n")
		assert.Equal(t, "first\nother\n", first+read(10))
		select {
		case <-log.written():
		case <-time.After(patience):
			require.Fail(t, "lines are not written")
		}
	}
}

// The end waits for the last lines.
func TestTheLastLinesAreWritten(t *testing.T) {
	var out bytes.Buffer
	log := newLines(&out)
	log.logger(zap.InfoLevel).Info("the last")
	require.NoError(t, log.Sync())
	assert.Contains(t, out.String(), "\tinfo\tthe last\n")
}
