// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a storage that outlives collectors.
type disk struct {
	mu      sync.Mutex
	values  map[string][]byte
	failure error // of writing
	unread  error // of reading
	closed  int
}

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.values[key], d.unread
}

func (d *disk) Set(context.Context, string, []byte) error { return errors.New("not used") }
func (d *disk) Delete(context.Context, string) error      { return errors.New("not used") }
func (d *disk) Close(context.Context) error               { d.closed++; return nil }

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failure != nil {
		return d.failure
	}
	for _, o := range operations {
		switch o.Type {
		case storage.Set:
			d.values[o.Key] = slices.Clone(o.Value)
		case storage.Delete:
			delete(d.values, o.Key)
		}
	}
	return nil
}

// searchable is a disk that can be searched.
type searchable struct{ *disk }

func (s searchable) Walk(_ context.Context, visit storage.WalkFunc) error {
	var all []*storage.Operation
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		operations, err := visit(key, s.values[key])
		if err != nil {
			return err
		}
		all = append(all, operations...)
	}
	return s.Batch(context.Background(), all...)
}

// trees are the keys of trees on the disk.
func (d *disk) trees() (keys []string) {
	for key := range d.values {
		if strings.HasPrefix(key, treePrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// bed is a collector's history over restarts.
type bed struct {
	t        testing.TB
	now      time.Time
	client   storage.Client
	settings Settings
	bounds   calltree.Settings
	dropped  map[Reason]int
	log      *observer.ObservedLogs

	store *calltree.Store
	*History
}

// morning is a Saturday at ten.
var morning = time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)

func newBed(t testing.TB, client storage.Client, changes ...func(*bed)) *bed {
	core, log := observer.New(zapcore.InfoLevel)
	b := &bed{t: t, now: morning.Add(5 * time.Minute), client: client, dropped: map[Reason]int{}, log: log}
	b.settings = Settings{
		Hours: 48, Days: 31, MaxBytes: 64 << 20, MaxPaths: 100_000, Interval: time.Minute,
		Reserve: func(int64) (func(), error) { return func() {}, nil },
		Dropped: func(reason Reason, trees int) { b.dropped[reason] += trees },
		Logger:  zap.New(core), Now: func() time.Time { return b.now },
	}
	b.bounds = calltree.Settings{
		PendingTimeout: time.Hour, MaxServices: 100, MaxNodes: 100_000, MaxPending: 10_000, MaxNameBytes: 100, MaxNamesBytes: 1 << 20,
		MaxWindows: 10, Periods: true, Now: func() time.Time { return b.now },
	}
	for _, change := range changes {
		change(b)
	}
	b.open()
	return b
}

// open starts a collector.
func (b *bed) open() {
	b.t.Helper()
	b.store = calltree.NewStore(b.bounds)
	var err error
	b.History, err = Open(b.t.Context(), b.client, b.store, b.settings)
	require.NoError(b.t, err)
}

// restart ends the collector in order, and starts the next one.
func (b *bed) restart() {
	b.t.Helper()
	require.NoError(b.t, b.Close(b.t.Context()))
	b.open()
}

func (b *bed) save() { b.Save(b.t.Context()) }

// call folds calls of a path such as "main;work" of a service, which take a microsecond each.
func (b *bed) call(service, path string, calls int) {
	paths, at := calltree.NewCallPaths(), uint32(0)
	for name := range strings.SplitSeq(path, ";") {
		at = paths.Below(at, paths.AddFrame(calltree.Frame{Function: name}), calltree.Plain)
	}
	paths.Add(at, uint64(calls), 0, int64(calls)*1000, false)
	b.store.FoldPaths(calltree.Origin{Service: service}, paths, time.Second)
}

// folded are the calls of a tree by path.
func folded(s calltree.Snapshot) map[string]int {
	all, names := map[string]int{}, make([]string, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if names[i] = n.Function; n.Parent >= 0 {
			names[i] = names[n.Parent] + ";" + n.Function
		}
		if n.Calls > 0 {
			all[names[i]] += int(n.Calls)
		}
		if n.Self != 1000*int64(n.Calls) {
			all["wrong time of "+names[i]] = int(n.Self)
		}
	}
	return all
}

// at are the calls of a window by path; nothing: none are stored.
func (b *bed) at(service, window string) map[string]int {
	b.t.Helper()
	s, err := b.tree(service, window)
	if errors.Is(err, ErrNotStored) {
		return nil
	}
	require.NoError(b.t, err)
	return folded(s)
}

func (b *bed) tree(service, window string) (calltree.Snapshot, error) {
	b.t.Helper()
	w, err := storedtree.ParseWindow(window)
	require.NoError(b.t, err)
	return b.Tree(b.t.Context(), service, calltree.Calls, w)
}

// live are the calls of the tree itself.
func (b *bed) live(service string) map[string]int {
	s, _ := b.store.Snapshot(service, calltree.Calls)
	return folded(s)
}

// logged returns the messages of log lines since the last call.
func (b *bed) logged() (all []string) {
	for _, entry := range b.log.TakeAll() {
		all = append(all, fmt.Sprint(entry.Level, ": ", entry.Message))
	}
	return all
}

// windows are the texts of the windows of a service.
func (b *bed) windows(service string) (all []string) {
	for _, w := range b.Windows(service, calltree.Calls) {
		all = append(all, w.String())
	}
	return all
}

func (b *bed) equal(want, got map[string]int, text string, values ...any) {
	b.t.Helper()
	if len(want) > 0 || len(got) > 0 {
		assert.Equal(b.t, want, got, fmt.Sprintf(text, values...))
	}
}
