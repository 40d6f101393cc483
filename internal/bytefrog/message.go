// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrog

import (
	"encoding/binary"

	"github.com/callbraid/callbraid/internal/mutf8"
)

// Message is any message that is not a call event. The types of this file implement it as values.
//
// AppendTo appends the encoded message. A string whose encoding is longer than MaxString bytes is cut at the end of a
// character, as the document requires.
type Message interface {
	Type() MessageType
	AppendTo(b []byte) []byte
}

// MaxString is the maximum length of a string in bytes of modified UTF-8: the largest 16-bit length.
const MaxString = mutf8.MaxShort

// Hello is the first message of a control connection.
type Hello struct {
	Version uint8 // of the protocol, as the agent speaks it
}

// DataHello is the first message of a data connection.
type DataHello struct {
	Run uint8 // the run ID of the configuration
}

// DataHelloReply accepts a data connection.
type DataHelloReply struct{}

// Configuration carries the agent's configuration in protocol version 1: an object
// of Java's serialisation, behind a 32-bit length.
type Configuration struct {
	Data []byte
}

// ConfigurationV2 carries the agent's configuration in protocol version 2: a JSON
// object as a string.
type ConfigurationV2 struct {
	JSON string
}

// Heartbeat reports that the agent is alive.
type Heartbeat struct {
	Mode        Mode
	SendBuffers uint16 // full buffers (of 8 KiB) that wait to be sent
}

// DataBreak reports unseen calls before Sequence: the call stacks there are unknown.
type DataBreak struct {
	Sequence uint32 // of the next event or marker
}

// MapThreadName has the name of a thread's ID from Time on.
type MapThreadName struct {
	Thread uint16
	Time   uint32 // milliseconds, as Event.Time
	Name   string
}

// MapMethod has the signature of a method's ID; see ParseMethodSignature.
type MapMethod struct {
	Method    uint32
	Signature string
}

// MapException has the class of an exception's ID, such as
// "java.lang.IllegalStateException".
type MapException struct {
	Exception uint32
	Name      string
}

// ClassReport has the agent's result for a class of the traced program.
type ClassReport struct {
	Result MessageType // TypeClassTransformed, TypeClassIgnored or TypeClassTransformFailed
	Class  string      // with slashes: "demo/Shop$Order"
}

// Marker is an event that the traced program creates. It has a sequence number.
type Marker struct {
	Time     uint32 // milliseconds, as Event.Time
	Sequence uint32
	Key      string
	Value    string
}

// ErrorMessage ends the run, in either direction, with a reason.
type ErrorMessage struct {
	Text string
}

// Command is a message to an agent that consists only of the type byte.
type Command struct {
	Of MessageType // TypeStart to TypeUnsuspend
}

// Sizes in bytes, with the type byte: of the part before the variable fields, or of the whole message if nothing
// varies.
const (
	helloSize          = 2
	dataHelloSize      = 2
	heartbeatSize      = 4
	dataBreakSize      = 5
	stringLengthSize   = 2
	configurationSize  = 5
	mapThreadNameFixed = 7
	mapMethodFixed     = 5
	mapExceptionFixed  = 5
	classReportFixed   = 1
	markerFixed        = 9
	errorFixed         = 1
)

// MaxMessageSize returns the size in bytes of the longest message that DecodeFirst,
// DecodeControl and DecodeData accept with maxString, and of the longest call
// event: a buffer of that size always has room for a whole message.
func MaxMessageSize(maxString int) int {
	return max(markerFixed+2*(stringLengthSize+min(maxString, MaxString)), MaxEventSize)
}

// Type returns TypeHello.
func (Hello) Type() MessageType { return TypeHello }

// Type returns TypeDataHello.
func (DataHello) Type() MessageType { return TypeDataHello }

// Type returns TypeDataHelloReply.
func (DataHelloReply) Type() MessageType { return TypeDataHelloReply }

// Type returns TypeConfiguration.
func (Configuration) Type() MessageType { return TypeConfiguration }

// Type returns TypeConfiguration.
func (ConfigurationV2) Type() MessageType { return TypeConfiguration }

// Type returns TypeHeartbeat.
func (Heartbeat) Type() MessageType { return TypeHeartbeat }

// Type returns TypeDataBreak.
func (DataBreak) Type() MessageType { return TypeDataBreak }

// Type returns TypeMapThreadName.
func (MapThreadName) Type() MessageType { return TypeMapThreadName }

// Type returns TypeMapMethod.
func (MapMethod) Type() MessageType { return TypeMapMethod }

// Type returns TypeMapException.
func (MapException) Type() MessageType { return TypeMapException }

// Type returns m.Result.
func (m ClassReport) Type() MessageType { return m.Result }

// Type returns TypeMarker.
func (Marker) Type() MessageType { return TypeMarker }

// Type returns TypeError.
func (ErrorMessage) Type() MessageType { return TypeError }

// Type returns m.Of.
func (m Command) Type() MessageType { return m.Of }

// AppendTo appends the message to b.
func (m Hello) AppendTo(b []byte) []byte { return append(b, byte(TypeHello), m.Version) }

// AppendTo appends the message to b.
func (m DataHello) AppendTo(b []byte) []byte { return append(b, byte(TypeDataHello), m.Run) }

// AppendTo appends the message to b.
func (DataHelloReply) AppendTo(b []byte) []byte { return append(b, byte(TypeDataHelloReply)) }

// AppendTo appends the message to b.
func (m Configuration) AppendTo(b []byte) []byte {
	b = append(b, byte(TypeConfiguration))
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Data)))
	return append(b, m.Data...)
}

// AppendTo appends the message to b. JSON that is cut at MaxString is invalid: AgentConfiguration.Message returns no
// longer JSON.
func (m ConfigurationV2) AppendTo(b []byte) []byte {
	return mutf8.AppendShort(append(b, byte(TypeConfiguration)), m.JSON)
}

// AppendTo appends the message to b.
func (m Heartbeat) AppendTo(b []byte) []byte {
	b = append(b, byte(TypeHeartbeat), byte(m.Mode))
	return binary.BigEndian.AppendUint16(b, m.SendBuffers)
}

// AppendTo appends the message to b.
func (m DataBreak) AppendTo(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, byte(TypeDataBreak)), m.Sequence)
}

// AppendTo appends the message to b.
func (m MapThreadName) AppendTo(b []byte) []byte {
	b = append(b, byte(TypeMapThreadName))
	b = binary.BigEndian.AppendUint16(b, m.Thread)
	b = binary.BigEndian.AppendUint32(b, m.Time)
	return mutf8.AppendShort(b, m.Name)
}

// AppendTo appends the message to b.
func (m MapMethod) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(TypeMapMethod)), m.Method)
	return mutf8.AppendShort(b, m.Signature)
}

// AppendTo appends the message to b.
func (m MapException) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(TypeMapException)), m.Exception)
	return mutf8.AppendShort(b, m.Name)
}

// AppendTo appends the message to b.
func (m ClassReport) AppendTo(b []byte) []byte {
	return mutf8.AppendShort(append(b, byte(m.Result)), m.Class)
}

// AppendTo appends the message to b.
func (m Marker) AppendTo(b []byte) []byte {
	b = append(b, byte(TypeMarker))
	b = binary.BigEndian.AppendUint32(b, m.Time)
	b = binary.BigEndian.AppendUint32(b, m.Sequence)
	b = mutf8.AppendShort(b, m.Key)
	return mutf8.AppendShort(b, m.Value)
}

// AppendTo appends the message to b.
func (m ErrorMessage) AppendTo(b []byte) []byte {
	return mutf8.AppendShort(append(b, byte(TypeError)), m.Text)
}

// AppendTo appends the message to b.
func (m Command) AppendTo(b []byte) []byte { return append(b, byte(m.Of)) }
