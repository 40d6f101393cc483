// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/callbraid/callbraid/internal/calltree"
	"github.com/callbraid/callbraid/internal/rbkit/capture"
	"github.com/callbraid/callbraid/internal/rbkitserver"
	"github.com/callbraid/callbraid/internal/telemetrytest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver"
	"github.com/callbraid/callbraid/test/testbed"
)

// replayRbkit plays a captured server to its receiver, which hands on its profiles.
func replayRbkit(t *testing.T, name string, next xconsumer.Profiles) {
	t.Helper()
	c, err := capture.Open("../../testdata/rbkit/" + name + ".zip")
	require.NoError(t, err)
	server := rbkitserver.New(rbkitserver.Options{Hello: rbkitserver.Hello(c)})
	publish, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, publish, nil) }()
	defer func() {
		end()
		<-served
	}()

	factory := rbkitreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"servers": []any{map[string]any{"publish": publish.Addr().String(), "service_name": capturedService}},
	}).Unmarshal(config))
	telemetry := componenttest.NewTelemetry()
	settings := receivertest.NewNopSettings(factory.Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	receiver, err := factory.(xreceiver.Factory).CreateProfiles(ctx, settings, config, next)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(ctx, componenttest.NewNopHost()))
	testbed.Eventually(t, "the receiver subscribes", func() (bool, string) {
		return server.Subscribers() > 0, fmt.Sprint(server.Subscribers(), " subscribers")
	})
	require.NoError(t, server.Replay(ctx, c, 0, nil))
	testbed.Eventually(t, "all messages are received", func() (bool, string) {
		received := telemetrytest.Sum(t, telemetry, "otelcol_receiver_rbkit_messages")
		return received >= int64(len(c.Messages)), fmt.Sprintf("%d of %d messages", received, len(c.Messages))
	})
	// What has not been handed on is now.
	require.NoError(t, receiver.Shutdown(ctx))
	require.NoError(t, telemetry.Shutdown(ctx))
}

// goldenStacks are the samples of a golden file of the receiver, by stack: names from the
// outermost on; and how many there are in all.
func goldenStacks(t *testing.T, name string) (stacks map[string]int64, all int64) {
	t.Helper()
	text, err := os.ReadFile("../../receiver/rbkitreceiver/testdata/golden/" + name + "/profiles.txt")
	require.NoError(t, err)
	stacks = map[string]int64{}
	isSamples := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "== ") {
			isSamples = strings.HasPrefix(line, "== samples in count")
			continue
		}
		if !isSamples {
			continue
		}
		line = strings.TrimSpace(line)
		value, err := strconv.ParseInt(line[strings.LastIndex(line, " ")+1:], 10, 64)
		require.NoError(t, err)
		var names []string
		for _, frame := range strings.Split(line[:strings.LastIndex(line, " {")], "; ") {
			names = append(names, frame[:strings.LastIndex(frame, "@")])
		}
		stacks[strings.Join(names, "; ")] += value
		all += value
	}
	return stacks, all
}

// The CPU samples of real Ruby programs, as their receiver hands them on, show the frames
// that its golden files have.
func TestProfilesOfRubyProgramsShowTheirFrames(t *testing.T) {
	for _, name := range []string{"released-30s", "documented-30s"} {
		t.Run(name, func(t *testing.T) {
			want, all := goldenStacks(t, name)
			require.NotEmpty(t, want)
			g := newBed(t)
			samples := calltree.Kind{Type: "samples", Unit: "count"}
			next, err := xconsumer.NewProfiles(g.consumeProfiles)
			require.NoError(t, err)
			replayRbkit(t, name, next)
			snapshot, ok := g.store.Snapshot(capturedService, samples)
			require.True(t, ok)
			stacks, sum := map[string]int64{}, int64(0)
			names := make([]string, len(snapshot.Nodes))
			for i, n := range snapshot.Nodes {
				names[i] = n.Function
				if n.Parent >= 0 {
					names[i] = names[n.Parent] + "; " + n.Function
				}
				if n.Self > 0 {
					stacks[names[i]] = n.Self
					sum += n.Self
				}
			}
			assert.Equal(t, all, sum)
			assert.Equal(t, want, stacks)
			assert.Contains(t, fmt.Sprint(snapshot.Nodes), ".rb", "frames have their files")
		})
	}
}
