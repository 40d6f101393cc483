// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/testkit"
)

func oneSpan(name string) ptrace.Traces {
	traces := ptrace.NewTraces()
	traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	return traces
}

func nameOf(traces ptrace.Traces) string {
	return traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()
}

func TestSeriesAreAddedUp(t *testing.T) {
	const text = `# HELP events Events.
# TYPE events counter
events{cause="gap",x="1"} 3
events{cause="gap",x="2"} 4.5
events{cause="idle"} 1e2
events_more 7
total_total 5
bad nothing
`
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"events", nil, 107.5},
		{"events", []string{`cause="gap"`}, 7.5},
		{"events", []string{`cause="gap"`, `x="2"`}, 4.5},
		{"events", []string{`cause="clock"`}, 0},
		{"events_more", nil, 7},
		{"total", nil, 5},
		{"none", nil, 0},
	} {
		got, err := sumOf(text, test.name, test.labels)
		require.NoError(t, err)
		assert.InDelta(t, test.want, got, 0, "%s %v", test.name, test.labels)
	}
	_, err := sumOf(text, "bad", nil)
	assert.ErrorContains(t, err, "metric bad")
}

func TestFilesAreReadWhole(t *testing.T) {
	var file bytes.Buffer
	for _, name := range []string{"a", "b"} {
		message, err := new(ptrace.ProtoMarshaler).MarshalTraces(oneSpan(name))
		require.NoError(t, err)
		file.Write(binary.BigEndian.AppendUint32(nil, uint32(len(message))))
		file.Write(message)
	}
	var names []string
	read := func(b []byte) error {
		names = nil
		return eachTraces(bytes.NewReader(b), func(traces ptrace.Traces) { names = append(names, nameOf(traces)) })
	}
	require.NoError(t, read(file.Bytes()))
	assert.Equal(t, []string{"a", "b"}, names)
	for cut := 1; cut < file.Len(); cut++ {
		if cut != file.Len()/2 {
			assert.Error(t, read(file.Bytes()[:cut]), "the first %d bytes", cut)
		}
	}
}

func TestABackendAnswersAsConfigured(t *testing.T) {
	answer, taken := http.StatusOK, []string(nil)
	endpoint, stop := ServeOTLP(t, Accept{Traces: func(traces ptrace.Traces) int {
		taken = append(taken, nameOf(traces))
		return answer
	}})
	address := endpoint[len("http://"):]
	require.NoError(t, SendOTLP(address, oneSpan("a")))
	answer = http.StatusServiceUnavailable
	require.ErrorContains(t, SendOTLP(address, oneSpan("b")), "expected 200 OK, got 503 Service Unavailable")
	stop()
	require.Error(t, SendOTLP(address, oneSpan("c")))
	assert.Equal(t, []string{"a", "b"}, taken)
}

func TestAddressesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		a := testkit.Address(t)
		assert.False(t, seen[a], a)
		seen[a] = true
	}
}
