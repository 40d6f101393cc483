// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/ctf/metadata"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// Identity identifies the trace that a directory belongs to.
type Identity struct {
	// Key is the UUID of the trace, or the directory of a trace without one.
	Key string
	// ID is a number made from Key.
	ID uint64
	// Position is the key of its position, and Recording shows whether a stored position is that of this recording. If the
	// trace has a UUID, Position shows it.
	Position, Recording string
	// Host and Session are those of the metadata, or empty.
	Host, Session string
}

// errNoTrace: the metadata is empty, or has not been written yet.
var errNoTrace = errors.New("expected the declaration of a trace, got none")

// metadataPiece is the number of bytes of metadata that are parsed together.
const metadataPiece = 64 << 10

// Identify reads as much of the metadata in a directory as declares the trace, its environment and its clocks. If it
// grows, it must also declare a class, which follows after these.
func Identify(ctx context.Context, dir string, maxMetadata int, grows bool) (Identity, error) {
	name := filepath.Join(dir, metadataFile)
	f, _, err := openRegular(name)
	if err != nil {
		return Identity{}, err
	}
	defer f.Close() // read only: nothing can be lost
	t, piece := ctf.NewTrace(), make([]byte, metadataPiece)
	meta := t.Metadata()
	hasClass := func() bool { return len(meta.Streams) > 0 || len(meta.Events) > 0 }
	for read := 0; read < maxMetadata && !hasClass(); {
		if ctx.Err() != nil {
			return Identity{}, context.Cause(ctx)
		}
		n, err := f.Read(piece)
		read += n
		if err := t.Append(piece[:n]); err != nil {
			return Identity{}, fmt.Errorf("%s: %w", name, err)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Identity{}, err
		}
	}
	if !meta.Declared || grows && !hasClass() {
		return Identity{}, fmt.Errorf("%s: %w", name, errNoTrace)
	}
	i := Identity{Host: t.Env("hostname"), Session: t.Env("trace_name")}
	if meta.HasUUID {
		i = i.with(process.UUIDText(meta.UUID))
		i.Position = i.Key + "#" + recordingOf(meta)
	} else {
		i = i.with(dir)
		i.Position, i.Recording = dir, recordingOf(meta)
	}
	return i, nil
}

// recordingOf returns a hash of the environment and the clocks. Recordings have other ones, and it does not change when
// metadata grows.
func recordingOf(meta *metadata.Trace) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d.%d %q %+v", meta.Major, meta.Minor, meta.Name, meta.Env) // a hash accepts all
	for _, c := range meta.Clocks {
		fmt.Fprintf(h, " %+v", *c)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Another returns the identity of another recording with the same UUID.
func (i Identity) Another() Identity { return i.with(i.Position) }

// Below returns the identity of another recording with the same UUID, environment and clocks, in a directory.
func (i Identity) Below(dir string) Identity {
	i.Position += "#" + dir
	return i.Another()
}

// with returns the identity with another key.
func (i Identity) with(key string) Identity {
	sum := sha256.Sum256([]byte(key))
	i.Key, i.ID = key, binary.LittleEndian.Uint64(sum[:])
	return i
}

// readMetadata returns the text of the metadata in a directory.
func readMetadata(ctx context.Context, dir string, most int) ([]byte, error) {
	name := filepath.Join(dir, metadataFile)
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	b, err := io.ReadAll(io.LimitReader(untilDone{ctx, f}, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, fmt.Errorf("%s: expected at most %d bytes of metadata (limits.max_metadata_bytes), got more", name, most)
	}
	text, err := ctf.MetadataText(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// untilDone reads until a context is done.
type untilDone struct {
	ctx context.Context
	of  io.Reader
}

func (r untilDone) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.of.Read(b)
}

// knownMetadata is the longest metadata of a trace that was read: its length and its hash. The zero value is unknown.
type knownMetadata struct {
	length int
	hash   [sha256.Size]byte
}

func newKnownMetadata(text []byte) knownMetadata {
	return knownMetadata{len(text), sha256.Sum256(text)}
}

// begins reports whether a text is at least as long, and begins with it.
func (k knownMetadata) begins(text []byte) bool {
	return len(text) >= k.length && sha256.Sum256(text[:k.length]) == k.hash
}
