// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package tracefile

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// LastEnd returns the offset behind the last whole packet of a file of a size. It reads the lengths of all packets, and
// nothing else.
func LastEnd(r io.ReaderAt, size int64) (int64, error) {
	head := make([]byte, 1+10) // a tag, and the longest varint
	for offset := int64(0); ; {
		n, err := r.ReadAt(head[:min(int64(len(head)), size-offset)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read a packet's length at byte %d: %w", offset, err)
		}
		if n == 0 || head[0] != fieldPacket<<3|byte(protowire.BytesType) {
			return offset, nil
		}
		length, bytes := protowire.ConsumeVarint(head[1:n])
		if bytes < 0 || length > uint64(size-offset)-uint64(1+bytes) {
			return offset, nil
		}
		offset += int64(1+bytes) + int64(length)
	}
}
