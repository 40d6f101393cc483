// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/callbraid/callbraid/internal/lttng/ctf"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

// Identity identifies the trace that a directory belongs to.
type Identity struct {
	// Key is the UUID of the trace, or the directory of a trace without one.
	Key string
	// ID is a number made from Key.
	ID uint64
	// Host and Session are those of the metadata, or empty.
	Host, Session string
	HasUUID       bool
}

// errNoTrace: the metadata is empty, or has not been written yet.
var errNoTrace = errors.New("expected the declaration of a trace, got none")

// metadataPiece is the number of bytes of metadata that are parsed together.
const metadataPiece = 64 << 10

// Identify reads as much of the metadata in a directory as declares the trace and its environment.
func Identify(dir string, maxMetadata int) (Identity, error) {
	name := filepath.Join(dir, metadataFile)
	f, _, err := openRegular(name)
	if err != nil {
		return Identity{}, err
	}
	defer f.Close() // read only: nothing can be lost
	t, piece := ctf.NewTrace(), make([]byte, metadataPiece)
	meta := t.Metadata()
	for read := 0; read < maxMetadata && len(meta.Streams) == 0 && len(meta.Events) == 0; {
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
	if !meta.Declared {
		return Identity{}, fmt.Errorf("%s: %w", name, errNoTrace)
	}
	i := Identity{Key: dir, Host: t.Env("hostname"), Session: t.Env("trace_name"), HasUUID: meta.HasUUID}
	if meta.HasUUID {
		i.Key = process.UUIDText(meta.UUID)
	}
	return i.with(i.Key), nil
}

// Below returns the identity of another recording with the same UUID, in a directory.
func (i Identity) Below(dir string) Identity { return i.with(i.Key + "#" + dir) }

// with returns the identity with another key.
func (i Identity) with(key string) Identity {
	sum := sha256.Sum256([]byte(key))
	i.Key, i.ID = key, binary.LittleEndian.Uint64(sum[:])
	return i
}

// readMetadata returns the text of the metadata in a directory.
func readMetadata(dir string, most int) ([]byte, error) {
	name := filepath.Join(dir, metadataFile)
	f, _, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
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

// sameTrace reports whether two directories with the same UUID belong to one trace: the metadata of one continues that
// of the other. Files of a trace with other metadata, such as after lttng regenerate metadata, are another trace.
func sameTrace(a, b string, maxMetadata int) (bool, error) {
	of, err := readMetadata(a, maxMetadata)
	if err != nil {
		return false, err
	}
	other, err := readMetadata(b, maxMetadata)
	if err != nil {
		return false, err
	}
	return bytes.HasPrefix(of, other) || bytes.HasPrefix(other, of), nil
}
