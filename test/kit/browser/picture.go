// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// MaxPictureBytes is the largest size of a picture of the documentation.
const MaxPictureBytes = 100 << 10

// Pictures is the environment variable with the directory of the documentation's pictures: `make pictures` sets it.
const Pictures = "CALLBRAID_PICTURES"

// Picture takes a picture of the window for the documentation. It fails the test if the picture is too large, and writes it if
// the environment variable Pictures is set.
func (b *Browser) Picture(t testing.TB, name string) {
	t.Helper()
	SavePicture(t, name, b.capture(t))
}

// SavePicture does the same with a picture that was taken.
func SavePicture(t testing.TB, name string, picture []byte) {
	t.Helper()
	taken, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduce(taken)); err != nil {
		t.Fatal(err)
	}
	if small.Len() > MaxPictureBytes {
		t.Errorf("the picture %s has %d bytes: expected at most %d", name, small.Len(), MaxPictureBytes)
	}
	Save(t, name, small.Bytes())
	if directory := os.Getenv(Pictures); directory != "" {
		if err := os.WriteFile(filepath.Join(directory, name+".png"), small.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reduce returns a picture with its most frequent colours, at most 256. Each other colour becomes the nearest of them.
func reduce(picture image.Image) *image.Paletted {
	const most = 256
	counts := map[color.RGBA]int{}
	bounds := picture.Bounds()
	colours := image.NewRGBA(bounds)
	draw.Draw(colours, bounds, picture, bounds.Min, draw.Src)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[colours.RGBAAt(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range frequent[:min(most, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(counts))
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	reduced := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			reduced.SetColorIndex(x, y, nearest[colours.RGBAAt(x, y)])
		}
	}
	return reduced
}
