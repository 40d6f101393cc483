// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Request is the frame of a request ("请求报文标准结构").
type Request struct {
	// Version is the version of the protocol.
	Version uint16
	// SendID distinguishes open requests; it may be negative.
	SendID int32
	Type   RequestType
	// Data are JSON, or empty.
	Data []byte
}

// Answer is the frame of a reply ("应答报文标准结构").
type Answer struct {
	// SendID is the SendID of the request.
	SendID int32
	// RespID counts the replies of a connection, over all requests. After the largest number follows the lowest.
	RespID int32
	Code   ReturnCode
	Data   []byte
}

// Lengths of headers in bytes.
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

// NewRequests returns a reader of requests whose data have at most maxFrame bytes.
func NewRequests(from io.Reader, maxFrame int) *Requests {
	return &Requests{in: input{from: from}, maxFrame: maxFrame}
}

// Next reads a request. Its data are valid until the next call. The error is a *ProtocolError or the reader's: io.EOF
// between requests, io.ErrUnexpectedEOF inside one.
func (q *Requests) Next() (Request, error) {
	header, err := q.in.next(requestHeader)
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

// nextAnswer reads a reply. Its data are valid until the next call. The errors are as for requests, or a *longError:
// then the reply has no data, and the caller has to skip them.
func (i *input) nextAnswer(maxFrame int) (Answer, error) {
	header, err := i.next(answerHeader)
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

// data reads the data of a frame. The last 4 bytes of the preceding header were their length.
func (i *input) data(length uint32, maxFrame int) ([]byte, error) {
	if uint64(length) > uint64(maxFrame) {
		return nil, &longError{length: int64(length), err: &ProtocolError{
			Offset:   i.offset() - 4,
			Expected: fmt.Sprintf("a length of at most %d bytes of data", maxFrame), Got: fmt.Sprint(length),
		}}
	}
	data, err := i.next(int(length))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// longError means that a frame's data are longer than allowed. None of them were read.
type longError struct {
	length int64
	err    *ProtocolError
}

func (e *longError) Error() string { return e.err.Error() }
func (e *longError) Unwrap() error { return e.err }
