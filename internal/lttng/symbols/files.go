// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"container/list"
	"errors"
	"fmt"
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
	// ranks are those of the tables of files that were read for objects with a build ID, by path, size and time of
	// modification. It is guarded by reading.
	ranks map[tableKey]rank

	mu sync.Mutex
	// The fields below are guarded by mu.
	tables map[tableKey]*list.Element // of *cachedTable
	recent *list.List                 // the last used table is in front
	bytes  int64                      // of all tables
	// reserved is the memory for the file that is read, and for tables of it that were not added yet.
	reserved int64
	// searched are the searches that found nothing, or a table that is not complete.
	searched map[identity]search
	stats    Stats
}

// search is the result of a search, which is repeated later.
type search struct {
	again time.Time
	found bool
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

// maxSearched bounds the number of searches to repeat, maxChecksums that of checksums, and maxRanks that of ranks.
const (
	maxSearched  = 1024
	maxChecksums = 1024
	maxRanks     = 4096
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

// rank is the order of tables of one object: a higher one has more.
type rank uint8

const (
	// exported: the functions of .dynsym. withNames: those of .symtab. complete: all that files of an object can have.
	exported rank = iota
	withNames
	complete
)

// tableKey identifies a table. Tables of .symtab have only the build ID and their rank. Tables of .dynsym also have the
// path, because the same object may exist elsewhere with its .symtab. Tables of objects without a build ID have path, size
// and time of modification, and the checksum if it was compared.
type tableKey struct {
	buildID  string
	rank     rank
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
	f := &Files{
		settings: settings,
		now:      time.Now,
		tables:   map[tableKey]*list.Element{},
		recent:   list.New(),
		searched: map[identity]search{},

		checksums: map[tableKey]uint32{}, ranks: map[tableKey]rank{},
	}
	f.settings.reserve = f.reserve
	return f, nil
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
	if known, ok := f.lookup(id); ok {
		return known.key, known.table
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	known, ok := f.lookup(id)
	if ok { // another goroutine has just read it
		return known.key, known.table
	}
	defer f.release(0)
	found, err := f.search(id, known)
	if f.settings.err() != nil {
		return known.key, known.table // the shutdown is the reason, not the object's files
	}
	if found.table == nil || known.table != nil && found.key.rank <= known.key.rank {
		found = known
	}
	f.noteSearch(id, found)
	if found.table == nil {
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

// lookup returns the best table of an object from memory, if there is one, and whether no search is necessary. A table
// that is not complete is searched again: after RetryAfter, or for an object that has another path. Objects without a
// build ID always require a look at their file.
func (f *Files) lookup(id identity) (known cachedTable, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id.buildID != "" {
		for _, key := range []tableKey{{buildID: id.buildID, rank: complete}, {buildID: id.buildID, rank: withNames}, {buildID: id.buildID, path: id.path}} {
			if e, ok := f.tables[key]; ok {
				f.recent.MoveToFront(e)
				known = *e.Value.(*cachedTable)
				break
			}
		}
		if known.key.rank == complete {
			return known, true
		}
	}
	last, ok := f.searched[id]
	if ok && f.now().Before(last.again) && last.found == (known.table != nil) {
		return known, true
	}
	delete(f.searched, id)
	return known, false
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
	f.reserved = 0
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
	for f.settings.Hold(f.bytes+f.reserved) > 0 && f.recent.Len() > 0 {
		f.evict()
	}
}

// reserve reserves memory to read a file. It evicts tables if Settings.Hold requires that.
func (f *Files) reserve(bytes int64) error {
	if f.settings.Hold == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserved += bytes
	for f.settings.Hold(f.bytes+f.reserved) > 0 {
		if f.recent.Len() > 0 {
			f.evict()
			continue
		}
		f.reserved -= bytes
		f.settings.Hold(f.bytes + f.reserved)
		if f.settings.Refused != nil {
			f.settings.Refused()
		}
		return fmt.Errorf("%w: expected room for %d bytes in the memory budget, beside %d for this file", ErrNoRoom, bytes, f.reserved)
	}
	return nil
}

// release releases all reserved memory except so many bytes.
func (f *Files) release(except int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reserved != except {
		f.reserved = except
		f.evictExcess()
	}
}

// evict evicts the least recently used table. mu is held.
func (f *Files) evict() {
	oldest := f.recent.Remove(f.recent.Back()).(*cachedTable)
	delete(f.tables, oldest.key)
	f.bytes -= oldest.table.bytes()
	f.stats.Evicted++
}

// noteSearch records a search, unless it found all that an object can have. Objects without a build ID are searched each
// time if they have a file.
func (f *Files) noteSearch(id identity, found cachedTable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found.table == nil {
		f.stats.Missing++
	} else if id.buildID == "" || found.key.rank == complete {
		return
	}
	if len(f.searched) >= maxSearched {
		clear(f.searched)
	}
	f.searched[id] = search{f.now().Add(f.settings.RetryAfter), found.table != nil}
}
