// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkit

import "github.com/tinylib/msgp/msgp"

// Handshake is what a server says of itself and its state (section "Message frame for
// HANDSHAKE").
type Handshake struct {
	Dialect         Dialect
	Millis          int64
	ServerVersion   string
	ProtocolVersion string
	ProcessName     string
	// Directory is where the program was started, its working directory.
	Directory string
	// PID is that of the process; 0: it didn't say.
	PID int64
	// ObjectTrace and CPUProfiling say what is switched on.
	ObjectTrace, CPUProfiling bool
	// Clock is "wall" or "cpu": by what the CPU is profiled.
	Clock string
	// Mode is how: "sampling".
	Mode string
}

// The keys of a handshake.
const (
	keyServerVersion   = "rbkit_server_version"
	keyProtocolVersion = "rbkit_protocol_version"
	keyProcessName     = "process_name"
	keyDirectory       = "pwd"
	keyPID             = "pid"
	keyObjectTrace     = "object_trace_enabled"
	keyCPUProfiling    = "cpu_profiling_enabled"
	keyClock           = "clock_type"
	keyMode            = "cpu_profiling_mode"
)

// DecodeHandshake reads the answer to HandshakeCommand. An error is an *Error.
func DecodeHandshake(reply []byte) (Handshake, error) {
	in := newReader(reply)
	if t := in.next(); string(reply) == Acknowledged {
		return Handshake{}, in.fail(FaultMessage, "a handshake", t+" (the answer to other commands)")
	}
	e, err := in.envelope()
	if err != nil {
		return Handshake{}, err
	}
	h := Handshake{Dialect: dialectOf(HandshakeReply, e.number), Millis: e.millis}
	if h.Dialect == UnknownDialect || !e.hasPayload {
		return Handshake{}, in.fail(FaultMessage, "a handshake: type 8 or 7, with a payload", "another type, or none")
	}
	n, err := in.mapping("a map of the server's state")
	if err != nil {
		return Handshake{}, err
	}
	for range n {
		if err := h.entry(&in); err != nil {
			return Handshake{}, err
		}
	}
	return h, nil
}

func (h *Handshake) entry(in *reader) error {
	key, err := in.text("a key of a handshake")
	if err != nil {
		return err
	}
	switch string(key) {
	case keyServerVersion:
		h.ServerVersion, err = in.str("the server's version")
	case keyProtocolVersion:
		h.ProtocolVersion, err = in.str("the protocol's version")
	case keyProcessName:
		h.ProcessName, err = in.str("the name of the process")
	case keyDirectory:
		h.Directory, err = in.str("the working directory")
	case keyPID:
		h.PID, _, err = in.number()
	case keyObjectTrace:
		h.ObjectTrace, err = in.flag("whether objects are traced")
	case keyCPUProfiling:
		h.CPUProfiling, err = in.flag("whether the CPU is profiled")
	case keyClock:
		h.Clock, err = in.str("a clock")
	case keyMode:
		h.Mode, err = in.str("a mode of profiling")
	default:
		err = in.skip("a value")
	}
	return err
}

// Append appends the handshake, as a server answers it, to b.
func (h *Handshake) Append(b []byte) []byte {
	number, _ := h.Dialect.numberOf(HandshakeReply)
	b = appendTyped(msgp.AppendMapHeader(b, 3), number, h.Millis)
	b = msgp.AppendMapHeader(append(b, keyPayload), 9)
	text := func(key, value string) { b = msgp.AppendString(msgp.AppendString(b, key), value) }
	flag := func(key string, set bool) {
		n := uint64(0)
		if set {
			n = 1
		}
		b = msgp.AppendUint64(msgp.AppendString(b, key), n)
	}
	text(keyServerVersion, h.ServerVersion)
	text(keyProtocolVersion, h.ProtocolVersion)
	text(keyProcessName, h.ProcessName)
	text(keyDirectory, h.Directory)
	b = appendInt(msgp.AppendString(b, keyPID), h.PID)
	flag(keyObjectTrace, h.ObjectTrace)
	flag(keyCPUProfiling, h.CPUProfiling)
	text(keyClock, h.Clock)
	text(keyMode, h.Mode)
	return b
}
