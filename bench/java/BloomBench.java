import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.bloom.BloomFilterFactory;

/**
 * The JVM's side of bench/bloom.py: builds and probes bloom filters in memory.
 * Arguments: folder with the texts `keys` and `probes`, repeats, keys of a file, false positive rate.
 */
public final class BloomBench {
    private static final Map<String, List<Double>> SECONDS = new LinkedHashMap<>();
    private static final Map<String, Long> FOUND = new LinkedHashMap<>();

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        int repeats = Integer.parseInt(arguments[1]);
        int fileKeys = Integer.parseInt(arguments[2]);
        double rate = Double.parseDouble(arguments[3]);
        List<String> keys = Files.readAllLines(folder.resolve("keys"), StandardCharsets.UTF_8);
        List<String> probes = Files.readAllLines(folder.resolve("probes"), StandardCharsets.UTF_8);
        for (int round = 0; round <= repeats; round++) {
            measure("SIMPLE", keys, probes, keys.size(), keys.size(), keys.size(), rate, round > 0);
            measure("DYNAMIC_V0", keys, probes, fileKeys, 60_000, 100_000, rate, round > 0);
        }
        StringBuilder seconds = new StringBuilder();
        SECONDS.forEach((step, taken) -> seconds.append(seconds.length() > 0 ? ", " : "").append("\"" + step + "\": " + taken));
        StringBuilder found = new StringBuilder();
        FOUND.forEach((type, count) -> found.append(found.length() > 0 ? ", " : "").append("\"" + type + "\": " + count));
        System.out.println("FIGURES {\"seconds\": {" + seconds + "}, \"found\": {" + found + "}}");
    }

    private static void measure(String type, List<String> keys, List<String> probes, int fileKeys, int entries,
                                int entriesMax, double rate, boolean counts) {
        long started = System.nanoTime();
        List<BloomFilter> filters = new ArrayList<>();
        for (int start = 0; start < keys.size(); start += fileKeys) {
            BloomFilter filter = BloomFilterFactory.createBloomFilter(entries, rate, entriesMax, type);
            for (String key : keys.subList(start, Math.min(start + fileKeys, keys.size()))) {
                filter.add(key);
            }
            filters.add(filter);
        }
        note(type + " build", started, counts);
        started = System.nanoTime();
        long found = 0;
        for (int number = 0; number < probes.size(); number++) {
            if (filters.get(number / fileKeys).mightContain(probes.get(number))) {
                found++;
            }
        }
        note(type + " probe", started, counts);
        FOUND.put(type, found);
    }

    private static void note(String step, long started, boolean counts) {
        if (counts) {
            double seconds = Math.round((System.nanoTime() - started) / 1e5) / 1e4;
            SECONDS.computeIfAbsent(step, key -> new ArrayList<>()).add(seconds);
        }
    }
}
