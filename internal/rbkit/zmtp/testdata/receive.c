/* Copyright The Callbraid Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * receive ADDRESS MESSAGES SIZE: subscribes to everything with libzmq, and ends when it
 * has received so many messages of that size. Nothing is kept back for a slow reader. */
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

static void check(int rc, const char *what) {
  if (rc < 0) {
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "expected ADDRESS MESSAGES SIZE\n");
    return 2;
  }
  long messages = atol(argv[2]), size = atol(argv[3]);
  int unlimited = 0;
  void *context = zmq_ctx_new();
  void *sub = zmq_socket(context, ZMQ_SUB);
  check(zmq_setsockopt(sub, ZMQ_RCVHWM, &unlimited, sizeof unlimited), "ZMQ_RCVHWM");
  check(zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "", 0), "ZMQ_SUBSCRIBE");
  check(zmq_connect(sub, argv[1]), "zmq_connect");
  zmq_msg_t message;
  check(zmq_msg_init(&message), "zmq_msg_init");
  for (long n = 0; n < messages; n++) {
    check(zmq_msg_recv(&message, sub, 0), "zmq_msg_recv");
    if ((long)zmq_msg_size(&message) != size) {
      fprintf(stderr, "message %ld: expected %ld bytes, got %zu\n", n, size, zmq_msg_size(&message));
      return 1;
    }
  }
  zmq_msg_close(&message);
  zmq_close(sub);
  zmq_ctx_term(context);
  return 0;
}
