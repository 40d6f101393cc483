// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbkit plays Rbkit servers for tests, with the sockets that real ones have: a
// PUB and a REP socket of libzmq, in processes of their own. What they publish is the
// tests', what they answer is a server's of package rbkitserver.
//
// A test needs only:
//
//	server := rbkit.Start(t, rbkit.Options{Publish: publish, Request: request, Hello: rbkitserver.Hello(capture)})
//	server.AwaitSubscriber(t, func() bool { return whatItPublishesArrives })
//	server.Publish(capture.Messages[0].Data)
//	server.Stop()
package rbkit
