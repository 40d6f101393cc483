// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// Files are the tables of functions of object files, for all processes. Each file is read once. Several goroutines
// may use it.
type Files struct {
	settings Settings
	now      func() time.Time

	// reading is held during the search for a file and its reading. So only one file is read at a time, which bounds
	// the memory, and no file is read twice. Lock it before mu.
	reading sync.Mutex
	// checksums are those of files, by path, size and time of modification. It is guarded by reading.
	checksums map[tableKey]uint32

	mu sync.Mutex
	// The fields below are guarded by mu.
	tables  map[tableKey]*list.Element // of *cachedTable
	recent  *list.List                 // the last used table is in front
	bytes   int64                      // of all tables
	missing map[identity]time.Time     // when to search again for missing files
	stats   Stats
}

// Stats are the counters of Files.
type Stats struct {
	// Read is the number of tables that were read from files.
	Read uint64
	// Missing is the number of searches without a result.
	Missing uint64
	// Evicted is the number of tables that were evicted.
	Evicted uint64
	// Tables and Bytes are the current number and memory.
	Tables int
	Bytes  int64
}

// maxMissing bounds the number of entries for missing files, and maxChecksums that of checksums.
const (
	maxMissing   = 1024
	maxChecksums = 1024
)

// identity describes a file, as the tracer reported it.
type identity struct {
	path      string // absolute, clean
	buildID   string // empty: the object has none
	debugLink string // the name of a file with debug information; empty: none
	debugCRC  uint32 // the checksum of that file; 0: not known
	// memorySize is the size of the object in memory.
	memorySize uint64
	// seen is the Unix time of the report in nanoseconds; 0: not known.
	seen int64
}

// tableKey identifies a table. Tables of .symtab have only the build ID. Tables of .dynsym also have the path,
// because the same object may exist elsewhere with its .symtab. Tables of objects without a build ID have path, size
// and time of modification, and the checksum if it was compared.
type tableKey struct {
	buildID  string
	path     string
	size     int64
	modified int64 // Unix nanoseconds
	crc      uint32
}

// same reports whether tables of both keys belong to the same object.
func (k tableKey) same(other tableKey) bool {
	return k == other || k.buildID != "" && k.buildID == other.buildID
}

type cachedTable struct {
	key   tableKey
	table *table
}

// NewFiles returns Files with these settings. It fails if they are invalid.
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

		checksums: map[tableKey]uint32{},
	}, nil
}

// Stats returns the counters.
func (f *Files) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	stats := f.stats
	stats.Tables, stats.Bytes = f.recent.Len(), f.bytes
	return stats
}

// table returns the table of an object's functions, or nil if there is none at this time. While another goroutine reads a
// file, it waits. When Settings.Context ends, the reading ends, and so does each wait.
func (f *Files) table(id identity) (tableKey, *table) {
	if len(f.settings.Paths) == 0 || f.settings.err() != nil {
		return tableKey{}, nil
	}
	if id.buildID != "" {
		id.seen = 0 // one search is enough for all processes
	}
	if key, t, known := f.lookup(id); known {
		return key, t
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	if key, t, known := f.lookup(id); known { // another goroutine has just read it
		return key, t
	}
	found, err := f.search(id)
	if f.settings.err() != nil {
		return tableKey{}, nil // the shutdown is the reason, not the object's files
	}
	if found.table == nil {
		f.addMissing(id)
		f.report(id, err)
		return tableKey{}, nil
	}
	isNew := f.addTable(found)
	if lines := &found.table.lines; isNew && lines.err != nil && f.settings.ReportLines != nil {
		f.settings.ReportLines(id.path, errors.Join(lines.err, err))
	}
	return found.key, found.table
}

// report reports the reason why an object has no names.
func (f *Files) report(id identity, err error) {
	if f.settings.Report != nil {
		f.settings.Report(id.path, err)
	}
}

// lookup returns the result for an object from memory, if there is one. Objects without a build ID always require a
// look at their file.
func (f *Files) lookup(id identity) (tableKey, *table, bool) {
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

// cached returns the table with that key, or nil.
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

// addTable adds a table, and evicts the least recently used ones until there is room. It returns false if the table was
// there already.
func (f *Files) addTable(found cachedTable) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.tables[found.key]; ok {
		return false // an object without a build ID and with an unchanged file
	}
	f.stats.Read++
	f.tables[found.key] = f.recent.PushFront(&found)
	f.bytes += found.table.bytes()
	for f.bytes > f.settings.MaxTableBytes && f.recent.Len() > 1 {
		f.evict()
	}
	f.evictExcess()
	return true
}

// Fit evicts tables as Settings.Hold requires.
func (f *Files) Fit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evictExcess()
}

// evictExcess is Fit with mu held.
func (f *Files) evictExcess() {
	if f.settings.Hold == nil {
		return
	}
	for f.settings.Hold(f.bytes) > 0 && f.recent.Len() > 0 {
		f.evict()
	}
}

// evict evicts the least recently used table. mu is held.
func (f *Files) evict() {
	oldest := f.recent.Remove(f.recent.Back()).(*cachedTable)
	delete(f.tables, oldest.key)
	f.bytes -= oldest.table.bytes()
	f.stats.Evicted++
}

// addMissing records that an object has no file.
func (f *Files) addMissing(id identity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Missing++
	if len(f.missing) >= maxMissing {
		clear(f.missing)
	}
	f.missing[id] = f.now().Add(f.settings.RetryAfter)
}
