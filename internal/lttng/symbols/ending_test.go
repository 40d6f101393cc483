// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"context"
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endingContext is a context that ends after its error was asked for a number of times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

// The context ends at each point of the reading in turn. Then the object has no names, and its file is not the reason.
func TestTheEndOfTheContextEndsTheReadingOfAFile(t *testing.T) {
	line := lineTable(0x1100)
	file := shopImage("pay").withSections(
		debugSection{name: ".debug_line", flags: elf.SHF_COMPRESSED, content: deflated(chdr(elf.COMPRESS_ZLIB, uint64(len(line))), line)})
	ended := 0
	for read := false; !read; ended++ {
		require.Less(t, ended, 1000, "the reading ends")
		bed := newFilesBed(t, func(s *Settings) {
			s.Context = &endingContext{context.Background(), ended}
			s.ReportLines = func(object string, err error) { t.Errorf("lines of %s: %v", object, err) }
		})
		writeFile(t, bed.dir, "opt/shop/bin/shop", file)
		name := bed.name(t, reportedShop())
		if read = name == "pay"; !read {
			require.Equal(t, "shop+0x100", name)
			require.Equal(t, Stats{}, bed.Stats())
		}
		require.Empty(t, bed.reported)
	}
	t.Log(ended, "points")
	assert.Greater(t, ended, 10)
}

func TestAnObjectWithoutABuildIDHasNoNamesAfterTheContextHasEnded(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	bed := newFilesBed(t, func(s *Settings) { s.Context = ctx })
	m := shopImage("pay")
	m.buildID = ""
	m.write(t, bed.dir, "opt/shop/bin/shop")
	shop := reportedShop()
	shop.BuildID = nil
	assert.Equal(t, "pay", bed.name(t, shop))
	end()
	assert.Equal(t, "shop+0x100", bed.name(t, shop))
	assert.Empty(t, bed.reported)
}
