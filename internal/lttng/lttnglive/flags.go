// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"fmt"
	"strings"
)

// Flags of an index or packet say what the viewer should ask for next.
type Flags uint32

// The flags. They stand beside any status.
const (
	// FlagNewMetadata says that metadata must be read before the packet is decoded.
	FlagNewMetadata Flags = 1 << 0
	// FlagNewStreams says that there are streams that the viewer was not told of.
	FlagNewStreams Flags = 1 << 1
)

// Has says that all of the flags in f are set.
func (f Flags) Has(flags Flags) bool { return f&flags == flags }

func (f Flags) String() string {
	if f == 0 {
		return "none"
	}
	var names []string
	if f.Has(FlagNewMetadata) {
		names = append(names, "new metadata")
	}
	if f.Has(FlagNewStreams) {
		names = append(names, "new streams")
	}
	if rest := f &^ (FlagNewMetadata | FlagNewStreams); rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	return strings.Join(names, ", ")
}
