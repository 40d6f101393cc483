// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"container/list"
	"sync"
	"time"
)

// Files are the tables of functions of object files, for all processes: each file
// is read once. It may be used by several goroutines.
type Files struct {
	settings Settings
	now      func() time.Time

	// reading is held while files are looked for and read: one at a time, so that
	// what reading takes in memory is bounded, and no file is read twice at once.
	// It is taken before mu.
	reading sync.Mutex

	mu sync.Mutex
	// The fields below are guarded by mu.
	tables  map[tableKey]*list.Element // of *cachedTable
	recent  *list.List                 // the table used last is at the front
	bytes   int64                      // of all tables
	missing map[identity]time.Time     // not found; until when it isn't looked for
	stats   Stats
}

// Stats count what Files did.
type Stats struct {
	// Read is how many tables were read from files.
	Read uint64
	// Missing is how many searches ended without a file.
	Missing uint64
	// Evicted is how many tables were given up for others.
	Evicted uint64
	// Tables and Bytes are what is held now.
	Tables int
	Bytes  int64
}

// maxMissing bounds how many files that were not found are remembered.
const maxMissing = 1024

// identity says which file is meant, as a tracer told it.
type identity struct {
	path      string // absolute, clean
	buildID   string // empty: the object has none
	debugLink string // the name of a file with debug information; empty: none
	// memorySize is the size of the object in memory.
	memorySize uint64
}

// tableKey says which table it is. Tables of .symtab are known by their build ID
// alone; those of .dynsym by the path as well, since the same object may be
// elsewhere with its .symtab; those of objects without a build ID by path, size
// and time of modification.
type tableKey struct {
	buildID  string
	path     string
	size     int64
	modified int64 // Unix nanoseconds
}

// same reports whether tables of both keys are of the same object.
func (k tableKey) same(other tableKey) bool {
	return k == other || k.buildID != "" && k.buildID == other.buildID
}

type cachedTable struct {
	key   tableKey
	table *table
}

// NewFiles returns tables that are read as the settings say. The error is what
// is wrong with them.
func NewFiles(settings Settings) (*Files, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	return &Files{
		settings: settings,
		now:      time.Now,
		tables:   map[tableKey]*list.Element{},
		recent:   list.New(),
		missing:  map[identity]time.Time{},
	}, nil
}

// Stats returns the counts.
func (f *Files) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	stats := f.stats
	stats.Tables, stats.Bytes = f.recent.Len(), f.bytes
	return stats
}

// table returns the table of an object's functions; nil: there is none, for now.
func (f *Files) table(id identity) (tableKey, *table) {
	if len(f.settings.Paths) == 0 {
		return tableKey{}, nil
	}
	if key, t, known := f.known(id); known {
		return key, t
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if key, t, known := f.known(id); known { // somebody has just read it
		return key, t
	}
	found, err := f.search(id)
	if found.table == nil {
		f.remember(id)
		f.report(id, err)
		return tableKey{}, nil
	}
	f.keep(found)
	return found.key, found.table
}

// report tells why an object has no names.
func (f *Files) report(id identity, err error) {
	if f.settings.Report != nil {
		f.settings.Report(id.path, err)
	}
}

// known returns what is known of an object without a look at files, if that is
// enough. Objects without a build ID have to be looked at.
func (f *Files) known(id identity) (tableKey, *table, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id.buildID != "" {
		for _, key := range []tableKey{{buildID: id.buildID}, {buildID: id.buildID, path: id.path}} {
			if e, ok := f.tables[key]; ok {
				f.recent.MoveToFront(e)
				return key, e.Value.(*cachedTable).table, true
			}
		}
	}
	until, ok := f.missing[id]
	if ok && f.now().Before(until) {
		return tableKey{}, nil, true
	}
	delete(f.missing, id)
	return tableKey{}, nil, false
}

// cached returns the table of that key, if it is held.
func (f *Files) cached(key tableKey) *table {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.tables[key]
	if !ok {
		return nil
	}
	f.recent.MoveToFront(e)
	return e.Value.(*cachedTable).table
}

// keep holds a table, and gives up those that were not used for longest until
// there is room.
func (f *Files) keep(found cachedTable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.tables[found.key]; ok {
		return // an object without a build ID whose file has not changed
	}
	f.stats.Read++
	f.tables[found.key] = f.recent.PushFront(&found)
	f.bytes += found.table.bytes()
	for f.bytes > f.settings.MaxTableBytes && f.recent.Len() > 1 {
		f.evict()
	}
	f.fit()
}

// Fit gives up tables as Settings.Hold asks for it.
func (f *Files) Fit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fit()
}

// fit is Fit for those who hold mu.
func (f *Files) fit() {
	if f.settings.Hold == nil {
		return
	}
	for f.settings.Hold(f.bytes) > 0 && f.recent.Len() > 0 {
		f.evict()
	}
}

// evict gives up the table that was not used for longest. mu is held.
func (f *Files) evict() {
	oldest := f.recent.Remove(f.recent.Back()).(*cachedTable)
	delete(f.tables, oldest.key)
	f.bytes -= oldest.table.bytes()
	f.stats.Evicted++
}

// remember notes that an object has no file.
func (f *Files) remember(id identity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Missing++
	if len(f.missing) >= maxMissing {
		clear(f.missing)
	}
	f.missing[id] = f.now().Add(f.settings.RetryAfter)
}
