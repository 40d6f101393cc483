// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package com.secdec.bytefrog.common.config;

import java.io.Serializable;
import java.util.List;

/**
 * What the agent reads its configuration into, as far as serialisation sees it: the name, the
 * serialVersionUID and the fields.
 */
public final class RuntimeAgentConfigurationV1 implements Serializable {
    private static final long serialVersionUID = -4660117618158655806L;

    public byte runId;
    public int heartbeatInterval;
    public List<String> exclusions;
    public List<String> inclusions;
    public int bufferMemoryBudget;
    public int queueRetryCount;
    public int numDataSenders;
}
