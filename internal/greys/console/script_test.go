// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io"
	"net"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// pieces is a connection with one prepared piece for each read. Then one read fails with a timeout, without waiting,
// and the next one ends the connection.
type pieces struct {
	net.Conn
	left     [][]byte
	silences int
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.left) > 0 && len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	if len(p.left) > 0 {
		n := copy(into, p.left[0])
		p.left[0] = p.left[0][n:]
		return n, nil
	}
	if p.silences++; p.silences > 1 {
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

func (p *pieces) Write(b []byte) (int, error)      { return len(b), nil }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }

// answers returns the replies to a command whose answer arrives in these pieces, from a server with this prompt.
func answers(command javamethods.Command, prompt string, config Config, cut ...[]byte) (replies []javamethods.Reply, err error) {
	c := &conversation{connection: newConnection(&pieces{left: cut}, config.withDefaults()), running: true}
	c.prompt = []byte(prompt)
	_, err = c.ask([]byte("?"), command, func(r javamethods.Reply) { replies = append(replies, clone(r)) })
	return replies, err
}

// clone copies an answer, so that it stays valid.
func clone(r javamethods.Reply) javamethods.Reply {
	copied := reflect.New(reflect.TypeOf(r).Elem())
	copied.Elem().Set(cloneValue(reflect.ValueOf(r).Elem()))
	return copied.Interface().(javamethods.Reply)
}

// cloneValue copies nested slices. An empty slice becomes nil.
func cloneValue(v reflect.Value) reflect.Value {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	switch v.Kind() {
	case reflect.Slice:
		copied.SetZero()
		for i := range v.Len() {
			copied.Set(reflect.Append(copied, cloneValue(v.Index(i))))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			break
		}
		for i := range v.NumField() {
			copied.Field(i).Set(cloneValue(v.Field(i)))
		}
	}
	return copied
}

func pattern(tb testing.TB, text string) javamethods.Pattern {
	tb.Helper()
	p, err := javamethods.NewPattern(text)
	require.NoError(tb, err)
	return p
}
