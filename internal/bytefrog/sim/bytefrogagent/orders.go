// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"errors"
	"io"
	"net"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// maxConfiguration is the maximum length of a configuration in bytes.
const maxConfiguration = 16 << 20

// orders reads messages of the HQ from one connection.
type orders struct {
	conn    net.Conn
	version uint8
	buf     []byte
}

// next waits for a message.
func (o *orders) next() (bytefrog.Message, error) {
	for {
		m, n, err := bytefrog.DecodeCommand(o.buf, o.version, maxConfiguration)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			o.buf = o.buf[n:]
			return m, nil
		}
		chunk := make([]byte, 4096)
		got, err := o.conn.Read(chunk)
		o.buf = append(o.buf, chunk[:got]...)
		if got == 0 && err != nil {
			if err == io.EOF && len(o.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// lossText returns the reason of a lost connection.
func lossText(err error) string {
	if err == io.EOF {
		return "it closed the connection"
	}
	return err.Error()
}
