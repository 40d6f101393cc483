// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flamegraphexporter

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/history"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadata"
	"github.com/callbraid/callbraid/exporter/flamegraphexporter/internal/metadatatest"
	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
	"github.com/callbraid/callbraid/internal/componentkit/storageclient"
)

// disk is a storage extension that outlives exporters.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu      sync.Mutex
	values  map[string][]byte
	failure error // of GetClient
	unread  error // of Get
	open    int
	of      []string
}

func (d *disk) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return nil, d.failure
	}
	d.open++
	d.of = append(d.of, kind.String()+" "+id.String()+name)
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.values[key], d.unread
}

func (d *disk) Set(context.Context, string, []byte) error { return errors.New("not used") }
func (d *disk) Delete(context.Context, string) error      { return errors.New("not used") }

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range operations {
		switch o.Type {
		case storage.Set:
			d.values[o.Key] = o.Value
		case storage.Delete:
			delete(d.values, o.Key)
		}
	}
	return nil
}

func (d *disk) Close(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	return nil
}

var fileStorage = component.MustNewID("file_storage")

type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }

func hostOf(d *disk) component.Host {
	return hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{fileStorage: d}}
}

func withStorage(c *Config) { c.Storage = &fileStorage }

// now is the address of the current hour of the service shop. At the end of an hour it may be the next.
func now() string { return "/services/shop/at/" + storedtree.HourOf(time.Now()).String() + "/" }

func TestTreesSurviveARestart(t *testing.T) {
	d := &disk{values: map[string][]byte{}}
	g, address := servingFor(t, nil, hostOf(d), withStorage)
	fold(g, 3)
	hour := now()
	_, of := get(t, address+hour+"profile.folded")
	if strings.Contains(of, "no calls") { // the next hour has begun
		hour = now()
	}
	require.NoError(t, g.Shutdown(t.Context()))
	assert.Zero(t, d.open)
	assert.Equal(t, []string{"Exporter " + g.set.ID.String()}, d.of)

	g, address = servingFor(t, nil, hostOf(d), withStorage)
	for page, want := range map[string]string{
		"/": "shop", "/services/shop/": "work", "/services/shop/profile.folded": "main;work 150\n", hour: "work", hour + "profile.folded": "main;work 150\n",
	} {
		status, body := get(t, address+page)
		assert.Equal(t, http.StatusOK, status, page)
		assert.Contains(t, body, want, page)
	}
	fold(g, 2)
	_, body := get(t, address+"/services/shop/profile.folded")
	assert.Contains(t, body, "main;work 250\n")
	assert.EqualValues(t, 4+3, g.store.Services()[0].Calls)
	assert.Positive(t, g.history.Load().Stored())
}

func TestAResetIsNotUndoneByARestart(t *testing.T) {
	for _, form := range []string{"service=shop", ""} {
		d := &disk{values: map[string][]byte{}}
		g, address := servingFor(t, nil, hostOf(d), withStorage)
		fold(g, 3)
		r, err := client.Post(address+"/reset", "application/x-www-form-urlencoded", strings.NewReader(form))
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		windows := g.history.Load().Windows("shop", calltree.Calls)
		require.Len(t, windows, 2, "the hour keeps its calls")

		// The first collector is killed: the next one opens its stored trees.
		next, _ := servingFor(t, nil, hostOf(d), withStorage)
		for _, service := range next.store.Services() {
			assert.Zero(t, service.Calls)
		}
		s, err := next.history.Load().Tree(t.Context(), "shop", calltree.Calls, windows[1])
		require.NoError(t, err)
		assert.Len(t, s.Nodes, 2)
	}
}

func TestAWrongStorageFailsTheStart(t *testing.T) {
	for want, host := range map[string]component.Host{
		`storage is "file_storage": there is no such extension`: componenttest.NewNopHost(),
		`storage is "file_storage": it is no storage extension`: hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{
			fileStorage: struct {
				component.StartFunc
				component.ShutdownFunc
			}{},
		}},
	} {
		config := createDefaultConfig().(*Config)
		config.NetAddr.Endpoint = "localhost:0"
		withStorage(config)
		g := bedOf(t, exportertest.NewNopSettings(metadata.Type), config)
		err := g.Start(t.Context(), host)
		assert.ErrorIs(t, err, storageclient.ErrSetting)
		assert.ErrorContains(t, err, want)
		assert.NoError(t, g.Shutdown(t.Context()))
	}
}

func TestABrokenStorageDoesNotFailTheStart(t *testing.T) {
	for _, d := range []*disk{{failure: errors.New("invalid database")}, {unread: errors.New("input/output error")}} {
		core, log := observer.New(zap.WarnLevel)
		config := createDefaultConfig().(*Config)
		config.NetAddr.Endpoint = "localhost:0"
		withStorage(config)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		g := bedOf(t, set, config)
		require.NoError(t, g.Start(t.Context(), hostOf(d)))
		fold(g, 1)
		status, _ := get(t, "http://"+g.server.address.String()+"/services/shop/")
		assert.Equal(t, http.StatusOK, status)
		lines := log.FilterMessageSnippet("The storage cannot be opened: call trees are in memory only").All()
		assert.Len(t, lines, 1)
		assert.Zero(t, d.open)
		assert.NoError(t, g.Shutdown(t.Context()))
	}
}

// Data arrives until the exporters of all signals are shut down.
func TestTheLastSignalSaves(t *testing.T) {
	d := &disk{values: map[string][]byte{}}
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.NetAddr.Endpoint = "localhost:0"
	withStorage(config)
	set := exportertest.NewNopSettings(metadata.Type)
	first, err := factory.CreateTraces(t.Context(), set, config)
	require.NoError(t, err)
	last, err := factory.CreateTraces(t.Context(), set, config)
	require.NoError(t, err)
	require.NoError(t, first.Start(t.Context(), hostOf(d)))
	require.NoError(t, last.Start(t.Context(), hostOf(d)))
	require.NoError(t, first.Shutdown(t.Context()))
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("late")
	require.NoError(t, last.ConsumeTraces(t.Context(), td))
	require.NoError(t, last.Shutdown(t.Context()))

	g, address := servingFor(t, nil, hostOf(d), withStorage)
	assert.Len(t, g.store.Services(), 1)
	_, body := get(t, address+"/services/"+unknownService+"/")
	assert.Contains(t, body, "late")
}

func TestDroppedStoredTreesAreCountedByReason(t *testing.T) {
	b := newBed(t)
	var want []metricdata.DataPoint[int64]
	for i, reason := range []history.Reason{history.ReasonLimit, history.ReasonRefused, history.ReasonUnreadable, history.ReasonMemory} {
		b.droppedStored(reason, i+3)
		want = append(want, metricdata.DataPoint[int64]{Value: int64(i) + 3, Attributes: attribute.NewSet(
			attribute.String("exporter", metadata.Type.String()), attribute.String("reason", string(reason)))})
	}
	metadatatest.AssertEqualExporterFlameGraphDroppedStoredTrees(t, b.telemetry, want, metricdatatest.IgnoreTimestamp())
}
