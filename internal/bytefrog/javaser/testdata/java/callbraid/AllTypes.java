// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package callbraid;

import java.io.Serializable;
import java.util.List;

/** A class with a field of every type that a stream of ours can hold. */
public final class AllTypes implements Serializable {
    private static final long serialVersionUID = 1234567890123456789L;

    public byte aByte;
    public char aChar;
    public double aDouble;
    public float aFloat;
    public int anInt;
    public long aLong;
    public short aShort;
    public boolean aBoolean;
    public String aString;
    public String anotherString;
    public List<String> aList;
    public Object anObject;
}
