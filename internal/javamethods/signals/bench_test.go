// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/session"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/internal/testkit/cputime"
)

// BenchmarkTreesToSpans makes spans of call trees, a full batch at a time, and copies them.
func BenchmarkTreesToSpans(b *testing.B) {
	config := receiverkit.DefaultConfig()
	kit, err := receiverkit.New(receivertest.NewNopSettings(component.MustNewType("greys")), &config, receiverkit.Names{Format: "greys", Scope: "github.com/callbraid/callbraid/receiver/greysreceiver"})
	require.NoError(b, err)
	_, names := newNames("greys")
	o := &Spans{kit: kit, names: names}
	of := (&Server{Tracer: "greys", Endpoint: "localhost:3658"}).Origin(pcommon.NewResource(), session.Identity{PID: 4711, Version: "1.7.6.6", Protocol: "console"}, receivedAt)
	tree := &javamethods.Tree{
		Thread: javamethods.Thread{Name: "main", ID: 1},
		Nodes:  []javamethods.Node{{End: ms(40), Class: "com.example.shop.Service0", Method: "operation0"}},
	}
	for i := range 9 {
		at := time.Duration(i) * 4 * time.Millisecond
		tree.Nodes = append(tree.Nodes, javamethods.Node{
			Depth: 1, Start: at, End: at + ms(3), Class: "com.example.shop.Service" + fmt.Sprint(i), Method: "operation", Line: 12,
		})
	}
	parcels := make([]spanParcel, parcelsAtOnce)
	spans := parcelsAtOnce * len(tree.Nodes)
	var made ptrace.Traces
	b.Run("made", func(b *testing.B) {
		cputime.Events(b, spans, func() {
			for i := range parcels {
				parcels[i], _ = treeSpans(of, tree, receivedAt, 10_000)
			}
			made = o.batch(parcels)
		})
		require.Equal(b, spans, made.SpanCount())
	})
	b.Run("copied", func(b *testing.B) { cputime.CopyTraces(b, spans, made) })
}
