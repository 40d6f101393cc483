// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roomBed has Files with room for a number of bytes.
type roomBed struct {
	*filesBed
	room, held, most int64
	refused          int
	lines            error
}

func newRoomBed(t *testing.T, room int64) *roomBed {
	bed := &roomBed{room: room}
	bed.filesBed = newFilesBed(t, func(s *Settings) {
		s.Hold = func(bytes int64) int64 {
			if bed.held = bytes; bytes <= bed.room {
				bed.most = max(bed.most, bytes)
			}
			return max(0, bytes-bed.room)
		}
		s.Refused = func() {
			bed.refused++
			assert.LessOrEqual(t, bed.held, bed.room, "the budget does not hold refused memory")
		}
		s.ReportLines = func(_ string, err error) { bed.lines = err }
	})
	return bed
}

// debugShopBytes is more than the reading of debugShop needs.
const debugShopBytes = 4 << 10

func TestAFileIsReadOnlyIfTheBudgetHasRoomForItsReading(t *testing.T) {
	results, step := map[string]int{}, int64(1)
	if testing.Short() {
		step = 37
	}
	for room := int64(0); room < debugShopBytes; room += step {
		bed := newRoomBed(t, room)
		writeFile(t, bed.dir, "opt/shop", debugShop("pay"))
		result := bed.described(t, "/opt/shop")
		results[result]++
		switch result {
		case withPlace:
			require.Zero(t, bed.refused)
		case "pay " + Unreadable:
			require.Equal(t, 1, bed.refused)
			require.ErrorIs(t, bed.lines, ErrNoRoom)
		default:
			require.Equal(t, "shop+0x100 ", result)
			require.Equal(t, 1, bed.refused)
			require.Len(t, bed.reported, 1)
			require.Contains(t, bed.reported[0], ErrNoRoom.Error())
		}
		require.Equal(t, bed.Stats().Bytes, bed.held, "the reading holds nothing afterwards")
		require.LessOrEqual(t, bed.held, room)
	}
	t.Log(results)
	assert.Len(t, results, 3)
}

func TestNamesOfAFileAreReservedBeforeTheyAreRead(t *testing.T) {
	bed := newRoomBed(t, 1<<30)
	m := shopImage("pay")
	name := strings.Repeat("x", 1<<20) // the table has only the beginning of it
	m.symbols = append(m.symbols, imageSymbol{name: name, start: 0x1200, size: 1})
	m.write(t, bed.dir, "opt/shop")
	require.Equal(t, withoutPlace, bed.described(t, "/opt/shop"))
	assert.Greater(t, bed.most, int64(len(name)))
	assert.Less(t, bed.held, int64(len(name)))
	assert.Equal(t, bed.Stats().Bytes, bed.held)
}

func TestOtherTablesMakeRoomForTheReadingOfAFile(t *testing.T) {
	bed := newRoomBed(t, 1<<20)
	others := bed.manyShops(t, 10)
	for _, m := range others {
		bed.name(t, m)
	}
	require.Equal(t, 10, bed.Stats().Tables)
	writeFile(t, bed.dir, "opt/shop", debugShop("pay"))
	bed.room = bed.Stats().Bytes + 100
	assert.NotContains(t, bed.described(t, "/opt/shop"), "0x", "names have room without the other tables")
	assert.Less(t, bed.Stats().Tables, 11)
}

func TestAFileIsReadLaterWhenThereIsRoom(t *testing.T) {
	for name, room := range map[string]int64{"names": 0, "lines": -1} {
		t.Run(name, func(t *testing.T) {
			bed := newRoomBed(t, room)
			now := time.Unix(1000, 0)
			bed.now = func() time.Time { return now }
			writeFile(t, bed.dir, "opt/shop", debugShop("pay"))
			if room < 0 {
				bed.room = roomForNames(t)
			}
			require.NotEqual(t, withPlace, bed.described(t, "/opt/shop"))
			bed.room = 1 << 20
			assert.NotEqual(t, withPlace, bed.described(t, "/opt/shop"), "not before a minute is over")
			now = now.Add(time.Minute)
			assert.Equal(t, withPlace, bed.described(t, "/opt/shop"))
			assert.Equal(t, 1, bed.refused)
		})
	}
}

// roomForNames returns the smallest room with which names are read.
func roomForNames(t *testing.T) int64 {
	for room := range int64(debugShopBytes) {
		bed := newRoomBed(t, room)
		writeFile(t, bed.dir, "opt/shop", debugShop("pay"))
		if bed.described(t, "/opt/shop"); errors.Is(bed.lines, ErrNoRoom) {
			return room
		}
	}
	require.Fail(t, "names are never read alone")
	return 0
}
