import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;

import org.apache.hudi.io.ByteArraySeekableDataInputStream;
import org.apache.hudi.io.ByteBufferBackedInputStream;
import org.apache.hudi.io.hfile.HFileReader;
import org.apache.hudi.io.hfile.HFileReaderImpl;
import org.apache.hudi.io.hfile.KeyValue;
import org.apache.hudi.io.hfile.UTF8StringKey;

/**
 * Reads HFiles with the JVM's own reader. For each file one line: number of entries by the trailer, by a scan, and found
 * by seeking each key in order; then digests of all keys and their lengths, and of all values and their lengths.
 */
public final class HFileJudge {
    public static void main(String[] paths) throws Exception {
        for (String path : paths) {
            System.out.println(judge(Files.readAllBytes(Path.of(path))));
        }
    }

    private static String judge(byte[] content) throws Exception {
        MessageDigest keys = MessageDigest.getInstance("SHA-256");
        MessageDigest values = MessageDigest.getInstance("SHA-256");
        HFileReader scan = open(content);
        HFileReader seek = open(content);
        // Without this a seek finds nothing.
        seek.seekTo();
        long scanned = 0;
        long found = 0;
        for (boolean more = scan.seekTo(); more; more = scan.next()) {
            KeyValue entry = scan.getKeyValue().get();
            byte[] bytes = entry.getBytes();
            int keyStart = entry.getKeyContentOffset();
            int valueStart = entry.getValueOffset();
            add(keys, bytes, keyStart, entry.getKeyContentLength());
            add(values, bytes, valueStart, entry.getValueLength());
            scanned++;
            byte[] key = Arrays.copyOfRange(bytes, keyStart, keyStart + entry.getKeyContentLength());
            if (seek.seekTo(new UTF8StringKey(key)) == HFileReader.SEEK_TO_FOUND) {
                KeyValue other = seek.getKeyValue().get();
                int start = other.getValueOffset();
                boolean same = Arrays.equals(bytes, valueStart, valueStart + entry.getValueLength(),
                    other.getBytes(), start, start + other.getValueLength());
                found += same ? 1 : 0;
            }
        }
        // The JVM looks keys up in files of no entries too.
        HFileReader fresh = open(content);
        fresh.seekTo();
        boolean isAbsent = fresh.seekTo(new UTF8StringKey("\0\0\0")) != HFileReader.SEEK_TO_FOUND;
        HexFormat hex = HexFormat.of();
        return scan.getNumKeyValueEntries() + " " + scanned + " " + (isAbsent ? found : -1) + " "
            + hex.formatHex(keys.digest()) + " " + hex.formatHex(values.digest());
    }

    private static HFileReader open(byte[] content) throws Exception {
        HFileReader reader = new HFileReaderImpl(
            new ByteArraySeekableDataInputStream(new ByteBufferBackedInputStream(content)), content.length);
        reader.initializeMetadata();
        return reader;
    }

    private static void add(MessageDigest digest, byte[] bytes, int start, int length) {
        digest.update(bytes, start, length);
        digest.update(ByteBuffer.allocate(4).putInt(length).array());
    }
}
