import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.io.hadoop.HoodieHFileUtils;
import org.apache.hudi.org.apache.hadoop.hbase.Cell;
import org.apache.hudi.org.apache.hadoop.hbase.KeyValue;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hudi.org.apache.hadoop.hbase.io.hfile.HFileScanner;

/** Reads HFiles with HBase's reader, as Hudi 0.15 does. It prints what `HFileJudge` prints. */
public final class HBaseJudge {
    public static void main(String[] paths) throws Exception {
        FileSystem files = FileSystem.getLocal(new Configuration());
        for (String path : paths) {
            System.out.println(judge(files, new Path(path)));
        }
    }

    private static String judge(FileSystem files, Path path) throws Exception {
        MessageDigest keys = MessageDigest.getInstance("SHA-256");
        MessageDigest values = MessageDigest.getInstance("SHA-256");
        HFile.Reader reader = HoodieHFileUtils.createHFileReader(files, path, new CacheConfig(files.getConf()), files.getConf());
        HFileScanner scan = reader.getScanner(false, false);
        HFileScanner seek = reader.getScanner(false, true);
        long scanned = 0;
        long found = 0;
        for (boolean more = scan.seekTo(); more; more = scan.next()) {
            Cell entry = scan.getCell();
            byte[] key = Arrays.copyOfRange(
                entry.getRowArray(), entry.getRowOffset(), entry.getRowOffset() + entry.getRowLength());
            byte[] value = value(entry);
            add(keys, key);
            add(values, value);
            scanned++;
            found += seek.seekTo(new KeyValue(key, null, null, null)) == 0 && Arrays.equals(value, value(seek.getCell())) ? 1 : 0;
        }
        // Hudi 0.15 looks keys up in files of no entries too.
        boolean isAbsent = seek.seekTo(new KeyValue(new byte[] {0, 0, 0}, null, null, null)) != 0;
        HexFormat hex = HexFormat.of();
        return reader.getEntries() + " " + scanned + " " + (isAbsent ? found : -1) + " "
            + hex.formatHex(keys.digest()) + " " + hex.formatHex(values.digest());
    }

    private static byte[] value(Cell entry) {
        int start = entry.getValueOffset();
        return Arrays.copyOfRange(entry.getValueArray(), start, start + entry.getValueLength());
    }

    private static void add(MessageDigest digest, byte[] bytes) {
        digest.update(bytes);
        digest.update(ByteBuffer.allocate(4).putInt(bytes.length).array());
    }
}
