// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Request is the frame of one ("请求报文标准结构").
type Request struct {
	// Version is that of the protocol.
	Version uint16
	// SendID tells it from others under way; it may be below 0.
	SendID int32
	Type   RequestType
	// Data are JSON, or nothing.
	Data []byte
}

// Answer is the frame of a reply ("应答报文标准结构").
type Answer struct {
	// SendID is the request's.
	SendID int32
	// RespID is one more than that of the reply before it, to whichever request; after the
	// largest number comes the lowest.
	RespID int32
	Code   ReturnCode
	Data   []byte
}

// Bytes of headers.
const (
	requestHeader = 12
	answerHeader  = 16
)

// AppendRequest adds a request's frame to bytes.
func AppendRequest(to []byte, r Request) []byte {
	to = binary.BigEndian.AppendUint16(to, r.Version)
	to = binary.BigEndian.AppendUint32(to, uint32(r.SendID))
	to = binary.BigEndian.AppendUint16(to, uint16(r.Type))
	to = binary.BigEndian.AppendUint32(to, uint32(len(r.Data)))
	return append(to, r.Data...)
}

// AppendAnswer adds a reply's frame to bytes.
func AppendAnswer(to []byte, a Answer) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(a.SendID))
	to = binary.BigEndian.AppendUint32(to, uint32(a.RespID))
	to = binary.BigEndian.AppendUint32(to, uint32(a.Code))
	to = binary.BigEndian.AppendUint32(to, uint32(len(a.Data)))
	return append(to, a.Data...)
}

// Requests reads the requests of one client, as a server does.
type Requests struct {
	in       input
	maxFrame int
}

// NewRequests reads requests, whose data have at most so many bytes, from a reader.
func NewRequests(from io.Reader, maxFrame int) *Requests {
	return &Requests{in: input{from: from}, maxFrame: maxFrame}
}

// Next reads a request, whose data are valid until the next is read. The error is a
// *ProtocolError or the reader's: io.EOF between requests, io.ErrUnexpectedEOF inside one.
func (q *Requests) Next() (Request, error) {
	header, err := q.in.take(requestHeader)
	if err != nil {
		return Request{}, err
	}
	r := Request{
		Version: binary.BigEndian.Uint16(header),
		SendID:  int32(binary.BigEndian.Uint32(header[2:])),
		Type:    RequestType(binary.BigEndian.Uint16(header[6:])),
	}
	r.Data, err = q.in.data(binary.BigEndian.Uint32(header[8:]), q.maxFrame)
	return r, err
}

// nextAnswer reads a reply, whose data are valid until the next is read. Errors are as those
// of requests, or a *longError, with the reply without its data, which come next.
func (i *input) nextAnswer(maxFrame int) (Answer, error) {
	header, err := i.take(answerHeader)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		SendID: int32(binary.BigEndian.Uint32(header)),
		RespID: int32(binary.BigEndian.Uint32(header[4:])),
		Code:   ReturnCode(binary.BigEndian.Uint32(header[8:])),
	}
	a.Data, err = i.data(binary.BigEndian.Uint32(header[12:]), maxFrame)
	return a, err
}

// data are those of a frame whose header was taken just now and said their length, in its
// last 4 bytes.
func (i *input) data(length uint32, maxFrame int) ([]byte, error) {
	if uint64(length) > uint64(maxFrame) {
		return nil, &longError{length: int64(length), err: &ProtocolError{
			Offset:   i.offset() - 4,
			Expected: fmt.Sprintf("a length of at most %d bytes of data", maxFrame), Got: fmt.Sprint(length),
		}}
	}
	data, err := i.take(int(length))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// longError says that the data of a frame are more than is allowed, of which none was read.
type longError struct {
	length int64
	err    *ProtocolError
}

func (e *longError) Error() string { return e.err.Error() }
func (e *longError) Unwrap() error { return e.err }
