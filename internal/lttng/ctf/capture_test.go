// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/printed"
)

// readAll reads all packets of one stream and calls event for each event.
func readAll(t testing.TB, trace *ctf.Trace, packets [][]byte, event func(*ctf.Reader)) {
	t.Helper()
	r := ctf.NewReader(trace)
	for _, packet := range packets {
		require.NoError(t, r.Begin(packet))
		for r.Next() {
			event(r)
		}
		require.NoError(t, r.Err())
	}
}

// printedEvents returns the texts of the events in a file of a capture.
func printedEvents(t testing.TB, files fs.FS, name string) []string {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	events, err := printed.Split(string(text))
	require.NoError(t, err)
	return events
}
