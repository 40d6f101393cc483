// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// The layout of the kernel's requests and answers about sockets: struct nlmsghdr, then inet_diag_req_v2 or inet_diag_msg
// (linux/netlink.h, linux/inet_diag.h).
const (
	// socketsByFamily is SOCK_DIAG_BY_FAMILY.
	socketsByFamily = 20

	diagRequestSize = unix.SizeofNlMsghdr + 56
	diagAnswerSize  = unix.SizeofNlMsghdr + 72
	// inodeOffset is the position of the socket's inode number in an answer.
	inodeOffset = unix.SizeofNlMsghdr + 68

	// anyState, anyInterface and anyCookie match all sockets.
	anyState, anyInterface, anyCookie = 0xffffffff, 0, 0xffffffffffffffff

	// kernelTimeout bounds the wait for the kernel's answer.
	kernelTimeout = time.Second
)

// peerSocket returns the inode number of the socket at the other end of a connection on this machine.
func peerSocket(conn net.Conn) (inode uint32, err error) {
	theirs, ok := conn.RemoteAddr().(*net.TCPAddr)
	ours, alsoOK := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !alsoOK {
		return 0, errors.ErrUnsupported
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	timeout := unix.NsecToTimeval(kernelTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return 0, err
	}
	question := diagRequest(theirs.AddrPort(), ours.AddrPort())
	if err := unix.Sendto(fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, err
	}
	return inodeOf(answer[:n])
}

// diagRequest returns the request for the socket of one address that is connected to another.
func diagRequest(of, with netip.AddrPort) []byte {
	b := make([]byte, 0, diagRequestSize)
	b = binary.NativeEndian.AppendUint32(b, diagRequestSize)
	b = binary.NativeEndian.AppendUint16(b, socketsByFamily)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // sequence number and sender: there is one request
	family := byte(unix.AF_INET6)
	if of.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	b = append(b, family, unix.IPPROTO_TCP, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, anyState)
	b = binary.BigEndian.AppendUint16(b, of.Port())
	b = binary.BigEndian.AppendUint16(b, with.Port())
	b = appendAddress(b, of.Addr())
	b = appendAddress(b, with.Addr())
	b = binary.NativeEndian.AppendUint32(b, anyInterface)
	return binary.NativeEndian.AppendUint64(b, anyCookie)
}

// appendAddress appends an address in 16 bytes. IPv4 uses the first 4.
func appendAddress(b []byte, address netip.Addr) []byte {
	var field [16]byte
	copy(field[:], address.Unmap().AsSlice())
	return append(b, field[:]...)
}

// inodeOf returns the inode number in the kernel's answer.
func inodeOf(answer []byte) (uint32, error) {
	if len(answer) < diagAnswerSize || binary.NativeEndian.Uint16(answer[4:]) != socketsByFamily {
		return 0, fmt.Errorf("expected a socket in %d bytes, got %d", diagAnswerSize, len(answer))
	}
	return binary.NativeEndian.Uint32(answer[inodeOffset:]), nil
}
