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

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/telemetrytest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver"
)

// replayRbkit plays a captured server to its receiver, which sends its profiles to next.
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
	testkit.Eventually(t, "the receiver subscribes", func() (bool, string) {
		return server.Subscribers() > 0, fmt.Sprint(server.Subscribers(), " subscribers")
	})
	require.NoError(t, server.Replay(ctx, c, 0, nil))
	testkit.Eventually(t, "all messages are received", func() (bool, string) {
		received := telemetrytest.Sum(t, telemetry, "otelcol_receiver_rbkit_messages")
		return received >= int64(len(c.Messages)), fmt.Sprintf("%d of %d messages", received, len(c.Messages))
	})
	// The shutdown sends the remaining profiles.
	require.NoError(t, receiver.Shutdown(ctx))
	require.NoError(t, telemetry.Shutdown(ctx))
}

// goldenStacks are the samples of a kind in a golden file of the receiver, by stack: names from
// the outermost on, and the class of the objects that were sampled; and how many there are in all.
func goldenStacks(t *testing.T, name string, kind calltree.Kind) (stacks map[string]int64, all int64) {
	t.Helper()
	text, err := os.ReadFile("../../receiver/rbkitreceiver/testdata/golden/" + name + "/profiles.txt")
	require.NoError(t, err)
	stacks = map[string]int64{}
	isSamples := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "== ") {
			isSamples = strings.HasPrefix(line, "== "+kind.Type+" in "+kind.Unit+",")
			continue
		}
		if !isSamples {
			continue
		}
		line = strings.TrimSpace(line)
		value, err := strconv.ParseInt(line[strings.LastIndex(line, " ")+1:], 10, 64)
		require.NoError(t, err)
		if value == 0 {
			continue // as of objects of which the size is not known
		}
		var names []string
		for _, frame := range strings.Split(line[:strings.LastIndex(line, " {")], "; ") {
			names = append(names, frame[:strings.LastIndex(frame, "@")])
		}
		if _, class, ok := strings.Cut(line, "{"+attributeClass+"="); ok {
			names = append(names, class[:strings.LastIndex(class, "} ")])
		}
		stacks[strings.Join(names, "; ")] += value
		all += value
	}
	return stacks, all
}

// The CPU samples and the allocations of real Ruby programs, as their receiver sends them, show
// the frames that its golden files have, and the classes.
func TestProfilesOfRubyProgramsShowTheirFrames(t *testing.T) {
	samples := calltree.Kind{Type: "samples", Unit: "count"}
	for name, kinds := range map[string][]calltree.Kind{
		"released-30s":   {samples},
		"documented-30s": {samples, {Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newBed(t)
			next, err := xconsumer.NewProfiles(g.consumeProfiles)
			require.NoError(t, err)
			replayRbkit(t, name, next)
			for _, kind := range kinds {
				want, all := goldenStacks(t, name, kind)
				require.NotEmpty(t, want, kind)
				snapshot, ok := g.store.Snapshot(capturedService, kind)
				require.True(t, ok, kind)
				stacks, sum := shownStacks(snapshot)
				assert.Equal(t, all, sum, kind)
				assert.Equal(t, want, stacks, kind)
				assert.Contains(t, fmt.Sprint(snapshot.Nodes), ".rb", "frames have their files")
			}
		})
	}
}

// shownStacks are the stacks of a snapshot that have values, as goldenStacks are.
func shownStacks(snapshot calltree.Snapshot) (stacks map[string]int64, sum int64) {
	stacks = map[string]int64{}
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
	return stacks, sum
}
