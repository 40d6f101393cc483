// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// allocations counts the objects that snapshots report as allocated, by class and file. A
// snapshot reports the allocations since the previous one.
type allocations struct {
	classes, files *names.Names
	max            int
	sites          map[site]allocated
	// folded counts how often a pair had no room.
	folded int64
	// lastFile is the name of the last file as the server sent it, and lastFileNumber its
	// number.
	lastFile       []byte
	lastFileNumber int32
}

// site is where objects of a class were allocated.
type site struct{ class, file int32 }

// allocated is how much was.
type allocated struct{ objects, bytes int64 }

func newAllocations(classes *names.Names, limits *LimitsConfig) *allocations {
	return &allocations{classes: classes, files: names.New(limits.MaxFiles), max: limits.MaxSites, sites: map[site]allocated{}}
}

// begin begins a snapshot.
func (a *allocations) begin() { a.lastFile, a.lastFileNumber = nil, names.Unknown }

func (a *allocations) count(of *rbkit.Allocation) {
	if !sameText(of.File, a.lastFile) {
		a.lastFile, a.lastFileNumber = of.File, a.files.FileNumber(of.File)
	}
	at := site{a.classes.ClassNumber(of.Class), a.lastFileNumber}
	before, known := a.sites[at]
	if !known && len(a.sites) >= a.max {
		a.folded++
		at = site{names.Other, names.Other}
		before = a.sites[at]
	}
	a.sites[at] = allocated{
		objects: saturating.Add(before.objects, of.Count),
		bytes:   saturating.AddProduct(before.bytes, of.Count, of.Size),
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
func (a *allocations) held() int { return a.files.Bytes() + bytesOfSite*len(a.sites) }
