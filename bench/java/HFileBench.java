import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.hudi.io.ByteArraySeekableDataInputStream;
import org.apache.hudi.io.ByteBufferBackedInputStream;
import org.apache.hudi.io.compress.CompressionCodec;
import org.apache.hudi.io.hfile.HFileContext;
import org.apache.hudi.io.hfile.HFileReader;
import org.apache.hudi.io.hfile.HFileReaderImpl;
import org.apache.hudi.io.hfile.HFileWriter;
import org.apache.hudi.io.hfile.HFileWriterImpl;
import org.apache.hudi.io.hfile.KeyValue;
import org.apache.hudi.io.hfile.UTF8StringKey;

/**
 * The JVM's side of bench/hfile.py: measures writes, scans and seeks in memory. The entries and the HFiles come from
 * a folder that Python wrote. Arguments: folder, repeats, numbers of look-ups.
 */
public final class HFileBench {
    private static final Map<String, List<Double>> SECONDS = new LinkedHashMap<>();
    private static long sink;

    private interface Step {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        int repeats = Integer.parseInt(arguments[1]);
        List<String> keys = new ArrayList<>();
        List<byte[]> values = new ArrayList<>();
        HFileReader all = open(Files.readAllBytes(folder.resolve("NONE.hfile")));
        for (boolean more = all.seekTo(); more; more = all.next()) {
            KeyValue entry = all.getKeyValue().get();
            byte[] bytes = entry.getBytes();
            keys.add(new String(bytes, entry.getKeyContentOffset(), entry.getKeyContentLength(), StandardCharsets.UTF_8));
            values.add(value(entry));
        }
        for (int round = 0; round <= repeats; round++) {
            boolean isWarmUp = round == 0;
            for (CompressionCodec codec : List.of(CompressionCodec.GZIP, CompressionCodec.NONE)) {
                byte[] content = Files.readAllBytes(folder.resolve(codec.name() + ".hfile"));
                time(codec + " write", isWarmUp, () -> write(codec, keys, values));
                time(codec + " scan", isWarmUp, () -> scan(content, keys.size()));
                for (int argument = 2; argument < arguments.length; argument++) {
                    String count = arguments[argument];
                    List<UTF8StringKey> wanted = wanted(folder.resolve("wanted-" + count), keys);
                    time(codec + " " + count, isWarmUp, () -> seek(content, wanted));
                }
            }
        }
        System.err.println("sum of what was read: " + sink);
        StringBuilder figures = new StringBuilder();
        SECONDS.forEach((step, taken) -> figures.append(figures.length() > 0 ? ", " : "").append("\"" + step + "\": " + taken));
        System.out.println("FIGURES {" + figures + "}");
    }

    private static void time(String name, boolean isWarmUp, Step step) throws Exception {
        long started = System.nanoTime();
        step.run();
        double seconds = Math.round((System.nanoTime() - started) / 1e5) / 1e4;
        if (!isWarmUp) {
            SECONDS.computeIfAbsent(name, key -> new ArrayList<>()).add(seconds);
        }
    }

    private static HFileReader open(byte[] content) throws Exception {
        HFileReader reader = new HFileReaderImpl(
            new ByteArraySeekableDataInputStream(new ByteBufferBackedInputStream(content)), content.length);
        reader.initializeMetadata();
        return reader;
    }

    private static byte[] value(KeyValue entry) {
        int start = entry.getValueOffset();
        return Arrays.copyOfRange(entry.getBytes(), start, start + entry.getValueLength());
    }

    private static void write(CompressionCodec codec, List<String> keys, List<byte[]> values) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream(1 << 27);
        HFileContext context = HFileContext.builder().compressionCodec(codec).build();
        try (HFileWriter writer = new HFileWriterImpl(context, out)) {
            for (int i = 0; i < keys.size(); i++) {
                writer.append(keys.get(i), values.get(i));
            }
        }
        sink += out.size();
    }

    private static void scan(byte[] content, int expected) throws Exception {
        HFileReader reader = open(content);
        int count = 0;
        for (boolean more = reader.seekTo(); more; more = reader.next()) {
            KeyValue entry = reader.getKeyValue().get();
            sink += entry.getKeyContentLength() + value(entry).length;
            count++;
        }
        check(count, expected);
    }

    private static void seek(byte[] content, List<UTF8StringKey> wanted) throws Exception {
        HFileReader reader = open(content);
        reader.seekTo();
        int count = 0;
        for (UTF8StringKey key : wanted) {
            if (reader.seekTo(key) == HFileReader.SEEK_TO_FOUND) {
                sink += value(reader.getKeyValue().get()).length;
                count++;
            }
        }
        check(count, wanted.size());
    }

    private static void check(int found, int expected) {
        if (found != expected) {
            throw new IllegalStateException("found " + found + " of " + expected);
        }
    }

    private static List<UTF8StringKey> wanted(Path places, List<String> keys) throws Exception {
        ByteBuffer numbers = ByteBuffer.wrap(Files.readAllBytes(places));
        List<UTF8StringKey> wanted = new ArrayList<>();
        while (numbers.hasRemaining()) {
            wanted.add(new UTF8StringKey(keys.get(numbers.getInt())));
        }
        return wanted;
    }
}
