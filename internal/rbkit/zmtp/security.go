// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "fmt"

// Security is a mechanism: Null or Plain.
type Security interface {
	// name is the mechanism's, as it stands in the greeting.
	name() string
	// meet does the handshake of a client, and await that of a server, up to but not
	// including READY of the other side, or what stands for it. metadata is our own.
	meet(g greeted, metadata []byte) (theirs command, err error)
	await(g greeted, metadata []byte, fits func(theirs command) error) error
}

// Null is no security: who reaches the port may talk (RFC 23, "The NULL Security
// Mechanism").
type Null struct{}

func (Null) name() string { return "NULL" }

func (n Null) meet(g greeted, metadata []byte) (command, error) {
	if len(g.in.held()) == 0 {
		if err := g.fill(g.hesitation(), "the command "+commandReady); err != nil && !isTimeout(err) {
			return command{}, err
		}
	}
	return n.ready(g, metadata)
}

func (n Null) await(g greeted, metadata []byte, fits func(command) error) error {
	theirs, err := n.ready(g, metadata)
	if err != nil {
		return err
	}
	return fits(theirs)
}

// ready exchanges what both sides have to say.
func (Null) ready(g greeted, metadata []byte) (command, error) {
	if err := g.write(appendCommand(nil, commandReady, metadata)); err != nil {
		return command{}, err
	}
	return g.expect(commandReady)
}

// Plain is a name and a password, in clear (RFC 24). As a client it has them, as a
// server it asks for them. Each has at most 255 bytes.
type Plain struct {
	Username, Password string
}

const maxPlain = 255

func (Plain) name() string { return "PLAIN" }

func (p Plain) meet(g greeted, metadata []byte) (command, error) {
	if len(p.Username) > maxPlain || len(p.Password) > maxPlain {
		return command{}, fmt.Errorf("expected a name and a password of at most %d bytes, got %d and %d", maxPlain, len(p.Username), len(p.Password))
	}
	if err := g.write(appendCommand(nil, commandHello, p.credentials())); err != nil {
		return command{}, err
	}
	welcome, err := g.expect(commandWelcome)
	if err == nil && len(welcome.data) > 0 {
		err = &ProtocolError{Offset: welcome.dataOffset, Expected: "a WELCOME without data", Got: quoted(welcome.data)}
	}
	if err != nil {
		return command{}, err
	}
	if err := g.write(appendCommand(nil, commandInitiate, metadata)); err != nil {
		return command{}, err
	}
	return g.expect(commandReady)
}

func (p Plain) await(g greeted, metadata []byte, fits func(command) error) error {
	hello, err := g.expect(commandHello)
	if err != nil {
		return err
	}
	if string(hello.data) != string(p.credentials()) {
		err := &ProtocolError{Offset: hello.dataOffset, Expected: "the right name and password", Got: "others"}
		return g.refuse("Invalid username or password", err)
	}
	if err := g.write(appendCommand(nil, commandWelcome)); err != nil {
		return err
	}
	initiate, err := g.expect(commandInitiate)
	if err != nil {
		return err
	}
	if err := fits(initiate); err != nil {
		return g.refuse("Invalid socket type", err)
	}
	return g.write(appendCommand(nil, commandReady, metadata))
}

// credentials are the data of HELLO.
func (p Plain) credentials() []byte {
	b := append([]byte{byte(len(p.Username))}, p.Username...)
	return append(append(b, byte(len(p.Password))), p.Password...)
}
