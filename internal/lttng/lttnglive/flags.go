// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"fmt"
	"strings"
)

// Flags of an index or packet are requests to the viewer.
type Flags uint32

// The flags. They can occur with any status.
const (
	// FlagNewMetadata means that the viewer must read metadata before it decodes the packet.
	FlagNewMetadata Flags = 1 << 0
	// FlagNewStreams means that there are streams that were not sent to the viewer yet.
	FlagNewStreams Flags = 1 << 1
)

// Has reports whether all of these flags are set.
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
