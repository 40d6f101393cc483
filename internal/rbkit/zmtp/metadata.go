// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// propertySocketType is the property with the type of the socket. Names of properties are
// compared without case (RFC 23, "Metadata").
const propertySocketType = "Socket-Type"

const (
	propertyNameSize  = 1
	propertyValueSize = 4
)

// socketTypeIn returns the socket type in metadata that begins at offset. It checks all
// properties and skips unknown ones. The last socket type counts.
func socketTypeIn(metadata []byte, offset int64) (SocketType, *ProtocolError) {
	var socketType SocketType
	at := 0
	wrong := func(got string) *ProtocolError {
		return &ProtocolError{Offset: offset + int64(at), Expected: "a property: a name of 1 to 255 bytes, and a value", Got: got}
	}
	for at < len(metadata) {
		rest := metadata[at:]
		valueAt := propertyNameSize + int(rest[0]) + propertyValueSize
		if rest[0] == 0 || len(rest) < valueAt {
			return "", wrong(fmt.Sprintf("a length of %d before %d bytes", rest[0], len(rest)-propertyNameSize))
		}
		name := rest[propertyNameSize : valueAt-propertyValueSize]
		size := binary.BigEndian.Uint32(rest[valueAt-propertyValueSize:])
		if uint64(size) > uint64(len(rest)-valueAt) {
			return "", wrong(fmt.Sprintf("a value of %d bytes before the last %d", size, len(rest)-valueAt))
		}
		end := valueAt + int(size)
		if strings.EqualFold(string(name), propertySocketType) {
			socketType = SocketType(rest[valueAt:end])
		}
		at += end
	}
	if socketType == "" {
		return "", &ProtocolError{Offset: offset, Expected: "metadata with the property " + propertySocketType, Got: quoted(metadata)}
	}
	return socketType, nil
}

// appendMetadata appends the metadata of a socket.
func appendMetadata(b []byte, socketType SocketType) []byte {
	b = append(append(b, byte(len(propertySocketType))), propertySocketType...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(socketType)))
	return append(b, socketType...)
}
