// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callbraid;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;

/**
 * Reads objects from standard input until its end, each behind its length. For each it prints the
 * values and what ObjectOutputStream writes for the object.
 */
public final class ReadAllTypes {
    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        while (true) {
            byte[] data;
            try {
                data = new byte[in.readInt()];
            } catch (EOFException end) {
                return;
            }
            in.readFully(data);
            print((AllTypes) new ObjectInputStream(new ByteArrayInputStream(data)).readObject());
        }
    }

    private static void print(AllTypes o) throws Exception {
        System.out.println(o.aByte + " " + (int) o.aChar + " " + Double.doubleToRawLongBits(o.aDouble) + " "
                + Float.floatToRawIntBits(o.aFloat) + " " + o.anInt + " " + o.aLong + " " + o.aShort + " " + o.aBoolean);
        System.out.println(o.aString + " " + o.anotherString + " " + o.aList + " " + o.anObject);
        ByteArrayOutputStream again = new ByteArrayOutputStream();
        new ObjectOutputStream(again).writeObject(o);
        StringBuilder line = new StringBuilder();
        for (byte b : again.toByteArray()) {
            line.append(String.format("%02X", b));
        }
        System.out.println(line);
    }
}
