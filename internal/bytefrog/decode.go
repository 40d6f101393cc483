// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"encoding/binary"
	"fmt"

	"github.com/callbraid/callbraid/internal/mutf8"
)

// Allowed messages of each decoder, for its errors.
const (
	expectedFirst   = "hello (0) or data hello (30)"
	expectedControl = "a message of a control connection (heartbeat, data break, class transformed, class ignored, class transform failed, error)"
	expectedData    = "a message of a data connection (map thread name, map method signature, map exception, method entry, method exit, exception, exception bubble, marker, error)"
	expectedCommand = "a message to an agent (configuration, start, stop, pause, unpause, suspend, unsuspend, data hello reply, error)"
)

// DecodeFirst decodes the message at the front of a fresh connection: Hello or
// DataHello. n is its size; n == 0 without an error means that b ends inside it.
// Anything else is a *ProtocolError. maxString is unused, because neither message
// has a string; the other decoders have it too.
func DecodeFirst(b []byte, maxString int) (m Message, n int, err error) {
	_ = maxString
	if len(b) == 0 {
		return nil, 0, nil
	}
	switch t := MessageType(b[0]); t {
	case TypeHello:
		return decodeFixed(b, helloSize, func() Message { return Hello{Version: b[1]} })
	case TypeDataHello:
		return decodeFixed(b, dataHelloSize, func() Message { return DataHello{Run: b[1]} })
	case TypeProjectHello:
		return nil, 0, &ProtocolError{Expected: expectedFirst, Got: "project hello (16) of protocol version 4"}
	default:
		return nil, 0, wrongType(b, expectedFirst)
	}
}

// DecodeControl decodes the first message of b, the bytes of an agent on its
// control connection after Hello: Heartbeat, DataBreak, ClassReport or
// ErrorMessage. n is its size; n == 0 without an error means that b ends inside
// it. A string of more than maxString bytes, and any other type, is a
// *ProtocolError.
func DecodeControl(b []byte, maxString int) (m Message, n int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	switch t := MessageType(b[0]); t {
	case TypeHeartbeat:
		return decodeFixed(b, heartbeatSize, func() Message {
			return Heartbeat{Mode: Mode(b[1]), SendBuffers: binary.BigEndian.Uint16(b[2:])}
		})
	case TypeDataBreak:
		return decodeFixed(b, dataBreakSize, func() Message {
			return DataBreak{Sequence: binary.BigEndian.Uint32(b[1:])}
		})
	case TypeClassTransformed, TypeClassIgnored, TypeClassTransformFailed:
		return decodeNamed(b, classReportFixed, maxString, func(s string) Message {
			return ClassReport{Result: t, Class: s}
		})
	case TypeError:
		return decodeError(b, maxString)
	default:
		return nil, 0, wrongType(b, expectedControl)
	}
}

// DecodeData decodes the first message of b, the bytes of an agent on a data
// connection after DataHello, if it is no call event: MapThreadName, MapMethod,
// MapException, Marker or ErrorMessage. n is its size; n == 0 without an error
// means that b ends inside it, or inside a call event. A string of more than
// maxString bytes, and any other type, is a *ProtocolError; so is a complete call
// event, which is for DecodeEvents.
func DecodeData(b []byte, maxString int) (m Message, n int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	switch t := MessageType(b[0]); t {
	case TypeMapThreadName:
		return decodeNamed(b, mapThreadNameFixed, maxString, func(s string) Message {
			return MapThreadName{Thread: binary.BigEndian.Uint16(b[1:]), Time: binary.BigEndian.Uint32(b[3:]), Name: s}
		})
	case TypeMapMethod:
		return decodeNamed(b, mapMethodFixed, maxString, func(s string) Message {
			return MapMethod{Method: binary.BigEndian.Uint32(b[1:]), Signature: s}
		})
	case TypeMapException:
		return decodeNamed(b, mapExceptionFixed, maxString, func(s string) Message {
			return MapException{Exception: binary.BigEndian.Uint32(b[1:]), Name: s}
		})
	case TypeMethodEntry, TypeMethodExit, TypeException, TypeExceptionBubble:
		if len(b) < EventSize(t) {
			return nil, 0, nil
		}
		return nil, 0, &ProtocolError{Expected: "a message that is no call event", Got: "a complete " + t.String()}
	case TypeMarker:
		return decodeMarker(b, maxString)
	case TypeError:
		return decodeError(b, maxString)
	default:
		return nil, 0, wrongType(b, expectedData)
	}
}

// DecodeCommand decodes the first message of b, the bytes to an agent on any of its
// connections: Configuration for version 1 or ConfigurationV2 for version 2,
// Command, DataHelloReply or ErrorMessage. n is its size; n == 0 without an
// error means that b ends inside it. A configuration of more than maxConfiguration
// bytes, another version, and any other type, is a *ProtocolError.
func DecodeCommand(b []byte, version uint8, maxConfiguration int) (m Message, n int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	switch t := MessageType(b[0]); {
	case t == TypeConfiguration && version == versionSerialized:
		return decodeConfiguration(b, maxConfiguration)
	case t == TypeConfiguration && version == versionJSON:
		return decodeNamed(b, 1, maxConfiguration, func(s string) Message { return ConfigurationV2{JSON: s} })
	case t == TypeConfiguration:
		return nil, 0, &ProtocolError{
			Expected: "a configuration of protocol version 1 or 2",
			Got:      fmt.Sprintf("one of version %d", version),
		}
	case t.IsCommand():
		return Command{Of: t}, 1, nil
	case t == TypeDataHelloReply:
		return DataHelloReply{}, 1, nil
	case t == TypeError:
		return decodeError(b, MaxString)
	default:
		return nil, 0, wrongType(b, expectedCommand)
	}
}

// wrongType is the error for a type byte that is not allowed at the front of b.
func wrongType(b []byte, expected string) error {
	t := MessageType(b[0])
	got := t.String()
	if _, known := typeNames[t]; known {
		got = fmt.Sprintf("%s (%d)", got, uint8(t))
	}
	return &ProtocolError{Expected: expected, Got: got}
}

// decodeFixed decodes a message that always has the same size.
func decodeFixed(b []byte, size int, read func() Message) (Message, int, error) {
	if len(b) < size {
		return nil, 0, nil
	}
	return read(), size, nil
}

// decodeNamed decodes a message that ends with one string behind fixed bytes.
func decodeNamed(b []byte, fixed, maxString int, read func(s string) Message) (Message, int, error) {
	s, n, err := decodeString(b, fixed, maxString)
	if n == 0 || err != nil {
		return nil, 0, err
	}
	return read(s), n, nil
}

func decodeError(b []byte, maxString int) (Message, int, error) {
	return decodeNamed(b, errorFixed, maxString, func(s string) Message { return ErrorMessage{Text: s} })
}

func decodeMarker(b []byte, maxString int) (Message, int, error) {
	keyEnd, err := stringEnd(b, markerFixed, maxString)
	if keyEnd == 0 || err != nil {
		return nil, 0, err
	}
	value, end, err := decodeString(b, keyEnd, maxString)
	if end == 0 || err != nil {
		return nil, 0, err
	}
	return Marker{
		Time:     binary.BigEndian.Uint32(b[1:]),
		Sequence: binary.BigEndian.Uint32(b[5:]),
		Key:      mutf8.Decode(b[markerFixed+stringLengthSize : keyEnd]),
		Value:    value,
	}, end, nil
}

// decodeConfiguration copies the object, so that the message outlives b.
func decodeConfiguration(b []byte, maxConfiguration int) (Message, int, error) {
	if len(b) < configurationSize {
		return nil, 0, nil
	}
	length := binary.BigEndian.Uint32(b[1:])
	if uint64(length) > uint64(max(maxConfiguration, 0)) {
		return nil, 0, &ProtocolError{
			Offset:   1,
			Expected: fmt.Sprintf("a configuration of at most %d bytes", maxConfiguration),
			Got:      fmt.Sprintf("a length of %d", length),
		}
	}
	end := configurationSize + int(length)
	if len(b) < end {
		return nil, 0, nil
	}
	return Configuration{Data: append([]byte(nil), b[configurationSize:end]...)}, end, nil
}

// decodeString decodes the string whose length is at offset at. end is the offset of
// its end; 0 without an error means that b ends earlier.
func decodeString(b []byte, at, maxString int) (s string, end int, err error) {
	end, err = stringEnd(b, at, maxString)
	if end == 0 || err != nil {
		return "", 0, err
	}
	return mutf8.Decode(b[at+stringLengthSize : end]), end, nil
}

// stringEnd returns the end of the string whose length is at offset at. 0 without
// an error means that b ends earlier.
func stringEnd(b []byte, at, maxString int) (int, error) {
	if len(b) < at+stringLengthSize {
		return 0, nil
	}
	length := int(binary.BigEndian.Uint16(b[at:]))
	if length > maxString {
		return 0, &ProtocolError{
			Offset:   at,
			Expected: fmt.Sprintf("a string of at most %d bytes in %s", maxString, MessageType(b[0])),
			Got:      fmt.Sprintf("a length of %d", length),
		}
	}
	end := at + stringLengthSize + length
	if len(b) < end {
		return 0, nil
	}
	return end, nil
}
