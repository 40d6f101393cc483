// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// windows are the windows that the pages' form collected. They are kept so that all pages show the
// same data, within the bounds of the options: the oldest is dropped first. One is kept at
// any size.
type windows struct {
	mu   sync.Mutex
	last uint64 // number
	kept []window
}

type window struct {
	number   uint64
	snapshot calltree.Snapshot
	// bytes is about the memory of the window.
	bytes int64
}

// nodeMemory is the memory of a node of a snapshot without its name, in bytes.
const nodeMemory = int64(unsafe.Sizeof(calltree.Node{}))

// memoryOf is about the memory of a snapshot. It may hold the last reference to the names of
// functions.
func memoryOf(s calltree.Snapshot) int64 {
	bytes := nodeMemory * int64(cap(s.Nodes))
	known := map[string]struct{}{}
	for i := range s.Nodes {
		for _, text := range [...]string{s.Nodes[i].Function, s.Nodes[i].File} {
			if _, ok := known[text]; !ok {
				known[text] = struct{}{}
				bytes += int64(len(text))
			}
		}
	}
	return bytes
}

// bytes is the memory of all windows.
func (ws *windows) bytes() (sum int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.kept {
		sum += w.bytes
	}
	return sum
}

// shed drops windows, the oldest first, until so many bytes are free or none is left.
func (ws *windows) shed(bytes int64) (dropped int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for ; bytes > 0 && len(ws.kept) > 0; dropped++ {
		bytes -= ws.kept[0].bytes
		ws.kept = slices.Delete(ws.kept, 0, 1)
	}
	return dropped
}

// keep adds a window and returns its number, which is above 0, and the number of windows that it
// replaced.
func (ws *windows) keep(s calltree.Snapshot, most, mostNodes int) (number uint64, dropped int) {
	bytes := memoryOf(s)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.last++
	ws.kept = append(ws.kept, window{ws.last, s, bytes})
	nodes := 0
	for _, w := range ws.kept {
		nodes += len(w.snapshot.Nodes)
	}
	for len(ws.kept) > 1 && (len(ws.kept) > most || nodes > mostNodes) {
		nodes -= len(ws.kept[0].snapshot.Nodes)
		ws.kept = slices.Delete(ws.kept, 0, 1)
		dropped++
	}
	return ws.last, dropped
}

func (ws *windows) find(number uint64) (calltree.Snapshot, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.kept {
		if w.number == number {
			return w.snapshot, true
		}
	}
	return calltree.Snapshot{}, false
}

// all returns the windows, the latest first.
func (ws *windows) all() []window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := slices.Clone(ws.kept)
	slices.Reverse(all)
	return all
}

// of returns the windows of a service, the latest first.
func (ws *windows) of(service string) []window {
	return slices.DeleteFunc(ws.all(), func(w window) bool { return w.snapshot.Service != service })
}
