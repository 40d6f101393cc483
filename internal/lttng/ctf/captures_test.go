// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctf_test

import (
	"cmp"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// The reference reader adds these to an event: the name of the directory, and the results of its search in the debug
// information of programs.
var (
	traceName = regexp.MustCompile(`trace = [^,]*, (, )?`)
	debugInfo = regexp.MustCompile(`, debug_info = \{ [^}]*\}`)
)

func TestEventsOfCapturesEqualThoseOfTheReferenceReader(t *testing.T) {
	for _, c := range lttngdata.Captures {
		t.Run(c.Name, func(t *testing.T) {
			files := lttngdata.OpenCapture(t, c.Name)
			dir := lttngdata.OpenTrace(t, files)
			type event struct {
				time int64
				text string
			}
			var got []event
			var discarded uint64
			for _, packets := range lttngdata.Packets(t, dir) {
				r := ctf.NewReader(dir.Trace)
				for _, packet := range packets {
					require.NoError(t, r.Begin(packet))
					for _, loss := range r.Losses {
						require.Equal(t, ctf.DiscardedEvents, loss.Kind)
						require.LessOrEqual(t, loss.From, loss.To)
						discarded += loss.Count
					}
					for r.Next() {
						got = append(got, event{r.Event.UnixNano(), rendered(r)})
					}
					require.NoError(t, r.Err())
				}
			}
			slices.SortStableFunc(got, func(a, b event) int { return cmp.Compare(a.time, b.time) })
			want := printedEvents(t, files, "babeltrace1-offline.txt")
			require.Equal(t, c.Events, len(want))
			require.Equal(t, c.Events, len(got))
			for i, line := range want {
				line = debugInfo.ReplaceAllString(traceName.ReplaceAllString(line, ""), "")
				require.Equal(t, line, got[i].text, "event %d", i)
			}
			assert.Equal(t, c.Discarded, discarded)
		})
	}
}
