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

// ViewerOptions are how a viewer speaks. The zero value is the defaults.
type ViewerOptions struct {
	// Minor is the minor version to announce, from MinMinor to MaxMinor; default
	// MaxMinor.
	Minor uint32
	// Timeout is how long a request may take to be sent, and each 64 KiB of a reply to
	// come; default 10 s. The deadlines of the connection are the viewer's.
	Timeout time.Duration
	// Limits bound what replies may announce.
	Limits Limits
	// Room is called before each further 64 KiB of a reply are read for which the viewer
	// makes room, with how many bytes of it have come. An error ends the command. nil: there
	// is always room.
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

// Viewer is a connection to a relay daemon that has agreed on a version. It asks one
// thing at a time and is not for use by several goroutines at once.
//
// Every method returns when its context ends. After any error that is no
// *StatusError, and not that of a context that had ended before, the connection is of
// no use, and every further command says so.
type Viewer struct {
	transfer transfer
	options  ViewerOptions
	peer     string
	relay    Version
	minor    uint32 // agreed
	created  bool   // the viewer's session
	broken   error
	request  []byte // used again
}

// Connect agrees with the relay daemon at the other end of conn on a version. The
// connection stays the caller's, to be closed whatever happens. Errors are
// *CommandError.
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
		reply, err = readConnectReply(from)
		return err
	})
	if err != nil {
		return nil, err
	}
	v.relay = reply.Version
	v.minor = min(options.Minor, reply.Version.Minor)
	return v, nil
}

// RelayVersion is the version that the relay daemon said it speaks.
func (v *Viewer) RelayVersion() Version { return v.relay }

// Minor is the agreed minor version.
func (v *Viewer) Minor() uint32 { return v.minor }

// Sessions lists the sessions of the relay daemon. While the agreed minor version is
// below 15 it leaves out those of CTF 2.
func (v *Viewer) Sessions(ctx context.Context) ([]Session, error) {
	var reply ListSessionsReply
	err := v.command(ctx, ListSessionsRequest{}, func(from replySource) (err error) {
		reply, err = readSessions(from, v.minor, v.options.Limits)
		return err
	})
	return reply.Sessions, err
}

// Attach attaches a session, and returns the streams it has now. The status of a
// *StatusError is an AttachStatus, or a CreateSessionStatus.
//
// A relay daemon allows several sessions on a connection, but one viewer for each
// session. A session is detached when the connection is closed, too.
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

// createSession makes the viewer's session, which has to be there before sessions are
// attached to it.
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

// command sends a request and has its reply read. Whatever read returns that is no
// *StatusError leaves the connection unusable.
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
