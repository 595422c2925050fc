import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.hudi.client.common.HoodieSparkEngineContext;
import org.apache.hudi.common.data.HoodieData;
import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.TableSchemaResolver;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.data.HoodieJavaRDD;
import org.apache.hudi.index.HoodieIndex;
import org.apache.hudi.index.SparkHoodieIndexFactory;
import org.apache.hudi.table.HoodieSparkTable;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/** The JVM's side of bench/indexes.py, called from a PySpark session: tags the keys of a Parquet file with an index. */
public final class TagBench {
    private TagBench() {
    }

    /** Tags all keys of `keys` (columns key and path), `rounds` times; returns seconds, and the number of found keys last. */
    public static List<Double> tag(SparkSession spark, String table, String keys, Map<String, String> options, int rounds) {
        JavaSparkContext java = JavaSparkContext.fromSparkContext(spark.sparkContext());
        List<Double> figures = new ArrayList<>();
        long found = 0;
        for (int round = 0; round < rounds; round++) {
            long started = System.nanoTime();
            found = found(spark, java, table, keys, options);
            figures.add(Math.round((System.nanoTime() - started) / 1e5) / 1e4);
        }
        figures.add((double) found);
        return figures;
    }

    private static long found(SparkSession spark, JavaSparkContext java, String path, String keys, Map<String, String> options) {
        HoodieSparkEngineContext context = new HoodieSparkEngineContext(java);
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder().withPath(path).forTable("bench").withProps(options).build();
        HoodieSparkTable<EmptyHoodieRecordPayload> table = HoodieSparkTable.create(config, context);
        config.setSchema(schema(table.getMetaClient()));
        HoodieIndex<?, ?> index = SparkHoodieIndexFactory.createIndex(config);
        JavaRDD<HoodieRecord<EmptyHoodieRecordPayload>> records = spark.read().parquet(keys).select("key", "path").javaRDD()
            .map(row -> new HoodieAvroRecord<>(new HoodieKey(row.getString(0), row.getString(1)), new EmptyHoodieRecordPayload()));
        HoodieData<HoodieRecord<EmptyHoodieRecordPayload>> tagged = index.tagLocation(HoodieJavaRDD.of(records), context, table);
        long found = HoodieJavaRDD.getJavaRDD(tagged).filter(HoodieRecord::isCurrentLocationKnown).count();
        java.sc().getPersistentRDDs().values().foreach(rdd -> rdd.unpersist(false));
        return found;
    }

    private static String schema(HoodieTableMetaClient client) {
        try {
            return new TableSchemaResolver(client).getTableSchema(false).toString();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
