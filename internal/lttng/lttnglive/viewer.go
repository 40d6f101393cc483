// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"
)

// ViewerOptions configure a viewer. The zero value has the defaults.
type ViewerOptions struct {
	// Minor is the minor version to announce, from MinMinor to MaxMinor. The default is MaxMinor.
	Minor uint32
	// Timeout is the time limit for sending a request, and for each 64 KiB of a reply. The default is 10 s. The
	// viewer sets the deadlines of the connection.
	Timeout time.Duration
	// Limits bound what replies may announce.
	Limits Limits
	// Room is called before each further 64 KiB of a reply are read into memory that the viewer allocates. Its
	// argument is the number of bytes so far. An error ends the command. nil means that there is always memory.
	Room func(bytes int) error
}

const defaultTimeout = 10 * time.Second

func (o ViewerOptions) withDefaults() ViewerOptions {
	if o.Minor == 0 {
		o.Minor = MaxMinor
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Viewer is a connection to a relay daemon with an agreed version. It sends one request at a time, and only one
// goroutine at a time may use it.
//
// Every method returns when its context ends. After an error the connection is unusable, and every further command
// returns an error. The exceptions are *StatusError, and contexts that had ended before the command.
type Viewer struct {
	transfer transfer
	options  ViewerOptions
	peer     string
	relay    Version
	minor    uint32 // agreed
	created  bool   // the viewer's session
	broken   error
	request  []byte // reused
}

// Connect agrees on a version with the relay daemon at the other end of conn. The caller closes the connection, also
// after an error. Errors are *CommandError.
func Connect(ctx context.Context, conn net.Conn, options ViewerOptions) (*Viewer, error) {
	options = options.withDefaults()
	v := &Viewer{
		transfer: transfer{conn: conn, timeout: options.Timeout, room: options.Room},
		options:  options,
		peer:     conn.RemoteAddr().String(),
		minor:    options.Minor,
	}
	if options.Minor < MinMinor || options.Minor > MaxMinor {
		return nil, &CommandError{Peer: v.peer, Command: CommandConnect, Err: fmt.Errorf("expected a minor version from %d to %d to announce, got %d", MinMinor, MaxMinor, options.Minor)}
	}
	request := ConnectRequest{
		ViewerSession: math.MaxUint64,
		Version:       Version{Major: Major, Minor: options.Minor},
		Type:          ConnectionCommand,
	}
	var reply ConnectReply
	err := v.command(ctx, request, func(from replySource) (err error) {
		if reply, err = readConnectReply(from); err != nil {
			err = wrongPeer(v.peer, v.transfer.buf, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	v.relay = reply.Version
	v.minor = min(options.Minor, reply.Version.Minor)
	return v, nil
}

// RelayVersion returns the relay daemon's version.
func (v *Viewer) RelayVersion() Version { return v.relay }

// Minor returns the agreed minor version.
func (v *Viewer) Minor() uint32 { return v.minor }

// Sessions lists the sessions of the relay daemon. If the agreed minor version is below 15, the list omits sessions
// of CTF 2.
func (v *Viewer) Sessions(ctx context.Context) ([]Session, error) {
	var reply ListSessionsReply
	err := v.command(ctx, ListSessionsRequest{}, func(from replySource) (err error) {
		reply, err = readSessions(from, v.minor, v.options.Limits)
		return err
	})
	return reply.Sessions, err
}

// Attach attaches a session and returns its current streams. The status of a *StatusError is an AttachStatus or a
// CreateSessionStatus.
//
// A relay daemon allows several sessions on a connection, but one viewer for each session. The end of the connection
// also detaches a session.
func (v *Viewer) Attach(ctx context.Context, session uint64, seek Seek) (*Attachment, []Stream, error) {
	if err := v.createSession(ctx); err != nil {
		return nil, nil, err
	}
	var reply AttachSessionReply
	err := v.command(ctx, AttachSessionRequest{Session: session, Seek: seek}, func(from replySource) (err error) {
		if reply, err = readAttachReply(from, v.options.Limits); err == nil && reply.Status != AttachOK {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return &Attachment{viewer: v, session: session}, reply.Streams, nil
}

// createSession creates the viewer's session, if there is none. Attach needs it.
func (v *Viewer) createSession(ctx context.Context) error {
	if v.created {
		return nil
	}
	err := v.command(ctx, CreateSessionRequest{}, func(from replySource) error {
		reply, err := readCreateReply(from)
		if err == nil && reply.Status != CreateSessionOK {
			err = &StatusError{Status: reply.Status}
		}
		return err
	})
	v.created = err == nil
	return err
}

// command sends a request and calls read for its reply. Any error of read except *StatusError makes the connection
// unusable.
func (v *Viewer) command(ctx context.Context, r Request, read func(from replySource) error) error {
	err := v.exchange(ctx, r, read)
	if err == nil {
		return nil
	}
	return &CommandError{Peer: v.peer, Command: r.Command(), Err: err}
}

func (v *Viewer) exchange(ctx context.Context, r Request, read func(from replySource) error) error {
	if v.broken != nil {
		return &BrokenError{Err: v.broken}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v.transfer.begin(ctx)
	defer v.transfer.end()
	v.request = AppendRequest(v.request[:0], r)
	err := v.transfer.send(v.request)
	if err == nil {
		err = read(&v.transfer)
	}
	var status *StatusError
	if err != nil && !errors.As(err, &status) {
		v.broken = fmt.Errorf("%s: %w", r.Command(), err)
	}
	return err
}
