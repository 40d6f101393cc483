// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/saturating"
)

// Allocations counts the objects that snapshots report as allocated, by class and file. A
// snapshot reports the allocations since the previous one.
type Allocations struct {
	classes, Files *names.Names
	max            int
	Sites          map[Site]Allocated
	// Folded counts how often a pair had no room.
	Folded int64
	// lastFile is the name of the last file as the server sent it, and lastFileNumber its
	// number.
	lastFile       []byte
	lastFileNumber int32
}

// Site is a class, and the file in which objects of it were allocated.
type Site struct{ Class, File int32 }

// Allocated is how many objects were allocated, and their bytes.
type Allocated struct{ Objects, Bytes int64 }

func NewAllocations(classes *names.Names, maxFiles, maxSites int) *Allocations {
	return &Allocations{classes: classes, Files: names.New(maxFiles), max: maxSites, Sites: map[Site]Allocated{}}
}

// BeginSnapshot begins a snapshot.
func (a *Allocations) BeginSnapshot() { a.lastFile, a.lastFileNumber = nil, names.Unknown }

func (a *Allocations) Count(of *rbkit.Allocation) {
	if !names.Same(of.File, a.lastFile) {
		a.lastFile, a.lastFileNumber = of.File, a.Files.FileNumber(of.File)
	}
	at := Site{a.classes.ClassNumber(of.Class), a.lastFileNumber}
	before, known := a.Sites[at]
	if !known && len(a.Sites) >= a.max {
		a.Folded++
		at = Site{names.Other, names.Other}
		before = a.Sites[at]
	}
	a.Sites[at] = Allocated{
		Objects: saturating.Add(before.Objects, of.Count),
		Bytes:   saturating.AddProduct(before.Bytes, of.Count, of.Size),
	}
}

// bytesOfSite is the approximate memory of a site.
const bytesOfSite = 64

// Memory returns the approximate memory of the files and sites.
func (a *Allocations) Memory() int { return a.Files.Memory() + bytesOfSite*len(a.Sites) }
