// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/calltree"
	"github.com/callbraid/callbraid/internal/call/storedtree"
	"github.com/callbraid/callbraid/internal/componentkit/logline"
)

// Settings are the bounds of a history, and its surroundings.
type Settings struct {
	// Hours and Days are the numbers of windows that are kept, beside the current ones.
	Hours, Days int
	// MaxBytes bounds the stored data. MaxPaths bounds the paths of a sum.
	MaxBytes int64
	MaxPaths int
	// Interval is the time between two saves.
	Interval time.Duration
	// Reserve reserves memory in bytes for a save, or fails if there is none.
	Reserve func(bytes int64) (release func(), err error)
	// Dropped is called for trees of windows that are lost.
	Dropped func(reason Reason, trees int)
	Logger  *zap.Logger
	Now     func() time.Time
}

// Reason is why a tree of a window was dropped.
type Reason string

// The reasons.
const (
	// ReasonLimit: the stored data reached its bound.
	ReasonLimit Reason = "limit"
	// ReasonRefused: the storage did not accept it.
	ReasonRefused Reason = "refused"
	// ReasonUnreadable: it was damaged.
	ReasonUnreadable Reason = "unreadable"
	// ReasonMemory: the memory budget had no room for saving it.
	ReasonMemory Reason = "memory"
)

// History has the stored trees of an exporter. Many goroutines can use it.
type History struct {
	settings Settings
	store    *calltree.Store
	client   storage.Client
	// started is when this collector began to record.
	started time.Time

	// saving is held during a save. The encoder belongs to it.
	saving  sync.Mutex
	encoder *storedtree.Encoder
	// unsaved, limited and short are bursts of log lines.
	unsaved, limited, short logline.Burst

	// mu is held while the fields below change. It may be held when the store's lock is taken, and never the other way round.
	mu      sync.Mutex
	trees   map[treeKey]*trees
	hour    storedtree.Window
	part    uint64
	deleted []string // keys
	// interrupted are the last saves of collectors that did not end in order.
	interrupted []time.Time
	// unlisted is the number of entries of other versions that are not in the catalog.
	unlisted int
	failure  error // of the last save

	// memory is about the memory of the history, and stored the size of the stored data, in bytes.
	memory, stored atomic.Int64
	end            context.CancelFunc
	saved          sync.WaitGroup
}

type treeKey struct {
	service string
	kind    calltree.Kind
}

// trees are the entries of a service and kind.
type trees struct {
	entries []*entry
	// number is that of the current tree in the store; 0: there is none. changes are those at its last save, if isSaved.
	number, changes uint64
	isSaved         bool
	// hour is the entry of the current hour of the current tree, and live that of the tree; nil: there is none.
	hour, live *entry
}

// entry is a stored tree.
type entry struct {
	storedtree.Listed
	// data is waiting to be stored; nil: the storage has it.
	data []byte
	// isStored: the storage has this or an earlier state.
	isStored bool
	// isKnown: the log says that it cannot be read.
	isKnown bool
	// isForeign: another version of the collector stored it.
	isForeign bool
	// isUnread is for a live tree that the storage did not return at the start.
	isUnread bool
	// isMerged is for a live tree whose calls are in that of its trees, too. It goes when that is stored.
	isMerged bool
}

const (
	catalogKey = "catalog"
	treePrefix = "tree."

	// entryBytes is about what an entry takes in a storage beside its data, and entryMemory in memory.
	entryBytes  = 1024
	entryMemory = 250
	// maxWaiting bounds the data that waits after the storage refused it, in bytes.
	maxWaiting = 16 << 20
	// maxInterrupted bounds the known interruptions.
	maxInterrupted = 1000
	// pathMemory is the memory for saving a path, in bytes: copies of a node, and its encoded form.
	pathMemory = 400
)

func keyOf(part uint64) string { return treePrefix + strconv.FormatUint(part, 10) }

// Open returns the history of a storage, and restores the trees that the last collector left in it. It fails only if the storage
// cannot be read at all.
func Open(ctx context.Context, client storage.Client, store *calltree.Store, settings Settings) (*History, error) {
	h := &History{
		settings: settings, store: store, client: client, encoder: storedtree.NewEncoder(),
		trees: map[treeKey]*trees{}, started: settings.Now(), hour: storedtree.HourOf(settings.Now()),
	}
	if err := h.readCatalog(ctx); err != nil {
		return nil, err
	}
	if err := h.adopt(ctx); err != nil {
		return nil, err
	}
	h.restore(ctx)
	h.mu.Lock()
	h.measure()
	h.mu.Unlock()
	return h, nil
}

// readCatalog reads the catalog of the last collector.
func (h *History) readCatalog(ctx context.Context) error {
	stored, err := h.client.Get(ctx, catalogKey)
	if err != nil {
		return fmt.Errorf("read the list of call trees: %w", err)
	}
	if stored == nil {
		return nil
	}
	catalog, err := storedtree.DecodeCatalog(stored)
	if _, canSearch := h.client.(storage.Walker); !canSearch && errors.As(err, new(storedtree.VersionError)) {
		// A new list would lose the trees.
		return fmt.Errorf("read the list of call trees: %w", err)
	}
	if err != nil {
		h.settings.Logger.Warn("The list of stored call trees cannot be read: the storage is searched for them", zap.Error(err))
		return nil
	}
	h.part, h.interrupted = catalog.LastPart, catalog.Interrupted
	for _, listed := range catalog.Entries {
		t := h.of(treeKey{listed.Service, listed.Kind})
		t.entries = append(t.entries, &entry{Listed: listed, isStored: true})
	}
	if !catalog.IsClosed {
		h.interrupted = append(h.interrupted, catalog.Saved)
		h.interrupted = h.interrupted[max(0, len(h.interrupted)-maxInterrupted):]
		h.settings.Logger.Warn("The last collector ended without saving its call trees: calls since the last save are missing",
			zap.Time("last_save", catalog.Saved))
	}
	return nil
}

// adopt searches the storage for trees that are not in the catalog, if it can be searched, and for those of other versions, which it
// leaves.
func (h *History) adopt(ctx context.Context) error {
	walker, ok := h.client.(storage.Walker)
	if !ok {
		return nil
	}
	known := map[string]*entry{}
	for _, t := range h.trees {
		for _, e := range t.entries {
			known[keyOf(e.Part)] = e
		}
	}
	adopted, damaged, foreign := 0, 0, 0
	var version storedtree.VersionError
	err := walker.Walk(ctx, func(key string, value []byte) ([]*storage.Operation, error) {
		if !strings.HasPrefix(key, treePrefix) {
			return nil, nil
		}
		if e := known[key]; e != nil {
			if errors.As(storedtree.CheckVersion(value), &version) {
				e.isForeign, e.isKnown = true, true
				foreign++
			}
			return nil, nil
		}
		// A later part must not get the number.
		if part, err := strconv.ParseUint(strings.TrimPrefix(key, treePrefix), 10, 64); err == nil {
			h.part = max(h.part, part)
		}
		header, err := storedtree.DecodeHeader(value)
		switch {
		case errors.As(err, &version):
			h.unlisted++
			foreign++
			return nil, nil
		case err == nil && keyOf(header.Part) == key:
			adopted++
			t := h.of(treeKey{header.Service, header.Kind})
			t.entries = append(t.entries, &entry{isStored: true, Listed: storedtree.Listed{
				Window: header.Window, Part: header.Part, Service: header.Service, Kind: header.Kind, Paths: header.Paths, Bytes: len(value),
			}})
			return nil, nil
		}
		damaged++
		return []*storage.Operation{storage.DeleteOperation(key)}, nil
	})
	if err != nil {
		return fmt.Errorf("search for call trees: %w", err)
	}
	if adopted > 0 {
		h.settings.Logger.Info("Call trees that were not listed are found again", zap.Int("trees", adopted))
	}
	if damaged > 0 {
		h.settings.Logger.Warn("Stored call trees that were not listed are damaged, and are deleted", zap.Int("trees", damaged))
		h.settings.Dropped(ReasonUnreadable, damaged)
	}
	if foreign > 0 {
		h.logForeign(foreign, version)
	}
	return nil
}

func (h *History) logForeign(trees int, reason error) {
	h.settings.Logger.Warn("Call trees that another version of the collector stored are not shown; they stay in the storage",
		zap.Int("trees", trees), zap.Error(reason))
}

// restore restores the trees themselves. If several are of one service and kind, each began again because the ones before could not be
// read then, so the tree is their sum. Two kinds of trees that cannot be read now stay: those of another version, and those that the
// storage did not return.
func (h *History) restore(ctx context.Context) {
	foreign, unread := 0, 0
	var reason, failure error
	for key, t := range h.trees {
		for _, e := range t.liveEntries() {
			stored, err := h.load(ctx, e)
			switch {
			case err == nil:
				if t.live != nil {
					t.live.isMerged = true
				}
				t.live = e
				s := stored.Snapshot
				s.From, s.To = s.From.Local(), s.To.Local()
				h.store.Restore(s)
			case e.isForeign: // adopt has logged it
			case errors.As(err, new(storedtree.VersionError)):
				e.isForeign, e.isKnown = true, true
				reason = err
				foreign++
			case errors.As(err, new(unreadable)):
				h.settings.Logger.Warn("A stored call tree cannot be read: the tree begins again", zap.String("service", key.service), zap.Error(err))
				h.settings.Dropped(ReasonUnreadable, 1)
				h.remove(t, e)
			default:
				e.isUnread = true
				failure = err
				unread++
			}
		}
	}
	if foreign > 0 {
		h.logForeign(foreign, reason)
	}
	if unread > 0 {
		h.settings.Logger.Warn("The storage did not return some call trees: they begin again, and the next start reads them once more",
			zap.Int("trees", unread), zap.Error(failure))
	}
	restored := 0
	for _, tree := range h.store.Trees() {
		if t := h.trees[treeKey{tree.Service, tree.Kind}]; t != nil {
			isSum := slices.ContainsFunc(t.entries, func(e *entry) bool { return e.isMerged })
			t.number, t.changes, t.isSaved = tree.Number, tree.Changes, !isSum
			restored++
		}
	}
	if restored > 0 {
		h.settings.Logger.Info("Call trees of the last collector are restored", zap.Int("trees", restored))
	}
}

// liveEntries returns the entries of the tree as a whole, the oldest first: see [History.restore].
func (t *trees) liveEntries() (all []*entry) {
	for _, e := range t.entries {
		if e.Window.Length == storedtree.Live {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.Part, b.Part) })
	return all
}

// isReplaced reports whether the next save stores the calls of an entry in that of the live tree.
func (t *trees) isReplaced(e *entry) bool { return e.isMerged && t.live != nil && t.live.data != nil }

// ForgetUnrestored removes live trees of services that were not restored because they could not be read. A reset needs it: an upgrade
// would bring them back.
func (h *History) ForgetUnrestored(isOf func(service string) bool) {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, t := range h.trees {
		if !isOf(key.service) {
			continue
		}
		for _, e := range t.liveEntries() {
			if e.isForeign || e.isUnread {
				h.remove(t, e)
			}
		}
	}
}

// of returns the trees of a service and kind.
func (h *History) of(key treeKey) *trees {
	t := h.trees[key]
	if t == nil {
		t = &trees{}
		h.trees[key] = t
	}
	return t
}

// remove removes an entry.
func (h *History) remove(t *trees, e *entry) {
	t.entries = slices.DeleteFunc(t.entries, func(other *entry) bool { return other == e })
	if e.isStored {
		h.deleted = append(h.deleted, keyOf(e.Part))
	}
	if t.hour == e {
		t.hour = nil
	}
	if t.live == e {
		t.live = nil
	}
}

// load returns the stored tree of an entry. An error that is no [unreadable] is one of the storage.
func (h *History) load(ctx context.Context, e *entry) (*storedtree.Entry, error) {
	data := e.data
	if data == nil {
		var err error
		if data, err = h.client.Get(ctx, keyOf(e.Part)); err != nil {
			return nil, err
		}
		if data == nil {
			return nil, unreadable{errors.New("the storage does not have it any more")}
		}
	}
	stored, err := storedtree.Decode(data)
	switch {
	case err != nil:
		return nil, unreadable{err}
	case stored.Part != e.Part || stored.Window != e.Window || stored.Snapshot.Service != e.Service || stored.Snapshot.Kind != e.Kind:
		return nil, unreadable{errors.New("expected another tree at its place in the storage")}
	}
	return stored, nil
}

// unreadable is the error of an entry that cannot be read.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// Start begins to save.
func (h *History) Start() {
	life, end := context.WithCancel(context.Background())
	h.end = end
	h.saved.Go(func() {
		for {
			timer := time.NewTimer(h.untilNextSave())
			select {
			case <-timer.C:
				h.Save(life)
			case <-life.Done():
				timer.Stop()
				return
			}
		}
	})
}

// untilNextSave is the time until the next save: that of the interval, or the end of the hour if that is earlier.
func (h *History) untilNextSave() time.Duration {
	now := h.settings.Now()
	return min(h.settings.Interval, storedtree.HourOf(now).To().Sub(now)+time.Millisecond)
}

// Close saves for the last time, and closes the storage.
func (h *History) Close(ctx context.Context) error {
	if h.end != nil {
		h.end()
		h.saved.Wait()
	}
	h.save(ctx, true)
	return h.client.Close(ctx)
}

// Save saves all trees that changed.
func (h *History) Save(ctx context.Context) { h.save(ctx, false) }

// save saves:
//
//  1. The trees of the store, and their growth in the current hour, become entries. If the hour has ended, the next one
//     begins for each tree in the moment in which its growth is taken.
//  2. Ended days become one tree each.
//  3. Old windows go, and those beyond the bound.
//  4. All changes are stored in one transaction.
func (h *History) save(ctx context.Context, isLast bool) {
	h.saving.Lock()
	defer h.saving.Unlock()
	now := storedtree.HourOf(h.settings.Now())
	isOver := now != h.hour
	known := map[treeKey]bool{}
	for _, tree := range h.store.Trees() {
		known[treeKey{tree.Service, tree.Kind}] = true
		h.saveTree(&tree, isOver)
	}
	h.mu.Lock()
	for key, t := range h.trees {
		if !known[key] {
			t.number, t.hour = 0, nil
			for _, e := range t.liveEntries() {
				if e == t.live || e.isMerged {
					h.remove(t, e)
				}
			}
		}
	}
	h.hour = now
	failing := h.failure != nil
	h.mu.Unlock()
	if !failing {
		h.sumUpDays(ctx)
	}
	h.expire()
	h.write(ctx, isLast)
}

// saveTree makes entries of a tree of the store. isOver: the hour has ended.
func (h *History) saveTree(tree *calltree.Tree, isOver bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.of(treeKey{tree.Service, tree.Kind})
	if t.number != tree.Number {
		// Stored data of another tree in this hour stays.
		t.number, t.isSaved, t.hour = tree.Number, false, nil
	}
	if isOver {
		defer func() { t.hour = nil }()
	}
	if t.isSaved && t.changes == tree.Changes {
		if isOver {
			h.store.EndPeriod(tree.Service, tree.Kind)
		}
		return
	}
	release, err := h.settings.Reserve(pathMemory * int64(tree.Paths))
	if err != nil {
		if _, due := h.short.Count(h.settings.Now()); due {
			h.settings.Logger.Warn("The memory budget has no room for saving call trees: their windows lack the calls since the last save",
				zap.String("service", tree.Service), zap.Error(err))
		}
		if isOver {
			h.store.EndPeriod(tree.Service, tree.Kind)
			h.settings.Dropped(ReasonMemory, 1)
		}
		return
	}
	defer release()
	h.short.Over()
	growth, ok := h.store.Growth(tree.Service, tree.Kind, isOver)
	if !ok {
		return
	}
	if growth.Number != t.number {
		t.number, t.hour = growth.Number, nil
	}
	if len(growth.Nodes) > 0 {
		growth.From = latest(growth.From, h.hour.From(), h.started).UTC()
		t.hour = h.put(t, t.hour, h.hour, growth.Snapshot)
	}
	if live, ok := h.store.Snapshot(tree.Service, tree.Kind); ok {
		live.To = tree.LastSeen
		t.live = h.put(t, t.live, storedtree.Window{Length: storedtree.Live}, live)
	}
	t.changes, t.isSaved = tree.Changes, true
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// put makes data of a tree for an entry, or for a new one if the entry is nil.
func (h *History) put(t *trees, e *entry, window storedtree.Window, s calltree.Snapshot) *entry {
	if e == nil {
		h.part++
		e = &entry{Listed: storedtree.Listed{Window: window, Part: h.part, Service: s.Service, Kind: s.Kind}}
		t.entries = append(t.entries, e)
	}
	e.data = h.encoder.Encode(&storedtree.Entry{Window: window, Part: e.Part, Snapshot: s})
	e.Paths, e.Bytes = len(s.Nodes), len(e.data)
	return e
}

// write stores everything that waits.
func (h *History) write(ctx context.Context, isLast bool) {
	h.mu.Lock()
	catalog := storedtree.Catalog{LastPart: h.part, Saved: h.settings.Now().UTC(), IsClosed: isLast, Interrupted: h.interrupted}
	var operations []*storage.Operation
	for key, t := range h.trees {
		for _, e := range t.entries {
			if t.isReplaced(e) {
				operations = append(operations, storage.DeleteOperation(keyOf(e.Part)))
				continue
			}
			catalog.Entries = append(catalog.Entries, e.Listed)
			if e.data != nil {
				operations = append(operations, storage.SetOperation(keyOf(e.Part), e.data))
			}
		}
		if len(t.entries) == 0 && t.number == 0 {
			delete(h.trees, key)
		}
	}
	deleted := h.deleted
	for _, key := range deleted {
		operations = append(operations, storage.DeleteOperation(key))
	}
	operations = append(operations, storage.SetOperation(catalogKey, storedtree.EncodeCatalog(&catalog)))
	h.mu.Unlock()

	// A shutdown must not interrupt it.
	err := h.client.Batch(context.WithoutCancel(ctx), operations...)
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.measure()
	if h.failure = err; err == nil {
		h.deleted = h.deleted[len(deleted):]
		for _, t := range h.trees {
			t.entries = slices.DeleteFunc(t.entries, t.isReplaced)
			for _, e := range t.entries {
				e.data, e.isStored = nil, true
			}
		}
		if h.unsaved.Over() {
			h.settings.Logger.Info("Call trees are stored again")
		}
		return
	}
	if _, due := h.unsaved.Count(h.settings.Now()); due {
		h.settings.Logger.Error("Call trees cannot be stored: after a restart, those since the last save are missing. "+
			"See whether the disk is full, and raise max_size of the storage or lower history.max_mib", zap.Error(err))
	}
	h.keepWaiting(isLast)
}

// place is an entry of trees.
type place struct {
	t *trees
	e *entry
}

// keepWaiting keeps windows for the next save, within a bound, after the storage refused all. Live trees are made again then.
func (h *History) keepWaiting(isLast bool) {
	var waiting []place
	bytes := 0
	for _, t := range h.trees {
		for _, e := range slices.Clone(t.entries) {
			switch {
			case e.data == nil:
			case e != t.live:
				waiting = append(waiting, place{t, e})
				bytes += len(e.data)
			default:
				t.isSaved = false
				if e.data = nil; !e.isStored {
					h.remove(t, e)
				}
			}
		}
	}
	// The hours of a day are still there.
	slices.SortFunc(waiting, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.e.Window.Length, a.e.Window.Length), cmp.Compare(a.e.Part, b.e.Part))
	})
	dropped := 0
	for _, w := range waiting {
		if bytes <= maxWaiting && !isLast {
			break
		}
		bytes -= len(w.e.data)
		if w.e.data = nil; !w.e.isStored {
			h.remove(w.t, w.e)
		}
		dropped++
	}
	if dropped > 0 {
		h.settings.Dropped(ReasonRefused, dropped)
	}
}

// measure measures the memory and the stored data.
func (h *History) measure() {
	memory, stored := int64(0), int64(0)
	for _, t := range h.trees {
		memory += int64(len(t.entries)) * entryMemory
		for _, e := range t.entries {
			memory += int64(len(e.data))
			stored += chargeOf(e)
		}
	}
	h.memory.Store(memory)
	h.stored.Store(stored)
}

// chargeOf is about what an entry takes in the storage.
func chargeOf(e *entry) int64 { return int64(e.Bytes) + entryBytes }

// Memory is about the memory of the history, in bytes.
func (h *History) Memory() int64 { return h.memory.Load() }

// Stored is about the size of the stored data, in bytes.
func (h *History) Stored() int64 { return h.stored.Load() }
