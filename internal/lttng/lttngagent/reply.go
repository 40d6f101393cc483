// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
)

// ReadCode reads the reply to Enable, Disable, EnableContext or DisableContext. It wraps errors of the connection. At
// the end of the connection, this is io.EOF before the reply, and io.ErrUnexpectedEOF inside it.
func (a Agent) ReadCode(from *bufio.Reader) (Code, error) {
	r := &reading{from: from}
	return r.code()
}

func (r *reading) code() (Code, error) {
	b, err := r.next(codeSize, "a return code")
	if err != nil {
		return 0, err
	}
	return Code(binary.BigEndian.Uint32(b)), nil
}

// ListReply is the reply to List.
type ListReply struct {
	Code Code
	// Loggers has the names, in no order. It is empty unless the code is Success. The names share one piece of
	// memory. Real agents omit java.util.logging's root logger.
	Loggers []string
}

// AppendTo appends the bytes of the reply.
func (l ListReply) AppendTo(b []byte, d Dialect) []byte {
	if d == RFC {
		b = binary.BigEndian.AppendUint64(b, uint64(len(l.Loggers)))
		return l.Code.AppendTo(appendNames(b, l.Loggers))
	}
	if b = l.Code.AppendTo(b); l.Code != Success {
		return b
	}
	size := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Loggers)))
	names := len(b)
	b = appendNames(b, l.Loggers)
	binary.BigEndian.PutUint32(b[size:], uint32(len(b)-names))
	return b
}

func appendNames(b []byte, names []string) []byte {
	for _, name := range names {
		b = append(append(b, name...), 0)
	}
	return b
}

// ReadList reads the reply to List. Invalid replies, and those beyond the limits, are a *ProtocolError. A list of
// version 2.0 that is only too large is a *TooLargeError. Errors of the connection are as with ReadCode.
func (a Agent) ReadList(from *bufio.Reader, limits Limits) (ListReply, error) {
	r, limits := &reading{from: from}, limits.withDefaults()
	if a.Dialect == RFC {
		return r.rfcList(limits)
	}
	return r.list(limits)
}

// list reads the reply of version 2.0: the code, the size in bytes of all names, their number, and the names. After a
// code other than Success nothing follows.
func (r *reading) list(limits Limits) (ListReply, error) {
	code, err := r.code()
	if err != nil || code != Success {
		return ListReply{Code: code}, err
	}
	b, err := r.next(8, "the size and the number of names")
	if err != nil {
		return ListReply{}, err
	}
	size, n := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if err := r.sizes(size, n, limits); err != nil {
		return ListReply{}, err
	}
	start := r.offset
	names, err := r.bytes(int(size), "names")
	if err != nil {
		return ListReply{}, err
	}
	loggers, err := splitNames(names, int(n), start)
	if err != nil {
		return ListReply{}, err
	}
	return ListReply{Code: code, Loggers: loggers}, nil
}

// sizes checks the size in bytes of all names, and their number.
func (r *reading) sizes(size, n uint32, limits Limits) error {
	most := min(uint64(limits.Names), uint64(size))
	var wrong ProtocolError
	switch {
	case uint64(size) > uint64(limits.NameBytes):
		wrong = ProtocolError{r.offset - 8, fmt.Sprintf("at most %d bytes of names", limits.NameBytes), fmt.Sprint(size)}
	case uint64(n) > most:
		wrong = ProtocolError{r.offset - 4, fmt.Sprintf("at most %d names in %d bytes", most, size), fmt.Sprint(n)}
	default:
		return nil
	}
	// Agents have a number of 32 bits with sign.
	if size > math.MaxInt32 || n > size {
		return &wrong
	}
	return &TooLargeError{ProtocolError: wrong, Rest: int(size)}
}

// rfcList reads the reply of the RFC: the number of names, in 64 bits, the names, and the code. It has no size.
func (r *reading) rfcList(limits Limits) (ListReply, error) {
	b, err := r.next(8, "the number of names")
	if err != nil {
		return ListReply{}, err
	}
	n := binary.BigEndian.Uint64(b)
	if n > uint64(limits.Names) {
		return ListReply{}, &ProtocolError{0, fmt.Sprintf("at most %d names", limits.Names), fmt.Sprint(n)}
	}
	start := r.offset
	names, err := r.texts(int(n), limits.NameBytes)
	if err != nil {
		return ListReply{}, err
	}
	loggers, err := splitNames(names, int(n), start)
	if err != nil {
		return ListReply{}, err
	}
	code, err := r.code()
	if err != nil {
		return ListReply{}, err
	}
	return ListReply{Code: code, Loggers: loggers}, nil
}
