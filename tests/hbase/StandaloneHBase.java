import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.thrift2.ThriftServer;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;

/**
 * ZooKeeper, an HBase master with a region server, and the Thrift 2 server, in one JVM. Reads its options from hbase-site.xml on
 * the class path. Prints READY when tables can be made; ends when its standard input ends, so that it never outlives the tests.
 *
 * Usage: java -cp FOLDER_OF_SITE:JARS StandaloneHBase.java THRIFT_PORT ZOOKEEPER_FOLDER
 */
public class StandaloneHBase {
    public static void main(String[] args) throws Exception {
        Thread watch = new Thread(StandaloneHBase::endWithInput);
        watch.setDaemon(true);
        watch.start();
        Configuration conf = HBaseConfiguration.create();
        MiniZooKeeperCluster zookeeper = new MiniZooKeeperCluster(conf);
        zookeeper.addClientPort(conf.getInt("hbase.zookeeper.property.clientPort", 0));
        zookeeper.startup(new java.io.File(args[1]), 1);
        LocalHBaseCluster cluster = new LocalHBaseCluster(conf, 1, 1);
        cluster.startup();
        while (cluster.getActiveMaster() == null || !cluster.getActiveMaster().isInitialized()) {
            Thread.sleep(50);
        }
        Thread thrift = new Thread(() -> runThrift(conf, args[0]));
        thrift.setDaemon(true);
        thrift.start();
        while (!listens(Integer.parseInt(args[0]))) {
            Thread.sleep(50);
        }
        System.out.println("READY");
        cluster.join();
    }

    private static void runThrift(Configuration conf, String port) {
        try {
            new ThriftServer(conf).run(new String[] {"--port", port, "--infoport", "-1", "--bind", "127.0.0.1", "start"});
        } catch (Exception error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private static boolean listens(int port) {
        try (java.net.Socket probe = new java.net.Socket("127.0.0.1", port)) {
            return true;
        } catch (java.io.IOException error) {
            return false;
        }
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (java.io.IOException error) {
            // The end of the input, too.
        }
        Runtime.getRuntime().halt(0);
    }
}
