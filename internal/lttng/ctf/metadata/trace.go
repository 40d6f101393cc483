// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package metadata

// ByteOrder is the order of the bytes of a field. It also determines the order in which bits fill a byte: from the
// least significant in little endian, from the most significant in big endian.
type ByteOrder uint8

// The byte orders.
const (
	// NativeOrder is the trace's own order.
	NativeOrder ByteOrder = iota
	LittleEndian
	BigEndian
)

// Scope is one of the structures of packets and events. A field may refer to fields of its own scope and of earlier
// scopes.
type Scope uint8

// The scopes in the order of their place in a packet.
const (
	NoScope Scope = iota
	PacketHeader
	PacketContext
	EventHeader
	// EventCommonContext is the context that all events of a stream class have (stream.event.context).
	EventCommonContext
	// EventContext is the context of one event class (event.context).
	EventContext
	// EventFields is the payload.
	EventFields
)

var scopeNames = [...]string{
	"no scope", "packet header", "packet context", "event header",
	"event common context", "event context", "event fields",
}

func (s Scope) String() string {
	if int(s) < len(scopeNames) {
		return scopeNames[s]
	}
	return "unknown scope"
}

// Trace is the metadata of one trace so far.
type Trace struct {
	// Major and Minor are the format's version: 1.8 or 2.0.
	Major, Minor int
	// Declared is set once the trace itself is declared, so its version, byte order and packet header are valid.
	// Packets cannot be read before.
	Declared  bool
	UUID      [16]byte
	HasUUID   bool
	ByteOrder ByteOrder
	// Name is the trace's name in CTF 2, and empty in CTF 1.8.
	Name string
	// PacketHeader is nil for packets without header.
	PacketHeader *Struct
	Env          []EnvEntry
	Clocks       []*Clock
	Streams      []*Stream
	Events       []*Event
	Callsites    []Callsite
	// Notes describe ignored parts of the metadata with their positions. A trace holds at most MaxNotes.
	Notes []string
}

// MaxNotes is the maximum number of notes of a trace.
const MaxNotes = 64

// Note adds a line to Notes if there are fewer than MaxNotes.
func (t *Trace) Note(line string) {
	if len(t.Notes) < MaxNotes {
		t.Notes = append(t.Notes, line)
	}
}

// EnvEntry is one entry of the environment, in the order of the metadata.
type EnvEntry struct {
	Name string
	// Text is the value, or "" if IsNumber is set.
	Text     string
	Number   Number
	IsNumber bool
}

// Clock is the clock of time stamps. A value v is the time OffsetSeconds + (Offset + v) / Frequency in seconds.
type Clock struct {
	// Name identifies the clock: the name in CTF 1.8, the ID in CTF 2.
	Name        string
	UUID        [16]byte
	HasUUID     bool
	Description string
	// Frequency in Hz, above 0. The default is 1 GHz.
	Frequency uint64
	// Precision is the uncertainty in cycles.
	Precision     uint64
	OffsetSeconds int64
	// Offset in cycles.
	Offset int64
	// Absolute is set if times of clocks of different traces are comparable (CTF 1.8), or if the origin is the Unix
	// epoch (CTF 2).
	Absolute bool
}

// Stream is a stream class.
type Stream struct {
	ID    uint64
	HasID bool
	Name  string
	// Clock is the name of the default clock in CTF 2. It is empty in CTF 1.8, where each integer names its clock.
	Clock         string
	PacketContext *Struct
	EventHeader   *Struct
	EventContext  *Struct
}

// Event is an event class.
type Event struct {
	Name        string
	ID          uint64
	HasID       bool
	StreamID    uint64
	HasStreamID bool
	LogLevel    int64
	HasLogLevel bool
	// URI is model.emf.uri, the location of a model of the event.
	URI     string
	Context *Struct
	Fields  *Struct
}

// Callsite is a place in a traced program where an event is emitted.
type Callsite struct {
	Name, Function, File string
	Line                 uint64
	IP                   uint64
}
