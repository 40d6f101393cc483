// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/lttng/sim/synthetic"
	"github.com/callbraid/callbraid/receiver/ctffilereceiver/internal/recorded"
)

// Offsets in a packet of package synthetic.
const (
	magicAt   = 0
	contentAt = 4 + 16 + 8 + 8 + 8 + 8
	sizeAt    = contentAt + 8
	contentOf = sizeAt + 8 + 8 + 8
)

// oneStream returns a session with one stream, whose packets have 5 events each and the same size.
func oneStream(packets int) *synthetic.Session {
	s := sold("shop", 0, 0)
	s.Streams = s.Streams[:1]
	for i := range packets {
		at := uint64(1_000_000 * (i + 1))
		s.Streams[0].Packet(at)
		for j := range 5 {
			s.Streams[0].Event(at+uint64(j), "shop:sold", 7, 8, 5*i+j+1)
		}
	}
	return s
}

// without returns the numbers up to n, except those from first to last.
func without(n, first, last int) []int {
	return slices.DeleteFunc(upTo(n), func(i int) bool { return i >= first && i <= last })
}

func TestADamagedPacketIsSkippedAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(file []byte, packet int)
		// lost are the numbers of the events that do not arrive.
		first, last int
		said        string
	}{
		"a wrong magic number": {
			func(file []byte, at int) { file[at+magicAt] ^= 1 }, 11, 15,
			"channel0_0: packet at byte 568: expected magic 0xc1fc1fc1, got 0xc1fc1fc0",
		},
		"a size beyond all bounds": {
			func(file []byte, at int) { binary.LittleEndian.PutUint64(file[at+sizeAt:], 1<<60) }, 11, 15,
			"channel0_0: packet at byte 568: expected a packet of 1 to 1073741824 whole bytes, got 1152921504606846976 bits",
		},
		"a size of zero": {
			func(file []byte, at int) { binary.LittleEndian.PutUint64(file[at+sizeAt:], 0) }, 11, 15,
			"channel0_0: packet at byte 568: expected a packet of 1 to 1073741824 whole bytes, got 0 bits",
		},
		"more content than the packet": {
			func(file []byte, at int) { binary.LittleEndian.PutUint64(file[at+contentAt:], 1<<40) }, 11, 15,
			"channel0_0: packet at byte 568: expected a content of at most the packet's 2272 bits, got 1099511627776",
		},
		"an event of an unknown class": {
			func(file []byte, at int) { file[at+contentOf+2*40] = 99 }, 13, 15,
			`channel0_0: packet at byte 568: event at bit 1312 of a packet with 2272: expected the ID of an event class of stream class 0, got 99`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := oneStream(5)
			write(t, dir, s)
			file := filepath.Join(dir, "channel0_0")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			c.damage(data, 2*len(data)/5)
			writeFile(t, file, data)
			b := readAll(t, dir)
			assert.Equal(t, without(25, c.first, c.last), b.numbers())
			assert.EqualValues(t, 1, b.Counter("packets_damaged"))
			assert.EqualValues(t, 1, b.Counter("traces_read"))
			assert.Contains(t, b.AwaitLine("A packet is damaged and skipped").ContextMap()["error"], c.said)
			assert.Positive(t, b.Counter("breaks"), "calls are not paired across it")
		})
	}
}

func TestALastPacketThatIsNotWholeIsDamageOnlyAtTheEnd(t *testing.T) {
	for name, size := range map[string]int{"inside the header": 20, "inside the content": 200} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := oneStream(3)
			write(t, dir, s)
			file := filepath.Join(dir, "channel0_0")
			require.NoError(t, os.Truncate(file, int64(2*len(packetBytes(s, 0, 0))+size)))
			b := newBed(t, dir, watching(time.Millisecond, time.Hour))
			b.awaitNumbers(upTo(10))
			b.Shutdown()
			assert.Zero(t, b.Counter("packets_damaged"))
			b = readAll(t, dir)
			assert.Equal(t, upTo(10), b.numbers())
			assert.EqualValues(t, 1, b.Counter("packets_damaged"))
			b = newBed(t, dir, watching(time.Millisecond, time.Millisecond))
			b.AwaitLine("A trace was read to its end")
			b.Shutdown()
			assert.EqualValues(t, 1, b.Counter("packets_damaged"))
		})
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	write(t, trace, oneStream(2))
	require.NoError(t, syscall.Mkfifo(filepath.Join(trace, "channel0_1"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(trace, "channel0_2")))
	require.NoError(t, os.Symlink(dir, filepath.Join(trace, "channel0_3")))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "cycle")))
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(other, "metadata"), 0o600))
	b := readAll(t, dir)
	assert.Equal(t, upTo(10), b.numbers())
	assert.EqualValues(t, 1, b.Counter("traces_read"))
	assert.Zero(t, b.Counter("packets_damaged"))
}

func TestADirectoryThatALinkReplacedIsNotRead(t *testing.T) {
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "traces")
	write(t, filepath.Join(outside, "trace"), oneStream(2))
	require.NoError(t, os.Symlink(outside, dir))
	trace := filepath.Join(dir, "trace")
	_, err := recorded.Identify(t.Context(), trace, 1<<20, false)
	require.ErrorContains(t, err, "metadata: expected a path without links, got one to "+outside)
	err = recorded.NewTrace(&recorded.Settings{MaxStreams: 10}, recorded.Identity{}, trace).Measure(trace)
	require.ErrorContains(t, err, "trace: expected a path without links, got one to "+outside)
}

func TestAnErrorOfAReadDirectoryIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil) // it can be opened, and its entries cannot be read
	err := recorded.NewTrace(&recorded.Settings{MaxStreams: 10}, recorded.Identity{}, file).Measure(file)
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

func TestASearchEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, oneStream(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	pattern, err := recorded.ParsePattern(dir)
	require.NoError(t, err)
	finder := recorded.Finder{Include: []recorded.Pattern{pattern}, MaxDirs: 1}
	dirs, err := finder.Find(ctx)
	require.ErrorIs(t, err, stopped)
	assert.Empty(t, dirs)
	_, err = recorded.Identify(ctx, dir, 1<<20, false)
	require.ErrorIs(t, err, stopped)
	_, err = recorded.NewTrace(&recorded.Settings{MaxMetadataBytes: 1 << 20}, recorded.Identity{}, dir).Join(ctx, dir)
	require.ErrorIs(t, err, stopped)
}

func TestARepeatedPacketWithAWrongSizeIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s := oneStream(3)
	write(t, filepath.Join(dir, "a"), oneStream(2))
	write(t, filepath.Join(dir, "b"), s)
	repeated := packetBytes(s, 0, 1)
	binary.LittleEndian.PutUint64(repeated[sizeAt:], 8<<20)
	writeFile(t, filepath.Join(dir, "b", "channel0_0"), append(repeated, packetBytes(s, 0, 2)...))
	b := readAll(t, dir)
	assert.EqualValues(t, 1, b.Counter("packets_damaged"))
}

func TestASparseFileNeedsNoMemory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, oneStream(2))
	require.NoError(t, os.Truncate(filepath.Join(dir, "channel0_0"), 1<<40))
	writeFile(t, filepath.Join(dir, "channel0_1"), nil)
	require.NoError(t, os.Truncate(filepath.Join(dir, "channel0_1"), 1<<40))
	b := readAll(t, dir)
	assert.Equal(t, upTo(10), b.numbers())
	assert.EqualValues(t, 2, b.Counter("packets_damaged"))
}

func TestUnreadableMetadataEndsOnlyItsTrace(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good"), oneStream(1))
	for name, metadata := range map[string]string{
		"nonsense": "nonsense;", "empty": "", "late": string(oneStream(0).Metadata()) + "event { nonsense };",
		"binary": "\x75\xD1\x1D\x57", "json": "\x1e{}",
	} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		writeFile(t, filepath.Join(dir, name, "metadata"), []byte(metadata))
	}
	b := readAll(t, dir)
	assert.Equal(t, upTo(5), b.numbers())
	assert.EqualValues(t, 1, b.Counter("traces_read"))
	assert.EqualValues(t, 5, b.Counter("traces_failed"))
	named := map[string]bool{}
	for _, line := range b.Log.FilterMessage("A trace cannot be read").All() {
		fields := line.ContextMap()
		named[filepath.Base(fields["trace"].(string))] = true
		assert.NotContains(t, fields, "again_in", "the receiver does not try again")
	}
	assert.Len(t, named, 5, "each trace has a line with its reason")
	assert.EqualValues(t, 1, b.Lines(notAll))
}

func TestALimitOfTracesIsInTheLastLine(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), sold("a", 1, 5))
	write(t, filepath.Join(dir, "b"), sold("b", 1, 5))
	b := readAll(t, dir, func(_ *bed, c *Config) { c.Limits.MaxTraces = 1 })
	assert.Equal(t, false, b.AwaitLine(notAll).ContextMap()["search_complete"])
}

func TestRecordingsWithOneUUIDAndOtherMetadataAreTwoTraces(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), oneStream(1))
	s := oneStream(2)
	s.Class("shop:other")
	s.Environment += "more = 1; "
	write(t, filepath.Join(dir, "b"), s)
	b := readAll(t, dir)
	assert.Len(t, b.numbers(), 15)
	assert.EqualValues(t, 2, b.Counter("traces_read"))
}

func TestWithoutATraceTheLogHasTheReason(t *testing.T) {
	b := newBed(t, t.TempDir())
	b.AwaitLine("There is no CTF trace to read: no directory that matches include has a file named metadata")
}

func TestAWatchedDirectoryWithoutATraceIsAWarning(t *testing.T) {
	b := newBed(t, t.TempDir(), watching(time.Millisecond, time.Hour))
	b.AwaitLine("There is no CTF trace to read: no directory that matches include has a file named metadata")
}

func TestEmptyMetadataOfAWatchedTraceIsNoError(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "metadata"), nil)
	b := newBed(t, dir, watching(time.Millisecond, time.Hour))
	line := b.AwaitLine("A directory has no readable metadata yet. LTTng writes metadata at lttng stop or rotate")
	assert.Equal(t, zap.InfoLevel, line.Level)
	assert.Zero(t, b.Lines("There is no CTF trace to read: no directory that matches include has a file named metadata"))
}

// FuzzTrace reads a directory with any metadata and any file of packets, to its end.
func FuzzTrace(f *testing.F) {
	s := sold("shop", 4, 3)
	for i := range s.Streams {
		f.Add(s.Metadata(), packetBytes(s, i, 0), packetBytes(s, i, 1))
	}
	f.Add([]byte("trace { major = 1; minor = 8; byte_order = le; }; event { fields := struct { integer { size = 8; } a; }; };"), []byte("abc"), []byte{})
	f.Add([]byte("\x1e{\"type\":\"preamble\",\"version\":2}\n"), []byte("abc"), []byte{})
	f.Fuzz(func(t *testing.T, metadata, one, two []byte) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "metadata"), metadata)
		writeFile(t, filepath.Join(dir, "channel0_0"), one)
		writeFile(t, filepath.Join(dir, "channel0_1"), two)
		b := readAll(t, dir, func(_ *bed, c *Config) { c.Limits.MaxPacketBytes, c.Limits.MaxMetadataBytes = 1<<20, 1<<17 })
		assert.Empty(t, b.twice())
	})
}
