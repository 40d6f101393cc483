// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/ctf/merge"
	"github.com/callbraid/callbraid/internal/testkit/lttngdata"
)

// printed matches the time and the name of each event in a text of babeltrace.
var printed = regexp.MustCompile(`(?m)^timestamp = ([0-9:.]+), .*?, name = ([^,]+), `)

func TestMergedEventsOfCapturesAreInTheOrderOfTheReferenceReader(t *testing.T) {
	for _, c := range lttngdata.Captures {
		t.Run(c.Name, func(t *testing.T) {
			files := lttngdata.OpenCapture(t, c.Name)
			dir := lttngdata.OpenTrace(t, files)
			m := merge.New(dir.Trace, merge.Options{})
			for i, packets := range lttngdata.Packets(t, dir) {
				s := m.AddStream(uint64(i), dir.Streams[i])
				for _, packet := range packets {
					s.Packet(packet, nil)
				}
				s.End()
			}
			var got []string
			var discarded uint64
			var open int
			for kind := m.Next(); kind != merge.Nothing; kind = m.Next() {
				switch kind {
				case merge.Event:
					assert.False(t, m.Late)
					assert.Equal(t, m.Event.UnixNano(), m.Time)
					got = append(got, line(m))
				case merge.LossBegin:
					assert.Equal(t, merge.Discarded, m.Loss.Cause)
					assert.LessOrEqual(t, m.Loss.From, m.Loss.To)
					discarded += m.Loss.Count
					open++
				case merge.LossEnd:
					open--
				}
			}
			require.NoError(t, m.Err())
			assert.Zero(t, m.Waiting())
			assert.Zero(t, open)
			assert.Equal(t, c.Discarded, discarded)
			assert.Len(t, got, c.Events)
			require.Equal(t, strings.Join(referenceLines(t, files), "\n"), strings.Join(got, "\n"))
		})
	}
}

// line returns the time and the name of the last event, in the format of the reference reader.
func line(m *merge.Merger) string {
	return time.Unix(0, m.Time).UTC().Format("15:04:05.000000000 ") + m.Event.Class.Name
}
