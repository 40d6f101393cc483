// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkit simulates Rbkit servers for tests, with the sockets of real ones: a PUB and a REP
// socket of libzmq, in processes of their own. Tests publish messages. Requests are answered by a
// server of package rbkitserver.
//
// A test needs only:
//
//	server := rbkit.Start(t, rbkit.Options{Publish: publish, Request: request, Hello: rbkitserver.Hello(capture)})
//	server.AwaitSubscriber(t, func() bool { return whatItPublishesArrives })
//	server.Publish(capture.Messages[0].Data)
//	server.Stop()
package rbkit
