// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import "github.com/callbraid/callbraid/internal/rbkit"

// allocations counts what snapshots say was allocated, by class and file, from the first
// snapshot on: each says what came since the last one.
type allocations struct {
	classes, files *names
	max            int
	sites          map[site]allocated
	// folded counts how often a pair had no room.
	folded int64
	// named is the file under way, as it was sent, and file its number.
	named []byte
	file  int32
}

// site is where objects of a class were allocated.
type site struct{ class, file int32 }

// allocated is how much was.
type allocated struct{ objects, bytes int64 }

func newAllocations(classes *names, limits *LimitsConfig) *allocations {
	return &allocations{classes: classes, files: newNames(limits.MaxFiles), max: limits.MaxSites, sites: map[site]allocated{}}
}

// begin begins a snapshot.
func (a *allocations) begin() { a.named, a.file = nil, nameUnknown }

func (a *allocations) add(of *rbkit.Allocation) {
	if !sameText(of.File, a.named) {
		a.named, a.file = of.File, a.files.file(of.File)
	}
	at := site{a.classes.class(of.Class), a.file}
	before, known := a.sites[at]
	if !known && len(a.sites) >= a.max {
		a.folded++
		at = site{nameOther, nameOther}
		before = a.sites[at]
	}
	a.sites[at] = allocated{
		objects: sum(before.objects, of.Count),
		bytes:   plus(before.bytes, of.Count, of.Size),
	}
}

// sameText reports whether two texts are the same bytes of a message. All allocations of a
// file have its name, which may be long: it is not looked at for each.
func sameText(a, b []byte) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}

// bytesOfSite is the memory of a site, about.
const bytesOfSite = 64

// held returns how many bytes the files and sites take, about.
func (a *allocations) held() int { return a.files.held() + bytesOfSite*len(a.sites) }
