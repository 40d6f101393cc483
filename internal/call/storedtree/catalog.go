// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package storedtree

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// Catalog lists stored trees, so that a storage need not be searched.
type Catalog struct {
	// Entries are the stored trees, with the lengths of their stored forms in bytes.
	Entries []Listed
	// LastPart is the highest number of a part so far.
	LastPart uint64
	// Saved is the time of the catalog. IsClosed: the collector ended in order afterwards.
	Saved    time.Time
	IsClosed bool
	// Interrupted are the times of the last catalogs of collectors that did not end in order.
	Interrupted []time.Time
}

// Listed is a stored tree of a catalog.
type Listed struct {
	Window  Window
	Part    uint64
	Service string
	Kind    calltree.Kind
	Paths   int
	Bytes   int
}

const (
	catalogMagic   = "cbcl"
	catalogVersion = 1
)

// EncodeCatalog returns the stored form of a catalog.
func EncodeCatalog(c *Catalog) []byte {
	w := writer{append([]byte(catalogMagic), catalogVersion)}
	w.number(c.LastPart)
	w.time(c.Saved)
	w.number(uint64(isTrue(c.IsClosed)))
	w.number(uint64(len(c.Interrupted)))
	for _, at := range c.Interrupted {
		w.time(at)
	}
	// Most trees are of few services and kinds.
	numbers := map[string]uint64{}
	var texts []string
	number := func(text string) uint64 {
		n, ok := numbers[text]
		if !ok {
			n = uint64(len(texts))
			numbers[text] = n
			texts = append(texts, text)
		}
		return n
	}
	var list writer
	for i := range c.Entries {
		e := &c.Entries[i]
		list.number(uint64(e.Window.Length))
		list.signed(e.Window.Start)
		for _, n := range [...]uint64{e.Part, number(e.Service), number(e.Kind.Type), number(e.Kind.Unit), uint64(e.Paths), uint64(e.Bytes)} {
			list.number(n)
		}
	}
	w.number(uint64(len(texts)))
	for _, text := range texts {
		w.text(text)
	}
	w.number(uint64(len(c.Entries)))
	w.bytes = append(w.bytes, list.bytes...)
	return Seal(w.bytes)
}

func isTrue(is bool) int {
	if is {
		return 1
	}
	return 0
}

// DecodeCatalog returns a stored catalog.
func DecodeCatalog(stored []byte) (*Catalog, error) {
	if len(stored) <= len(catalogMagic) || !slices.Equal(stored[:len(catalogMagic)], []byte(catalogMagic)) {
		return nil, errors.New("expected the begin of a list of call trees, got other data")
	}
	if version := stored[len(catalogMagic)]; version != catalogVersion {
		return nil, VersionError{version, catalogVersion}
	}
	data, err := Unseal(stored)
	if err != nil {
		return nil, err
	}
	r := reader{rest: data[min(len(data), len(catalogMagic)+1):]}
	c := &Catalog{LastPart: r.number(), Saved: r.time(), IsClosed: r.below(2, "end in order") == 1}
	const leastTime, leastEntry = 2, 8
	for range r.count(leastTime, "interruptions") {
		c.Interrupted = append(c.Interrupted, r.time())
	}
	texts := make([]string, r.count(1, "names"))
	for i := range texts {
		texts[i] = r.text()
	}
	text := func() string {
		if n := r.below(uint64(len(texts)), "number of a name"); r.err == nil {
			return texts[n]
		}
		return ""
	}
	c.Entries = make([]Listed, r.count(leastEntry, "trees"))
	for i := range c.Entries {
		c.Entries[i] = Listed{
			Window: Window{Length: Length(r.below(uint64(lengths), "length of the window")), Start: r.signed()},
			Part:   r.number(), Service: text(), Kind: calltree.Kind{Type: text(), Unit: text()},
			Paths: int(r.below(math.MaxInt32, "number of paths")), Bytes: int(r.below(math.MaxInt32, "size")),
		}
	}
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}
