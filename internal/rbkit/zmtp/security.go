// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "fmt"

// Security is a mechanism: Null or Plain.
type Security interface {
	// name is the name of the mechanism in the greeting.
	name() string
	// The handshakes of a client and of a server end with the metadata of the other side: READY,
	// or the command instead of it. metadata is our own.
	handshakeAsClient(g greeted, metadata []byte) (theirs command, err error)
	handshakeAsServer(g greeted, metadata []byte, fits func(theirs command) error) error
}

// Null is no security: each peer that reaches the port is accepted (RFC 23, "The NULL Security
// Mechanism").
type Null struct{}

func (Null) name() string { return "NULL" }

func (n Null) handshakeAsClient(g greeted, metadata []byte) (command, error) {
	if len(g.in.held()) == 0 {
		if err := g.fill(g.hesitation(), "the command "+commandReady); err != nil && !isTimeout(err) {
			return command{}, err
		}
	}
	return n.exchangeReady(g, metadata)
}

func (n Null) handshakeAsServer(g greeted, metadata []byte, fits func(command) error) error {
	theirs, err := n.exchangeReady(g, metadata)
	if err != nil {
		return err
	}
	return fits(theirs)
}

// exchangeReady exchanges the metadata of both sides.
func (Null) exchangeReady(g greeted, metadata []byte) (command, error) {
	if err := g.write(appendCommand(nil, commandReady, metadata)); err != nil {
		return command{}, err
	}
	return g.expect(commandReady)
}

// Plain is a name and a password in clear (RFC 24). A client sends them, and a server requires
// them. Each has at most 255 bytes.
type Plain struct {
	Username, Password string
}

const maxPlain = 255

func (Plain) name() string { return "PLAIN" }

func (p Plain) handshakeAsClient(g greeted, metadata []byte) (command, error) {
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

func (p Plain) handshakeAsServer(g greeted, metadata []byte, fits func(command) error) error {
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

// credentials returns the data of HELLO.
func (p Plain) credentials() []byte {
	b := append([]byte{byte(len(p.Username))}, p.Username...)
	return append(append(b, byte(len(p.Password))), p.Password...)
}
