// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import com.secdec.bytefrog.common.config.RuntimeAgentConfigurationV1;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.List;

/**
 * Reads configuration messages from standard input until its end. For each it prints the values,
 * strings as their UTF-16 units in hexadecimal, and what ObjectOutputStream writes for the object.
 */
public final class ReadConfigurations {
    private static final int CONFIGURATION = 1;

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        for (int type = in.read(); type >= 0; type = in.read()) {
            if (type != CONFIGURATION) {
                throw new IllegalStateException("expected a configuration, got message type " + type);
            }
            byte[] data = new byte[in.readInt()];
            in.readFully(data);
            print(read(data));
        }
    }

    private static RuntimeAgentConfigurationV1 read(byte[] data) throws Exception {
        ByteArrayInputStream bytes = new ByteArrayInputStream(data);
        Object object = new ObjectInputStream(bytes).readObject();
        if (bytes.available() != 0) {
            throw new IllegalStateException(bytes.available() + " bytes behind the object");
        }
        return (RuntimeAgentConfigurationV1) object;
    }

    private static void print(RuntimeAgentConfigurationV1 c) throws Exception {
        System.out.println("runId " + c.runId);
        System.out.println("heartbeatInterval " + c.heartbeatInterval);
        print("exclusions", c.exclusions);
        print("inclusions", c.inclusions);
        System.out.println("bufferMemoryBudget " + c.bufferMemoryBudget);
        System.out.println("queueRetryCount " + c.queueRetryCount);
        System.out.println("numDataSenders " + c.numDataSenders);

        ByteArrayOutputStream again = new ByteArrayOutputStream();
        new ObjectOutputStream(again).writeObject(c);
        StringBuilder line = new StringBuilder("again ");
        for (byte b : again.toByteArray()) {
            line.append(String.format("%02X", b));
        }
        System.out.println(line);
    }

    private static void print(String name, List<String> list) {
        System.out.println(name + " " + list.getClass().getName() + " " + list.size());
        for (String s : list) {
            StringBuilder line = new StringBuilder("-");
            for (char unit : s.toCharArray()) {
                line.append(String.format(" %04X", (int) unit));
            }
            System.out.println(line);
        }
    }
}
