// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// described returns the name and the place of the shop's function for a new process, whose object has a path.
func (bed *filesBed) described(t *testing.T, path string) string {
	t.Helper()
	objects := NewObjects(bed.Files, DefaultMaxObjects)
	require.NoError(t, objects.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: path, BuildID: []byte(shopBuildID)}))
	f := objects.Name(0x1100)
	return f.Qualified + " " + f.File + f.NoLine
}

// debugShop is the shop with debug information.
func debugShop(name string) []byte {
	return shopImage(name).withSections(debugSection{name: ".debug_line", content: lineTable(0x1100)})
}

const (
	withPlace    = "pay /src/shop.c"
	withoutPlace = "pay " + NoDebugInfo
)

func TestAStrippedCopyDoesNotHideAnUnstrippedOne(t *testing.T) {
	for name, stripped := range map[string]image{"without debug information": shopImage("pay"), "without symbols": strippedImage("pay")} {
		t.Run(name, func(t *testing.T) {
			bed := newFilesBed(t)
			stripped.write(t, bed.dir, "opt/stripped")
			writeFile(t, bed.dir, "opt/built", debugShop("pay"))
			assert.Equal(t, withoutPlace, bed.described(t, "/opt/stripped"))
			assert.Equal(t, withPlace, bed.described(t, "/opt/built"))
			assert.Equal(t, withPlace, bed.described(t, "/opt/stripped"), "the build ID shows that it is the same object")
			assert.Equal(t, uint64(2), bed.Stats().Read)
		})
	}
}

func TestADebugFileThatAppearsLaterIsFound(t *testing.T) {
	var reports int
	bed := newFilesBed(t, func(s *Settings) { s.ReportLines = func(string, error) { reports++ } })
	now := time.Unix(1000, 0)
	bed.now = func() time.Time { return now }
	shopImage("pay").write(t, bed.dir, "opt/shop")
	earlier := NewObjects(bed.Files, DefaultMaxObjects)
	require.NoError(t, earlier.Map(Mapping{Base: 0x1000, Size: 0x1000, Path: "/opt/shop", BuildID: []byte(shopBuildID)}))
	require.Equal(t, NoDebugInfo, earlier.Name(0x1100).NoLine)
	now = now.Add(time.Minute)
	assert.Equal(t, withoutPlace, bed.described(t, "/opt/shop"), "searched again, without a result")
	writeFile(t, bed.dir, "usr/lib/debug/.build-id/01/02030405060708.debug", debugShop("pay"))
	now = now.Add(time.Minute - 1)
	assert.Equal(t, withoutPlace, bed.described(t, "/opt/shop"))
	now = now.Add(1)
	assert.Equal(t, withPlace, bed.described(t, "/opt/shop"))
	assert.Equal(t, NoDebugInfo, earlier.Name(0x1100).NoLine, "a loaded object keeps its table")
	assert.Equal(t, uint64(2), bed.Stats().Read, "the file that has not changed is not read again")
	assert.Equal(t, 1, reports)
	assert.Empty(t, bed.searched)
}

func TestATableThatIsNotCompleteIsReadAgainAfterItWasEvicted(t *testing.T) {
	bed := newFilesBed(t)
	shopImage("pay").write(t, bed.dir, "opt/shop")
	require.Equal(t, withoutPlace, bed.described(t, "/opt/shop"))
	bed.mu.Lock()
	bed.evict()
	bed.mu.Unlock()
	assert.Equal(t, withoutPlace, bed.described(t, "/opt/shop"))
	assert.Equal(t, uint64(2), bed.Stats().Read)
}
